"""Inputs that are nearly right: seeds with a few faults of the kinds that files have and that attackers make."""

# ruff: noqa: E501  (seeds and words are as long as they are)
from __future__ import annotations

import random
import re
from collections.abc import Sequence

WORDS = [
    b"0", b"1", b"-1", b"0.5", b"0,85", b"0_1", b"1e999", b"nan", b"inf", b"0x1F", b"9" * 25, b"9" * 5000, b"-0.0", b"1e-400",
    b"\t", b"\n", b"\r", b"\r\n", b" ", b",", b";", b'"', b'""', b"'", b"\\", b"\0", b"\x1b[31m", b"\x7f", b"\xff", b"\xfe",
    b"\xc3\x28", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", "\ufeff".encode(), "\u2028".encode(), "\u0660".encode(),
    b"<", b">", b"&", b"&#0;", b"&#xD800;", b"&a;", b"]]>", b"<![CDATA[", b"<!--", b"-->", b"<?x", b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
    b'<?xml version="1.0" encoding="utf-16"?>', b'<?xml version="1.0" encoding="shift_jis"?>', b"<a>", b"</a>", b"</edge>",
    b'<data key="c">', b"</data>", b'<edge source="a" target="b">', b'<key id="c"/>', b"<default>1</default>", b"[", b"]", b"{", b"}",
    b"(", b")", b"<<", b">>", b"<<(", b")>>", b"{|", b"|}", b"@prefix a: <b:> .", b"@base <c:> .", b"_:b", b"<http://a/b c>", b"^^<x:y>",
    b"@en", b'"confidence": 0.9, ', b'"head": "x", ', b"null", b"true", b'"head":', b'"confidence": ', b"head", b"confidence", b"source", b"protein1", b"Probability",
    b"->", b"<-", b">>", b"<=", b"^2", b"^3", b"!", b"&&", b"# ", b"//", b"X", b"A, B", b"1.0: ",
]  # fmt: skip
TOKEN = re.compile(rb"[A-Za-z0-9_.+-]+|\s|[^\sA-Za-z0-9]")


def mutated(seed: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    """Return a seed with one to six faults; sometimes with none, as a control."""
    data = seed
    for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 3, 6))):
        data = draw.choice(_FAULTS)(data, others, draw)[: 1 << 21]
    return data


def flipped(data: bytes, draw: random.Random) -> bytes:
    """Return data with some bits flipped, or cut, for what is packed or binary."""
    changed = bytearray(data)
    if draw.random() < 0.2:
        return bytes(changed[: draw.randrange(len(changed) + 1)])
    for _ in range(draw.choice((1, 1, 2, 8))):
        if changed:
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _flip(data: bytes, _others: Sequence[bytes], draw: random.Random) -> bytes:
    return flipped(data, draw)


def _insert(data: bytes, _others: Sequence[bytes], draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(WORDS) + data[at:]


def _replace(data: bytes, _others: Sequence[bytes], draw: random.Random) -> bytes:
    tokens = list(TOKEN.finditer(data[:100_000]))
    if not tokens:
        return data
    token = draw.choice(tokens)
    new = draw.choice((draw.choice(WORDS), draw.choice(tokens)[0], b""))
    return data[: token.start()] + new + data[token.end() :]


def _repeat(data: bytes, _others: Sequence[bytes], draw: random.Random) -> bytes:
    start = draw.randrange(len(data) + 1)
    piece = data[start : start + draw.choice((1, 2, 5, 30, 300))]
    times = draw.choice((2, 3, 100, 3000)) if len(piece) <= 30 else 2
    return data[:start] + piece * times + data[start + len(piece) :]


def _cut(data: bytes, _others: Sequence[bytes], draw: random.Random) -> bytes:
    start, end = sorted((draw.randrange(len(data) + 1), draw.randrange(len(data) + 1)))
    return draw.choice((data[:start], data[start:], data[:start] + data[end:]))


def _lines(data: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    lines = data.split(b"\n")
    at = draw.randrange(len(lines))
    kind = draw.randrange(4)
    if kind == 0:
        lines.insert(draw.randrange(len(lines) + 1), lines[at])
    elif kind == 1:
        del lines[at]
    elif kind == 2:
        lines.insert(at, draw.choice(draw.choice(others).split(b"\n")) if others else b"")
    else:
        draw.shuffle(lines)
    return b"\n".join(lines)


def _splice(data: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    other = draw.choice(others) if others else data
    return data[: draw.randrange(len(data) + 1)] + other[draw.randrange(len(other) + 1) :]


def _transcode(data: bytes, _others: Sequence[bytes], draw: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(draw.choice(("utf-16", "utf-16-be", "utf-32", "latin-1", "utf-8-sig", "cp037")), "replace")


_FAULTS = (
    _flip,
    _insert,
    _insert,
    _insert,
    _replace,
    _replace,
    _replace,
    _repeat,
    _cut,
    _lines,
    _lines,
    _splice,
    _transcode,
)
