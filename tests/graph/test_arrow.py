"""Between NumPy and Arrow: the same as by PyArrow itself, without what that loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ukge.graph.arrow import from_names, from_numpy, to_numpy
from ukge.graph.vocabulary import Vocabulary


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 9])
def test_numbers_go_there_and_back(dtype: Any, n: int) -> None:
    values: npt.NDArray[Any] = np.arange(2 * n, dtype=dtype)[::2]
    array = from_numpy(values)
    array.validate(full=True)
    assert array.equals(pa.array(values))
    back = to_numpy(array)
    np.testing.assert_array_equal(back, values)
    assert back.dtype == dtype
    np.testing.assert_array_equal(to_numpy(array[1:]), values[1:])
    assert not n or not back.flags.writeable


def test_a_missing_number_is_what_it_is_said_to_be() -> None:
    found = pc.index_in(pa.array(["b", "?", "a", "?"]), value_set=pa.array(["a", "b"]))
    assert to_numpy(found, missing=-1).tolist() == [1, -1, 0, -1]
    assert to_numpy(found[1:3], missing=-1).tolist() == [-1, 0]


@pytest.mark.parametrize("names", [[], ["a"], ["", "ö", "日本", "a\tb"]])
def test_names_become_text(names: list[str]) -> None:
    array = from_names(names)
    array.validate(full=True)
    assert array.equals(pa.array(names, type=pa.large_string()))


def test_pandas_stays_out(tmp_path: Path) -> None:
    code = """
import sys
import numpy as np
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
names = Vocabulary.of_parquet(Vocabulary.of_parquet(open(sys.argv[1], "rb").read(), "entity").to_parquet(), "entity")
graph = UncertainGraph.from_ids([0, 1], [0, 0], [1, 0], [0.5, 1.0], names, names)
assert graph.tail.tolist() == [1, 0] and names.id("b") == 1 and names.encode(["b", "?"]).tolist() == [1, -1]
assert names.decode(np.array([1])).to_pylist() == ["b"]
print("pandas" in sys.modules)
"""
    file = tmp_path / "names.parquet"
    file.write_bytes(Vocabulary(["a", "b"]).to_parquet())
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
