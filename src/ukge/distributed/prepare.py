"""From Parquet files by name, in a directory or a bucket, to a prepared directory by id, inside a relational engine.

Names are numbered within buckets of their hash, and each bucket's numbers begin where the one before it ends; so no
machine ever holds all names, and DuckDB and Spark give the same ids. Parts are chosen by the hash of a fact's pair of
entities, so that no held-out fact has a twin, under whatever relation, in train.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa

from ukge.errors import SHOWN, ConfigError, DataError, Problem
from ukge.graph.columns import CONFIDENCE_HINT, NAME_HINT
from ukge.graph.partitioned import Prepared, is_prepared, open_prepared, write_note
from ukge.graph.readers.layout import ColumnMap, assign_roles
from ukge.logic.engine import Engine, using
from ukge.progress.steps import Steps, Tell
from ukge.storage.files import replacing_directory
from ukge.storage.locks import alone

PARTS = ("train", "val", "test")
DIGITS = 8
"""Hexadecimal digits of a hash that decide about a fact: chances are multiples of 16⁻⁸."""
BUCKET = 3
"""Hexadecimal digits of a hash that make a bucket: 4,096 of them."""
ONE_BUCKET = 2_000_000
"""So many rows are numbered in one bucket without ado."""
SPARE = 4
"""Training facts among which negative links look for ends, per link."""


@dataclass(frozen=True)
class PrepareSettings:
    """Which shares of the facts are held out, unless the source has directories train, val and test."""

    val: float = 0.01
    test: float = 0.01
    seed: int = 0
    columns: ColumnMap | None = None

    def __post_init__(self) -> None:
        if min(self.val, self.test) < 0 or self.val == 0 or self.val + self.test >= 1:
            raise ConfigError(f"‹val={self.val:g}› and ‹test={self.test:g}› leave nothing to validate or to train on")


CHECKING, NUMBERING, CUTTING, LINKS = "checking the facts", "numbering the names", "cutting", "drawing negative links"
STEPS = {CHECKING: 2, NUMBERING: 4, CUTTING: 4, LINKS: 2}
"""What preparing does, with the share of its time that each step takes about."""


def prepare(
    source: str,
    directory: str | Path,
    settings: PrepareSettings | None = None,
    engine: str | Engine = "duckdb",
    *,
    overwrite: bool = False,
    tell: Tell | None = None,
) -> Prepared:
    """Write the facts below `source` as a prepared directory, which appears whole or not at all.

    A prepared directory that is there gives way if `overwrite`; anything else is never removed. One that was made of
    the same files with the same settings is done already, as where a kill came after all was in its place.
    """
    asked, target = settings or PrepareSettings(), Path(directory)
    old, made_of = target.exists() and is_prepared(target), _digest(source, asked)
    if old and not overwrite and made_of is not None and open_prepared(target).made_of == made_of:
        with alone(target):  # what a kill left beside it goes
            return open_prepared(target)
    if target.exists() and not (old and overwrite):
        hint = "Choose another directory, or replace it: ‹overwrite=True›." if old else "Choose another directory."
        raise ConfigError(f"{target} exists already", hint=hint)
    with alone(target), replacing_directory(target, over=old) as folder, using(engine) as started:
        _Work(started, asked, folder, made_of).run(source, Steps(tell, STEPS))
    return open_prepared(target)


def _digest(source: str, settings: PrepareSettings) -> str | None:
    """Return what stands for the files of a source and the settings; None for a bucket, whose files are not asked."""
    place = Path(source)
    if not place.exists():
        return None
    files = sorted(file for file in (place.rglob("*") if place.is_dir() else [place]) if file.is_file())
    seen = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(json.dumps([seen, asdict(settings)], sort_keys=True).encode()).hexdigest()


class _Work:
    def __init__(self, engine: Engine, settings: PrepareSettings, out: Path, made_of: str | None) -> None:
        self.engine = engine
        self.settings = settings
        self.out = out
        self.made_of = made_of

    def run(self, source: str, steps: Steps) -> None:
        steps.begin(CHECKING)
        named = self._facts(source)
        self._check(named, source)
        steps.begin(NUMBERING)
        ends = named.select(name=named["head"]).union(named.select(name=named["tail"])).distinct()
        entities, n_entities = self._numbered(ends)
        relations, n_relations = self._numbered(named.select(name=named["relation"]).distinct())
        for table, folder in ((entities, "entities"), (relations, "relations")):
            self.engine.write_parts(table, self.out / folder)
        steps.begin(CUTTING)
        facts = self.engine.keep(self._parted(self._by_id(named, entities, relations)))
        counts = dict.fromkeys(PARTS, 0)
        counts |= {row["part"]: row["n"] for row in self._rows(facts.group_by("part").agg(n=facts.count()))}
        for part in ("train", "val"):
            if not counts[part]:
                raise DataError(f"no fact is left for {part}", source=source, hint="Hold out another share.")
        for part in PARTS:
            self.engine.write_parts(_columns(facts.filter(facts["part"] == part)), self.out / part)
        steps.begin(LINKS)
        links = self.engine.keep(self._links(facts, counts))
        self.engine.write_parts(links, self.out / "links")
        counts["links"] = self._count(links)
        write_note(self.out, n_entities, n_relations, counts, self.made_of)

    def _facts(self, source: str) -> Any:
        folders = {part: Path(source) / part for part in PARTS if (Path(source) / part).is_dir()}
        if {"train", "val"} <= set(folders):
            parts = [self._scanned(str(folder)).mutate(part=ibis.literal(part)) for part, folder in folders.items()]
            return parts[0].union(*parts[1:])
        return self._scanned(source).mutate(part=ibis.null("string"))

    def _scanned(self, path: str) -> Any:
        table = self.engine.scan(path)
        roles = assign_roles(len(table.columns), header=table.columns, columns=self.settings.columns, source=path)
        at = {role: table[table.columns[place]] for role, place in roles.items()}
        names = {role: at[role].cast("string") for role in ("head", "relation", "tail")}
        return table.select(**names, confidence=at["confidence"].cast("float64"))

    def _check(self, facts: Any, source: str) -> None:
        """Refuse facts without a name or with a confidence that is none, showing some."""
        value = facts["confidence"]
        no_number = value.isnull() | value.isnan() | (value < 0) | (value > 1)
        problems, counts = [], []
        for column, wrong in (
            ("confidence", no_number),
            *((c, facts[c].isnull() | (facts[c].strip() == "")) for c in ("head", "relation", "tail")),
        ):
            bad = facts.filter(wrong)
            counts.append(self._count(bad))
            for row in self._rows(bad.limit(SHOWN)) if counts[-1] else []:
                shown = f"{row['head']}, {row['relation']}, {row['tail']}, {row['confidence']}"
                problems.append(Problem(f"{column} is missing or not one", None, column, shown))
        if problems:
            hint = CONFIDENCE_HINT if counts[0] else NAME_HINT
            what = f"{max(counts):,} facts have no {problems[0].column} that can be used"
            raise DataError(what, source=source, problems=problems, count=max(counts), hint=hint)

    def _numbered(self, names: Any) -> tuple[Any, int]:
        """Return distinct names as a table (id, name), and how many there are."""
        kept = self.engine.keep(names)
        total = self._count(kept)
        hashed = kept.mutate(bucket=_hash(kept.name, BUCKET if total > ONE_BUCKET else 0))
        sizes = self._rows(hashed.group_by("bucket").agg(n=hashed.count()).order_by("bucket"))
        ends = np.cumsum([row["n"] for row in sizes])
        starts = pa.table({"bucket": [row["bucket"] for row in sizes], "start": np.concatenate([[0], ends[:-1]])})
        within = ibis.row_number().over(group_by=hashed.bucket, order_by=hashed.name)
        placed = hashed.mutate(within=within).join(self.engine.load(starts), "bucket")
        return self.engine.keep(placed.select(id=(placed.start + placed.within).cast("int32"), name=placed.name)), total

    def _by_id(self, named: Any, entities: Any, relations: Any) -> Any:
        heads = entities.select(h=entities.id, head=entities.name)
        tails = entities.select(t=entities.id, tail=entities.name)
        kinds = relations.select(r=relations.id, relation=relations.name)
        joined = named.join(heads, "head").join(tails, "tail").join(kinds, "relation")
        return joined.select(
            head=joined["h"], relation=joined["r"], tail=joined["t"], confidence=joined["confidence"], part="part"
        )

    def _parted(self, facts: Any) -> Any:
        low, high = ibis.least(facts["head"], facts["tail"]), ibis.greatest(facts["head"], facts["tail"])
        key = _hash(_text(str(self.settings.seed), low, high), DIGITS)
        val, test = _below(self.settings.val), _below(self.settings.val + self.settings.test)
        drawn = ibis.cases((key < val, "val"), (key < test, "test"), else_="train")
        return facts.mutate(part=facts["part"].coalesce(drawn))

    def _links(self, facts: Any, counts: Mapping[str, int]) -> Any:
        """Return negative links as the paper's test sets have them: tails by relation, heads by degree.

        A link takes its tail from a random training fact of its relation and its head from a random end of another.
        Some are facts after all or loops and fall away, so there are a few less than validation facts.
        """
        n_val, n_train = counts["val"], counts["train"]
        chance = _hash(_text("links", facts["head"], facts["relation"], facts["tail"]), 32)
        near = facts.mutate(chance=chance).filter(facts["part"] != "test")
        enough = (near.part == "val") | (near.chance < _below(min(1.0, SPARE * n_val / n_train)))
        near = self.engine.keep(near.filter(enough))
        width = BUCKET if n_val > ONE_BUCKET else 0
        near = near.mutate(bucket=_hash(near.chance, width))
        wanted = _in_order(near.filter(near.part == "val"), "relation", "in_relation")
        wanted = _in_order(wanted, "bucket", "in_bucket")
        train = near.filter(near.part == "train")
        tails = _in_order(train, "relation", "place").select("relation", "place", other_tail="tail")
        end = ibis.ifelse(train["chance"].right(1) < "8", train["head"], train["tail"])
        again = train.select("bucket", end=end, chance=_hash(_text("end", train["chance"]), 32))
        heads = _in_order(again, "bucket", "place").select("bucket", "place", other_head="end")
        linked = _paired(wanted, tails, "relation", "in_relation", "tails")
        linked = _paired(linked, heads, "bucket", "in_bucket", "heads")
        links = linked.select(head=linked["other_head"], relation=linked["relation"], tail=linked["other_tail"])
        links = links.filter(links["head"] != links["tail"]).distinct()
        unseen = links.anti_join(facts, ["head", "relation", "tail"])
        return unseen.select("head", "relation", "tail", confidence=ibis.literal(0.0))

    def _count(self, table: Any) -> int:
        return int(self._rows(table.agg(n=table.count()))[0]["n"])

    def _rows(self, expression: Any) -> list[dict[str, Any]]:
        return self.engine.rows(expression)


def _columns(facts: Any) -> Any:
    return facts.select("head", "relation", "tail", "confidence")


def _hash(text: Any, digits: int) -> Any:
    """Return the first digits of a text's MD5, which every engine computes alike; without digits, one for all."""
    return text.hexdigest("md5").left(digits) if digits else ibis.literal("all")


def _text(*parts: Any) -> Any:
    """Return numbers and texts, one after another, as text."""
    whole = ibis.literal(parts[0]) if isinstance(parts[0], str) else parts[0].cast("string")
    for part in parts[1:]:
        whole = whole + ":" + part.cast("string")
    return whole


def _below(share: float) -> str:
    """Return the hash below which that share of all hashes lie."""
    return f"{min(int(share * 16**DIGITS), 16**DIGITS - 1):0{DIGITS}x}"


def _in_order(table: Any, group: str, name: str) -> Any:
    """Number the rows of each group in the order of their chances."""
    return table.mutate(**{name: ibis.row_number().over(group_by=table[group], order_by=table.chance)})


def _paired(rows: Any, others: Any, group: str, place: str, name: str) -> Any:
    """Give each row the other row that stands at its place in the group, counting around where there are fewer."""
    sizes = others.group_by(group).agg(**{f"n_{name}": others.count()})
    sized = rows.join(sizes, group)
    sized = sized.mutate(at=sized[place] % sized[f"n_{name}"])
    renamed = others.rename(at="place")
    joined = sized.join(renamed, [group, "at"])
    return joined.drop("at")
