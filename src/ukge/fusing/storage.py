"""A fusion as JSON: what sources' words are worth, who repeats whom, and the weights."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ukge.errors import DataError
from ukge.fusing.agreement import SAID, Agreement, Bins
from ukge.fusing.copies import Copy
from ukge.fusing.weighing import WAYS, Weights
from ukge.storage.files import write_atomically

KIND, VERSION = "ukge fusion", 1
HINT = "Give a file that fusing kept with ‹save=FILE›."


@dataclass(frozen=True, eq=False)
class Parts:
    """What a fusion is made of; see `Fusion`."""

    names: tuple[str, ...]
    bins: tuple[Bins, ...]
    agreement: Agreement
    copies: tuple[Copy, ...]
    weights: Weights
    graph: Bins | None


def save_parts(parts: Parts, path: Path) -> None:
    """Write a fusion."""
    weights = parts.weights
    plain = {
        "kind": KIND,
        "version": VERSION,
        "sources": list(parts.names),
        "bins": [each.edges.tolist() for each in parts.bins],
        "true": [each.tolist() for each in parts.agreement.true],
        "false": [each.tolist() for each in parts.agreement.false],
        "prior": parts.agreement.prior,
        "copies": [[copy.copier, copy.original, copy.share, copy.alike] for copy in parts.copies],
        "graph": None if parts.graph is None else parts.graph.edges.tolist(),
        "weights": {
            "way": weights.way,
            "sources": weights.sources,
            "structure": weights.structure,
            "constant": weights.constant,
            "mention": None if weights.mention is None else weights.mention.tolist(),
            "confidence": None if weights.confidence is None else weights.confidence.tolist(),
        },
    }
    write_atomically(path, (json.dumps(plain, ensure_ascii=False) + "\n").encode())


def load_parts(path: Path) -> Parts:
    """Read a fusion; what is none is refused."""
    try:
        plain = json.loads(path.read_bytes())
        if plain["kind"] != KIND or plain["version"] != VERSION:
            raise DataError(f"is no fusion of version {VERSION}", source=str(path), hint=HINT)
        return _parts(plain)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", source=str(path), hint=HINT) from None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"is no fusion, or damaged ({error})", source=str(path), hint=HINT) from None


def _parts(plain: Any) -> Parts:
    names = tuple(str(name) for name in plain["sources"])
    bins = tuple(Bins(_floats(each)) for each in plain["bins"])
    graph = None if plain["graph"] is None else Bins(_floats(plain["graph"]), counted=False)
    true, false = (tuple(_shares(each) for each in plain[name]) for name in ("true", "false"))
    views = [*bins, *([] if graph is None else [graph])]
    copies = tuple(Copy(int(a), int(b), float(share), float(alike)) for a, b, share, alike in plain["copies"])
    numbers = [number for copy in copies for number in (copy.copier, copy.original)]
    if len(bins) != len(names) or any(not 0 <= number < len(names) for number in numbers):
        raise ValueError("its parts do not fit together")
    sizes = [view.size for view in views]
    if any(shares and [len(each) for each in shares] != sizes for shares in (true, false)) or bool(true) != bool(false):
        raise ValueError(f"a view says {SAID} things and those of its bins")
    prior = float(plain["prior"])
    if not 0.0 < prior < 1.0:
        raise ValueError("its prior is no share")
    said = plain["weights"]
    each = [None if said[name] is None else _floats(said[name]) for name in ("mention", "confidence")]
    if said["way"] not in WAYS or any(one is not None and len(one) != len(names) for one in each):
        raise ValueError("its weights do not fit")
    weights = Weights(said["way"], float(said["sources"]), float(said["structure"]), float(said["constant"]), *each)
    return Parts(names, bins, Agreement(true, false, prior), copies, weights, graph)


def _shares(values: Any) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    found = _floats(values)
    if (found < 0).any() or (found > 1.0 + 1e-9).any():
        raise ValueError("a share is out of bounds")
    return found


def _floats(values: Any) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    found = np.asarray(values, np.float64)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ValueError("numbers are missing")
    return found
