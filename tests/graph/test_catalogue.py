"""The catalogue: data sets as directories, benchmarks from here or from afar, and everything that can go wrong."""

from __future__ import annotations

import multiprocessing
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from threading import Event, Thread
from typing import ClassVar

import numpy as np
import pytest
from tests.graph.fetching import fetch_first

from ukge.errors import DataError
from ukge.graph.catalogue import BENCHMARKS, Benchmark, cache_directory, load, locate, open_dataset, save_dataset
from ukge.graph.catalogue import folder as folder_module
from ukge.graph.catalogue.benchmarks import fingerprint
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary

FILES = {
    "train.tsv": "0\t0\t1\t0.123456789\n1\t1\t2\t0.5\n2\t0\t0\t1.0\n",
    "val.tsv": "0\t1\t2\t0.25\n",
    "test.tsv": "2\t1\t1\t0.7092\n1\t0\t0\t0.3\n",
    "test_with_neg.tsv": "2\t1\t1\t0.709\n1\t0\t0\t0.3\n3\t0\t1\t0.0\n0\t0\t0\t0.000\n",
    "softlogic.tsv": "0\t0\t2\t0.8\n0\t0\t2\t0.9\n",
    "ndcg_queries.tsv": "0\t1\n2\t0\n",
    "entities.tsv": "0\tash\n1\tbirch\n2\tcedar\n3\tnever used\n",
    "relations.tsv": "0\tnear\n1\tlike\n",
}


def put(directory: Path, files: Mapping[str, str]) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8", newline="")
    return directory


def assert_same(left: Dataset, right: Dataset) -> None:
    assert left.entities == right.entities
    assert left.relations == right.relations
    for part in ("train", "val", "test", "negatives", "ground_rules"):
        one, other = getattr(left, part), getattr(right, part)
        assert (one is None) == (other is None), part
        if one is not None:
            assert one == other, part
            assert np.array_equal(one.head, other.head)
    if left.queries is None or right.queries is None:
        assert left.queries is right.queries
    else:
        assert np.array_equal(left.queries, right.queries)


def test_a_directory_is_read_as_laid_out(tmp_path: Path) -> None:
    dataset = open_dataset(put(tmp_path / "trees", FILES))
    assert dataset.name == "trees"
    assert list(dataset.entities) == ["ash", "birch", "cedar", "never used"]
    assert dataset.train[0] == ("ash", "near", "birch", 0.123456789, None)
    assert dataset.test.confidence.tolist() == [0.7092, 0.3]
    assert dataset.negatives is not None
    assert [(fact.head, fact.tail, fact.confidence) for fact in dataset.negatives] == [
        ("never used", "birch", 0.0),
        ("ash", "ash", 0.0),
    ]
    assert dataset.queries is not None
    assert dataset.queries.tolist() == [[0, 1], [2, 0]]
    assert dataset.queries.dtype == np.int32
    assert dataset.ground_rules is not None
    assert dataset.ground_rules.confidence.tolist() == [0.8, 0.9]


def test_names_need_no_files_of_names(tmp_path: Path) -> None:
    files = {
        "train.tsv": "ash\tnear\tbirch\t0.5\nbirch\tlike\tcedar\t1\n",
        "valid.tsv": "ash\tlike\tcedar\t0.5\n",
        "test.tsv": "cedar\tlike\tash\t0.1\n",
        "ndcg_queries.tsv": "ash\tlike\n",
    }
    dataset = open_dataset(put(tmp_path / "named", files))
    assert sorted(dataset.entities) == ["ash", "birch", "cedar"]
    assert dataset.val[0][:3] == ("ash", "like", "cedar")
    assert dataset.queries is not None
    assert dataset.queries.tolist() == [[dataset.entities.id("ash"), dataset.relations.id("like")]]
    assert dataset.negatives is None


def test_the_authors_ways_of_writing_are_understood(tmp_path: Path) -> None:
    """Names as CSV in either order, with and without a header; line ends of either kind; some files by name."""
    files = {
        name: text.replace("\n", "\r\n")
        for name, text in FILES.items()
        if name not in ("entities.tsv", "relations.tsv")
    }
    files["softlogic.tsv"] = "ash\tnear\tcedar\t0.8\nash\tnear\tcedar\t0.9\n"
    files["entity_id.csv"] = 'entity string,id\nbirch,1\nash,0\n"never used",3\ncedar,2\n'
    files["relation_id.csv"] = "1,like\n0,near\n"
    theirs = open_dataset(put(tmp_path / "theirs", files))
    assert_same(theirs, open_dataset(put(tmp_path / "ours", FILES)))


def names_dataset(names: list[str]) -> Dataset:
    entities, relations = Vocabulary(names), Vocabulary(["r", "s", "idle"], kind="relation")
    n = len(names)

    def facts(rows: list[tuple[int, int, int, float]]) -> UncertainGraph:
        head, relation, tail, confidence = (np.array(column) for column in zip(*rows, strict=True))
        return UncertainGraph.from_ids(head, relation, tail, confidence, entities, relations)

    return Dataset(
        "any",
        facts([(i, i % 2, (i + 1) % n, 1 / (3 + i)) for i in range(n)]),
        facts([(0, 1, 0, 0.1 + 0.2)]),
        facts([(1, 0, 0, 1.0), (0, 0, 0, 5e-324)]),
        negatives=facts([(1, 1, 1, 0.0)]),
        queries=np.array([[1, 0]], dtype=np.int32),
        ground_rules=facts([(1, 0, 1, 0.99)]),
    )


@pytest.mark.parametrize(
    "names",
    [
        ["ash", "birch"],
        ["1", "0", "007"],
        ['"', '"quoted"', " spaced ", "ümlaut 木", "a,b", "#hash", "NA", "null", "\\t"],
        ["tab\tin", "line\nbreak", "return\r", "plain"],
    ],
    ids=["plain", "digits", "marks", "breaks"],
)
def test_what_is_saved_is_what_is_opened(tmp_path: Path, names: list[str]) -> None:
    dataset = names_dataset(names)
    assert_same(open_dataset(save_dataset(dataset, tmp_path / "saved")), dataset)


def test_only_what_there_is_gets_saved(tmp_path: Path) -> None:
    full = names_dataset(["ash", "birch"])
    bare = Dataset("bare", full.train, full.val, full.test)
    saved = save_dataset(bare, tmp_path / "deep" / "saved")
    assert {path.name for path in saved.iterdir()} == {
        "dataset.json",
        "entities.tsv",
        "relations.tsv",
        "train.tsv",
        "val.tsv",
        "test.tsv",
    }
    assert_same(open_dataset(saved), bare)


def test_a_part_may_be_empty_but_train_may_not(tmp_path: Path) -> None:
    full = names_dataset(["ash", "birch"])
    nothing = full.val[:0]
    none = np.zeros((0, 2), dtype=np.int32)
    thin = Dataset("thin", full.train, nothing, nothing, negatives=nothing, queries=none, ground_rules=nothing)
    assert_same(open_dataset(save_dataset(thin, tmp_path / "thin")), thin)
    with pytest.raises(DataError, match="train"):
        open_dataset(put(tmp_path / "none", {**FILES, "train.tsv": ""}))


def test_saving_never_mixes_with_what_was_there(tmp_path: Path) -> None:
    full = names_dataset(["tab\t", "birch"])
    target = save_dataset(full, tmp_path / "saved")
    (target / "notes.txt").write_text("mine")
    bare = Dataset("bare", full.train, full.val, full.test)
    with pytest.raises(DataError, match="holds files already"):
        save_dataset(bare, target)
    assert_same(open_dataset(target), full)
    plain = names_dataset(["ash", "birch"])
    save_dataset(Dataset("bare", plain.train, plain.val, plain.test), target, overwrite=True)
    reopened = open_dataset(target)
    assert reopened.negatives is None
    assert list(reopened.entities) == ["ash", "birch"]
    assert (target / "notes.txt").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(folder_module, "write", broken)
    with pytest.raises(OSError, match="disk full"):
        save_dataset(names_dataset(["ash", "birch"]), tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"val.tsv": None}, "has no val file"),
        ({"train.tsv": None, "test.tsv": None}, "has no train and no test file"),
        ({"test.csv": "a,b,c,1\n"}, "test.csv and test.tsv are both there"),
        ({"val.tsv": "0\t1\t9\t0.25\n"}, r"val\.tsv: .*\n  line 1, column tail: no such id"),
        ({"val.tsv": "0\t7\t1\t0.25\n"}, r"val\.tsv: .*\n  line 1, column relation: no such id"),
        ({"val.tsv": "0\t1\t2\t1.25\n"}, r"val\.tsv: .*\n  line 1, column confidence: .* outside"),
        ({"ndcg_queries.tsv": "0\t1\n8\t0\n"}, "ndcg_queries.tsv: 1 entity ids"),
        ({"ndcg_queries.tsv": "0\n"}, "ndcg_queries.tsv"),
        ({"entities.tsv": "0\tash\n0\tbirch\n"}, r"entities\.tsv: .*\n  line 2, column id: id was given before"),
        ({"entities.tsv": "0\tash\n1\tash\n"}, r"entities\.tsv: .*\n  line 2, column name: name was given before"),
        ({"entities.tsv": None, "entities.csv": "zero,ash\none,birch\n"}, "neither column holds ids only"),
        ({"entities.tsv": None, "entities.csv": "0,ash\n2,birch\n"}, "ids are not 0…1, each once"),
        ({"entities.tsv": None, "entities.csv": "0,ash\n1,ash\n"}, "'ash' occurs twice"),
        ({"entities.tsv": None, "entities.csv": "0,ash,tree\n"}, "entities.csv"),
        ({"test_with_neg.tsv": "1\t0\t0\t0.3\n2\t1\t1\t0.709\n"}, "its first 2 rows are not the test facts"),
        ({"test_with_neg.tsv": FILES["test.tsv"] + "3\t0\t1\t0.2\n"}, "1 of its 1 negative links have a confidence"),
    ],
)
def test_a_wrong_directory_says_what_is_wrong(tmp_path: Path, change: dict[str, str | None], message: str) -> None:
    files = {**FILES, **change}
    directory = put(tmp_path / "wrong", {name: text for name, text in files.items() if text is not None})
    with pytest.raises(DataError, match=message):
        open_dataset(directory)


def test_an_unknown_name_says_what_there_is() -> None:
    with pytest.raises(DataError, match="no benchmark, directory or file called 'cn15'") as caught:
        open_dataset("cn15")
    assert caught.value.hint is not None
    assert "Did you mean 'cn15k'?" in caught.value.hint


def test_one_file_is_split_by_seed(tmp_path: Path) -> None:
    rows = [f"e{i % 20}\tr{i % 3}\te{(i * 7 + 1) % 20}\t0.{i % 9 + 1}\n" for i in range(300)]
    path = tmp_path / "facts.tsv"
    path.write_text("".join(rows), encoding="utf-8")
    one, same, other = (open_dataset(path, seed=seed) for seed in (1, 1, 2))
    assert one.name == "facts"
    assert sum(len(part) for part in one.parts.values()) == 300
    assert one.test == same.test
    assert one.test != other.test


def test_the_synthetic_world_comes_with_negatives() -> None:
    dataset = open_dataset("synthetic", seed=3)
    assert dataset.negatives is not None
    assert len(dataset.negatives) == len(dataset.test) > 0


def test_a_leak_safe_cut_keeps_every_pair_on_one_side(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = {(int(h), int(r), int(t)) for h, r, t in rng.integers(0, [30, 2, 30], size=(600, 3))}
    lines = [f"{h}\t{r}\t{t}\t0.5\n" for h, r, t in sorted(rows)]
    names = "".join(f"{i}\tn{i}\n" for i in range(30))
    files = {"train.tsv": "".join(lines[:400]), "val.tsv": "".join(lines[400:450]), "test.tsv": "".join(lines[450:])}
    directory = put(tmp_path / "d", {**files, "entities.tsv": names, "relations.tsv": "0\tr\n1\ts\n"})
    cut = open_dataset(directory, leak_safe=True)
    pairs = [{frozenset((f.head, f.tail)) for f in part} for part in cut.parts.values()]
    assert not pairs[0] & pairs[2]
    assert not pairs[0] & pairs[1]
    assert sum(len(part) for part in cut.parts.values()) == len(lines)


class Authors(BaseHTTPRequestHandler):
    """A server of one tiny benchmark that can cut files short or lose them."""

    files: ClassVar[dict[str, str]] = {}
    cut: ClassVar[set[str]] = set()
    stuck: ClassVar[set[str]] = set()
    release: ClassVar[Event] = Event()
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        name = self.path.removeprefix("/tiny/")
        self.asked.append(name)
        body = self.files.get(name, "").encode()
        self.send_response(200 if name in self.files else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if name in self.stuck:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.release.wait(60)
            return
        self.wfile.write(body[: len(body) // 2] if name in self.cut else body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep quiet."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ...]]:
    """Serve FILES as benchmark `tiny`; the cache is a fresh directory."""
    real = open_dataset(put(tmp_path / "real", FILES))
    assert real.negatives is not None
    parts = {**real.parts, "test_with_neg": real.negatives}
    sums = {part: (fingerprint(graph, confidences=part != "train"),) for part, graph in parts.items()}
    rows = {part: (len(graph),) for part, graph in parts.items()}
    monkeypatch.setitem(BENCHMARKS, "tiny", Benchmark("tiny", "trees", entities=4, relations=2, rows=rows, sums=sums))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("UKGE_DATA", raising=False)
    Authors.files = {name: text for name, text in FILES.items() if name != "ndcg_queries.tsv"}
    Authors.cut, Authors.stuck, Authors.asked = set(), set(), []
    Authors.release.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Authors) as running:
        Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield (f"http://127.0.0.1:{running.server_port}",)
        Authors.release.set()
        running.shutdown()


def test_fetched_once_then_taken_from_the_cache(server: tuple[str, ...], tmp_path: Path) -> None:
    fetched = load("tiny", base_urls=server)
    assert fetched.queries is None
    assert fetched.entities[0] == "ash"
    place = locate("tiny")
    assert place is not None
    assert (place.path, place.why) == (cache_directory() / "tiny", "cache")
    assert str(place.path).startswith(str(tmp_path))
    Authors.asked.clear()
    assert_same(load("tiny", base_urls=server), fetched)
    assert Authors.asked == []
    assert not list(cache_directory().rglob("*.tmp"))


def test_a_train_file_may_differ_in_order_and_digits(server: tuple[str, ...]) -> None:
    Authors.files["train.tsv"] = "2\t0\t0\t1.0\n0\t0\t1\t0.12345679\n1\t1\t2\t0.5\n"
    assert len(load("tiny", base_urls=server).train) == 3


def test_without_names_the_ids_stand_for_them(server: tuple[str, ...]) -> None:
    del Authors.files["entities.tsv"], Authors.files["relations.tsv"]
    dataset = load("tiny", base_urls=server)
    assert list(dataset.entities) == ["0", "1", "2", "3"]
    assert dataset.train[0][:3] == ("0", "0", "1")


def test_names_may_come_from_a_second_place_but_facts_may_not(server: tuple[str, ...]) -> None:
    bases = (server[0], f"{server[0]}/later")
    del Authors.files["entities.tsv"]
    Authors.files["/later/tiny/concept_id.csv"] = "id,name\n3,oak\n0,ash\n2,cedar\n1,birch\n"
    assert list(load("tiny", base_urls=bases).entities) == ["ash", "birch", "cedar", "oak"]
    shutil.rmtree(cache_directory())
    Authors.files["/later/tiny/val.tsv"] = Authors.files.pop("val.tsv")
    with pytest.raises(DataError, match=r"tiny/val\.tsv does not exist"):
        load("tiny", base_urls=bases)


def test_a_file_cut_short_does_not_count_and_the_rest_is_kept(server: tuple[str, ...]) -> None:
    Authors.cut = {"test.tsv"}
    with pytest.raises(DataError, match=r"test\.tsv: only \d+ of \d+ bytes arrived"):
        load("tiny", base_urls=server)
    assert locate("tiny") is None
    Authors.cut = set()
    Authors.asked.clear()
    load("tiny", base_urls=server)
    assert "train.tsv" not in Authors.asked
    assert "test.tsv" in Authors.asked


def fetchers(count: int, server: tuple[str, ...], tmp_path: Path) -> list[ForkServerProcess]:
    """Start processes that fetch `tiny` into the same empty cache, all at once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.graph.fetching"])
    go = tmp_path / "go"
    shared = BENCHMARKS["tiny"], server[0], tmp_path / "cache", go
    started = [context.Process(target=fetch_first, args=(*shared, tmp_path / f"result-{n}")) for n in range(count)]
    for process in started:
        process.start()
    go.touch()
    return started


def test_many_processes_fetch_once(server: tuple[str, ...], tmp_path: Path) -> None:
    for process in fetchers(12, server, tmp_path):
        process.join()
    results = {path.read_text() for path in tmp_path.glob("result-*")}
    assert results == {"Dataset('tiny': train 3, val 1, test 2; 4 entities, 2 relations)"}
    assert all(Authors.asked.count(name) == 1 for name in Authors.files)
    assert [path.name for path in cache_directory().iterdir()] == ["tiny"]


def test_a_killed_fetch_leaves_nothing_in_the_way(server: tuple[str, ...], tmp_path: Path) -> None:
    Authors.stuck = {"test.tsv"}
    (fetcher,) = fetchers(1, server, tmp_path)
    while "test.tsv" not in Authors.asked:
        time.sleep(0.01)
    fetcher.kill()
    fetcher.join()
    assert locate("tiny") is None
    Authors.stuck = set()
    Authors.asked.clear()
    assert len(load("tiny", base_urls=server).test) == 2
    assert "train.tsv" not in Authors.asked, "what arrived whole is kept"
    assert [path.name for path in cache_directory().iterdir()] == ["tiny"]
    assert not [path for path in cache_directory().rglob("*") if path.name.startswith(".")]


def test_a_file_that_is_not_there_is_named(server: tuple[str, ...]) -> None:
    del Authors.files["val.tsv"]
    with pytest.raises(DataError, match=r"tiny/val\.tsv does not exist") as caught:
        load("tiny", base_urls=server)
    assert caught.value.hint is not None
    assert str(cache_directory() / "tiny") in caught.value.hint
    assert locate("tiny") is None


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("val.tsv", "0\t1\t2\t0.26\n", r"val\.tsv: holds other facts than tiny does"),
        ("val.tsv", "0\t1\t2\t0.25\n" * 2, r"val\.tsv: holds 2 rows where tiny has 1"),
        ("train.tsv", "0\t0\t1\t0.1\n1\t1\t2\t0.5\n2\t0\t1\t1.0\n", r"train\.tsv: holds other facts"),
        ("entities.tsv", "0\tash\n1\tbirch\n2\tcedar\n3\tx\n4\ty\n", r"entities\.tsv: holds 5 names where tiny has 4"),
        ("test_with_neg.tsv", FILES["test.tsv"], r"test_with_neg\.tsv: holds 0 negative links where tiny has 2"),
    ],
)
def test_a_changed_file_is_refused_and_fetched_anew(
    server: tuple[str, ...], file: str, text: str, message: str
) -> None:
    Authors.files[file] = text
    with pytest.raises(DataError, match=message):
        load("tiny", base_urls=server)
    assert locate("tiny") is None
    Authors.files[file] = FILES[file]
    assert len(load("tiny", base_urls=server).val) == 1


def test_without_a_network_it_says_where_the_files_go(server: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match="tiny is not on this machine") as caught:
        load("tiny", base_urls=("http://127.0.0.1:9",))
    hint = caught.value.hint or ""
    for word in ("UKGE_DATA", str(cache_directory() / "tiny"), "train.tsv", "val.tsv", "test.tsv", "test_with_neg.tsv"):
        assert word in hint


def test_the_named_directory_comes_before_the_cache(
    server: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UKGE_DATA", str(tmp_path / "named"))
    put(tmp_path / "named" / "tiny", FILES)
    place = locate("tiny")
    assert place is not None
    assert place.why == "UKGE_DATA"
    assert load("tiny", base_urls=("http://127.0.0.1:9",)).queries is not None
    assert Authors.asked == []


@pytest.mark.parametrize("name", ["cn15k", "nl27k", "ppi5k"])
def test_the_benchmarks_are_what_they_should_be(
    benchmark_data: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("UKGE_DATA", str(benchmark_data))
    dataset = open_dataset(name)
    assert dataset.name == name
    assert dataset.negatives is not None
    assert len(dataset.negatives) == len(dataset.test)
    assert not dataset.negatives.confidence.any()
    assert dataset.queries is not None
    assert dataset.queries.shape == ({"cn15k": 1_988}.get(name, 2_000), 2)
    assert dataset.ground_rules is not None
    assert len(dataset.ground_rules) == {"cn15k": 7_927, "nl27k": 32_513, "ppi5k": 85_299}[name]


def test_a_tampered_benchmark_is_refused(benchmark_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(benchmark_data / "ppi5k", tmp_path / "ppi5k", copy_function=shutil.copyfile)
    (tmp_path / "ppi5k").chmod(0o755)
    edit(tmp_path / "ppi5k" / "val.tsv", lambda text: text.replace("0.370", "0.371", 1))
    monkeypatch.setenv("UKGE_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"val\.tsv: holds other facts than ppi5k does"):
        load("ppi5k")


def edit(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
