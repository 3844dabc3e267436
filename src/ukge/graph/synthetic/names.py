"""Readable names for the entities of a synthetic world: seeded, unique, and built column-wise.

A name spells a number. The number of an entity within its type is scattered over all names of that type by a
one-to-one map that the seed chooses, so names are unique by construction and no table of them is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ukge.graph.synthetic.latent import Layout
from ukge.graph.synthetic.schema import TYPE_SHARES

# Keeps the random numbers of this module apart from those of the others.
_STREAM = 3


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_SYLLABLES = tuple(consonant + vowel for consonant in "bdfghklmnprstvz" for vowel in "aeiou")
_ENDINGS = ("n", "r", "l", "s", "th", "ck", "nd", "rm", "lden", "ston", "mont", "vik", "gard", "holm", "stad", "berg")
_FIRST = _words(
    "Ada Aino Alma Amir Anton Arne Asta Beata Boris Carla Celia Chen Clara Dario Dina Edda Elias Elif Emil Erik "
    "Farid Felix Frida Gita Hana Hugo Ida Ilya Ines Ivo Jana Jonas Juno Kaito Karin Kofi Lars Leila Lena Luca Maja "
    "Marek Mei Milan Mina Nadia Nils Nora Olga Omar Otto Paula Petra Pia Rafael Rosa Ruben Samir Sana Selma Sofia "
    "Stella Tariq Tessa Theo Tilda Ulla Uri Vera Viktor Wanda Wen Yara Yusuf Zara Zeno"
)
_SPORTS = _words(
    "archery athletics badminton baseball basketball biathlon bobsleigh boxing canoeing climbing cricket croquet "
    "curling cycling diving equestrianism fencing football futsal golf gymnastics handball hockey hurling judo karate "
    "kayaking korfball lacrosse luge motocross netball orienteering padel parkour pétanque polo powerlifting "
    "racquetball rowing rugby sailing shooting skateboarding skeleton skiing snooker snowboarding softball squash "
    "sumo surfing swimming taekwondo tennis triathlon volleyball weightlifting windsurfing wrestling"
)
_VARIANTS = ("", "beach ", "indoor ", "night ", "street ", "winter ")
_TEAMS = _words(
    "Bears Comets Cranes Eagles Falcons Foxes Giants Hawks Herons Lynxes Otters Ravens Rovers Sharks Wolves"
)
_COMPANIES = _words("Chemicals Electric Foods Holdings Industries Labs Logistics Media Motors Partners Power Systems")
_STATES = ("Republic of ", "Kingdom of ", "Union of ")
_SCHOOLS = ("University of ", "Institute of ", "College of ")


@dataclass(frozen=True)
class _Shape:
    """What stands before and after the made-up word of a name, and whether there is such a word."""

    before: tuple[str, ...]
    after: tuple[str, ...] = ("",)
    word: bool = True


_PEOPLE = _Shape(tuple(f"{name} " for name in _FIRST))
_SHAPES = {
    "sport": _Shape(_SPORTS, word=False),
    "person": _PEOPLE,
    "athlete": _PEOPLE,
    "team": _Shape(("",), tuple(f" {name}" for name in _TEAMS)),
    "city": _Shape(("",)),
    "country": _Shape(_STATES),
    "company": _Shape(("",), tuple(f" {name}" for name in _COMPANIES)),
    "university": _Shape(_SCHOOLS),
}


def entity_names(layout: Layout, seed: int) -> pa.Array:
    """Return the name of every entity, in the order of ids."""
    rng = np.random.default_rng([seed, _STREAM])
    types = list(TYPE_SHARES)
    names: list[pa.Array] = []
    order: list[npt.NDArray[np.int64]] = []
    for shape in dict.fromkeys(_SHAPES[name] for name in types):
        kinds = [number for number, name in enumerate(types) if _SHAPES[name] == shape]
        ids = np.flatnonzero(np.isin(layout.type_of, kinds))
        names.append(_spell(len(ids), shape, rng) if shape.word else _list(len(ids), shape))
        order.append(ids)
    place = np.empty(layout.n_entities, dtype=np.int64)
    place[np.concatenate(order)] = np.arange(layout.n_entities)
    return pa.concat_arrays(names).take(pa.array(place))


def _spell(count: int, shape: _Shape, rng: np.random.Generator) -> pa.Array:
    """Return `count` names; words get as many syllables as it takes to keep names unique and scattered."""
    fixed = len(shape.before) * len(shape.after) * len(_ENDINGS)
    syllables = 2
    while fixed * len(_SYLLABLES) ** syllables < 4 * count:
        syllables += 1
    tables = [
        shape.before,
        tuple(s.title() for s in _SYLLABLES),
        *[_SYLLABLES] * (syllables - 1),
        _ENDINGS,
        shape.after,
    ]
    size = math.prod(len(table) for table in tables)
    factor = int(rng.integers(size // 3, size // 2))
    while math.gcd(factor, size) != 1:
        factor += 1
    number = (np.arange(count, dtype=np.int64) * factor + int(rng.integers(size))) % size
    parts = []
    for table in tables:
        number, digit = np.divmod(number, len(table))
        parts.append(pa.array(table, type=pa.large_string()).take(pa.array(digit)))
    return pc.binary_join_element_wise(*parts, pa.scalar("", pa.large_string()))


def _list(count: int, shape: _Shape) -> pa.Array:
    """Return the names of a list, with variants and then numbers when the list is too short."""
    listed = [variant + name for variant in _VARIANTS for name in shape.before]
    return pa.array([listed[i] if i < len(listed) else f"sport {i + 1}" for i in range(count)], type=pa.large_string())
