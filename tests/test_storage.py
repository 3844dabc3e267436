"""Files that are whole or not there, and that notice damage."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load_file

import ukge
from ukge.errors import RunError
from ukge.storage.arrays import StoredArrays, load_arrays, save_arrays
from ukge.storage.files import replacing, replacing_path, write_atomically


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


def test_what_is_used_is_checked_and_nothing_else_is_read(tmp_path: Path) -> None:
    path = tmp_path / "evidence.safetensors"
    arrays: dict[str, npt.NDArray[Any]] = {
        "sound": np.arange(20, dtype=np.float32),
        "part.a": np.full(5, 7, np.uint8),
        "part.b": np.ones(3, np.int8),
    }
    save_arrays(path, arrays, {"epoch": 1})
    whole = path.read_bytes()
    at = whole.index(bytes([7] * 5))
    path.write_bytes(whole[: at + 2] + b"\x08" + whole[at + 3 :])
    stored = StoredArrays(path)
    assert stored.notes == {"epoch": 1}
    assert sorted(stored) == sorted(arrays)
    np.testing.assert_array_equal(stored["sound"], arrays["sound"])
    for _ in range(2):  # whoever tries again is refused again
        with pytest.raises(RunError, match=r"evidence\.safetensors is damaged"):
            stored["part.a"]
    with pytest.raises(RunError, match="damaged"):
        stored.part("part")


def test_stored_arrays_stay_what_they_were(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_arrays(path, {"a": np.arange(4.0), "n": np.array(7)})
    stored = StoredArrays(path)
    save_arrays(path, {"a": np.zeros(4)})
    assert stored["a"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert stored["n"] == 7
    stored["a"][0] = 9.0
    assert load_arrays(path)[0]["a"].tolist() == [0.0] * 4, "changes stay in the process"


def test_other_programs_read_the_files(tmp_path: Path) -> None:
    arrays: dict[str, npt.NDArray[Any]] = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([True, False])}
    save_arrays(tmp_path / "x.safetensors", arrays, {"epoch": 3})
    found = load_file(tmp_path / "x.safetensors")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


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


def test_what_is_written_shows_only_when_the_block_ends_well(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    write_atomically(path, b"old")
    with replacing_path(path) as temporary:
        temporary.write_bytes(b"new")
        assert re.fullmatch(r"\.facts\.tsv\.[0-9a-f]{8}\.tmp", temporary.name)
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"

    def half() -> None:
        with replacing(path) as handle:
            handle.write(b"ha")
            raise RuntimeError("half of it")

    with pytest.raises(RuntimeError, match="half"):
        half()
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_two_who_write_one_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with replacing(path) as first, replacing(path) as second:
        first.write(b"first")
        second.write(b"second")
    assert path.read_bytes() == b"first"  # whose block ended last
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_else_makes_temporary_files_of_its_own() -> None:
    source = Path(ukge.__file__).parent
    naming = re.compile(r"mkstemp|NamedTemporaryFile|\.tmp[\"']|getpid\(\)\}")
    found = {str(file.relative_to(source)) for file in source.rglob("*.py") if naming.search(file.read_text("utf-8"))}
    assert found <= {"storage/files.py", "graph/catalogue/folder.py"}  # the latter looks for what was left over
