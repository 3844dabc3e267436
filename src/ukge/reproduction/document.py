"""A page of sections, sentences and grids, as Markdown and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with a second line; `strong` stands out, `soft` steps back."""

    text: str
    below: str = ""
    strong: bool = False
    soft: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: the first column holds words, the others numbers unless `words` says otherwise."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    words: bool = False


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


Block = str | Grid | Bullets


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it; sections that print nothing but on the page are `page_only`."""

    title: str
    blocks: tuple[Block, ...]
    page_only: bool = False


def grid(header: Sequence[str], rows: Sequence[Sequence[Cell | str]], *, words: bool = False) -> Grid:
    """Return a table, with plain text turned into cells."""
    cells = tuple(tuple(Cell(each) if isinstance(each, str) else each for each in row) for row in rows)
    return Grid(tuple(header), cells, words)


def markdown(title: str, sections: Sequence[Section]) -> str:
    """Return the page as Markdown."""
    parts = [f"# {title}"]
    for section in sections:
        parts.append(f"## {section.title}")
        parts += [_as_markdown(block) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def _as_markdown(block: Block) -> str:
    if isinstance(block, Grid):
        return "\n".join(_lines(block))
    if isinstance(block, Bullets):
        return "\n".join(f"- {item}" for item in block.items)
    return block


def _lines(table: Grid) -> Iterator[str]:
    yield _row(table.header)
    others = ":--" if table.words else "--:"
    yield _row([":--", *[others] * (len(table.header) - 1)])
    for row in table.rows:
        yield _row([_cell(cell) for cell in row])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    text = cell.text.replace("|", "\\|")
    below = cell.below.replace("|", "\\|")
    shown = f"**{text}**" if cell.strong else f"*{text}*" if cell.soft and text.strip("–") else text
    return f"{shown}<br>{below}" if below else shown


def render(sections: Sequence[Section]) -> RenderableType:
    """Return the sections as something a Rich console can print."""
    parts: list[RenderableType] = []
    for section in sections:
        if not section.page_only:
            parts.append(Text(f"\n{section.title}", style="bold"))
            parts += [_on_screen(block) for block in section.blocks]
    return Group(*parts)


def _on_screen(block: Block) -> RenderableType:
    if isinstance(block, Grid):
        return _table(block)
    if isinstance(block, Bullets):
        return Text("\n".join(f"• {_plain(item)}" for item in block.items))
    return Text(_plain(block), style="dim")


def _table(grid: Grid) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, title in enumerate(grid.header):
        right = number > 0 and not grid.words
        table.add_column(_plain(title), justify="right" if right else "left", overflow="fold")
    for row in grid.rows:
        table.add_row(*[_text(cell) for cell in row])
    return table


def _text(cell: Cell) -> Text:
    text = Text(_plain(cell.text), style="bold" if cell.strong else "dim" if cell.soft else "")
    if cell.below:
        text.append(f"\n{_plain(cell.below)}", style="not bold dim")
    return text


def _plain(text: str) -> str:
    """Drop what only Markdown understands."""
    return text.replace("`", "").replace("**", "")
