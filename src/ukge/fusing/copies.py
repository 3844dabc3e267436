"""Which sources repeat another one: what is said once and copied is one claim, and must not count twice.

Sources that know nothing of each other share facts too, because these hold or are easily believed. Two things tell a
copy: a source has more of another one's facts than those have in common that other sources agree on, and where both
speak of a fact they are equally sure, to the digit or nearly, more often than chance lets them be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.fusing.voices import Flags, Floats, Ints, Voices

FEWEST = 20
"""Facts that two sources share at least before one is taken to repeat the other."""

CLOSE = 0.05
"""Confidences that differ by no more are alike."""

ALIKE, LITTLE, MUCH = 0.3, 0.05, 0.9
"""A source copies if confidences are alike this much beyond chance and it shares a little more than agreement tells, or
if it has nearly all of its facts from the other, however sure it says it is."""

AGREED = 4
"""Other sources that speak of a fact are counted up to this number."""

DRAWS = 5
"""Shuffles that tell how often confidences are alike by chance."""


@dataclass(frozen=True)
class Copy:
    """Source `copier` repeats `original`: the share of its facts that the other has, and how alike they sound."""

    copier: int
    original: int
    share: float
    alike: float


def find_copies(voices: Voices) -> tuple[Copy, ...]:
    """Return who repeats whom. Of two that share what they say, the one with less of its own is the copier."""
    says = voices.says
    confidence = np.asarray(voices.matrix(voices.confidence), np.float64)
    spoken = says.sum(axis=1)
    counts = says.astype(np.float32)
    shared = np.asarray(counts.T @ counts, np.int64)
    size = voices.sizes
    head = np.asarray(voices.facts.head)
    speaks = np.zeros((voices.facts.n_entities, len(voices.names)), np.bool_)
    speaks[head[voices.fact], voices.voice] = True
    heard = speaks[head]
    found = []
    for one, other in np.argwhere(np.triu(shared >= FEWEST, 1)):
        copier, original = (one, other) if size[one] <= size[other] else (other, one)
        if size[one] == size[other] and voices.names[one] < voices.names[other]:
            copier, original = other, one
        both = says[:, one] & says[:, other]
        alike = _alike(confidence[both, one], confidence[both, other])
        beyond = _beyond_agreement(says, spoken, heard[:, original], (int(copier), int(original)))
        share = float(shared[one, other] / size[copier])
        if (alike > ALIKE and beyond > LITTLE) or (beyond > MUCH and share > MUCH):
            found.append(Copy(int(copier), int(original), share, alike))
    return tuple(sorted(found, key=lambda copy: (copy.copier, -copy.share, copy.original)))


def repeated(voices: Voices, copies: tuple[Copy, ...]) -> Flags:
    """Return of which facts (rows) each source (columns) says what one says that it copies: there it has no voice."""
    says = voices.says
    muted = np.zeros_like(says)
    for copy in copies:
        muted[:, copy.copier] |= says[:, copy.original]
    return muted


def _alike(one: Floats, other: Floats) -> float:
    """Return how often confidences are close to each other beyond chance: 0 is as often as if shuffled, 1 is always."""
    close = float(np.mean(np.abs(one - other) <= CLOSE))
    # Sorted first, so that the shuffles do not depend on the order of the facts.
    rng, first, second = np.random.default_rng(0), np.sort(one), np.sort(other)
    by_chance = float(np.mean([np.abs(first - rng.permutation(second)) <= CLOSE for _ in range(DRAWS)]))
    return (close - by_chance) / max(1.0 - by_chance, 1e-9) if by_chance < 1.0 else 0.0


def _beyond_agreement(says: Flags, spoken: Ints, heard: Flags, pair: tuple[int, int]) -> float:
    """Return the share of the copier's facts that the original has beyond what other sources' agreement tells.

    Only facts that a third source speaks of say anything: of the others, one is known because one of the two has it.
    And only those of which the original has `heard`, because it speaks of their heads.
    """
    copier, original = pair
    others = np.minimum(spoken - says[:, copier] - says[:, original], AGREED)
    told = heard & (others > 0)
    own, not_own = says[:, copier] & told, ~says[:, copier] & told
    known = np.bincount(others[not_own], minlength=AGREED + 1)
    has = np.bincount(others[not_own & says[:, original]], minlength=AGREED + 1)
    expected = float(((has + 1.0) / (known + 2.0))[others[own]].sum())
    observed, total = int((own & says[:, original]).sum()), int(own.sum())
    return (observed - expected) / (total - expected) if total >= FEWEST else 0.0
