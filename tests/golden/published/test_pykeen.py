"""PyKEEN's interactions: what PyKEEN's own models say, our own scorers, and all that can be said without PyKEEN."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ukge.errors import ConfigError
from ukge.models.model import init
from ukge.models.published import pykeen as ours
from ukge.models.scorers import scorers
from ukge.models.scorers.base import dim_of
from ukge.models.scorers.interaction import Interaction, Representation

DOCS = Path(__file__).parents[3] / "docs" / "models.md"
WORKS = (
    *("autosf", "boxe", "complex", "conve", "convkb", "cp", "crosse", "distma", "distmult", "ermlp", "hole", "kg2e"),
    *("lineare", "multilineartucker", "mure", "ntn", "pairre", "proje", "quate", "rescal", "rotate", "se", "simple"),
    *("toruse", "transd", "transe", "transf", "transformer", "transh", "transr", "triplere", "tucker", "um"),
)
WEIGH = ("conve", "convkb", "crosse", "ermlp", "multilineartucker", "proje", "transformer", "tucker")
"""Those with weights beside the rows."""
N_ENTITIES, N_RELATIONS, DIM = 7, 3, 8
PLAIN = {"apply_batch_normalization": False}
OWN: dict[str, dict[str, Any]] = {"cp": {"rank": 4}, "transr": {"relation_dim": DIM}, "conve": PLAIN}
OWN["tucker"] = {**PLAIN, "relation_dim": DIM}
"""What makes PyKEEN's models as large as ours."""


@pytest.fixture
def installed() -> None:
    pytest.importorskip("pykeen", reason="PyKEEN is not installed: pip install 'ukge[pykeen]'")


def their_model(name: str) -> Any:
    """Return a model as PyKEEN makes it, and of interactions without one, one of plain embeddings."""
    from pykeen.models import ERModel, model_resolver  # type: ignore[import-not-found, unused-ignore]
    from pykeen.triples import CoreTriplesFactory  # type: ignore[import-not-found, unused-ignore]

    given = {"triples_factory": CoreTriplesFactory.create(torch.tensor([[0, 0, 1]]), N_ENTITIES, N_RELATIONS)}
    given["random_seed"] = 1
    if name in ("crosse", "multilineartucker", "transformer"):
        sized = {"crosse": "embedding_dim", "multilineartucker": "head_dim", "transformer": "input_dim"}[name]
        kinds = {"multilineartucker": (2, 1), "crosse": (1, 2)}.get(name, (1, 1))
        shapes: dict[str, Any] = {
            f"{each}_representations_kwargs": [{"shape": DIM}] * n
            for each, n in zip(("entity", "relation"), kinds, strict=True)
        }
        return ERModel(interaction=name, interaction_kwargs={sized: DIM}, **given, **shapes)
    if name in ("lineare", "triplere"):
        shapes = {
            "entity_representations_kwargs": {"shape": DIM},
            "relation_representations_kwargs": [{"shape": DIM}] * 3,
        }
        return ERModel(interaction=name, interaction_kwargs={"p": 1}, **given, **shapes)
    return model_resolver.make(name, embedding_dim=DIM, **given, **OWN.get(name, {}))


def table(representations: Any, n: int) -> Tensor:
    """Return PyKEEN's embeddings as rows of ours."""
    weights = [each._embeddings.weight.detach().clone() for each in representations]
    return torch.cat(weights, dim=1) if weights else torch.zeros(n, 0)


@pytest.mark.parametrize("name", WORKS)
def test_an_interaction_says_what_pykeens_model_says(name: str, installed: None) -> None:
    model, scorer = their_model(name), scorers.get(f"pykeen:{name}")
    # Rows as they are after a step, before PyKEEN holds them to their constraints.
    with torch.no_grad():
        for each in (*model.entity_representations, *model.relation_representations):
            each._embeddings.weight += 0.3 * torch.randn_like(each._embeddings.weight)
    entity, relation = (
        table(model.entity_representations, N_ENTITIES),
        table(model.relation_representations, N_RELATIONS),
    )
    assert (entity.shape[1], relation.shape[1]) == (scorer.entity_width(DIM), scorer.relation_width(DIM))
    model.post_parameter_update()
    model.eval()
    with torch.no_grad():
        for weight in model.interaction.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    theirs = {key.replace(".", "_"): each.detach() for key, each in model.interaction.named_parameters()}
    assert [part.name for part in scorer.shared_parts(DIM)] == list(theirs)
    assert bool(theirs) == (name in WEIGH)
    scorer = scorer.bound(theirs)
    facts = torch.cartesian_prod(torch.arange(N_ENTITIES), torch.arange(N_RELATIONS), torch.arange(N_ENTITIES))
    head, kind, tail = facts.T
    close: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}
    with torch.no_grad():
        wanted = model.score_hrt(facts).squeeze(1)
        found = scorer.plausibility(entity[head], relation[kind], entity[tail])
        torch.testing.assert_close(found, wanted, **close)
        tails = scorer.tail_query(entity[head], relation[kind])
        heads = scorer.head_query(relation[kind], entity[tail])
        torch.testing.assert_close(scorer.compare_all(tails, entity), model.score_t(facts[:, :2]), **close)
        torch.testing.assert_close(scorer.compare_all(heads, entity), model.score_h(facts[:, 1:]), **close)
        # Queries of both kinds at once, with an array's candidates for each of them.
        mixed = torch.cat([tails[:9], heads[9:20]])
        answers = torch.cat([tail[:9], head[9:20]])
        torch.testing.assert_close(scorer.compare(mixed, entity[answers]), wanted[:20], **close)
    arrays = [each.numpy() for each in (entity[head], relation[kind], entity[tail])]
    for each in arrays:
        each.flags.writeable = False
    in_numpy = scorer.bound({key: each.numpy() for key, each in theirs.items()}).plausibility(*arrays)
    assert in_numpy.dtype == np.float32
    np.testing.assert_allclose(in_numpy, wanted.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", WORKS)
def test_gradients_reach_every_table_and_are_finite(name: str, installed: None) -> None:
    scorer = scorers.get(f"pykeen:{name}")
    start = init(scorer, N_ENTITIES, N_RELATIONS, DIM, 0.3, seed=1)
    entity, relation = (torch.from_numpy(each).requires_grad_() for each in (start.entity, start.relation))
    shared = {key: torch.from_numpy(each).requires_grad_() for key, each in start.shared.items()}
    if name == "multilineartucker":  # starts at 0, so that entities have no slope before the first step
        shared = {key: (each + 1).detach().requires_grad_() for key, each in shared.items()}
    scorer = scorer.bound(shared)
    pick = torch.arange(N_RELATIONS)
    head, kind, tail = entity[pick], relation[pick], entity[pick + 1]
    mixed = torch.cat([scorer.tail_query(head, kind), scorer.head_query(kind, tail)])
    loss = scorer.compare_all(mixed, entity).square().sum() + scorer.plausibility(head, kind, head).sum()
    found = torch.autograd.grad(loss, (entity, relation, *shared.values()), allow_unused=not relation.shape[1])
    for gradient in found:
        assert gradient is None or gradient.isfinite().all()
    assert (found[0].abs().sum(0) > 0).all()


@pytest.mark.parametrize(
    ("theirs", "name"),
    [
        ("distmult", "distmult"),
        ("complex", "complex"),
        ("transe,p=1", "transe-l1"),
        ("transe,p=2", "transe-l2"),
        ("um,p=2,power_norm=false", "transe-l2"),
        ("rotate", "rotate"),
    ],
)
def test_what_both_have_is_the_same(theirs: str, name: str, installed: None) -> None:
    scorer, own = scorers.get(f"pykeen:{theirs},free=true"), scorers.get(name)
    generator = torch.Generator().manual_seed(0)
    k = 1 if name == "rotate" else 4  # PyKEEN's distance is Euclidean over all coordinates, ours a sum over them
    widths = (own.entity_width(k), own.relation_width(k), own.entity_width(k))
    head, relation, tail = (torch.randn(6, width, generator=generator, dtype=torch.float64) for width in widths)
    wanted = own.plausibility(head, relation * (not theirs.startswith("um")), tail)

    def pairs(rows: Tensor) -> Tensor:
        return torch.stack(rows.chunk(2, dim=1), dim=2).flatten(1)

    if name == "rotate":
        relation = torch.cat([relation.cos(), relation.sin()], dim=1)
    if name in ("complex", "rotate"):
        head, relation, tail = map(pairs, (head, relation, tail))
    torch.testing.assert_close(scorer.plausibility(head, relation[:, : scorer.relation_width(k)], tail), wanted)
    assert scorer.symmetric == (own.symmetric or theirs.startswith("um"))
    assert scorer.distance != own.inner_product


def test_rows_start_as_pykeens_do(installed: None) -> None:
    before = torch.random.get_rng_state()
    rotate, again = (init(scorers.get("pykeen:rotate"), 40, 9, 6, 0.3, seed=2) for _ in range(2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert np.array_equal(rotate.entity, again.entity)
    assert not np.array_equal(rotate.entity[:9], init(scorers.get("pykeen:rotate"), 9, 9, 6, 0.3, seed=3).entity)
    np.testing.assert_allclose(np.hypot(rotate.relation[:, ::2], rotate.relation[:, 1::2]), 1.0, rtol=1e-5)
    mure = init(scorers.get("pykeen:mure"), 40, 9, 6, 0.3, seed=2).entity
    assert np.abs(mure[:, :6]).max() < 0.006  # normal, of deviation 0.001
    assert (mure[:, 6:] == 0).all()  # two biases
    # Scores of normal rows deviate by √dim: the link divides by it, or the logistic one would have no slope.
    assert init(scorers.get("pykeen:distma"), 400, 9, 100, 0.3, seed=2).link[0] == pytest.approx(
        1 / math.sqrt(300), rel=0.1
    )


def test_weights_start_as_pykeens_do_and_are_those_of_the_dimension(installed: None) -> None:
    tucker, again = (init(scorers.get("pykeen:tucker"), 9, 3, 12, 0.3, seed=2) for _ in range(2))
    core = tucker.shared["core_tensor"]
    assert core.shape == (12, 12, 12)
    assert np.array_equal(core, again.shared["core_tensor"])
    assert np.abs(core).max() <= 1.0  # uniform
    assert core.std() == pytest.approx(3**-0.5, rel=0.05)
    assert init(scorers.get("pykeen:proje"), 9, 3, 4, 0.3, seed=2).shared["b_p"].shape == (1,)
    assert scorers.get("pykeen:convkb,num_filters=5").shared_parts(6)[0].shape == (5, 1, 1, 3)


def test_the_page_names_what_works(installed: None) -> None:
    assert ours.usable() == WORKS
    told = " ".join(DOCS.read_text(encoding="utf-8").split())
    assert ", ".join(f"`{name}`" for name in WORKS) in told


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("TransDD", "PyKEEN has no interaction 'TransDD'\nWhat to do: Did you mean 'transd'"),
        ("ermlpe", "PyKEEN's interaction 'ermlpe' does not work here: it cannot do without normalisation over a batch"),
        ("conve,embedding_dim=9", "PyKEEN's interaction 'conve' has no setting 'embedding_dim'"),
        ("transe,q=1", "PyKEEN's interaction 'transe' has no setting 'q'\nWhat to do: Known: free, p, power_norm"),
        ("transe,p", "'p' is no setting\nWhat to do: Say it as NAME=VALUE"),
        ("transe,p=far", "PyKEEN's interaction 'transe' does not work with these settings"),
        ("quate,k=3", "PyKEEN's interaction 'quate' does not work with these settings"),
        ("cp,k=0", "k must be a whole number above 0, not 0"),
        ("cp,free=2", "free must be true or false, not 2"),
        ("transe,p=nan", "PyKEEN's interaction 'transe' does not work with these settings: scores of random facts"),
    ],
)
def test_what_is_wrong_with_a_name_is_told(text: str, what: str, installed: None) -> None:
    with pytest.raises(ConfigError) as caught:
        scorers.get(f"pykeen:{text}")
    assert str(caught.value).startswith(what)


def test_a_dimension_that_does_not_suit_is_told(installed: None) -> None:
    with pytest.raises(ConfigError, match=r"'conve' does not work with dim=7: .*\nWhat to do: Choose another dim"):
        init(scorers.get("pykeen:conve"), N_ENTITIES, N_RELATIONS, 7, 0.3, seed=1)


def test_a_name_is_pykeens_in_any_case_and_sizes_can_be_given(installed: None) -> None:
    assert scorers.get("pykeen:TransD") == scorers.get("pykeen:transd")
    wide = scorers.get("pykeen:transd,e=3")
    assert (wide.entity_width(5), wide.relation_width(5)) == (10, 6)
    assert scorers.get("pykeen:cp,k=1").entity_width(5) == 10


def test_without_pykeen_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.split(".")[0] == "pykeen"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pykeen", None)
    ours.interaction.cache_clear()
    with pytest.raises(ConfigError, match=r"needs PyKEEN, which is not installed\nWhat to do: .*'ukge\[pykeen\]'"):
        scorers.get("pykeen:transd")
    for name in ("pykeen", "pykeen:"):
        with pytest.raises(ConfigError, match="'pykeen' alone is no scorer\nWhat to do: Say which: pykeen:NAME"):
            scorers.get(name)
    with pytest.raises(ConfigError, match="Did you mean 'pykeen:NAME'"):
        scorers.get("pyken:transd")


class Bilinear(torch.nn.Module):
    """h M t + a head's bias: a matrix for each relation, and parts that only one side has."""

    head_indices, tail_indices = (0, 1), (0,)

    def forward(self, h: list[Tensor], r: Tensor, t: Tensor) -> Tensor:
        return torch.einsum("...d,...de,...e->...", h[0], r, t) + h[1]


def test_rows_are_taken_apart_by_the_letters_of_their_shapes() -> None:
    scorer = Interaction("stand-in", Bilinear(), (Representation("d"), Representation("")), (Representation("dd"),))
    assert (scorer.entity_width(2), scorer.relation_width(2), scorer.relation_width(3)) == (3, 4, 9)
    head, relation, tail = (
        torch.tensor([1.0, 2.0, 10.0]),
        torch.tensor([1.0, 2.0, 3.0, 4.0]),
        torch.tensor([5.0, 6.0, 7.0]),
    )
    # (1, 2) · ((1, 2), (3, 4)) = (7, 10), times (5, 6) is 95; the head's own bias is 10.
    assert scorer.plausibility(head, relation, tail).item() == 105.0
    assert scorer.compare(scorer.head_query(relation, tail), head).item() == 105.0
    assert scorer.plausibility(tail, relation, head).item() == (23.0 + 2 * 34.0) + 7.0
    assert [dim_of(width, scorer.entity_width) for width in (0, 2, 3, 4, 129)] == [1, 1, 2, 3, 128]
    assert Representation("kd", (("k", 2),)).shape(3) == (2, 3)
    assert Representation("de", is_complex=True).width(3) == 18
    pair = Representation("d", is_complex=True).unpacked(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), 2)
    assert pair.tolist() == [[1 + 2j, 3 + 4j]]
