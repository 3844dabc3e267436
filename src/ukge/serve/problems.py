"""Errors as RFC 9457 problem documents: what is wrong, with which value, and what may have been meant."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
SHOWN = 10
LONGEST = 200


class FieldProblem(BaseModel):
    """One place of a request that is wrong."""

    at: str = Field(description="Where: query, path or body, then the names and places that lead there.")
    what: str = Field(description="What is wrong there.")


class ProblemDocument(BaseModel):
    """An error, as RFC 9457 has it."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="A name for the kind of problem.", examples=["urn:ukge:problem:unknown-entity"])
    title: str = Field(description="The kind of problem in words.", examples=["Unknown entity"])
    status: int = Field(description="The HTTP status.", examples=[404])
    detail: str = Field(description="What is wrong in this case.", examples=["The graph has no entity 'hotle'."])
    value: str | None = Field(None, description="The name that is unknown.", examples=["hotle"])
    near: list[str] | None = Field(None, description="Names that look like it.", examples=[["hotel"]])
    errors: list[FieldProblem] | None = Field(None, description="Every place of the request that is wrong.")


class Problem(Exception):  # noqa: N818 — named as the standard does
    """A request that cannot be answered."""

    def __init__(
        self, status: int, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        self.status, self.kind, self.detail = status, kind, detail
        self.headers = dict(headers or {})
        self.more = more
        super().__init__(detail)

    def response(self) -> Response:
        """Return the problem as a response."""
        document = {
            "type": f"urn:ukge:problem:{self.kind}",
            "title": self.kind.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
            **{name: value for name, value in self.more.items() if value is not None},
        }
        # Only ASCII: what a client sent may hold characters that UTF-8 cannot say.
        return Response(json.dumps(document), self.status, self.headers, MEDIA_TYPE)


class TimeLimitError(Problem):
    """A request took longer than it may."""

    def __init__(self, seconds: float) -> None:
        detail = f"The request took longer than {seconds:g} seconds. Ask for less at once."
        super().__init__(503, "time-limit", detail, headers={"retry-after": "5"})


class NotReadyError(Problem):
    """What was asked for is still being prepared."""

    def __init__(self, what: str) -> None:
        self.what = what
        detail = f"{what.capitalize()} are still being prepared. Ask again soon."
        super().__init__(503, "not-ready", detail, headers={"retry-after": "5"})


class OverloadedError(Problem):
    """More requests wait than may."""

    def __init__(self) -> None:
        detail = "Too many requests are waiting. Ask again soon."
        super().__init__(503, "overloaded", detail, headers={"retry-after": "1"})


class TooOftenError(Problem):
    """One address opens pages too quickly, or holds too many."""

    def __init__(self) -> None:
        detail = "Your address has opened too many pages. Close some, or come back in a minute."
        super().__init__(429, "too-many-pages", detail, headers={"retry-after": "30"})


def unknown_name(kind: str, name: str, near: Sequence[str]) -> Problem:
    """Return that the graph has no such entity or relation, and what may have been meant."""
    return Problem(404, f"unknown-{kind}", f"The graph has no {kind} {short(name)!r}.", value=short(name), near=[*near])


def invalid(errors: Sequence[tuple[str, str]]) -> Problem:
    """Return which places of a request are wrong."""
    first = "; ".join(f"{at}: {what}" for at, what in errors[:3])
    more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
    told = [{"at": at, "what": what} for at, what in errors[:SHOWN]]
    return Problem(422, "invalid-request", f"{first}{more}.", errors=told)


def too_large(limit: int) -> Problem:
    """Return that a body is larger than allowed."""
    return Problem(
        413, "body-too-large", f"A request's body may have {limit:,} bytes.", headers={"connection": "close"}
    )


def short(text: str) -> str:
    """Return a client's text, cut to a length that is fit to repeat."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
