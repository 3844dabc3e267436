"""A client of `ukge serve`: the same questions from another process or another machine.

from ukge.client import Client

with Client("http://127.0.0.1:8000") as graph:
    graph.rank(head="hotel", relation="usedfor", k=3).answers
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack
from urllib.parse import quote
from uuid import uuid4

import httpx
from pydantic import BaseModel

from ukge.errors import UkgeError
from ukge.runs.labels import Word
from ukge.serve import schema

M = TypeVar("M", bound=BaseModel)

LONGEST_WAIT = 30.0
BATCH = 1_000


class ServiceError(UkgeError):
    """What the service answered instead: the problem document, with near names where a name is unknown."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        self.problem = problem
        self.kind = str(problem.get("type", "")).rpartition(":")[2]
        self.near = [str(name) for name in problem.get("near") or ()]
        hint = f"Near names: {', '.join(self.near)}." if self.near else None
        super().__init__(str(problem.get("detail") or f"the service answered {status}"), hint=hint)


class Which(TypedDict, total=False):
    """Which answers are asked for; what is left out is as `GET /v1/rank` has it."""

    type: str
    prefix: str
    min_confidence: float
    observed: Literal["include", "exclude", "only"]
    exact: bool
    coverage: float


class Client:
    """Asks a service. While it is overloaded or still preparing, the client waits as told, `retries` times."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        retries: int = 2,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, transport=transport)
        self._retries = retries

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def confidence(self, facts: Iterable[Sequence[str]], coverage: float = 0.9) -> list[schema.PredictedFact]:
        """Return the confidence of each (head, relation, tail); many facts are asked about in several requests."""
        names = [{"head": fact[0], "relation": fact[1], "tail": fact[2]} for fact in facts]
        told: list[schema.PredictedFact] = []
        for start in range(0, len(names), BATCH):
            body = {"facts": names[start : start + BATCH], "coverage": coverage}
            told += self._ask(schema.ConfidenceResponse, "POST", "/v1/confidence", json=body).facts
        return told

    def rank(
        self,
        head: str | None = None,
        relation: str = "",
        k: int = 10,
        *,
        tail: str | None = None,
        **which: Unpack[Which],
    ) -> schema.RankResponse:
        """Return the most confident answers to (head, relation, ?) or, with `tail`, to (?, relation, tail)."""
        return self._get(schema.RankResponse, "/v1/rank", head=head, relation=relation, tail=tail, k=k, **which)

    def explain(self, head: str, relation: str, tail: str) -> schema.ExplainResponse:
        """Return the confidence of a fact with its reasons."""
        return self._get(schema.ExplainResponse, "/v1/explain", head=head, relation=relation, tail=tail)

    def complete(
        self,
        relations: Sequence[str] = (),
        k: int = 20,
        *,
        min_confidence: float = 0.0,
        type: Literal["fitting", "any"] = "fitting",  # noqa: A002 — the word of the API
        head_type: str | None = None,
        tail_type: str | None = None,
    ) -> schema.CompleteResponse:
        """Return the most confident unseen facts of some relations, or of all; of some types of the node data."""
        asked = {"relation": list(relations), "k": k, "min_confidence": min_confidence, "type": type}
        types = {"head_type": head_type, "tail_type": tail_type}
        return self._get(schema.CompleteResponse, "/v1/complete", **asked, **types)

    def add(
        self,
        facts: Iterable[Sequence[Any]],
        *,
        source: str = "HTTP",
        id: str | None = None,  # noqa: A002 — the word of the API
    ) -> schema.AdditionResponse:
        """Take (head, relation, tail, confidence) facts into the run that is served, all of them or none.

        The service needs a key for it. Sent again, as after a lost connection, they are taken in once: under `id`, or a
        name that is drawn here.
        """
        rows = [{"head": f[0], "relation": f[1], "tail": f[2], "confidence": float(f[3])} for f in facts]
        body = {"facts": rows, "source": source, "id": id or uuid4().hex}
        return self._ask(schema.AdditionResponse, "POST", "/v1/facts", json=body)

    def entities(self, search: str = "", limit: int = 20, *, fuzzy: bool = True) -> list[schema.EntityMatch]:
        """Return the entities that fit what was typed."""
        return self._get(schema.EntitiesResponse, "/v1/entities", search=search, limit=limit, fuzzy=fuzzy).entities

    def relations(self, search: str = "", limit: int = 100) -> list[schema.RelationMatch]:
        """Return the relations that fit what was typed."""
        return self._get(schema.RelationsResponse, "/v1/relations", search=search, limit=limit).relations

    def entity(
        self,
        name: str,
        limit: int = 100,
        offset: int = 0,
        *,
        side: Literal["head", "tail", "both"] = "both",
        relation: str | None = None,
    ) -> schema.EntityResponse:
        """Return an entity and its facts, the most confident first."""
        path = f"/v1/entity/{quote(name, safe='')}"
        return self._get(schema.EntityResponse, path, limit=limit, offset=offset, side=side, relation=relation)

    def rules(
        self, relation: str | None = None, search: str = "", limit: int = 50, offset: int = 0
    ) -> schema.RulesResponse:
        """Return rules with their figures, the best first."""
        return self._get(
            schema.RulesResponse, "/v1/rules", relation=relation, search=search, limit=limit, offset=offset
        )

    def rule(self, number: int, limit: int = 5) -> schema.RuleResponse:
        """Return one rule with examples."""
        return self._get(schema.RuleResponse, f"/v1/rules/{number}", limit=limit)

    def doubtful(
        self,
        relation: str | None = None,
        limit: int = 50,
        *,
        direction: Literal["any", "too-high", "too-low"] = "any",
        source: str | None = None,
    ) -> list[schema.DoubtOut]:
        """Return the observed facts whose stored confidence is contradicted most, in any or in one direction."""
        asked = {"relation": relation, "limit": limit, "direction": direction, "source": source}
        return self._get(schema.DoubtfulResponse, "/v1/doubtful", **asked).facts

    def likely_false(
        self, relation: str | None = None, limit: int = 50, *, source: str | None = None
    ) -> schema.LikelyFalseResponse:
        """Return the observed facts that most likely do not hold, whatever confidence is stored with them."""
        return self._get(schema.LikelyFalseResponse, "/v1/likely-false", relation=relation, limit=limit, source=source)

    def doubt_by_source(self) -> list[schema.SourceDoubtOut]:
        """Return what is doubtful about the facts of each source."""
        return self._get(schema.DoubtBySourceResponse, "/v1/doubt-by-source").sources

    def review(self, by: str = "", limit: int = 20) -> schema.ReviewResponse:
        """Return the facts that a person should look at next."""
        return self._get(schema.ReviewResponse, "/v1/review", by=by, limit=limit)

    def label(self, by: str, words: Mapping[tuple[str, str, str], Word]) -> schema.LabelsKept:
        """Say of facts whether they hold: "yes", "no", "unsure", or "withdrawn"; they are on the disk then."""
        labels = [{"head": h, "relation": r, "tail": t, "word": word} for (h, r, t), word in words.items()]
        return self._ask(schema.LabelsKept, "POST", "/v1/labels", json={"by": by, "labels": labels})

    def labels(self, limit: int = 100, offset: int = 0) -> schema.LabelsResponse:
        """Return the facts that people have decided."""
        return self._get(schema.LabelsResponse, "/v1/labels", limit=limit, offset=offset)

    def reliability(self) -> schema.ReliabilityResponse:
        """Return whether confidences mean what they say."""
        return self._get(schema.ReliabilityResponse, "/v1/reliability")

    def audit(self) -> schema.AuditResponse:
        """Return what is wrong with the data."""
        return self._get(schema.AuditResponse, "/v1/audit")

    def info(self) -> schema.InfoResponse:
        """Return what is served."""
        return self._get(schema.InfoResponse, "/v1/info")

    def _get(self, kind: type[M], path: str, **params: Any) -> M:
        given = {name: value for name, value in params.items() if value is not None}
        return self._ask(kind, "GET", path, params=given)

    def _ask(self, kind: type[M], method: str, path: str, **more: Any) -> M:
        for attempt in range(self._retries + 1):
            try:
                response = self._http.request(method, path, **more)
            except httpx.HTTPError as error:
                raise ServiceError(
                    0, {"detail": f"the service at {self._http.base_url} does not answer: {error}"}
                ) from None
            if response.status_code != 503 or attempt == self._retries:
                break
            time.sleep(min(LONGEST_WAIT, _seconds(response.headers.get("retry-after", ""))))
        if response.status_code != 200:
            raise ServiceError(response.status_code, _problem(response))
        return kind.model_validate_json(response.content)


def _seconds(text: str) -> float:
    return float(text) if text.isdecimal() else 1.0


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        told = response.json()
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
