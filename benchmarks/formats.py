"""How long a million facts of each format take to load, and how much memory, beside the plainest way with pandas.

Each is read in a fresh process, timed without its imports. Ours also encodes names, checks every row and reads what is
known of entities beside; pandas makes a frame of the same columns, and nothing is checked. `--string ROWS` generates
protein links of a whole organism instead, each pair in both directions, with `protein.info` beside, packed.

    python benchmarks/formats.py [--rows 1000000]
    python benchmarks/formats.py --string 12000000
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

ENTITIES = 20_000
PROTEINS = 19_500


def edges(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    return draw.integers(0, ENTITIES, rows), draw.integers(0, ENTITIES, rows), draw.integers(1, 1000, rows)


def texts(prefix: str, numbers: np.ndarray) -> pa.Array:
    known = pa.array([f"{prefix}{number:06}" for number in range(ENTITIES)])
    return known.take(pa.array(numbers))


def lines(table: pa.Table, path: Path, *, delimiter: str = "\t", header: bool = True) -> Path:
    """Write a table without any quotation marks, packed if its name says so."""
    options = pa_csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
    with pa.output_stream(str(path), compression="detect") as sink:
        if header:
            sink.write((delimiter.join(table.column_names) + "\n").encode())
        pa_csv.write_csv(table, sink, options)
    return path


def constant(text: str, rows: int) -> pa.Array:
    return pa.array([text]).take(pa.array(np.zeros(rows, np.int64)))


def make_string(folder: Path, rows: int) -> Path:
    head, tail, score = edges(rows)
    names = texts("9606.ENSP00000", head), texts("9606.ENSP00000", tail)
    table = pa.table([*names, pa.array(score)], names=["protein1", "protein2", "combined_score"])
    return lines(table, folder / "9606.protein.links.v12.0.txt", delimiter=" ")


def make_kgx(folder: Path, rows: int) -> Path:
    head, tail, score = edges(rows)
    columns = {
        "id": pa.array(np.arange(rows)), "subject": texts("NCBIGene:", head),
        "predicate": constant("biolink:interacts_with", rows), "object": texts("MONDO:", tail),
        "primary_knowledge_source": constant("infores:x", rows), "has_confidence_score": pa.array(score / 1000),
    }  # fmt: skip
    return lines(pa.table(columns), folder / "kg_edges.tsv")


def make_kgx_lines(folder: Path, rows: int) -> Path:
    head, tail, score = edges(rows)
    path = folder / "kg_edges.jsonl"
    with path.open("w") as file:
        for a, b, c in zip(head.tolist(), tail.tolist(), score.tolist(), strict=True):
            edge = {"subject": f"NCBIGene:{a}", "predicate": "biolink:r", "object": f"MONDO:{b}"}
            file.write(json.dumps({**edge, "knowledge_level": "prediction", "has_confidence_score": c / 1000}) + "\n")
    return path


def make_mitab(folder: Path, rows: int) -> Path:
    head, tail, score = edges(rows)
    between = "\t".join(["-"] * 9)
    kind, source = 'psi-mi:"MI:0915"(physical association)', 'psi-mi:"MI:0469"(IntAct)'
    after = "\t".join(["-"] * 27)
    path = folder / "intact.txt"
    with path.open("w") as file:
        file.write("\t".join(["#ID(s) interactor A", *(f"column {at}" for at in range(1, 42))]) + "\n")
        for a, b, c in zip(head.tolist(), tail.tolist(), score.tolist(), strict=True):
            values = f"author score:x|intact-miscore:{c / 1000}"
            file.write(f"uniprotkb:P{a:05}\tuniprotkb:P{b:05}\t{between}\t{kind}\t{source}\t-\t{values}\t{after}\n")
    return path


def make_sssom(folder: Path, rows: int) -> Path:
    head, tail, score = edges(rows)
    columns = {
        "subject_id": texts("HP:", head), "subject_label": texts("label ", head),
        "predicate_id": constant("skos:exactMatch", rows), "object_id": texts("MP:", tail),
        "mapping_justification": constant("semapv:LexicalMatching", rows), "confidence": pa.array(score / 1000),
    }  # fmt: skip
    path = lines(pa.table(columns), folder / "maps.sssom.tsv")
    path.write_bytes(b"#mapping_set_id: https://example.org/maps\n" + path.read_bytes())
    return path


def make_open_targets(folder: Path, rows: int) -> Path:
    head, tail, score = edges(rows)
    table = pa.table({
        "targetId": texts("ENSG00000", head), "diseaseId": texts("EFO_", tail),
        "aggregationValue": constant("literature", rows), "associationScore": pa.array(score / 1000),
    })  # fmt: skip
    path = folder / "associations"
    path.mkdir()
    for part in range(4):
        pq.write_table(table.slice(part * rows // 4, rows // 4), path / f"part-{part}.parquet")
    return path


def make_graphrag(folder: Path, rows: int) -> Path:
    head, tail, score = edges(rows)
    table = pa.table({
        "source": texts("THING ", head), "target": texts("THING ", tail), "description": constant("said", rows),
        "weight": pa.array(score / 100), "combined_degree": pa.array(score), "text_unit_ids": constant("t", rows),
    })  # fmt: skip
    pq.write_table(table, folder / "relationships.parquet")
    return folder / "relationships.parquet"


def make_neo4j(folder: Path, rows: int) -> Path:
    head, tail, score = edges(rows)
    ends = [texts("g", head), texts("d", tail), constant("LINKS", rows), pa.array(score / 1000)]
    names = [":START_ID", ":END_ID", ":TYPE", "confidence:float"]
    return lines(pa.table(ends, names=names), folder / "relationships.csv", delimiter=",")


def make_diseases(folder: Path, rows: int) -> Path:
    head, tail, score = edges(rows)
    columns = [texts("ENSP00000", head), texts("G", head), texts("DOID:", tail), texts("disease ", tail)]
    table = pa.table([*columns, pa.array(score / 200)], names=list("abcde"))
    return lines(table, folder / "human_disease_integrated_full.tsv", header=False)


MAKERS: dict[str, tuple[Callable[[Path, int], Path], str]] = {
    "STRING": (make_string, "pandas.read_csv({path!r}, sep=' ')"),
    "KGX, TSV": (make_kgx, "pandas.read_csv({path!r}, sep='\\t')"),
    "KGX, JSON Lines": (make_kgx_lines, "pandas.read_json({path!r}, lines=True)"),
    "PSI-MITAB 2.7": (make_mitab, "pandas.read_csv({path!r}, sep='\\t', usecols=[0, 1, 11, 12, 14])"),
    "SSSOM": (make_sssom, "pandas.read_csv({path!r}, sep='\\t', comment='#')"),
    "Open Targets": (make_open_targets, "pandas.read_parquet({path!r})"),
    "GraphRAG": (make_graphrag, "pandas.read_parquet({path!r})"),
    "Neo4j": (make_neo4j, "pandas.read_csv({path!r})"),
    "DISEASES": (make_diseases, "pandas.read_csv({path!r}, sep='\\t', header=None)"),
}
CHILD = """
import sys, time, json
{imports}
started = time.perf_counter()
found = {call}
seconds = time.perf_counter() - started
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([seconds, len(found), peak / 1024]))
"""


def measured(imports: str, call: str) -> tuple[float, int, float]:
    """Return seconds, rows and megabytes of a call in a process of its own."""
    code = CHILD.format(imports=imports, call=call)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    seconds, rows, peak = json.loads(done.stdout)
    return seconds, rows, peak


OURS = "import ukge.graph.readers\nfrom ukge import read"


def table_of_formats(rows: int) -> None:
    print(f"{rows:,} facts of each format\n")
    print("| format | ukge: facts | s | MB | pandas: s | MB |\n|---|---|---|---|---|---|")
    for name, (make, plain) in MAKERS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = make(Path(folder), rows)
            measured(OURS, f"read({str(path)!r})")  # compiles, where anything is
            ours = measured(OURS, f"read({str(path)!r})")
            theirs = measured("import pandas", plain.format(path=str(path)))
        numbers = f"{ours[1]:,} | {ours[0]:.1f} | {ours[2]:,.0f} | {theirs[0]:.1f} | {theirs[2]:,.0f}"
        print(f"| {name} | {numbers} |", flush=True)


def organism(rows: int) -> None:
    """Generate links of a whole organism and read them, from the packed file to the named graph."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "9606.protein.links.v12.0.txt.gz"
        draw = np.random.default_rng(0)
        keys = np.unique(draw.integers(0, PROTEINS**2, 3 * rows // 2))
        keys = draw.permutation(keys[keys // PROTEINS < keys % PROTEINS])[: rows // 2]
        low, high = keys // PROTEINS, keys % PROTEINS
        score = draw.integers(150, 1000, len(low))
        order = np.lexsort((np.concatenate([high, low]), np.concatenate([low, high])))
        head, tail = np.concatenate([low, high])[order], np.concatenate([high, low])[order]
        names = pa.array([f"9606.ENSP{number:011}" for number in range(PROTEINS)])
        columns = [names.take(pa.array(head)), names.take(pa.array(tail)), pa.array(np.tile(score, 2)[order])]
        table = pa.table(columns, names=["protein1", "protein2", "combined_score"])
        lines(table, path, delimiter=" ")
        with gzip.open(Path(folder) / "9606.protein.info.v12.0.txt.gz", "wt") as info:
            info.write("#string_protein_id\tpreferred_name\tprotein_size\tannotation\n")
            info.writelines(f"{name}\tGENE{at}\t100\tA protein.\n" for at, name in enumerate(names.to_pylist()))
        count = len(table)
        del table, columns, head, tail, low, high, keys, order, score
        print(f"{path.name}: {count:,} rows, {path.stat().st_size / 1e6:,.0f} MB packed", flush=True)
        for what, call in (
            ("ukge", f"read({str(path)!r})"),
            ("ukge, min_confidence=0.7", f"read({str(path)!r}, min_confidence=0.7)"),
        ):
            seconds, facts, peak = measured(OURS, call)
            print(f"{what}: {facts:,} facts, {seconds:.1f} s, {peak:,.0f} MB", flush=True)
        seconds, facts, peak = measured("import pandas", f"pandas.read_csv({str(path)!r}, sep=' ')")
        print(f"pandas: {facts:,} rows, {seconds:.1f} s, {peak:,.0f} MB", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--string", type=int, metavar="ROWS")
    asked = parser.parse_args()
    started = time.perf_counter()
    if asked.string:
        organism(asked.string)
    else:
        table_of_formats(asked.rows)
    print(f"\nin all {time.perf_counter() - started:.0f} s")
