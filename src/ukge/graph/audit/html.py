"""The audit as one HTML page that needs nothing else: style and pictures are inside it, scripts there are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from ukge.graph.audit.counts import PartCounts
from ukge.graph.audit.headlines import percent, sizes
from ukge.graph.audit.negatives import Negatives
from ukge.graph.audit.report import Audit
from ukge.graph.audit.style import CSS
from ukge.graph.audit.twins import Twin
from ukge.graph.pictures import bar, histogram

RELATIONS_SHOWN = 25


def render(found: Audit) -> str:
    """Return the audit as the text of an HTML page."""
    name = escape(found.name)
    size = " · ".join(sizes(found))
    sections = "\n".join(_sections(found))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Audit of {name}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>Audit of {name}</h1>\n<p class="size">{size}</p>\n{sections}\n</main>\n</body>\n</html>\n'
    )


def _sections(found: Audit) -> Iterator[str]:
    yield _section("What matters", "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in found.headlines()) + "</ul>")
    yield _section("Confidences", _pictures(found) + _parts(found))
    if found.twins:
        note = "The gap is the mean absolute difference between the held-out confidence and the one in train."
        yield _section("Held-out facts that train knows", _twins(found) + _note(note))
    if found.negatives is not None:
        yield _section("Negative links", _negatives(found.negatives))
    if found.baselines:
        yield _section("What needs no model", _baselines(found))
    if found.repeats.worst:
        yield _section("Widest disagreements about one triple", _conflicts(found))
    if found.symmetry:
        shown = min(len(found.symmetry), RELATIONS_SHOWN)
        note = (
            f"The {shown} relations with most facts of {len(found.symmetry):,}." if shown < len(found.symmetry) else ""
        )
        yield _section("Symmetry of the relations", _symmetry(found) + _note(note))


def _section(title: str, body: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}\n</section>"


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>' if text else ""


def _pictures(found: Audit) -> str:
    figures = "".join(
        f"<figure><figcaption>{escape(part.name)}: the highest bar holds {max(part.histogram):,} facts</figcaption>"
        f"{histogram(part.histogram)}</figure>"
        for part in (found.parts or (found.whole,))
    )
    return f'<div class="pictures">{figures}</div>'


def _parts(found: Audit) -> str:
    head = ["part", "rows", "distinct triples", "mean", "std", "median", "lowest", "highest", "most often"]
    return _table(head, (_part_cells(part) for part in (*found.parts, found.whole)))


def _part_cells(part: PartCounts) -> list[str]:
    often = "–" if part.mode is None or part.mode_share is None else f"{part.mode:g} ({percent(part.mode_share)})"
    numbers = [_number(value) for value in (part.mean, part.std, part.median, part.lowest, part.highest)]
    return [escape(part.name), f"{part.rows:,}", f"{part.distinct:,}", *numbers, often]


def _twins(found: Audit) -> str:
    rows = [
        [
            f"{escape(twins.part)}: {what}",
            f"{twin.rows:,}",
            percent(twin.share),
            bar(twin.share, warn=True),
            _number(twin.gap),
        ]
        for twins in found.twins
        for what, twin in _kinds(twins.exact, twins.inverse, twins.pair)
    ]
    return _table(["held-out fact in train", "rows", "share", "", "gap"], rows)


def _kinds(exact: Twin, inverse: Twin, pair: Twin) -> list[tuple[str, Twin]]:
    return [("as it is", exact), ("inverted", inverse), ("its entity pair, any relation", pair)]


def _negatives(negatives: Negatives) -> str:
    shares = [
        ("facts of the graph", negatives.share, True),
        ("tail occurs in train with the relation", negatives.tail_in_range, False),
        ("head occurs in train with the relation", negatives.head_in_domain, False),
        ("entity pair occurs in train", negatives.pair_in_train, False),
    ]
    table = _table(
        [f"of {negatives.rows:,} links", "share", ""],
        ([escape(what), percent(share), bar(share, warn=warn)] for what, share, warn in shares),
    )
    note = (
        "On test facts and negative links together the lowest MSE an honest model can reach is "
        f"{negatives.floor_mse:.5f}; no model whatever gets below {negatives.irreducible_mse:.5f}."
    )
    if not negatives.examples:
        return table + _note(note)
    names = (
        [escape(link.head), escape(link.relation), escape(link.tail), f"{link.confidence:.3f}"]
        for link in negatives.examples
    )
    return table + _note(note) + _table(["negative link", "", "", "is a fact with"], names, text=3)


def _baselines(found: Audit) -> str:
    both = found.negatives is not None
    constant = found.baselines[0].positives.mse
    head = ["prediction", "fitted on", "test MSE", "against a constant", "test MAE"]
    rows = []
    for each in found.baselines:
        cells = [escape(each.name), escape(each.fitted_on), f"{each.positives.mse:.4f}"]
        cells += [bar(each.positives.mse / constant if constant else 0.0), f"{each.positives.mae:.4f}"]
        if each.with_negatives is not None:
            cells += [f"{each.with_negatives.mse:.4f}", f"{each.with_negatives.mae:.4f}"]
        rows.append(cells)
    return _table(head + (["with negatives: MSE", "MAE"] if both else []), rows, text=2)


def _conflicts(found: Audit) -> str:
    rows = (
        [escape(each.head), escape(each.relation), escape(each.tail), ", ".join(f"{c:.3f}" for c in each.confidences)]
        for each in found.repeats.worst
    )
    return _table(["head", "relation", "tail", "confidences"], rows, text=3)


def _symmetry(found: Audit) -> str:
    rows = (
        [
            escape(each.relation),
            f"{each.facts:,}",
            "no direction" if each.undirected else percent(each.share),
            bar(each.share),
            _number(each.gap),
        ]
        for each in found.symmetry[:RELATIONS_SHOWN]
    )
    return _table(["relation", "facts", "inverse is a fact too", "", "gap"], rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, text: int = 1) -> str:
    """Return a table of cells that are HTML already; the first `text` columns stand on the left."""
    titles = "".join(_cell("th", escape(title), at < text) for at, title in enumerate(head))
    body = "\n".join(
        "<tr>" + "".join(_cell("td", cell, at < text) for at, cell in enumerate(row)) + "</tr>" for row in rows
    )
    return f"<table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _cell(tag: str, content: str, text: bool) -> str:
    return f'<{tag} class="text">{content}</{tag}>' if text else f"<{tag}>{content}</{tag}>"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
