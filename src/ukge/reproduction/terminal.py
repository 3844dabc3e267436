"""A page of sections for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ukge.reproduction.document import Block, Bullets, Cell, Grid, Section


def render(sections: Sequence[Section]) -> RenderableType:
    """Return the sections as something a Rich console can print."""
    parts: list[RenderableType] = []
    for section in sections:
        if not section.page_only:
            parts.append(Text(f"\n{section.title}", style="bold"))
            parts += [_block(block) for block in section.blocks]
    return Group(*parts)


def _block(block: Block) -> RenderableType:
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
        table.add_row(*[_cell(cell) for cell in row])
    return table


def _cell(cell: Cell) -> Text:
    text = Text(_plain(cell.text), style="bold" if cell.strong else "dim" if cell.soft else "")
    if cell.below:
        text.append(f"\n{_plain(cell.below)}", style="not bold dim")
    return text


def _plain(text: str) -> str:
    """Drop what only Markdown understands."""
    return text.replace("`", "").replace("**", "")
