"""`ukge add`, `ukge undo` and `ukge refresh`: what a finished run is given since its training."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import bold_every_other, err, note, out, plain_table, print_json
from ukge.cli.flags import AsJson, Quiet, whole
from ukge.cli.reading import Reading, file_of
from ukge.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ukge.pipeline import Refreshed
    from ukge.runs.journal import Addition

FinishedRun = Annotated[Path, typer.Argument(help="A finished run.", metavar="RUN")]


def add(
    run: FinishedRun,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Facts to take in: head, relation, tail, confidence; - is standard input. Without it, what was added "
            "is listed.",
            metavar="FACTS",
        ),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option("--id", help="A name for the addition: given again, it is not added again.", metavar="NAME"),
    ] = None,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Take new facts into a finished run, with new entities and relations, in seconds and without training.

    A fact that the run knows with another confidence is replaced. `ukge undo` takes the last addition back, `ukge
    refresh` trains on with all of them. A file with a fault is refused whole.
    """
    from ukge.asking.drift import refresh_due
    from ukge.pipeline import add as take_in

    if file is None:
        _list(run, as_json=as_json)
        return
    with file_of(file, reading.format) as path:
        graph = reading.read(path)
    source = "standard input" if str(file) == "-" else str(file)
    with err().status(f"taking in {len(graph):,} facts"):
        made = take_in(run, graph, source=source, id=identity)
    due = refresh_due(run)
    if as_json:
        print_json({**_plain(made), "refresh": due})
        return
    if not made.number:
        out().print(f"nothing is new: the run knows all {made.repeated:,} facts as they are given", highlight=False)
        return
    _tell(made, run)
    if due is not None:
        note(f"a refresh is due: {due}: ukge refresh {quote(str(run))}")


def _tell(made: Addition, run: Path) -> None:
    drift, parts = made.drift, [f"addition {made.number}", f": {_counted(made)}"]
    if drift.before is not None and drift.usual is not None:
        parts[-1] += "; the run's mean squared error on them was "
        parts += [f"{drift.before:.4f}", f" before ({drift.judged:,} judged; {drift.usual:.4f} on validation facts)"]
    out().print(bold_every_other("", *parts))
    if made.held_out:
        note(f"{_many(made.held_out, 'fact')} of them had been held out to judge the run, and judge no more")
    if made.relations:
        note(
            f"{_many(made.relations, 'relation')} {'is' if made.relations == 1 else 'are'} new: vectors were fitted to "
            "the facts given, and evidence judges by what it knows of rare relations, until a refresh and "
            f"ukge evidence fit {quote(str(run))}"
        )


def _counted(made: Addition) -> str:
    told = [f"{_many(made.facts, 'fact')} new"]
    told += [f"{made.updated:,} with another confidence"] if made.updated else []
    told += [f"{made.repeated:,} known already"] if made.repeated else []
    told += [_many(made.entities, "new entity", "new entities")] if made.entities else []
    told += [_many(made.relations, "new relation")] if made.relations else []
    return ", ".join(told)


def _many(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def _plain(made: Addition) -> dict[str, Any]:
    return {name: value for name, value in asdict(made).items() if name not in ("files", "base", "print")}


def _list(run: Path, *, as_json: bool) -> None:
    """Show what was added to a run and stands."""
    from ukge.runs.directory import Run

    added = Run.open(run).added
    additions = () if added is None else added.additions
    if as_json:
        print_json([_plain(each) for each in additions])
    elif not additions:
        note(f"nothing is added to {run}")
    else:
        out().print(_listed(additions))


def _listed(additions: tuple[Addition, ...]) -> RenderableType:
    from rich.text import Text

    from ukge.progress.safe_console import one_line

    table = plain_table()
    for name in ("", "when", "new facts", "changed", "entities", "relations"):
        table.add_column(name, justify="left" if name == "when" else "right", no_wrap=True)
    for name in ("who", "from"):
        table.add_column(name, overflow="fold")
    for each in additions:
        counts = (each.facts, each.updated, each.entities, each.relations)
        source = Path(each.source).name if Path(each.source).is_absolute() else each.source  # --json has the whole path
        texts = (Text(one_line(each.who)), Text(one_line(source)))
        table.add_row(str(each.number), each.time[:19].replace("T", " "), *(f"{n:,}" for n in counts), *texts)
    return table


def undo(
    run: FinishedRun,
    steps: Annotated[int | None, whole("--steps", help="How many additions to undo; one if not given.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Undo all additions.")] = False,
    as_json: AsJson = False,
) -> None:
    """Undo the last addition to a run: it answers as it did before."""
    from ukge.pipeline import undo as take_back

    if every and steps is not None:
        raise ConfigError("‹all› and ‹steps› do not go together", hint="Give one of them.")
    undone = take_back(run, None if every else steps or 1)
    if as_json:
        print_json([_plain(each) for each in undone])
        return
    for each in undone:
        out().print(bold_every_other("undone: ", f"addition {each.number}", f", {_counted(each)}"))


def refresh(
    run: FinishedRun,
    epochs: Annotated[
        int | None, whole("--epochs", help="Epochs to train on for; a third of the training's if not given.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a run on from its present weights, on all facts that it knows by now, and say what that changed.

    Additions become training facts, which cannot be undone. What was held out stays so, and evidence keeps its trees,
    read over the new weights. Stopped, the run is as it was.
    """
    from ukge.pipeline import refresh as train_on

    found = train_on(run, epochs=epochs, progress=not quiet)
    if as_json:
        print_json({**asdict(found), "run": str(found.run)})
        return
    _tell_refreshed(found)


def _tell_refreshed(found: Refreshed) -> None:
    from rich.text import Text

    from ukge.progress.safe_console import one_line

    console, figures = out(), found.figures
    names = f"{_many(found.entities, 'new entity', 'new entities')} and {_many(found.relations, 'new relation')}"
    took = f"{_many(found.epochs, 'epoch')}, {found.seconds:.1f} s"
    facts = f"{_many(found.facts, 'added fact')} with {names}" if found.additions else "the same facts"
    console.print(bold_every_other("trained on with ", facts, f": {took}; the run is in ", str(found.run)))
    if figures.before is not None and figures.after is not None:
        told = [f"validation {figures.metric} ", f"{figures.before:.5f} → {figures.after:.5f}"]
        if figures.evidence_before is not None and figures.evidence_after is not None:
            told += [
                "; of evidence, on the same facts, which its trees know, mse ",
                f"{figures.evidence_before:.5f} → ",
            ]
            told[-1] += f"{figures.evidence_after:.5f}"
        console.print(bold_every_other(*told))
    console.print(bold_every_other("what is said of known facts moved by ", f"{found.change:.3f}", " on average"))
    table = plain_table("relations that moved most")
    for name in ("by", "facts"):
        table.add_column(name, justify="right")
    table.add_column("relation", overflow="fold")
    for relation in found.relations_moved:
        table.add_row(f"{relation.change:.3f}", f"{relation.facts:,}", Text(one_line(relation.relation)))
    console.print(table)
    table = plain_table("facts that moved most")
    for name in ("before", "after", "in the graph"):
        table.add_column(name, justify="right")
    table.add_column("fact", overflow="fold")
    for moved in found.facts_moved:
        fact = f"{moved.fact.head} — {moved.fact.relation} — {moved.fact.tail}"
        numbers = (moved.before, moved.after, moved.fact.confidence)
        table.add_row(*(f"{each:.2f}" for each in numbers), Text(one_line(fact)))
    console.print(table)
