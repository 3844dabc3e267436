"""`ukge doubt` and `ukge labels`: observed facts that are likely wrong, and what people said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ukge.cli.console import err, note
from ukge.cli.flags import AsJson, Out, Relations, Run, SpreadsheetSafe, whole
from ukge.cli.results import check_out, deliver, open_predictor
from ukge.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ukge.evidence.doubt import Way
    from ukge.evidence.doubt_sources import SourceDoubt


def doubt(
    run: Run,
    relation: Relations = None,
    source: Annotated[
        list[str] | None, typer.Option("--source", help="Only facts from this source; may be repeated.", metavar="NAME")
    ] = None,
    too_high: Annotated[bool, typer.Option("--too-high", help="Only confidences that are too high.")] = False,
    too_low: Annotated[bool, typer.Option("--too-low", help="Only confidences that are too low.")] = False,
    likely_false: Annotated[
        bool,
        typer.Option(
            "--likely-false", help="The facts that most likely do not hold, whatever confidence is stored with them."
        ),
    ] = False,
    by_source: Annotated[
        bool, typer.Option("--by-source", help="A table: whose confidences are off, and whose facts likely false.")
    ] = False,
    k: Annotated[int, whole("-k", help="How many facts at most.")] = 20,
    out_file: Out = None,
    safe: SpreadsheetSafe = False,
    as_json: AsJson = False,
) -> None:
    """List the observed facts that the other facts contradict, the most surprising first.

    By default it is the stored confidence that is doubted, in either direction. With --likely-false it is the fact
    itself: each has a chance to hold. Labels that people gave (the explorer's page Review) correct these chances.
    """
    if sum((too_high, too_low, likely_false, by_source)) > 1:
        raise ConfigError(
            "one question at a time: ‹too_high›, ‹too_low›, ‹likely_false› and ‹by_source› do not go together",
            hint="Give one of them.",
        )
    if by_source and (relation or source):
        raise ConfigError(
            "‹by_source› counts all facts, and takes neither ‹relation› nor ‹source›", hint="Leave them out."
        )
    import pyarrow as pa

    from ukge.progress.bars import WorkProgress

    check_out(out_file)
    progress = WorkProgress(err(), "judging every observed fact by the others")
    with open_predictor(run) as predictor, progress:
        if by_source:
            told = predictor.doubt_by_source(tell=progress.tell)
            found: Sequence[Any] = told
            rows = [asdict(each) for each in told]
        elif likely_false:
            holding = predictor.holding(progress.tell)
            found = holding.likely_false(k, relations=relation, sources=source)
            rows = [asdict(each) for each in found]
        else:
            way: Way = "too-high" if too_high else "too-low" if too_low else "any"
            doubts = predictor.doubt(k, relations=relation, sources=source, way=way, tell=progress.tell)
            found, rows = doubts, [{**asdict(each), "gap": each.gap} for each in doubts]
    if likely_false:
        labels = f", corrected by {holding.labels:,} labels" if holding.labels else ""
        note(f"by the other facts, {holding.false:.0%} of {len(holding.graph):,} observed facts do not hold{labels}")
    deliver(
        pa.Table.from_pylist(rows),
        out_file,
        as_json=as_json,
        safe=safe,
        shown=lambda: _sources(found) if by_source else _lines(found),
        what="sources" if by_source else "facts",
    )


def _lines(found: Sequence[Any]) -> RenderableType:
    from rich.text import Text

    from ukge.progress.safe_console import one_line

    return Text("\n".join(one_line(str(each)) for each in found))


def _sources(found: Sequence[SourceDoubt]) -> RenderableType:
    from rich.table import Table

    from ukge.progress.safe_console import one_line

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("source", overflow="fold")
    for title in ("facts", "do not hold", "too high", "too low", "stored − expected"):
        table.add_column(title, justify="right", no_wrap=True)
    for each in found:
        shares = (f"{each.false:.0%}", f"{each.too_high:.1%}", f"{each.too_low:.1%}")
        table.add_row(one_line(each.source), f"{each.facts:,}", *shares, f"{each.gap:+.2f}".replace("-", "−"))
    return table


def labels(
    run: Run,
    out_file: Out = None,
    every_word: Annotated[
        bool, typer.Option("--every-word", help="A row for each word that was said, withdrawn and unsure ones too.")
    ] = False,
    safe: SpreadsheetSafe = False,
    as_json: AsJson = False,
) -> None:
    """Tell what people said of a run's facts: head, relation, tail, stored confidence, and the label, 1 if it holds.

    Where people disagree the label is the share of yes. `ukge fuse` takes the file with --labelled.
    """
    import pyarrow as pa

    from ukge.runs.directory import Run as Directory
    from ukge.runs.labels import all_words, read_labels

    check_out(out_file)
    if every_word:
        Directory.open(run)
        names = ("head", "relation", "tail", "word", "by", "at")
        schema = pa.schema([(name, pa.large_string()) for name in names])
        table = pa.Table.from_pylist([asdict(each) for each in all_words(run)], schema)
    else:
        table = read_labels(run)
    if not table.num_rows:
        note(f"nobody has labelled a fact yet; the page /review is for that: ukge serve {run}")
    deliver(table, out_file, as_json=as_json, safe=safe, shown=lambda: _words(table.to_pylist()), what="labels")


def _words(rows: Sequence[dict[str, Any]]) -> RenderableType:
    from rich.text import Text

    from ukge.progress.safe_console import one_line

    lines = []
    for row in rows:
        said = row["word"] if "word" in row else {1.0: "yes", 0.0: "no"}.get(row["label"], f"{row['label']:.0%} yes")
        who = row.get("by") or row.get("reviewers")
        lines.append(f"{said:>9}  ({row['head']}, {row['relation']}, {row['tail']})  {who}, {row['at'][:16]}")
    return Text("\n".join(map(one_line, lines)))
