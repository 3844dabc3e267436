"""Who claims the facts: how much each source says, how its confidences are spread, and how sources agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ukge.graph.audit.leaks import percent
from ukge.graph.audit.statistics import DIGITS, histogram_of
from ukge.graph.claims import Claims

MOST = 40
"""Sources that are looked at one by one and against each other: those with most claims."""
PAIRS = 20
FEWEST = 20
"""Facts that two sources must share before anything is said about both."""
ALIKE = 0.5
"""How far beyond chance two sources must agree to the digit before one is suspected to repeat the other."""
SHUFFLES = 5
"""Times that the facts of two sources are shuffled, to see how often they agree by chance."""
MIDDLE, HIGH = (0.4, 0.6), 0.8

Values = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """One source: its claims and the facts they speak of, and how its confidences are spread.

    `middle` is the share of claims with a confidence of .4 to .6, `high` that of .8 or more; `values` counts different
    confidences, to three digits. `shared` of its facts are claimed by others, too, whose mean lies `gap` away on
    average.
    """

    name: str
    claims: int
    facts: int
    mean: float
    middle: float
    high: float
    values: int
    shared: int
    gap: float | None
    histogram: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SourcePair:
    """Two sources on the `facts` that both claim: how far apart they are, and how they go together.

    `same` is the share of facts of which both claim the same to three digits, `beyond` how far that is beyond chance
    (0), where each says what it says of any of these facts, on the way to always (1). `copied` says that this is
    suspicious: one seems to repeat the other.
    """

    first: str
    second: str
    facts: int
    gap: float
    correlation: float | None
    same: float
    beyond: float
    copied: bool


@dataclass(frozen=True, slots=True)
class Sources:
    """All sources: how many there are, how many claims they make about how many facts, and how they agree.

    `each` and `pairs` hold those with most claims and most shared facts; `contested` facts are claimed by several.
    """

    count: int
    claims: int
    facts: int
    contested: int
    each: tuple[SourceCounts, ...]
    pairs: tuple[SourcePair, ...]

    @property
    def copies(self) -> tuple[SourcePair, ...]:
        """The pairs of which one seems to repeat the other."""
        return tuple(pair for pair in self.pairs if pair.copied)

    def headlines(self) -> Iterator[str]:
        """Yield what matters most, as sentences."""
        if self.count == 1:
            yield f"All claims are of one source, {self.each[0].name}."
            return
        yield (
            f"{self.count:,} sources make {self.claims:,} claims about {self.facts:,} facts; several speak of "
            f"{percent(self.contested / self.facts)} of them."
        )
        for pair in self.copies[:3]:
            yield (
                f"{pair.second} and {pair.first} seem to repeat each other, or a third: of {pair.facts:,} facts that "
                f"both claim, {percent(pair.same)} have the same confidence to three digits."
            )


def examine_sources(claims: Claims) -> Sources | None:
    """Say who claims what; None where nothing is claimed."""
    if len(claims) == 0:
        return None
    said = _Said.of(claims)
    counts = np.bincount(claims.source, minlength=len(claims.sources))
    order = [int(at) for at in np.argsort(-counts, kind="stable")[:MOST] if counts[at]]
    names = claims.sources.decode(np.array(order, np.int32)).to_pylist()
    speakers = np.bincount(said.fact, minlength=len(claims.facts))
    each = tuple(_counts(name, claims, said, source) for name, source in zip(names, order, strict=True))
    pairs = [_pair(*pair, said, claims) for pair in combinations(list(zip(names, order, strict=True)), 2)]
    known = sorted((pair for pair in pairs if pair is not None), key=lambda pair: (not pair.copied, -pair.facts))
    return Sources(
        count=int((counts > 0).sum()),
        claims=len(claims),
        facts=len(claims.facts),
        contested=int((speakers > 1).sum()),
        each=each,
        pairs=tuple(known[:PAIRS]),
    )


@dataclass(frozen=True)
class _Said:
    """What every source says of every fact that it claims, as one row: the mean of its claims."""

    fact: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    confidence: Values
    others: Values
    """the mean of what the other sources say; NaN where there is none"""

    @classmethod
    def of(cls, claims: Claims) -> _Said:
        """Gather what each source says."""
        keys, place, times = np.unique(
            claims.fact * len(claims.sources) + claims.source, return_inverse=True, return_counts=True
        )
        confidence = np.bincount(place.ravel(), weights=claims.confidence) / times
        fact, source = keys // len(claims.sources), keys % len(claims.sources)
        total, speakers = np.bincount(fact, weights=confidence), np.bincount(fact)
        with np.errstate(invalid="ignore", divide="ignore"):
            others = np.where(speakers[fact] > 1, (total[fact] - confidence) / (speakers[fact] - 1), np.nan)
        return cls(fact, source, confidence, others)


def _counts(name: str, claims: Claims, said: _Said, source: int) -> SourceCounts:
    values = claims.confidence[claims.source == source]
    rows = said.source == source
    gaps = np.abs(said.confidence[rows] - said.others[rows])
    shared = ~np.isnan(gaps)
    return SourceCounts(
        name=name,
        claims=len(values),
        facts=int(rows.sum()),
        mean=float(values.mean()),
        middle=float(((values >= MIDDLE[0]) & (values <= MIDDLE[1])).mean()),
        high=float((values >= HIGH).mean()),
        values=len(np.unique(np.round(values, DIGITS))),
        shared=int(shared.sum()),
        gap=float(gaps[shared].mean()) if shared.any() else None,
        histogram=histogram_of(values),
    )


def _pair(one: tuple[str, int], other: tuple[str, int], said: _Said, claims: Claims) -> SourcePair | None:
    """Return how two sources agree, None where they share too few facts to tell."""
    rows = [np.flatnonzero(said.source == source) for _, source in (one, other)]
    shared, mine, theirs = np.intersect1d(
        said.fact[rows[0]], said.fact[rows[1]], assume_unique=True, return_indices=True
    )
    if len(shared) < FEWEST:
        return None
    first, second = said.confidence[rows[0][mine]], said.confidence[rows[1][theirs]]
    same, beyond = _alike(shared, one[1], other[1], claims)
    varied = first.std() > 0 and second.std() > 0
    return SourcePair(
        first=one[0],
        second=other[0],
        facts=len(shared),
        gap=float(np.abs(first - second).mean()),
        correlation=float(np.corrcoef(first, second)[0, 1]) if varied else None,
        same=same,
        beyond=beyond,
        copied=beyond >= ALIKE,
    )


def _alike(shared: Rows, one: int, other: int, claims: Claims) -> tuple[float, float]:
    """Return how often two say the same of a fact, and how far that is beyond chance: who always says 1 copies nobody.

    A fact counts if any claim of the one is a claim of the other, to the digit.
    """
    mine, theirs = (_values_of(shared, source, claims) for source in (one, other))
    draw = np.random.default_rng(0)
    same = _meeting(mine, theirs, np.arange(len(shared)))
    chance = float(np.mean([_meeting(mine, theirs, draw.permutation(len(shared))) for _ in range(SHUFFLES)]))
    return same, (same - chance) / (1.0 - chance) if chance < 1.0 else 0.0


def _values_of(shared: Rows, source: int, claims: Claims) -> tuple[Rows, Rows]:
    """Return the claims of a source about shared facts: places of the facts, and values in thousandths."""
    rows = np.flatnonzero(claims.source == source)
    place = np.minimum(np.searchsorted(shared, claims.fact[rows]), len(shared) - 1)
    known = shared[place] == claims.fact[rows]
    thousandths = np.round(claims.confidence[rows[known]] * 10**DIGITS).astype(np.int64)
    return place[known], thousandths


def _meeting(mine: tuple[Rows, Rows], theirs: tuple[Rows, Rows], order: Rows) -> float:
    """Return the share of facts of which both say the same, with theirs in another order."""
    codes = [place * (10**DIGITS + 1) + value for place, value in (mine, (order[theirs[0]], theirs[1]))]
    both = np.intersect1d(*codes) // (10**DIGITS + 1)
    return len(np.unique(both)) / len(order)
