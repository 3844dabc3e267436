"""`ukge fuse` and `ukge calibrate`: one confidence per fact from what sources claim, and one source's calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import err, note, plain_table, write_text
from ukge.cli.flags import AsJson, Out, Seed, SpreadsheetSafe, real
from ukge.cli.reading import Reading, file_of, tell_bad, tell_skipped
from ukge.cli.results import check_out, deliver, facts_table
from ukge.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from ukge.fusing import Fused
    from ukge.fusing.labels import Labelled
    from ukge.fusing.scores import Scores
    from ukge.graph.claims import Claims
    from ukge.graph.readers.rows import Rows
    from ukge.graph.uncertain import UncertainGraph

SHOWN_SOURCES = 30
"""Sources whose reliability is printed; all are in the report."""

CLAIMS_ONLY = ("scale", "bad_rows", "most_bad")
"""How claims are read, and labels beside them are not."""

LABELLED = typer.Option(
    "--labelled",
    help="Facts with a column label (0…1) to learn from, a few hundred; or a run that people have labelled.",
)
Labels = Annotated[Path | None, LABELLED]


def fuse(
    claims: Annotated[
        Path,
        typer.Argument(
            help="Head, relation, tail, confidence, source, and any other columns; - is standard input. "
            "Or a run, if CANDIDATES follow.",
            metavar="CLAIMS",
        ),
    ],
    candidates: Annotated[
        Path | None, typer.Argument(help="The claims, where a run was named first.", metavar="[CANDIDATES]")
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="A run with evidence, whose graph has a say too.", metavar="RUN")
    ] = None,
    labelled: Labels = None,
    facts: Annotated[bool, typer.Option("--facts", help="One row per fact instead of one per claim.")] = False,
    known: Annotated[
        Path | None,
        typer.Option("--with", help="Fuse by what --save kept of these sources; nothing is learnt.", metavar="FILE"),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="Keep what was learnt of the sources, as JSON.", metavar="FILE")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write reliabilities and scores as JSON.", metavar="FILE")
    ] = None,
    out_file: Out = None,
    safe: SpreadsheetSafe = False,
    prior: Annotated[
        float,
        real("--prior", help="Share of true facts, where one source and a run are fused without labels.", inside=True),
    ] = 0.5,
    seed: Seed = 0,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Make one calibrated confidence per fact of what several sources claim, how sure and how often.

    Without labels, sources are judged by how they agree, and one that copies another counts once. With labels the
    weights are learnt, and what was gained is measured on labels that were not seen; where nothing is, confidences stay
    as they were. With a run, its graph is one opinion more; one source alone is weighed against it. Rows keep their
    order and other columns, and a column of the file that is called like one of ours is given_NAME in the result.
    """
    from ukge.evidence.fact_tables import read_facts
    from ukge.fusing import Fusion

    if candidates is not None:
        if run is not None:
            raise ConfigError("‹run› is named twice", hint="Give ‹run=RUN› and the claims alone.")
        run, claims = claims, candidates
    elif claims.is_dir():
        raise ConfigError(
            f"{claims} is a directory, and no file of claims", hint="Give ‹run=RUN› and a file of claims."
        )
    if known is not None and (labelled is not None or save is not None):
        raise ConfigError("with ‹with› nothing is learnt", hint="Leave out ‹labelled› and ‹save›.")
    check_out(out_file)
    with file_of(claims, reading.format) as path:
        rows = read_facts(path, confidence=True, source=True, **reading.options)
    tell_skipped(str(claims), rows.skipped)
    tell_bad(str(claims), rows.aside)
    taken = _claims_of(rows)
    if run is not None and len(taken.sources) == 1 and known is None:
        if save or report or facts:
            raise ConfigError(
                "the claims name one source, and ‹save›, ‹report› and ‹facts› are of several", hint="Leave them out."
            )
        from ukge.cli.predict import fuse_one

        fuse_one(run, rows, labelled, prior, out_file, safe=safe, as_json=as_json, reading=reading)
        return
    with err().status("asking who agrees with whom"):
        graph, notes = (None, None) if run is None else _opinions(run, taken)
        if known is not None:
            fused = Fusion.load(known)(taken, graph=graph)
            _tell_strangers(fused, known)
        else:
            labels = None if labelled is None else _labels(labelled, taken.facts, reading)
            fused = Fusion.fit(taken, graph=graph, labelled=labels, seed=seed)
    if save is not None:
        fused.fusion.save(save)
    if report is not None:
        write_text(report, _as_json(fused))
    _tell_fused(fused)
    table = _by_fact(fused, graph) if facts else _by_claim(fused, rows, graph, notes)
    what = "facts" if facts else "claims"
    deliver(table, out_file, as_json=as_json, safe=safe, shown=lambda: facts_table(table), what=what)


def calibrate(
    file: Annotated[
        Path,
        typer.Argument(help="Head, relation, tail, confidence, and any other columns; - is standard input."),
    ],
    labelled: Labels = None,
    source: Annotated[
        str | None, typer.Option("--source", help="Only the claims of this source.", metavar="NAME")
    ] = None,
    known: Annotated[
        Path | None, typer.Option("--with", help="A calibration that was kept, to be applied.", metavar="CAL")
    ] = None,
    out_file: Annotated[
        Path | None,
        typer.Option(
            "--out", help="With --labelled: the calibration, as JSON. With --with: the calibrated rows.", metavar="FILE"
        ),
    ] = None,
    safe: SpreadsheetSafe = False,
    seed: Seed = 0,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Learn what one source's confidences mean from labelled facts, or apply what was learnt to another file.

    Isotonic, Platt and beta calibration are tried on folds, and the best is kept, unless the confidences as they are do
    better.
    """
    import numpy as np

    from ukge.evidence.fact_tables import judged, read_facts
    from ukge.fusing import Calibrator

    if (labelled is None) == (known is None):
        raise ConfigError(
            "a calibration is learnt or applied", hint="Give ‹labelled=FILE› to learn one, or ‹with=CAL› to apply one."
        )
    if known is not None:
        check_out(out_file)
    with file_of(file, reading.format) as path:
        rows = read_facts(path, confidence=True, source=True, **reading.options)
    tell_skipped(str(file), rows.skipped)
    tell_bad(str(file), rows.aside)
    taken = _claims_of(rows)
    if known is not None:
        made = Calibrator.load(known)
        own = _of_source(taken, source or made.source)
        confidence = np.where(own, made(taken.confidence), taken.confidence)
        table = judged(rows, {"confidence": confidence, "extractor": taken.confidence})
        if not own.all():
            note(f"{np.sum(~own):,} of {len(own):,} rows are of other sources, and stay as they were")
        deliver(table, out_file, as_json=as_json, safe=safe, shown=lambda: facts_table(table), what="claims")
        return
    assert labelled is not None
    label = _labels(labelled, taken.facts, reading).label[taken.fact]
    chosen = np.flatnonzero(_of_source(taken, source) & ~np.isnan(label))
    if source is None and len(taken.sources) > 1:
        note(f"the claims of {len(taken.sources):,} sources are calibrated as if they were one's; --source names one")
    made = Calibrator.fit(taken.confidence[chosen], label[chosen], fact=taken.fact[chosen], source=source, seed=seed)
    if out_file is not None:
        made.save(out_file)
        note(f"the calibration ({made.method}) was written to {out_file}")
    if as_json:
        from ukge.cli.console import print_json

        print_json({"method": made.method, "scores": {name: each.to_dict() for name, each in made.scores.items()}})
        return
    _tell_scores(made.scores, made.method)


def _run_and_claims(run: Path | None, claims: Path, candidates: Path | None) -> tuple[Path | None, Path]:
    """Return what run is meant and which claims: `RUN CANDIDATES` is another way to say `CLAIMS --run RUN`."""
    if candidates is not None:
        if run is not None:
            raise ConfigError("‹run› is named twice", hint="Give ‹run=RUN› and the claims alone.")
        return claims, candidates
    if claims.is_dir():
        raise ConfigError(f"{claims} is a directory, no file of claims", hint="Give ‹run=RUN› and a file of claims.")
    return run, claims


def _by_fact(fused: Fused, graph: npt.NDArray[np.float64] | None) -> pa.Table:
    table = fused.table()
    return table if graph is None else table.append_column("graph", _column(graph))


def _by_claim(
    fused: Fused, rows: Rows, graph: npt.NDArray[np.float64] | None, notes: tuple[str | None, ...] | None
) -> pa.Table:
    from ukge.evidence.fact_tables import judged

    fact = fused.claims.fact
    columns: dict[str, Any] = {"confidence": fused.confidence[fact], "extractor": fused.claims.confidence}
    columns |= {} if graph is None else {"graph": _column(graph[fact])}
    return judged(rows, columns, None if notes is None else tuple(notes[at] for at in fact.tolist()))


def _tell_strangers(fused: Fused, known: Path) -> None:
    """Say which sources a fusion that was kept does not know."""
    unknown = fused.fusion.unknown(fused.claims)
    if unknown:
        named = ", ".join(unknown[:5]) + (", …" if len(unknown) > 5 else "")
        note(f"{known} knows nothing of {len(unknown):,} sources, whose claims count for nothing: {named}")


def _claims_of(rows: Rows) -> Claims:
    from ukge.graph.claims import Claims
    from ukge.graph.readers.rows import SOURCE

    names, confidence = rows.names, rows.numbers["confidence"]
    columns = names["head"], names["relation"], names["tail"]
    return Claims.from_columns(*columns, confidence, rows.others.get(SOURCE), where=rows.where)


def _of_source(claims: Claims, source: str | None) -> npt.NDArray[np.bool_]:
    import numpy as np

    if source is None:
        return np.ones(len(claims), np.bool_)
    return np.asarray(claims.source == claims.sources.id(source), np.bool_)


def _labels(labelled: Path, facts: UncertainGraph, reading: Reading) -> Labelled:
    from ukge.evidence.fact_tables import read_facts
    from ukge.fusing.labels import match_labels

    if labelled.is_dir():
        return _labels_of_run(labelled, facts)
    columns = {role: at for role, at in (reading.options.get("columns") or {}).items() if role != "confidence"}
    options = {**reading.options, "columns": columns} if columns else reading.options
    rows = read_facts(
        labelled, label=True, **{name: value for name, value in options.items() if name not in CLAIMS_ONLY}
    )
    names = rows.names
    found = match_labels(names["head"], names["relation"], names["tail"], rows.numbers["label"], facts)
    if found.missed:
        note(f"{labelled}: {found.missed:,} of {len(rows):,} labelled facts are not among the claims")
    return found


def _labels_of_run(run: Path, facts: UncertainGraph) -> Labelled:
    from ukge.fusing.labels import match_labels
    from ukge.runs.labels import read_labels

    said = read_labels(run)
    head, relation, tail = (said[name].combine_chunks() for name in ("head", "relation", "tail"))
    found = match_labels(head, relation, tail, said["label"].to_numpy(), facts)
    if found.missed:
        note(f"{run}: {found.missed:,} of {len(said):,} labelled facts are not among the claims")
    return found


def _opinions(run: Path, claims: Claims) -> tuple[npt.NDArray[np.float64], tuple[str | None, ...]]:
    """Return what a run says of each claimed fact, and why it says nothing of others."""
    import numpy as np

    from ukge.evidence import Evidence
    from ukge.evidence.fact_tables import KnownFacts
    from ukge.graph.columns import NOWHERE
    from ukge.graph.fact import TRIPLE
    from ukge.graph.readers.rows import Rows

    evidence = Evidence.load(run)
    named = claims.facts.facts()
    rows = Rows({role: named[role].combine_chunks() for role in TRIPLE}, {}, {}, NOWHERE)
    facts = KnownFacts.of(rows, evidence.entities, evidence.relations, hint="Check that the run is of this graph.")
    found = np.full(len(rows), np.nan)
    found[facts.known] = evidence.predict_ids(*facts.ids)
    return found, facts.notes


def _column(graph: npt.NDArray[np.float64]) -> pa.Array:
    import pyarrow as pa

    return pa.array(graph, from_pandas=True)


def _as_json(fused: Fused) -> str:
    import json

    weighing = fused.weighing
    plain = {
        "sources": [each.to_dict() for each in fused.sources],
        "way": fused.fusion.weights.way,
        "structure": fused.structure,
        "scores": None if weighing is None else {name: each.to_dict() for name, each in weighing.scores.items()},
    }
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"


def _tell_fused(fused: Fused) -> None:
    """Tell on standard error who is how reliable, and what was gained."""
    from rich.text import Text

    from ukge.fusing.weighing import KEPT, WAYS
    from ukge.progress.safe_console import one_line

    console = err()
    table = plain_table(
        f"{len(fused.claims):,} claims of {len(fused.sources):,} sources, {len(fused.confidence):,} facts"
    )
    for name in ("source", "facts", "says", "holds", "90% interval", ""):
        table.add_column(name, justify="left" if name in ("source", "") else "right", overflow="fold")
    for each in fused.sources[:SHOWN_SOURCES]:
        copied = ", ".join(f"{share:.0%} from {name}" for name, share in each.copies)
        cells = (f"{each.facts:,}", f"{each.says:.2f}", f"{each.holds:.2f}", f"{each.low:.2f} – {each.high:.2f}")
        table.add_row(Text(one_line(each.name)), *cells, Text(one_line(copied), style="dim"))
    console.print(table)
    if len(fused.sources) > SHOWN_SOURCES:
        note(f"{len(fused.sources) - SHOWN_SOURCES:,} less reliable sources are not shown; ‹report› has all")
    way = fused.fusion.weights.way
    if fused.weighing is None:
        if way == KEPT:
            note(
                "fewer than three sources speak for themselves, so agreement tells nothing: confidences are the means "
                "of the claims; --labelled or --run tells more"
            )
        return
    _tell_scores(fused.weighing.scores, way, WAYS)
    if way == KEPT:
        note("nothing did better than the confidences as they were, so they stay")


def _tell_scores(scores: Any, chosen: str, meaning: Any = None) -> None:
    """Tell how every way did on labels that it did not see, and the curves before and after."""
    console = err()
    first = next(iter(scores.values()))
    table = plain_table(f"on {first.labels:,} labels, each unseen by what judged it")
    for name in ("", "Brier", "log score", "calibration error", "what"):
        table.add_column(name, justify="left" if name in ("", "what") else "right", overflow="fold")
    for name, each in scores.items():
        numbers = (f"{value:.4f}" for value in (each.brier, each.log, each.calibration))
        table.add_row(f"{'→' if name == chosen else ' '} {name}", *numbers, (meaning or {}).get(name, ""))
    console.print(table)
    before = next(iter(scores))
    for name in dict.fromkeys((before, chosen)):
        console.print(f"{name}: said → held  " + "  ".join(_curve(scores[name])), style="dim", soft_wrap=True)


def _curve(scores: Scores) -> Iterable[str]:
    for said, held in zip(scores.curve.predicted, scores.curve.observed, strict=True):
        yield f"{said:.2f}→{held:.2f}"
