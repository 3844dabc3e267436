"""Files that are whole or not there, and that notice damage."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load_file

import ukge
from ukge.errors import RunError
from ukge.storage.arrays import Expected, StoredArrays, checked, load_arrays, save_arrays
from ukge.storage.files import Making, replacing, replacing_directory, replacing_path, write_atomically
from ukge.storage.locks import alone


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


@pytest.mark.parametrize("happens", ["overwritten", "cut"])
def test_copied_arrays_stay_what_was_checked(tmp_path: Path, happens: str) -> None:
    path = tmp_path / "x.safetensors"
    arrays: dict[str, npt.NDArray[Any]] = {"a": np.arange(50_000.0), "empty": np.zeros((0, 3), np.int32)}
    save_arrays(path, arrays, {"epoch": 1})
    stored = StoredArrays(path, copied=True)
    with path.open("r+b") as file:
        file.truncate(100 if happens == "cut" else None)
        file.write(bytes(300_000 if happens == "overwritten" else 10))
    np.testing.assert_array_equal(stored["a"], arrays["a"])
    assert stored["empty"].shape == (0, 3)
    with pytest.raises(RunError, match="damaged"):
        StoredArrays(path, copied=True)


def test_a_damaged_array_is_refused_when_it_is_copied_not_later(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_arrays(path, {"a": np.arange(4.0)})
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    StoredArrays(path)
    with pytest.raises(RunError, match="damaged"):
        StoredArrays(path, copied=True)


IDS: dict[str, Expected] = {
    "id": Expected("int32", ("facts",), low=0, high=9),
    "share": Expected(("float32", "float64"), ("facts", 2), low=0.0, high=1.0),
    "start": Expected("int64", (None,), rising=True),
}


def fitting(**changed: Any) -> dict[str, npt.NDArray[Any]]:
    return {
        "id": np.array([0, 9, 3], np.int32),
        "share": np.full((3, 2), 0.5, np.float32),
        "start": np.array([0, 2, 2, 3], np.int64),
        **changed,
    }


def test_arrays_as_they_are_expected_come_through() -> None:
    arrays = fitting()
    assert checked("x", arrays, IDS, sizes={"facts": 3}) == arrays
    assert checked("x", {}, {"a": Expected("int8", (1,), optional=True)}) == {}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"id": np.array([0, 10, 3], np.int32)}, "'id' holds 10, which is above 9"),
        ({"id": np.array([0, -1, 3], np.int32)}, "'id' holds -1, which is below 0"),
        ({"id": np.array([0, 9, 3], np.int64)}, r"'id' is int64 \(3,\), not int32 \(3,\)"),
        ({"id": np.zeros((3, 1), np.int32)}, r"'id' is int32 \(3, 1\)"),
        ({"share": np.full((2, 2), 0.5)}, r"'share' has the shape \(2, 2\), not \(3, 2\)"),
        ({"share": np.array([[0.5, np.nan]] * 3)}, "'share' holds numbers that are not finite"),
        ({"share": np.array([[0.5, np.inf]] * 3)}, "'share' holds numbers that are not finite"),
        ({"start": np.array([0, 2, 1], np.int64)}, "'start' is not in rising order"),
        ({"more": np.zeros(1)}, "'more' is not one of its arrays"),
    ],
)
def test_arrays_that_do_not_fit_are_named(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(RunError, match=f"trees cannot be used: {told}"):
        checked("trees", fitting(**changed), IDS, sizes={"facts": 3})


def test_a_missing_array_is_named() -> None:
    with pytest.raises(RunError, match="'share' is missing"):
        checked("trees", {"id": np.zeros(1, np.int32)}, IDS)


HOLDER = """
import sys, time
from ukge.storage.locks import alone
with alone(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_second_is_told_who_is_first_and_the_dead_hold_nothing(tmp_path: Path) -> None:
    place = tmp_path / "runs" / "a"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(place)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(RunError, match=rf"runs/a is in use by process {holder.pid} on .* since 20\d\d-"),
            alone(place),
        ):
            pass
        holder.kill()
        holder.wait()
    assert [entry.name for entry in place.parent.iterdir()] == [".a.lock"]
    with alone(place), alone(str(place)):
        assert json.loads((place.parent / ".a.lock").read_text(encoding="utf-8"))["pid"] == os.getpid()
    assert list(place.parent.iterdir()) == []


def test_two_threads_are_two(tmp_path: Path) -> None:
    def enter() -> None:
        with alone(tmp_path / "a"):
            pass

    with ThreadPoolExecutor(1) as other, alone(tmp_path / "a"), pytest.raises(RunError, match="in use by process"):
        other.submit(enter).result()


def test_whoever_holds_a_directory_finds_nothing_half_made_in_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".weights.safetensors.0123abcd.tmp").touch()
    (tmp_path / "a" / ".hidden").touch()
    (tmp_path / ".a.0123abcd.tmp").mkdir()
    with alone(tmp_path / "a"):
        assert [entry.name for entry in (tmp_path / "a").iterdir()] == [".hidden"]
        assert {entry.name for entry in tmp_path.iterdir()} == {"a", ".a.lock"}
    with pytest.raises(RunError, match="is a file"), alone(tmp_path / "a" / ".hidden"):
        pass


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
    with pytest.raises(RunError, match=r"/file cannot be written: no space is left on the disk\nWhat to do: Make room"):
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


def test_whoever_reads_elsewhere_is_not_told_of_the_file_that_is_written(tmp_path: Path) -> None:
    def read_another() -> None:
        with replacing(tmp_path / "file"):
            raise PermissionError(13, "Permission denied", "/somewhere/else")

    with pytest.raises(PermissionError):
        read_another()


def test_what_the_dead_left_goes_and_what_the_living_make_stays(tmp_path: Path) -> None:
    path, target = tmp_path / "file", tmp_path / "folder"
    (tmp_path / ".file.0123abcd.tmp").write_bytes(b"half")
    (tmp_path / ".other.0123abcd.tmp").write_bytes(b"of another name")
    (tmp_path / ".folder.0123abcd.tmp").mkdir()
    (tmp_path / ".folder.0123abcd.tmp" / "half").touch()
    with replacing(path) as first, replacing(path) as second:
        first.write(b"first")
        second.write(b"second")
    making = Making(target)
    with replacing_directory(target) as folder:
        (folder / "whole").touch()
    assert {entry.name for entry in tmp_path.iterdir()} == {
        "file",
        "folder",
        ".other.0123abcd.tmp",
        making.path.name,
    }
    with pytest.raises(RunError, match="was made by somebody else meanwhile"):
        making.publish()
    making.discard()
    assert not making.path.name.endswith(".tmp")


def test_a_directory_takes_the_place_of_another_whole(tmp_path: Path) -> None:
    target = tmp_path / "run"
    for content in ("old", "new"):
        with replacing_directory(target, over=True) as folder:
            (folder / content).touch()
    assert [entry.name for entry in target.iterdir()] == ["new"]

    def half() -> None:
        with replacing_directory(target, over=True) as folder:
            (folder / "half").touch()
            raise RuntimeError("half of it")

    with pytest.raises(RuntimeError, match="half"):
        half()
    assert [entry.name for entry in target.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [target]


def test_nothing_else_makes_temporary_files_of_its_own() -> None:
    source = Path(ukge.__file__).parent
    naming = re.compile(r"mkstemp|NamedTemporaryFile|\.tmp[\"']|getpid\(\)\}")
    found = {str(file.relative_to(source)) for file in source.rglob("*.py") if naming.search(file.read_text("utf-8"))}
    # The second looks for what was left over; the third has bad rows wait where the system keeps such files.
    assert found <= {"storage/files.py", "graph/catalogue/folder.py", "graph/bad_rows.py"}
