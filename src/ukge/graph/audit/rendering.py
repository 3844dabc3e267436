"""The audit for people: in a terminal, or as one HTML page that needs nothing else and runs no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ukge.errors import Wording, in_python
from ukge.graph.audit.leaks import Twin, percent
from ukge.graph.audit.negatives import Negatives
from ukge.graph.audit.report import Audit, sizes
from ukge.graph.audit.sources import Sources
from ukge.graph.audit.statistics import PartCounts
from ukge.html import pictures
from ukge.html import render as fill
from ukge.progress.safe_console import one_line

EIGHTHS = " ▁▂▃▄▅▆▇█"
HEIGHT = 6
RELATIONS_SHOWN, RELATIONS_ON_PAGE = 10, 25
SOURCES_SHOWN = 10


def as_text(found: Audit, wording: Wording = in_python) -> RenderableType:
    """Return the audit as something a Rich console can print."""
    return Group(*_blocks(found, wording))


def as_page(found: Audit) -> str:
    """Return the audit as the text of an HTML page."""
    shown = {"sizes": sizes(found), "shown": RELATIONS_ON_PAGE}
    return fill("audit.html", found=found, percent=percent, histogram=pictures.histogram, **shown)


def _blocks(found: Audit, wording: Wording) -> Iterator[RenderableType]:
    yield Text.assemble((f"Audit of {found.name}", "bold"), f"   {', '.join(sizes(found))}\n")
    if headlines := found.headlines(wording):
        yield _headlines(headlines)
    yield _parts(found)
    yield histogram(found.whole)
    if found.twins:
        yield _twins(found)
    if found.negatives is not None:
        yield _negatives(found.negatives)
        if found.negatives.examples:
            yield _false_negatives(found.negatives)
    if found.sources is not None:
        yield _sources(found.sources)
        if found.sources.pairs:
            yield _pairs(found.sources)
    if found.repeats.worst:
        yield _conflicts(found)
    if found.symmetry:
        yield _symmetry(found)
    if found.baselines:
        yield _baselines(found)


def _headlines(lines: Sequence[str]) -> Table:
    grid = Table.grid(padding=(0, 1))
    for line in lines:
        grid.add_row("•", Text(one_line(line)))
    grid.add_row("")
    return grid


def _parts(found: Audit) -> Table:
    table = _table(
        "Facts and their confidences", ["part", "", "rows", "distinct", "mean", "std", "median", "most often"]
    )
    for part in (*found.parts, found.whole):
        often = "–" if part.mode is None or part.mode_share is None else f"{part.mode:g} ({percent(part.mode_share)})"
        numbers = [_number(value) for value in (part.mean, part.std, part.median)]
        _add(table, part.name, _sparks(part.histogram), f"{part.rows:,}", f"{part.distinct:,}", *numbers, often)
    return table


def _sparks(bins: Sequence[int]) -> str:
    """Return a histogram in half its bins: beside eight columns, 80 characters have no room for more."""
    counts = [sum(bins[at : at + 2]) for at in range(0, len(bins), 2)]
    highest = max(counts) or 1
    return "".join(EIGHTHS[_level(count, highest, len(EIGHTHS) - 1)] for count in counts)


def histogram(part: PartCounts) -> Text:
    """Return a picture of the confidences of one part."""
    highest = max(part.histogram) or 1
    steps = len(EIGHTHS) - 1
    levels = [_level(count, highest, HEIGHT * steps) for count in part.histogram]
    picture = Text("Confidences of all facts\n", style="bold")
    for row in range(HEIGHT - 1, -1, -1):
        cells = (EIGHTHS[min(max(level - row * steps, 0), steps)] * 2 for level in levels)
        picture.append(f"  {highest:>9,} ┤" if row == HEIGHT - 1 else "            │", style="not bold dim")
        picture.append(" ".join(cells) + "\n", style="not bold cyan")
    width = 3 * len(levels) - 1
    picture.append("            └" + "─" * width + "\n", style="not bold dim")
    picture.append("             0.0" + "0.5".center(width - 6) + "1.0\n", style="not bold dim")
    return picture


def _level(count: int, highest: int, steps: int) -> int:
    level = round(count / highest * steps)
    return max(level, 1) if count else 0


def _twins(found: Audit) -> Table:
    table = _table("Held-out facts that train knows", ["part", "as it is", "gap", "inverted", "gap", "its entity pair"])
    for twins in found.twins:
        cells = [text for twin in (twins.exact, twins.inverse) for text in (_rows(twin), _number(twin.gap))]
        table.add_row(twins.part, *cells, _rows(twins.pair))
    return table


def _rows(twin: Twin) -> str:
    return f"{percent(twin.share)} ({twin.rows:,})"


def _negatives(negatives: Negatives) -> Table:
    table = _table("Negative links", ["what", "value"])
    table.add_row("links", f"{negatives.rows:,}")
    table.add_row("of them facts of the graph", f"{negatives.facts:,} ({percent(negatives.share)})")
    table.add_row("lowest MSE of an honest model, with the test facts", f"{negatives.floor_mse:.5f}")
    table.add_row("lowest MSE of any model, with the test facts", f"{negatives.irreducible_mse:.5f}")
    table.add_row("tail occurs in train with the relation", percent(negatives.tail_in_range))
    table.add_row("head occurs in train with the relation", percent(negatives.head_in_domain))
    table.add_row("pair occurs in train", percent(negatives.pair_in_train))
    return table


def _false_negatives(negatives: Negatives) -> Table:
    table = _table("Negative links that are facts", ["head", "relation", "tail", "confidence"], text=3)
    for link in negatives.examples:
        _add(table, link.head, link.relation, link.tail, f"{link.confidence:.3f}")
    return table


def _sources(sources: Sources) -> Table:
    shown = sources.each[:SOURCES_SHOWN]
    title = "Sources" if len(shown) == sources.count else f"Sources (the {len(shown)} with most claims)"
    table = _table(title, ["source", "", "claims", "facts", "mean", ".4–.6", "≥ .8", "values", "from others"])
    for each in shown:
        numbers = [_number(each.mean), percent(each.middle), percent(each.high), f"{each.values:,}", _number(each.gap)]
        _add(table, each.name, _sparks(each.histogram), f"{each.claims:,}", f"{each.facts:,}", *numbers)
    return table


def _pairs(sources: Sources) -> Table:
    columns = ["source", "and source", "facts of both", "apart", "correlation", "the same", ""]
    table = _table("Sources on the same facts", columns, text=2)
    for each in sources.pairs[:SOURCES_SHOWN]:
        numbers = [f"{each.facts:,}", _number(each.gap), _number(each.correlation), percent(each.same)]
        _add(table, each.first, each.second, *numbers, "a copy?" if each.copied else "")
    return table


def _conflicts(found: Audit) -> Table:
    table = _table("Widest disagreements", ["head", "relation", "tail", "confidences"], text=4)
    for each in found.repeats.worst:
        _add(table, each.head, each.relation, each.tail, ", ".join(f"{value:.3f}" for value in each.confidences))
    return table


def _symmetry(found: Audit) -> Table:
    shown = found.symmetry[:RELATIONS_SHOWN]
    title = "Relations" if len(shown) == len(found.symmetry) else f"Relations (the {len(shown)} with most facts)"
    table = _table(title, ["relation", "facts", "inverse is a fact too", "gap"])
    for each in shown:
        mirrored = "no direction" if each.undirected else percent(each.share)
        _add(table, each.relation, f"{each.facts:,}", mirrored, _number(each.gap))
    return table


def _baselines(found: Audit) -> Table:
    both = found.negatives is not None
    columns = ["without a model", "fitted on", "test MSE", "test MAE", *(["+ neg. MSE", "+ neg. MAE"] if both else [])]
    note = " (+ neg.: of the test facts and the negative links together)" if both else ""
    table = _table(f"Trivial baselines{note}", columns, text=2)
    for each in found.baselines:
        cells = [f"{each.positives.mse:.4f}", f"{each.positives.mae:.4f}"]
        if each.with_negatives is not None:
            cells += [f"{each.with_negatives.mse:.4f}", f"{each.with_negatives.mae:.4f}"]
        table.add_row(each.name, each.fitted_on, *cells)
    return table


def _table(title: str, columns: Sequence[str], *, text: int = 1) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.caption = " "
    for at, column in enumerate(columns):
        table.add_column(column, justify="left" if at < text else "right", header_style="dim", overflow="fold")
    return table


def _add(table: Table, *cells: str) -> None:
    """Add a row of plain text: names may hold what Rich would take for markup, and ends of lines."""
    table.add_row(*(Text(one_line(cell)) for cell in cells))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
