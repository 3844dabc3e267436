"""Who is to be believed, from agreement alone: the model of Dawid and Skene, with confidences and silence.

Each source is a view of the facts. It says one of a few things of each: nothing, though it speaks of the fact's head
elsewhere; the fact, once or more often, with a confidence in one of a few bins. How often it says each of true and of
false facts is not known, and neither is which facts are true. Both are found in turn (expectation and maximisation):

    P(x_i holds | all views)  ∝  π · Π_s P(s says o_si | holds)      P(s says o | holds) = Σ_i p_i [o_si = o] / Σ_i p_i

and the same of false facts with 1 − π and 1 − p_i. Facts with a label keep it. Where a source has no voice (it copies,
or knows nothing of the head) it counts for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ukge.evidence.fuse import logit, sigmoid
from ukge.fusing.voices import Flags, Floats, Ints, Voices

BINS, FEWEST_IN_BIN = 6, 40
"""Bins of a source's confidences at most, and facts in each at least."""

MUTE, SILENT, SAID = 0, 1, 2
"""What a source may say: it has no voice, it does not mention the fact, and from here on the bins of what it says."""

PULL = 10.0
"""Facts' worth of the belief that a source says of true facts what it says of false ones."""

LOUDEST = 0.95
"""Share of the facts of its heads that a view is taken to claim at most."""

ROUNDS, SMALL = 200, 1e-4
"""Rounds at most, and a change of every confidence that is as good as none."""


@dataclass(frozen=True, eq=False)
class Bins:
    """Where the bins of a view begin, beyond the first, and whether it tells how often something was said."""

    edges: Floats
    counted: bool = True

    @classmethod
    def of(cls, confidence: Floats, *, counted: bool = True) -> Bins:
        """Cut confidences into bins of about the same number, as many as there is enough for."""
        bins = max(1, min(BINS, len(confidence) // FEWEST_IN_BIN))
        cuts = np.quantile(confidence, np.arange(1, bins) / bins) if bins > 1 else np.zeros(0)
        return cls(np.unique(cuts), counted)

    @property
    def size(self) -> int:
        """How many different things the view may say."""
        return SAID + (len(self.edges) + 1) * (2 if self.counted else 1)

    def code(self, confidence: Floats, count: Ints) -> Ints:
        """Return what is said, as a number."""
        again = (count > 1) & self.counted
        return np.asarray(SAID + np.searchsorted(self.edges, confidence, side="right") + again * (len(self.edges) + 1))


def said(voices: Voices, bins: Sequence[Bins], muted: Flags) -> Ints:
    """Return what each source (columns) says of each fact (rows)."""
    heads = np.asarray(voices.facts.head)
    codes = np.zeros((len(voices.facts), len(voices.names)), np.int64)
    for number, each in enumerate(bins):
        rows = voices.voice == number
        facts = voices.fact[rows]
        speaks_of = np.zeros(voices.facts.n_entities, np.bool_)
        speaks_of[heads[facts]] = True
        codes[:, number] = np.where(speaks_of[heads], SILENT, MUTE)
        codes[facts, number] = each.code(voices.confidence[rows], voices.count[rows])
    codes[muted] = MUTE
    return codes


@dataclass(frozen=True, eq=False)
class Agreement:
    """How often each view says each thing of true and of false facts, where it has a voice, and the share of true ones.

    `true[s][o]` is P(s says o | holds), `false[s][o]` the same of facts that do not; what is never said has 0 in both.
    """

    true: tuple[Floats, ...]
    false: tuple[Floats, ...]
    prior: float

    @property
    def worth(self) -> tuple[Floats, ...]:
        """What everything that a view may say is worth: log P(said | holds) − log P(said | does not)."""
        return tuple(_worth(true, false) for true, false in zip(self.true, self.false, strict=True))

    def log_odds(self, codes: Ints) -> Floats:
        """Return the log-odds of facts of which this is said."""
        total = np.full(len(codes), _log_odds(self.prior))
        for number, worth in enumerate(self.worth):
            total += worth[codes[:, number]]
        return total

    def among(self, codes: Ints, counted: Sequence[bool]) -> Agreement:
        """Return what it is among other facts, of which views speak more or less often.

        What claims say of the truth stays: how much oftener true facts are claimed than false ones, and with which
        confidence. Silence of a view that speaks less often means less, and the share of true facts is found anew.
        Only the silence of views that are `counted` means anything.
        """
        trues, falses = [], []
        for number, (true, false) in enumerate(zip(self.true, self.false, strict=True)):
            own = codes[:, number]
            voiced, mentions = int((own != MUTE).sum()), int((own >= SAID).sum())
            once = self.prior * (1.0 - true[SILENT]) + (1.0 - self.prior) * (1.0 - false[SILENT])
            more = 1.0
            if counted[number] and voiced and once > 0:
                more = min(mentions / voiced / once, LOUDEST / max(1.0 - true[SILENT], 1.0 - false[SILENT], 1e-9))
            trues.append(_scaled(true, more))
            falses.append(_scaled(false, more))
        found = Agreement(tuple(trues), tuple(falses), self.prior)
        for _ in range(ROUNDS):
            prior = float(np.clip(sigmoid(found.log_odds(codes)).mean(), 1e-3, 1.0 - 1e-3))
            done = abs(prior - found.prior) < SMALL
            found = replace(found, prior=prior)
            if done:
                break
        return found


def _worth(true: Floats, false: Floats) -> Floats:
    known = (true > 0) & (false > 0)
    return np.log(np.where(known, true, 1.0)) - np.log(np.where(known, false, 1.0))


def _scaled(share: Floats, more: float) -> Floats:
    scaled = share * more
    scaled[SILENT] = 1.0 - scaled[SAID:].sum()
    return scaled


def agree(
    codes: Ints, sizes: Sequence[int], start: Floats, *, label: Floats | None = None, beside: Floats | float = 0.0
) -> tuple[Agreement, Floats]:
    """Return what views are worth, and the log-odds of the facts by the views alone.

    `start` is what is believed at first, `label` what is known (NaN where nothing is), `beside` log-odds that something
    else adds.
    """
    start_of = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    flat = codes + start_of[:-1]
    width, view = int(start_of[-1]), np.repeat(np.arange(len(sizes)), sizes)
    heard = np.bincount(flat.ravel(), minlength=width).astype(np.float64)
    heard[start_of[:-1] + MUTE] = 0.0
    total = np.bincount(view, heard, minlength=len(sizes))
    usual = heard / np.maximum(total[view], 1.0)

    def share(belief: Floats) -> Floats:
        often = np.bincount(flat.ravel(), np.repeat(belief, len(sizes)), minlength=width) * (heard > 0)
        return (often + PULL * usual) / (np.bincount(view, often, minlength=len(sizes)) + PULL)[view]

    belief, known = start, np.zeros(len(start), np.bool_) if label is None else ~np.isnan(label)
    for _ in range(ROUNDS):
        if label is not None:
            belief = np.where(known, label, belief)
        prior = float(np.clip(belief.mean(), 1e-3, 1.0 - 1e-3))
        true, false = share(belief), share(1.0 - belief)
        worth = _worth(true, false)
        log_odds = _log_odds(prior) + worth[flat].sum(axis=1)
        after = sigmoid(log_odds + beside)
        done = float(np.abs(after - belief)[~known].max(initial=0.0)) < SMALL
        belief = after
        if done:
            break
    parts = [tuple(np.split(each, start_of[1:-1])) for each in (true, false)]
    return Agreement(parts[0], parts[1], prior), log_odds


def _log_odds(prior: float) -> float:
    return float(logit(np.array([prior]))[0])
