"""What the false ones among the asked links are like: one fit, and an answer for whatever kind of false link is asked.

Trees are fitted to facts and to a mixture of negative links. Of other false links than that mixture, what they say of a
fact is wrong by a known factor. With c(x) the chance to hold beside the mixture, in which kind k has the share w_k, and
q_k(x) how likely a negative link with this evidence is one of kind k, by Bayes' rule

    odds(x) = c(x) / (1 − c(x)) · π / (1 − π) / Σ_k q_k(x) · v_k / w_k

are those among links of which a share π holds and the false ones have shares v_k of the kinds. So q, which a few trees
tell, is all that it takes. π and v can be told, or found from many links that are asked about together: those under
which these links are likeliest (expectation maximisation, as Saerens, Latinne and Decaestecker have it, 2002).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError, known_names
from ukge.evaluation.distribution import Asked
from ukge.evidence.binning import Binned
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.trees import Floats, Matrix, Trees, grow, side_by_side

TREES, LEAVES, RATE = 60, 15, 0.1
"""Trees that tell a kind from the others. More of them are surer than they should be."""

TRUSTS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98)
"""How far trees may be believed; what makes links that they did not see likeliest is taken."""

FOLDS = 2
"""Parts of the negative links that are judged by trees which did not see them."""

FEWEST = 100
"""Links that it takes to find out what links are asked about."""

ROUNDS, STILL = 500, 1e-6
"""Rounds of the search for the likeliest shares at most, and a change of the shares that ends it."""

SHOWN = 0.05
"""Share of a kind from which on it is told."""

EDGE = 1e-6
"""How far a chance is kept from 0 and 1, so that it has odds."""


@dataclass(frozen=True, eq=False)
class FalseLinks:
    """Tells of which kind a false link with some evidence is: trees for each kind, and its share of the mixture."""

    names: tuple[str, ...]
    share: Floats
    trust: Floats
    """one number: how far the trees are believed; for the rest a link is of each kind by its share"""
    trees: tuple[Trees, ...]

    def chances(self, columns: Matrix) -> Floats:
        """Return how likely a negative link with such evidence is one of each kind, a column per kind."""
        return self.believed(_chances([each.predict(columns) for each in self.trees]))

    def believed(self, chances: Floats) -> Floats:
        """Return chances with as much doubt as the trees deserve."""
        return self.trust * chances + (1.0 - self.trust) * self.share

    def asked(self, prior: float, negatives: Mapping[str, float] | None) -> Asked:
        """Return what is asked about: links of which `prior` hold, and the false ones have these shares of kinds."""
        if negatives is None:
            return Asked(prior)
        for kind in negatives:
            if kind not in self.names:
                raise ConfigError(
                    f"this evidence has not learnt from negative links of kind '{kind}'",
                    hint=f"{known_names(kind, self.names)} Or fit it again with such links.",
                )
        total = sum(negatives.values())
        if not total > 0:
            raise ConfigError("the shares of the kinds of false links are all 0", hint="Give one a share above 0.")
        wanted = np.array([negatives.get(kind, 0.0) / total for kind in self.names])
        return Asked(prior, tuple((wanted / self.share).tolist()))

    def shares(self, asked: Asked) -> dict[str, float]:
        """Return the share of each kind among the false links that are asked about."""
        times = asked.times or (1.0,) * len(self.names)
        return {kind: float(own * each) for kind, own, each in zip(self.names, self.share, times, strict=True)}

    def likeliest(
        self, odds: Floats, columns: Matrix, prior: float | None = None, negatives: Mapping[str, float] | None = None
    ) -> Asked:
        """Return the shares under which links with these odds beside the mixture, and this evidence, are likeliest.

        A prior that is known is kept, and so are the shares of the kinds.
        """
        if len(odds) < FEWEST:
            raise DataError(
                f"{len(odds)} links are too few to tell how many of them hold and what the false ones are like",
                hint=f"It takes {FEWEST}; or say it yourself: ‹prior=0.1›, ‹negatives=corruption›.",
            )
        told = self.asked(0.5, negatives).times
        # Densities of the evidence beside that of facts: of facts, of the links of each kind or of all kinds told.
        dense, start = self.chances(columns) / self.share / odds[:, None], self.share
        if told:
            dense, start = dense @ (self.share * told)[:, None], np.ones(1)
        density = np.concatenate([np.ones((len(odds), 1)), dense], axis=1)
        hold = 0.5 if prior is None else prior
        among = np.concatenate([[hold], (1.0 - hold) * start])
        for _ in range(ROUNDS):
            part = density * among
            found = (part / part.sum(axis=1, keepdims=True)).mean(axis=0)
            if prior is not None:
                found[1:] *= (1.0 - prior) / max(found[1:].sum(), EDGE)
                found[0] = prior
            step, among = float(np.abs(found - among).max()), found
            if step < STILL:
                break
        least = 0.5 / len(odds)
        times = told or tuple((among[1:] / max(among[1:].sum(), EDGE) / self.share).tolist())
        return Asked(float(np.clip(among[0], least, 1.0 - least)), times)


def fit_false_links(
    by_kind: Mapping[str, Matrix], settings: EvidenceSettings
) -> tuple[FalseLinks | None, dict[str, Floats]]:
    """Fit trees that tell the kinds of negative links apart, given the evidence of each kind.

    Also returns the chances of the kinds for the links of each, by trees that did not see them. None where there is one
    kind: it is what links are judged by.
    """
    names = tuple(by_kind)
    if len(names) < 2:
        return None, {}
    columns, sizes = np.concatenate(list(by_kind.values())), [len(each) for each in by_kind.values()]
    label, binned = np.repeat(np.arange(len(names)), sizes), Binned.of(columns)
    few = replace(settings, iterations=min(TREES, settings.iterations), leaves=LEAVES, learning_rate=RATE)
    fold = np.random.default_rng(settings.seed + 2).permutation(len(label)) % FOLDS

    def learn(rows: npt.NDArray[np.intp], kind: int) -> Trees:
        return grow("log_loss", binned.pick(rows), (label[rows] == kind).astype(np.float64), few)

    seen = [np.flatnonzero(fold != number) for number in range(FOLDS)]
    jobs = [partial(learn, rows, kind) for rows in (*seen, np.arange(len(label))) for kind in range(len(names))]
    grown = side_by_side(jobs)
    unseen = np.empty((len(label), len(names)))
    for number in range(FOLDS):
        held = np.flatnonzero(fold == number)
        of_fold = grown[number * len(names) : (number + 1) * len(names)]
        unseen[held] = _chances([each.predict(columns[held]) for each in of_fold])
    share = np.array(sizes) / len(label)
    own = np.stack([unseen[np.arange(len(label)), label], share[label]])
    trust = max(TRUSTS, key=lambda each: float(np.log(each * own[0] + (1.0 - each) * own[1]).sum()))
    false = FalseLinks(names, share, np.array([trust]), tuple(grown[-len(names) :]))
    return false, dict(zip(names, np.split(false.believed(unseen), np.cumsum(sizes)[:-1]), strict=True))


def moved(chance: Floats, asked: Asked, kinds: Floats | None) -> Floats:
    """Return the chance to hold among other links than facts and the mixture by half; `kinds` are the chances q."""
    odds = odds_of(chance) * asked.prior / (1.0 - asked.prior)
    if kinds is not None and asked.times:
        odds = odds / np.maximum(kinds @ np.array(asked.times), EDGE)
    return odds / (1.0 + odds)


def odds_of(chance: Floats) -> Floats:
    """Return the odds of chances, which are kept off 0 and 1."""
    kept = np.clip(chance, EDGE, 1.0 - EDGE)
    return kept / (1.0 - kept)


def in_words(asked: Asked, shares: Mapping[str, float], links: int) -> str:
    """Return what was found out about links that are asked about together, in a sentence."""
    told = sorted(((share, kind) for kind, share in shares.items() if share >= SHOWN), reverse=True)
    like = ", ".join(f"{kind} ({share:.0%})" for share, kind in told)
    hold = f"of the {links:,} links about {asked.prior * links:,.0f} hold ({asked.prior:.1%})"
    return f"{hold}; the false ones are like {like}"


def _chances(raw: Sequence[Floats]) -> Floats:
    each = np.stack([1.0 / (1.0 + np.exp(-one)) for one in raw], axis=1)
    chances: Floats = each / each.sum(axis=1, keepdims=True)
    return chances
