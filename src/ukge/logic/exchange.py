"""Rules in the formats of other tools: AnyBURL's text, and JSON with all figures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ukge.errors import RuleError
from ukge.graph.columns import as_number
from ukge.logic.measures import ScoredRule
from ukge.logic.rules import Atom, Rule
from ukge.logic.syntax import parse_rule, parse_rules, read_text, write_rules, write_text

FORMATS = ("psl", "anyburl", "json")
ANYBURL_ATOM = re.compile(r"\s*([^\s(),]+)\(([A-Z]),([A-Z])\)\s*")
UNSAID = re.compile(r"[\s(),]")


def write_scored(path: str | Path, scored: Sequence[ScoredRule], form: str, *, comment: str = "") -> None:
    """Write rules as `psl`, `anyburl` or `json`."""
    if form == "psl":
        write_rules(path, [one.rule for one in scored], comment=comment)
    elif form == "anyburl":
        write_text(path, "".join(f"{anyburl_line(one)}\n" for one in scored))
    elif form == "json":
        write_text(path, json.dumps([as_json(one) for one in scored], indent=1, ensure_ascii=False) + "\n")
    else:
        raise RuleError(f"unknown format {form!r}", hint=f"Known: {', '.join(FORMATS)}.")


def format_of(path: str | Path) -> str:
    """Return the format that a file's extension says: `.json`, AnyBURL's `.txt`, else PSL's."""
    return {".json": "json", ".txt": "anyburl"}.get(Path(path).suffix, "psl")


def read_rules_file(path: str | Path, form: str | None = None) -> list[Rule]:
    """Read a rules file in the format given, or else the one that its extension says."""
    chosen = form or format_of(path)
    readers = {"psl": parse_rules, "anyburl": read_anyburl, "json": read_json}
    if chosen not in readers:
        raise RuleError(f"unknown format {chosen!r}", hint=f"Known: {', '.join(FORMATS)}.")
    return readers[chosen](read_text(path), source=str(path))


def as_json(one: ScoredRule) -> dict[str, Any]:
    """Return a rule and its figures as plain values; a figure that does not exist (a mean of nothing) is None."""
    figures = {name: None if math.isnan(value) else value for name, value in one.measures.as_dict().items()}
    return {"rule": str(one.rule), "weight": one.rule.weight, "length": len(one.rule), **figures}


def anyburl_line(one: ScoredRule) -> str:
    """Return a rule as AnyBURL writes it: predictions, correct ones, confidence, and `head <= body`, by tabs.

    AnyBURL counts on a graph without confidences; here that is the graph of strong facts.
    """
    figures = one.measures
    return f"{figures.implied}\t{figures.strong_support}\t{figures.confidence!r}\t{anyburl_rule(one.rule)}"


def anyburl_rule(rule: Rule) -> str:
    """Return `head(X,Y) <= r1(X,A), r2(A,Y)`."""
    if rule.negated:
        raise RuleError(f"AnyBURL's format has no negated heads:\n  {rule}")
    for relation in rule.relations:
        if UNSAID.search(relation):
            raise RuleError(f"AnyBURL's format cannot say the relation name {relation!r}", hint="Use the psl format.")
    letters = iter("ABCDEFGH")
    names = {rule.head.subject: "X"}
    names.setdefault(rule.head.object, "Y")
    for variable in rule.variables:
        if variable not in names:
            names[variable] = next(letters)
    head, *body = (_anyburl_atom(atom.renamed(names)) for atom in (rule.head, *rule.body))
    return f"{head} <= {', '.join(body)}"


def read_anyburl(text: str, *, source: str = "rules") -> list[Rule]:
    """Read rules in AnyBURL's format, their confidence as their weight. Rules with constants are refused."""
    return [
        _read_anyburl_line(line, f"{source}, line {number}")
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]


def read_json(text: str, *, source: str = "rules") -> list[Rule]:
    """Read rules that `write_scored(…, "json")` wrote."""
    try:
        told = json.loads(text)
        return [parse_rule(one["rule"], source=source) for one in told]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise RuleError(f"{source} does not hold rules as JSON: {error}", hint='It is a list of {"rule": …}.') from None


def _anyburl_atom(atom: Atom) -> str:
    return f"{atom.relation}({atom.subject},{atom.object})"


def _read_anyburl_line(line: str, place: str) -> Rule:
    columns = line.strip().split("\t")
    head, arrow, body = columns[-1].partition("<=")
    if not arrow or len(columns) not in (1, 4):
        raise RuleError(
            f"{place}: not a rule of AnyBURL\n  {line.strip()}", hint="predictions, correct, confidence, head <= body"
        )
    # A comma ends an atom only after its bracket; what is cut short is then no atom, and not left out.
    atoms = [_read_anyburl_atom(text, place) for text in (head, *re.split(r"(?<=\)),", body))]
    weight = as_number(columns[2].strip()) if len(columns) == 4 else 1.0
    if weight is None:
        raise RuleError(f"{place}: the confidence {columns[2]!r} is not a number\n  {line.strip()}")
    try:
        return Rule(tuple(atoms[1:]), atoms[0], weight)
    except RuleError as error:
        raise RuleError(f"{place}: {error.what}\n  {line.strip()}") from None


def _read_anyburl_atom(text: str, place: str) -> Atom:
    match = ANYBURL_ATOM.fullmatch(text)
    if match is None:
        raise RuleError(f"{place}: not an atom over two variables: {text.strip()!r}")
    return Atom(match[1], match[2], match[3])
