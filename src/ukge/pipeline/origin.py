"""What a fit was begun with: a call that is given again goes on with it, another one is told what is there."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ukge.errors import RunError
from ukge.graph.dataset import Dataset
from ukge.storage.files import DAMAGED, write_atomically

FILE = "fit.json"
ANOTHER = "Begin anew (‹overwrite=True›), or choose another directory (‹out=RUN›)."


@dataclass(frozen=True)
class Origin:
    """The facts that a fit is made of, how they were cut, and the time that it has."""

    reference: str
    train: str
    val: str
    test: str
    facts: int
    seed: int
    minutes: float

    @classmethod
    def of(cls, dataset: Dataset, reference: str, seed: int, minutes: float) -> Origin:
        """Note what a fit begins with."""
        parts = dataset.parts
        prints = {name: graph.fingerprint for name, graph in parts.items()}
        return cls(reference, **prints, facts=sum(map(len, parts.values())), seed=seed, minutes=minutes)

    @classmethod
    def read(cls, place: Path) -> Origin | None:
        """Return what a fit began with, None if none did."""
        file = place / FILE
        if not file.is_file():
            return None
        try:
            return cls(**json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, TypeError, RecursionError):
            raise RunError(f"{file} is damaged: it does not say what the fit was made of", hint=DAMAGED) from None

    @staticmethod
    def refuse_others(place: Path) -> None:
        """Refuse a directory that no fit made: it would be removed."""
        if (
            place.is_dir()
            and not (place / FILE).is_file()
            and any(not file.name.startswith(".") for file in place.iterdir())
        ):
            hint = f"Move it away, or choose another directory (‹out=RUN›): a fit keeps what it tried in {place.name}."
            raise RunError(f"{place} is in the way, and no fit made it", hint=hint)

    def write(self, place: Path) -> None:
        """Write it down before anything else is made."""
        place.mkdir(parents=True, exist_ok=True)
        write_atomically(place / FILE, json.dumps(asdict(self), indent=2, ensure_ascii=False).encode())

    def go_on(self, now: Origin, run: Path) -> list[str]:
        """Refuse to go on with other facts or another seed; return what is to be said where more time is given."""
        if self.reference != now.reference:
            raise RunError(f"{run} was made of {self.reference}, and not of {now.reference}", hint=ANOTHER)
        if self.seed != now.seed:
            hint = f"Give ‹seed={self.seed}› to go on with it. {ANOTHER}"
            raise RunError(f"{run} was made of {self.reference} with seed {self.seed}, not {now.seed}", hint=hint)
        if (self.train, self.val, self.test) != (now.train, now.val, now.test):
            held = f"it had {self.facts:,} facts, now there are {now.facts:,}"
            same = "it has as many facts as it had, but others, or they are read or cut otherwise"
            told = held if self.facts != now.facts else same
            raise RunError(f"{self.reference} is not what {run} was made of: {told}", hint=ANOTHER)
        if now.minutes > self.minutes:
            return [f"what is there was planned for {self.minutes:g} minutes; ‹overwrite=True› takes more for it"]
        return []
