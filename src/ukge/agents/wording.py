"""Answers in words. Names come from files that others wrote: in a text each stands on one line, between quotes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ukge.agents.answers import Provenance, Refused
from ukge.progress.safe_console import one_line
from ukge.serve import schema
from ukge.serve.problems import FieldProblem, Problem, short


def quoted(name: str) -> str:
    """Return a name as it stands in a sentence."""
    return f'"{one_line(short(name))}"'


def called(name: str, label: str | None) -> str:
    """Return a name with what people call it behind it, where that is something else."""
    return quoted(name) if label is None or label == name else f"{quoted(name)} ({one_line(short(label))})"


def number(value: float) -> str:
    """Return a confidence as people say it; what is nearly nothing is not called nothing."""
    return f"{value:.2f}" if value == 0 or value >= 0.01 else f"{value:.1g}"


def triple(fact: schema.Labelled) -> str:
    """Return a fact as three names."""
    return f"{called(fact.head, fact.head_label)} — {quoted(fact.relation)} — {called(fact.tail, fact.tail_label)}"


def judged(fact: schema.PredictedFact, opinion: schema.Opinion, coverage: float) -> str:
    """Return how confident a fact is, and whether that is known or estimated."""
    bounds = "no bounds are known"
    if fact.interval is not None:
        bounds = f"{100 * coverage:g} % interval {number(fact.interval.low)} to {number(fact.interval.high)}"
    said = f"{number(fact.confidence)} ({bounds})"
    if fact.observed is None:
        return f"{triple(fact)}: not in the graph; estimated confidence {said}."
    others = "the other facts alone would give it" if opinion == "evidence" else "the model gives it"
    return (
        f"{triple(fact)}: in the graph with confidence {number(fact.observed)}{origin(fact.source)}; {others} {said}."
    )


def stored(fact: schema.ObservedFact) -> str:
    """Return what the graph says of a fact."""
    return f"{triple(fact)}: {number(fact.confidence)}{origin(fact.source)}"


def origin(source: str | None) -> str:
    """Return where a stored fact came from, if that is known."""
    return "" if source is None else f" from {quoted(source)}"


def doubted(fact: schema.DoubtOut) -> str:
    """Return how far a stored confidence is from what the other facts say."""
    return f"{triple(fact)}: the graph says {number(fact.stored)}, its other facts say {number(fact.predicted)}."


def ruled(rule: schema.RuleOut) -> str:
    """Return a rule with its figures."""
    written = rule.rule.partition(": ")[2] or rule.rule  # without its weight, which has all its digits
    return (
        f"[{rule.number}] {one_line(short(written))}: {rule.support:,} of {rule.implied:,} implied facts are in "
        f"the graph ({100 * rule.hit_ratio:.0f} %)"
    )


def counted(number_of: int, one: str, many: str | None = None) -> str:
    """Return a number of things."""
    return f"{number_of:,} {one if number_of == 1 else many or f'{one}s'}"


def listed(sentence: str, lines: Iterable[str], who: Provenance) -> str:
    """Return a whole answer as a model reads it: the sentence, a line for each thing, and who says so."""
    said = f"(run {quoted(who.run)}, model {who.model}, data {quoted(who.data)}; judged by its {who.judged_by})"
    return "\n".join([sentence, *(f"- {each}" for each in lines), said])


def refused(problem: Problem) -> Refused:
    """Return why there is no answer, and what to do."""
    near: Sequence[str] = problem.more.get("near") or ()
    after = problem.headers.get("retry-after")
    errors = [FieldProblem.model_validate(each) for each in problem.more.get("errors") or ()]
    for each in errors:
        each.at = each.at.removeprefix("query.").removeprefix("body.")  # an address of the HTTP API, and of no tool
    if problem.kind.startswith("unknown-") and "near" in problem.more:
        value = problem.more["value"]
        what = f"The graph has no {problem.kind.removeprefix('unknown-')} {quoted(value)}."
        names = ", ".join(quoted(each) for each in near)
        todo = f"Near names: {names}. Ask again with one of them, or call search." if near else "Call search for names."
    else:
        what = one_line("; ".join(f"{each.at}: {each.what}" for each in errors) or problem.detail)
        todo = f"Ask again in {after} seconds." if after else ""
    return Refused(
        problem=problem.kind,
        sentence=f"{what} {todo}".strip(),
        value=problem.more.get("value"),
        near=list(near),
        errors=errors,
        retry_after=int(after) if after else None,
    )
