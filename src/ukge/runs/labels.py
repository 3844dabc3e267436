"""What people say of a run's facts: does it hold? Kept in the run with who said it and when, one sealed line a word.

Nothing is ever changed or removed: a later word of the same person about the same fact counts instead, and one may be
taken back. So several people, and several services, may label at a time; a kill loses at most the word under way; and
whatever is fitted to the run again, its labels stay.

`read_labels(run)` is what `fuse` and `calibrate` learn from where `--labelled` names a run: the columns head, relation,
tail, confidence and label, a row for each fact that somebody has said yes or no of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from ukge.errors import ConfigError, RunError
from ukge.graph.index import FactIndex
from ukge.graph.queries import Floats, Places
from ukge.runs import manifest
from ukge.runs.directory import LABELS, Run
from ukge.storage.files import DAMAGED
from ukge.storage.lines import append_lines, read_lines
from ukge.storage.sealed import sealed, unsealed

LONGEST_PERSON = 100
"""Characters of a person's name."""

Word = Literal["yes", "no", "unsure", "withdrawn"]
WORDS: tuple[Word, ...] = get_args(Word)

Triple = tuple[str, str, str]
Words = Mapping[Triple, Mapping[str, "Label"]]
"""What counts of each fact, by who said it."""


@dataclass(frozen=True, slots=True)
class Label:
    """One person's word about one fact: whether it holds, or that it was taken back."""

    head: str
    relation: str
    tail: str
    word: Word
    by: str
    at: str
    """when, in UTC"""

    @classmethod
    def now(cls, fact: Triple, word: Word, by: str) -> Label:
        """Return a word that is said now, checked."""
        name = by.strip()
        if not name or len(name) > LONGEST_PERSON:
            raise ConfigError(
                f"a label needs the name of who gives it, of 1 to {LONGEST_PERSON} characters", hint="Say who you are."
            )
        if word not in WORDS:
            raise ConfigError(f"unknown word {word!r}", hint=f"Known: {', '.join(WORDS)}.")
        return cls(*fact, word, name, datetime.now(UTC).isoformat(timespec="milliseconds"))

    @property
    def fact(self) -> Triple:
        """The fact that it is about."""
        return self.head, self.relation, self.tail


def keep_labels(run: str | Path, labels: Sequence[Label]) -> None:
    """Add labels to a run; they are on the disk when this returns."""
    place = Path(run)
    if not (place / manifest.FILE).is_file():
        raise RunError(f"{place} is no run, and labels belong to one")
    append_lines(place / LABELS, [sealed(asdict(each)) for each in labels])


def all_words(run: str | Path) -> list[Label]:
    """Return every word that was said, in order; a damaged line is an error that names it."""
    file = Path(run) / LABELS
    return [_read(text, f"{file}, line {number},") for number, text in enumerate(read_lines(file), start=1)]


def last_words(labels: Iterable[Label]) -> dict[Triple, dict[str, Label]]:
    """Return by fact and person what counts: the last word, unless it was taken back."""
    found: dict[Triple, dict[str, Label]] = {}
    for each in labels:
        found.setdefault(each.fact, {})[each.by] = each
    kept = {fact: {by: each for by, each in said.items() if each.word != "withdrawn"} for fact, said in found.items()}
    return {fact: said for fact, said in kept.items() if said}


def share_of_yes(said: Iterable[Label]) -> float | None:
    """Return which share of those who decided says yes; None if nobody did."""
    decided = [each.word == "yes" for each in said if each.word in ("yes", "no")]
    return sum(decided) / len(decided) if decided else None


def read_labels(run: str | Path) -> pa.Table:
    """Return the labelled facts of a run: head, relation, tail, confidence, label, reviewers, at.

    The label is 1 where all who decided say that the fact holds, 0 where all say that it does not, else the share of
    yes. The confidence is the stored one, null where the run no longer has the fact. Facts that people are only unsure
    of are left out. `fuse` and `calibrate` take the first five columns as `--labelled` takes those of a file.
    """
    opened = Run.open(run)
    return labelled_table(last_words(all_words(run)), FactIndex(opened.dataset().whole()))


def labelled_table(said: Words, index: FactIndex) -> pa.Table:
    """Return a table as `read_labels` does, of words that are at hand."""
    rows = [(fact, share, words) for fact, words in said.items() if (share := share_of_yes(words.values())) is not None]
    stored = np.append(index.triples.mean, np.nan)[_places(index, [fact for fact, _, _ in rows])]
    text = pa.large_string()
    names = {
        name: pa.array([fact[at] for fact, _, _ in rows], text) for at, name in enumerate(("head", "relation", "tail"))
    }
    return pa.table(
        {
            **names,
            "confidence": pa.array([None if np.isnan(value) else float(value) for value in stored], pa.float64()),
            "label": pa.array([share for _, share, _ in rows], pa.float64()),
            "reviewers": pa.array([", ".join(words) for _, _, words in rows], text),
            "at": pa.array([max(each.at for each in words.values()) for _, _, words in rows], text),
        }
    )


def labels_of_rows(said: Words, index: FactIndex) -> Floats:
    """Return the label of each fact of a graph, by row; NaN where nobody decided."""
    shares = {fact: share for fact, words in said.items() if (share := share_of_yes(words.values())) is not None}
    place = _places(index, list(shares))
    of_triple = np.full(len(index.triples), np.nan)
    of_triple[place[place >= 0]] = np.array(list(shares.values()), dtype=np.float64)[place >= 0]
    return np.asarray(of_triple[index.fact[: len(index.graph)]])


def rows_of_facts(index: FactIndex, facts: Sequence[Triple]) -> Places:
    """Return a row of each fact in a graph, −1 of those that it does not have."""
    return np.append(index.triples.first, -1)[_places(index, facts)]


def _places(index: FactIndex, facts: Sequence[Triple]) -> Places:
    """Return the place of each fact among the distinct ones of a graph, −1 of those that it does not have."""
    found = np.full(len(facts), -1, dtype=np.int64)
    entities, relations = index.graph.entities.index, index.graph.relations.index
    known = [at for at, (h, r, t) in enumerate(facts) if h in entities and r in relations and t in entities]
    if known:
        ids = [(entities[facts[at][0]], relations[facts[at][1]], entities[facts[at][2]]) for at in known]
        head, relation, tail = np.array(ids, dtype=np.int32).T
        found[known] = index.find(head, relation, tail)
    return found


def _read(text: bytes, source: str) -> Label:
    note = unsealed(text, source)
    sound = note.keys() == {each.name for each in fields(Label)} and all(
        isinstance(each, str) for each in note.values()
    )
    if not sound or note["word"] not in WORDS:
        raise RunError(f"{source} is damaged: it is no label", hint=DAMAGED)
    return Label(**note)
