"""The tools: what each is for, what it takes and what it returns, as models and hosts are told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from pydantic import BaseModel

from ukge.agents import answers, questions, telling
from ukge.agents.answers import Provenance, Told
from ukge.agents.telling import Answer
from ukge.serve.service import Service


class Tool(NamedTuple):
    """A question that can be asked: its name, what it is for, its arguments, its answer, and who answers."""

    name: str
    title: str
    description: str
    asked: type[BaseModel]
    told: type[Told]
    answer: Callable[[Service, Any, Provenance], Awaitable[Answer]]


TOOLS = (
    Tool(
        "describe",
        "What the graph holds",
        "Tell how large the graph is, what its relations are called, and what answers it. Begin here.",
        questions.Describe,
        answers.Described,
        telling.describe,
    ),
    Tool(
        "search",
        "Find names",
        "Find the exact names of entities or relations by a part of them, or nearly. Other tools take exact names.",
        questions.Search,
        answers.Found,
        telling.search,
    ),
    Tool(
        "ask",
        "Which entities fit best?",
        "Rank the tails of (head, relation, ?) or the heads of (?, relation, tail): give a head or a tail, not both. "
        "Each answer has a confidence with bounds, and says whether the graph holds it or it is estimated.",
        questions.Ask,
        answers.Ranked,
        telling.ask,
    ),
    Tool(
        "confidence",
        "How likely are these facts?",
        "Tell the confidence of facts, with bounds, what the graph itself says of them, and the main reason.",
        questions.Confidence,
        answers.Facts,
        telling.confidence,
    ),
    Tool(
        "explain",
        "Why is this fact likely or not?",
        "Tell the reasons for the confidence of one fact: the facts and rules that it rests on, each with its share.",
        questions.Explain,
        answers.Explained,
        telling.explain,
    ),
    Tool(
        "neighbours",
        "The facts of an entity",
        "List the facts that the graph holds of an entity, the most confident first.",
        questions.Neighbours,
        answers.Around,
        telling.neighbours,
    ),
    Tool(
        "doubt",
        "Which stored facts are contradicted?",
        "List facts of the graph whose stored confidence the other facts contradict most. The first call may have to "
        "wait until they are found.",
        questions.Doubt,
        answers.Doubted,
        telling.doubt,
    ),
    Tool(
        "rules",
        "Which rules do the facts follow?",
        "List rules mined from the graph with how often they hold; with `number`, one of them with examples.",
        questions.Rules,
        answers.Ruled,
        telling.rules,
    ),
    Tool(
        "complete",
        "Which facts are missing?",
        "List the most confident facts that the graph does not hold, of some relations or of all.",
        questions.Complete,
        answers.Completed,
        telling.complete,
    ),
)
"""All tools, in the order in which they are listed."""
