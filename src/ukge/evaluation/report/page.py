"""The report as one HTML page that needs nothing else: tables, pictures and cases are inside it, and no scripts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from ukge.errors import Wording, in_python
from ukge.evaluation.case_study import Case, Tail
from ukge.evaluation.evaluate import Evaluation, Row
from ukge.evaluation.tables import columns, half_width, header, is_best
from ukge.evaluation.tasks import Table
from ukge.graph.audit.style import CSS as AUDIT_CSS

CSS = (
    AUDIT_CSS
    + """
main { max-width: 1200px; }
td.best { font-weight: 650; }
td.name { white-space: nowrap; }
tr.trivial td { color: var(--soft); }
p.verdict { margin: 12px 0 0; }
p.verdict b { color: var(--warn); font-weight: 600; }
td small { display: block; color: var(--soft); font-size: 11px; font-weight: 400; white-space: nowrap; }
.pictures { grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); align-items: start; }
figure.wide { grid-column: 1 / -1; }
figure img { display: block; width: 100%; height: auto; background: #fff; border-radius: 6px; }
figcaption { font-size: 14px; color: var(--ink); }
figcaption span { color: var(--soft); }
.cases { display: grid; grid-template-columns: repeat(auto-fit, minmax(480px, 1fr)); gap: 26px 34px; }
.cases h3 { font-size: 14px; margin: 0 0 6px; overflow-wrap: anywhere; }
.cases td, .cases th { padding-right: 10px; font-size: 13px; }
.cases .half { display: grid; grid-template-columns: 1fr; gap: 10px; }
.cases td.unseen { color: var(--warn); }
"""
)


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture of the page: the stem of its file, its PNG, what it shows, and whether it takes the whole width."""

    name: str
    title: str
    note: str
    png: bytes
    wide: bool = False


def render(
    evaluation: Evaluation,
    pictures: Sequence[Picture],
    cases: Sequence[Case],
    name: str,
    wording: Wording = in_python,
) -> str:
    """Return the report as the text of an HTML page, in the words of a surface."""
    title = escape(f"{name}: protocol {evaluation.protocol} on {evaluation.data}")
    sections = "\n".join(_sections(evaluation, pictures, cases, wording))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(name)}</h1>\n<p class="size">Protocol <b>{escape(evaluation.protocol)}</b> on '
        f"{escape(evaluation.data)}: {escape(evaluation.about)}</p>\n{sections}\n</main>\n</body>\n</html>\n"
    )


def _sections(
    evaluation: Evaluation, pictures: Sequence[Picture], cases: Sequence[Case], wording: Wording
) -> Iterator[str]:
    if evaluation.notes:
        items = "".join(f"<li>{escape(note)}</li>" for note in evaluation.notes)
        yield _section("What to know", f"<ul>{items}</ul>")
    for table in evaluation.tables:
        told = "".join(
            f'<p class="verdict"><b>{escape(each.what())}</b> {escape(each.hint(wording))}</p>'
            for each in evaluation.verdicts
            if each.table is table
        )
        yield _section(f"{evaluation.protocol} · {table.title}", _results(evaluation, table) + told)
    if pictures:
        yield _section("Pictures", f'<div class="pictures">{"".join(_figure(each) for each in pictures)}</div>')
    if cases:
        note = (
            "The true confidence is that of train, validation and test; N/A stands for facts that none of them holds."
        )
        tables = "".join(_case(each) for each in cases)
        yield _section("Case study", f'<div class="cases">{tables}</div><p class="note">{note}</p>')


def _section(title: str, body: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}\n</section>"


def _results(evaluation: Evaluation, table: Table) -> str:
    shown = columns(evaluation, table)
    titles = "".join(f"<th>{escape(header(metric))}</th>" for metric in shown)
    rows = "\n".join(_row(evaluation, table, row) for row in evaluation.rows)
    return (
        f'<table>\n<thead><tr><th class="text">predictor</th>{titles}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>'
    )


def _row(evaluation: Evaluation, table: Table, row: Row) -> str:
    cells = [f'<td class="text name">{escape(row.name)}</td>']
    for metric in columns(evaluation, table):
        figure = row.figure(table.name, metric.name)
        limits = ""
        if figure.interval is not None and half_width(figure) and not row.trivial:
            ends = f"{metric.text(figure.interval.low)} … {metric.text(figure.interval.high)}"
            limits = f'<small title="{evaluation.bootstrap.level:.0%} interval: {ends}">{half_width(figure)}</small>'
        best = ' class="best"' if is_best(figure, evaluation, table) else ""
        cells.append(f"<td{best}>{metric.text(figure.value)}{limits}</td>")
    kind = ' class="trivial"' if row.trivial else ""
    return f"<tr{kind}>{''.join(cells)}</tr>"


def _figure(picture: Picture) -> str:
    kind = ' class="wide"' if picture.wide else ""
    source = f"data:image/png;base64,{b64encode(picture.png).decode('ascii')}"
    return (
        f"<figure{kind}><figcaption>{escape(picture.title)} <span>{escape(picture.note)}</span></figcaption>"
        f'<img src="{source}" alt="{escape(picture.title)}"></figure>'
    )


def _case(case: Case) -> str:
    known = f"{case.known:,} known tails" if case.known != 1 else "1 known tail"
    return (
        f"<div><h3>({escape(case.head)}, {escape(case.relation)}, ?) · {known}</h3><div class='half'>"
        f"{_tails('predicted tail', case.predicted)}{_tails('true tail', case.true)}</div></div>"
    )


def _tails(title: str, tails: Iterable[Tail]) -> str:
    head = f'<tr><th class="text">{title}</th><th>predicted</th><th>true</th><th class="text">in</th></tr>'
    rows = "".join(
        f'<tr><td class="text">{escape(tail.entity)}</td><td>{tail.predicted:.3f}</td>{_observed(tail)}'
        f'<td class="text">{escape(", ".join(tail.parts))}</td></tr>'
        for tail in tails
    )
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _observed(tail: Tail) -> str:
    return '<td class="unseen">N/A</td>' if tail.observed is None else f"<td>{tail.observed:.3f}</td>"
