"""How many seconds an epoch of each model takes on NL27k, beside OpenUKGE's where it has the model: the same work.

The work: NL27k's training facts (from the directory that UKGE_DATA names), with the dimension, batch size and number of
corruptions that the model is published with here (`ukge.settings.variants`), Adam. Both run some steps and the epoch is
what its steps would take; they take turns, each time in a process of its own that takes as many steps before the
clock starts, so that noise of the machine hits both. Shown are the medians of the rounds: seconds by the clock, and of
processor time, which other work on the machine disturbs less.

OpenUKGE gets a virtual environment in a cache directory (see train_speed.py); where it cannot be installed or run, ours
is shown alone. unKR is not timed: pip refuses the PyTorch Lightning 1.5.10 that it asks for.

    python benchmarks/field_speed.py [--steps 10] [--rounds 3] [--models NAMES] [--skip-openukge] [--cache DIR]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from train_speed import environment  # type: ignore[import-not-found, unused-ignore]

ENTITIES, RELATIONS, FACTS = 27_221, 417, 149_112
SCORERS = {"passleaf": "DistMult", "passleaf-complex": "ComplEx", "passleaf-rotate": "RotatE"}
THEIRS = {"beurre", "focuse", "gtranse", "ukge-logi", *SCORERS}
"""What OpenUKGE has of these, and can be timed batch by batch."""
Steps = Callable[[], object]
"""Takes the steps that are timed."""


def facts() -> list[tuple[int, int, int, float]]:
    """Return NL27k's training facts."""
    with Path(os.environ["UKGE_DATA"], "nl27k", "train.tsv").open(encoding="utf-8") as lines:
        rows = (line.split("\t") for line in lines)
        return [(int(h), int(r), int(t), float(c)) for h, r, t, c in rows]


def settings(model: str) -> dict[str, Any]:
    """Return the settings of a model of the field, as it is published here."""
    from ukge.reproduction.recipes import contestants
    from ukge.settings.variants import variant

    config = variant(contestants.get(model).variant)
    scorer = {"scorer": SCORERS[model].lower()} if model in SCORERS else {}
    return config.replace(**scorer).to_dict()


def ours(chosen: dict[str, Any], n: int) -> Steps:
    """Return an epoch of our engine over n batches of facts."""
    import numpy as np

    from ukge.learning.data import TrainingData
    from ukge.learning.engines import engines
    from ukge.models.model import init
    from ukge.models.scorers import scorers
    from ukge.settings.config import from_dict

    config = from_dict(chosen)
    model, size = config.model, n * config.optimiser.batch_size
    table = np.array(facts())[:size]
    head, relation, tail = (np.ascontiguousarray(table[:, i], dtype=np.int32) for i in range(3))
    confidence, names = table[:, 3].astype(np.float32), [str(number) for number in range(RELATIONS)]
    data = TrainingData(head, relation, tail, confidence, ENTITIES, RELATIONS, relation_names=names)
    parameters = init(scorers.get(model.scorer), ENTITIES, RELATIONS, model.dim, model.init_scale, seed=0)
    engine = engines.get(config.runtime.engine)(parameters, data, config)
    numbers = iter(range(2))
    return lambda: engine.epoch(next(numbers))


def openukge(model: str, chosen: dict[str, Any], n: int) -> Steps:
    """Return an epoch of OpenUKGE's trainer of the same model over n batches of facts."""
    import torch
    from openukge import loss, models, training  # type: ignore[import-not-found, unused-ignore]
    from openukge.data.ukg_data_module import UKGDataModule  # type: ignore[import-not-found, unused-ignore]
    from openukge.data.ukg_sampler import UKGSampler  # type: ignore[import-not-found, unused-ignore]

    dim, batch = chosen["model"]["dim"], chosen["optimiser"]["batch_size"]
    negatives = chosen["sampling"]["negatives"]
    every = facts()
    size = {"num_ent": ENTITIES, "num_rel": RELATIONS, "emb_dim": dim}
    weights = {"delta": 1.0, "min": 1e-3, "rel_trans": 1e-3, "rel_scale": 1e-3}
    if model == "beurre":
        parts = models.BEUrRE(**size, gumbel_beta=0.01), loss.BEUrRELoss(None, weights), training.BEUrRETrainer
    elif model == "focuse":
        parts = (
            models.FocusE(**size, base_model="DistMult", margin=1.0, reg_scale1=0.0, reg_scale2=0.001),
            loss.FocusELoss(),
            training.FocusETrainer,
        )
    elif model == "gtranse":
        parts = models.GtransE(**size, margin=10.0, reg_scale=0.0), loss.GtransELoss(2, 10.0), training.GtransETrainer
    elif model in SCORERS:
        parts = (
            models.PASSLEAF(**size, reg_scale=0.005, margin=2.0, score_function=SCORERS[model]),
            loss.PASSLEAFLoss(),
            training.PASSLEAFTrainer,
        )
    else:
        parts = models.UKGE(**size), loss.UKGELoss(), training.UKGETrainer
    network, objective, trainer = parts
    torch.manual_seed(0)
    own, few = every[: n * batch], every[:100]
    given: dict[str, Any] = {"train": own, "val": few, "test": few, "test_neg": few, "all_true": set()}
    given |= {"soft_logic": [], "hr_map": {}, "hr_map_val": {}, "ratio_psl": 0.0}
    given |= {"num_ent": ENTITIES, "num_rel": RELATIONS}
    sampler = UKGSampler(given, negatives, high_threshold=0.8, num_partitions=5)
    module = UKGDataModule(sampler=sampler, batch_size=batch, num_workers=0)
    optimiser = training.OptimBuilder({"optimizer": {"type": "Adam", "lr": 0.001}})
    more = {"t_new_semi": 20, "t_semi_train": 30} if model in SCORERS else {}
    made = trainer(module, network, objective, optimiser, **more)
    # Its β falls with the share of the epochs that is over, of which one alone has none.
    return lambda: made._train_epoch(0, 1) if model == "focuse" else made.fit(epochs=1, eval_freq=2)


def child(who: str, model: str, chosen: dict[str, Any], n: int) -> None:
    """Take n steps, then n that count; print the seconds of an epoch by the clock and of the processor."""
    with contextlib.redirect_stdout(sys.stderr):
        steps = ours(chosen, n) if who == "ours" else openukge(model, chosen, n)
        steps()  # compiles, and makes pools
        began, used = time.perf_counter(), time.process_time()
        steps()
        taken = time.perf_counter() - began, time.process_time() - used
    share = FACTS / (n * chosen["optimiser"]["batch_size"])
    print(json.dumps([share * each for each in taken]))


def timed(python: Path, who: str, model: str, chosen: dict[str, Any], n: int) -> list[float]:
    """Return what a process of its own found, or say what it died of."""
    command = [str(python), __file__, "--child", who, model, json.dumps(chosen), "--steps", str(n)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{who} of {model}: {' '.join(done.stderr.strip().splitlines()[-1:])}")
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def rounds(contenders: dict[str, Path], model: str, given: argparse.Namespace) -> Iterator[tuple[str, list[float]]]:
    """Yield for each contender the medians of its turns."""
    chosen = settings(model)
    found: dict[str, list[list[float]]] = {who: [] for who in contenders if who == "ours" or model in THEIRS}
    for _ in range(given.rounds):
        for who, taken in found.items():
            try:
                taken.append(timed(contenders[who], who, model, chosen, given.steps))
            except RuntimeError as error:
                print(error, file=sys.stderr)
    for who, each in found.items():
        if each:
            yield who, [statistics.median(column) for column in zip(*each, strict=True)]


def main() -> int:
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10, help="steps of a turn")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contender")
    parser.add_argument("--models", default="", help="models of the field, with commas; all if not given")
    parser.add_argument("--skip-openukge", action="store_true", help="do not install or run OpenUKGE")
    parser.add_argument("--cache", type=Path, default=cached / "ukge-bench", help="where the environment is kept")
    parser.add_argument("--child", nargs=3, metavar=("WHO", "MODEL", "SETTINGS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child[0], given.child[1], json.loads(given.child[2]), given.steps)
        return 0
    from ukge.reproduction.recipes import FIELD_MODELS, registered

    contenders = {"ours": Path(sys.executable)}
    if not given.skip_openukge:
        try:
            contenders["openukge"] = environment(given.cache, "openukge")
        except RuntimeError as error:
            print(error)
    wanted = [name for name in given.models.split(",") if name] or [name for name in FIELD_MODELS if registered(name)]
    print(f"NL27k, {FACTS:,} facts; seconds per epoch (of the processor), {os.cpu_count()} cores; {given.steps} steps")
    for model in wanted:
        found = dict(rounds(contenders, model, given))
        texts = [f"{who} {clock:.1f} ({processor:.1f})" for who, (clock, processor) in found.items()]
        ratio = found["openukge"][1] / found["ours"][1] if len(found) == 2 else None
        print(f"{model:18} {'   '.join(texts)}{'' if ratio is None else f'   {ratio:.1f}× less work'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
