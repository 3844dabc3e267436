"""Files that are whole or not there, and that notice damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ukge.errors import RunError
from ukge.storage import load_arrays, save_arrays, write_atomically


def test_arrays_and_notes_come_back(tmp_path: Path) -> None:
    arrays: dict[str, npt.NDArray[Any]] = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "empty": np.zeros((0, 3), np.int32),
        "n": np.array([7], np.int64),
    }
    save_arrays(tmp_path / "x.safetensors", arrays, {"epoch": 3, "best": None})
    found, notes = load_arrays(tmp_path / "x.safetensors")
    assert notes == {"epoch": 3, "best": None}
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_equal_content_gives_equal_files(tmp_path: Path) -> None:
    arrays = {name: np.arange(5, dtype=np.float32) for name in "abcdefgh"}
    files = {save_and_read(tmp_path / f"{i}.safetensors", arrays) for i in range(10)}
    assert len(files) == 1


def save_and_read(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> bytes:
    save_arrays(path, arrays, {"b": 1, "a": 2})
    return path.read_bytes()


@pytest.mark.parametrize("keep", [0, 5, 40, -1])
def test_a_truncated_file_is_named(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "weights.safetensors"
    save_arrays(path, {"a": np.arange(100, dtype=np.float32)})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(RunError, match=r"weights\.safetensors is damaged"):
        load_arrays(path)


def test_one_changed_bit_anywhere_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_arrays(path, {"a": np.arange(20, dtype=np.float32)}, {"epoch": 1})
    whole = path.read_bytes()
    for place in range(8, len(whole), 7):
        broken = bytearray(whole)
        broken[place] ^= 1
        path.write_bytes(bytes(broken))
        with pytest.raises(RunError, match="damaged"):
            load_arrays(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"nothing\.safetensors is missing"):
        load_arrays(tmp_path / "nothing.safetensors")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new content")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
