"""What a bioinformatician has on disk loads by its name alone: samples of each format, with values known by hand."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ukge.errors import ConfigError, DataError
from ukge.graph.bad_rows import BadRows
from ukge.graph.catalogue import open_dataset
from ukge.graph.normalise import as_scale
from ukge.graph.readers import read, read_with_report
from ukge.graph.readers.mitab import values_of
from ukge.graph.uncertain import Fact, UncertainGraph
from ukge.graph.writers import write

SAMPLES = Path(__file__).parent / "samples"
FORMATS = {
    "rtx_edges.tsv": "kgx",
    "monarch_edges.jsonl": "kgx",
    "intact.txt": "mitab",
    "mint.mitab": "mitab",
    "hp_mp.sssom.tsv": "sssom",
    "disease_human_knowledge_filtered.tsv": "diseases",
    "disease_human_textmining_filtered.tsv": "diseases",
    "disease_human_integrated_full.tsv": "diseases",
    "graph_chunk_entity_relation.graphml": "lightrag",
    "neo4j/gene_disease.csv": "neo4j",
}


@pytest.mark.parametrize("name", FORMATS)
def test_each_is_known_by_what_it_holds_packed_or_not(name: str, tmp_path: Path) -> None:
    graph, report = read_with_report(SAMPLES / name)
    assert report.format == FORMATS[name]
    assert report.rows == len(graph) + sum(report.skipped.values())
    other = tmp_path / f"data{Path(name).suffix.replace('.mitab', '.txt')}.gz"
    other.write_bytes(gzip.compress((SAMPLES / name).read_bytes()))
    again, packed = read_with_report(other)
    assert (packed.format, again) == (report.format, graph)


def test_plain_tables_stay_plain(tmp_path: Path) -> None:
    (tmp_path / "spo.tsv").write_text("subject\tpredicate\tobject\tconfidence\na\tr\tb\t0.5\n")
    assert read_with_report(tmp_path / "spo.tsv")[1].format == "tsv"


def test_kgx_takes_each_edge_s_own_slot_and_the_nodes_beside() -> None:
    graph, report = read_with_report(SAMPLES / "rtx_edges.tsv")
    assert list(graph) == [
        Fact("NCBIGene:7157", "biolink:interacts_with", "NCBIGene:4193", 0.999, "infores:string"),
        Fact("NCBIGene:7157", "biolink:gene_associated_with_condition", "MONDO:0018875", 0.9, "infores:diseases"),
        Fact("CHEBI:45783", "biolink:treats", "MONDO:0011996", 0.93, "infores:drugcentral"),
    ]
    assert list(report.skipped.values()) == [1]
    assert report.notes == (
        "confidence is has_confidence_score, else stringdb_combined_score, of 1000, "
        "else diseases_confidence_score, of 5",
    )
    node = graph.nodes.get("NCBIGene:7157")
    assert node is not None
    assert (node.label, node.types, node.aliases) == ("TP53", ("biolink:Gene", "biolink:Protein"), ("P53", "LFS1"))


def test_kgx_by_a_named_column_and_with_a_default() -> None:
    path = SAMPLES / "rtx_edges.tsv"
    assert read(path, columns={"confidence": "diseases_confidence_score"}).confidence.tolist() == [0.9]
    assert read(path, default_confidence=0.25).confidence.tolist() == [0.999, 0.9, 0.93, 0.25]
    raw = read(path, columns={"confidence": "stringdb_combined_score"}, scale="minmax:0,1,0,2000")
    assert raw.confidence.tolist() == [0.4995]
    with pytest.raises(ConfigError, match="cannot map 'head'"):
        read(path, columns={"head": "object"})
    with pytest.raises(DataError, match=r"no column 'sure'[\s\S]*has_confidence_score"):
        read(path, columns={"confidence": "sure"})
    with pytest.raises(ConfigError, match="default_confidence"):
        read(path, default_confidence=5)


def test_kgx_without_confidences_says_what_can_be_done(tmp_path: Path) -> None:
    text = "subject\tpredicate\tobject\tknowledge_level\nA:1\tbiolink:r\tB:1\tprediction\n"
    (tmp_path / "edges.tsv").write_text(text)
    with pytest.raises(DataError, match=r"no column of confidences[\s\S]*default_confidence"):
        read(tmp_path / "edges.tsv")
    assert read(tmp_path / "edges.tsv", default_confidence=0.5)[0] == Fact("A:1", "biolink:r", "B:1", 0.5)


def test_nodes_given_for_edges_are_told_so() -> None:
    with pytest.raises(DataError, match=r"no column subject, predicate, object[\s\S]*These are nodes"):
        read(SAMPLES / "rtx_nodes.tsv")


def test_kgx_lines() -> None:
    graph, report = read_with_report(SAMPLES / "monarch_edges.jsonl")
    assert list(graph) == [
        Fact("HGNC:11998", "biolink:gene_associated_with_condition", "MONDO:0018875", 0.75, "infores:hpo")
    ]
    assert sum(report.skipped.values()) == 1
    assert graph.nodes.labels(["MONDO:0018875"]) == ["Li-Fraumeni syndrome"]


@pytest.mark.parametrize("name", ["out.tsv", "out_edges.tsv.gz", "out_edges.jsonl"])
def test_kgx_is_written_and_comes_back(tmp_path: Path, name: str) -> None:
    graph = read(SAMPLES / "rtx_edges.tsv")
    write(graph, tmp_path / name, format="kgx")
    back, report = read_with_report(tmp_path / name)
    assert (report.format, list(back)) == ("kgx", list(graph))
    assert [back.nodes.get(node.id) for node in graph.nodes] == list(graph.nodes)


def test_mitab_s_scores_types_and_names() -> None:
    graph, report = read_with_report(SAMPLES / "intact.txt")
    assert list(graph) == [
        Fact("uniprotkb:P04637", "direct interaction", "uniprotkb:Q00987", 0.98, "IntAct"),
        Fact("uniprotkb:P04637", "physical association", "intact:EBI-9|x", 0.37, "IntAct"),
    ]
    assert report.skipped == {
        "only one interactor": 1, "negative interactions": 1, "no number in intact-miscore": 1
    }  # fmt: skip
    node = graph.nodes.get("uniprotkb:P04637")
    assert node is not None
    assert node.label == "TP53"
    assert "Tumor suppressor p53 (antigen: NY-CO-13)" in node.aliases
    assert graph.nodes.labels(["uniprotkb:Q00987"]) == ["MDM2"]
    assert read(SAMPLES / "intact.txt", ids="intact")[0].head == "intact:EBI-366083"
    with pytest.raises(DataError, match=r"score 'mentha'[\s\S]*author score, intact-miscore"):
        read(SAMPLES / "intact.txt", score="mentha")


def plain_values(cell: str) -> list[tuple[str, str, str]]:
    """Split a cell of MITAB one character at a time: no pattern, so that it fails elsewhere than the reader's."""
    values, part, quoted, depth = [], ["", "", ""], False, 0
    for char in [*cell, "|"]:
        if char == '"':
            quoted = not quoted
        elif quoted:
            part[depth] += char
        elif char == "|":
            values.append(tuple(part))
            part, depth = ["", "", ""], 0
        elif char == ":" and depth == 0:
            depth = 1
        elif char == "(" and depth == 1:
            depth = 2
        elif not (char == ")" and depth == 2):
            part[depth] += char
    return [value for value in values if value[1]]  # type: ignore[misc]


@pytest.mark.parametrize("name", ["intact.txt", "mint.mitab"])
def test_mitab_cells_are_split_as_a_plain_splitter_does(name: str) -> None:
    cells = {cell for line in (SAMPLES / name).read_text().splitlines()[1:] for cell in line.split("\t")}
    compared = 0
    for cell in cells - {"-"}:
        if re.search(r"[A-Za-z]:", cell) and not cell.startswith("Stelzl"):
            assert values_of(cell) == plain_values(cell), cell
            compared += 1
    assert compared >= 10


def test_sssom_s_mappings_and_labels() -> None:
    graph, report = read_with_report(SAMPLES / "hp_mp.sssom.tsv")
    assert list(graph) == [
        Fact("HP:0000009", "skos:exactMatch", "MP:0000001", 0.72, "semapv:LexicalMatching"),
        Fact("HP:0000023", "skos:exactMatch", "MP:0003355", 0.95, "semapv:ManualMappingCuration"),
    ]
    assert report.skipped == {"mappings that are said not to hold": 1, "no number in confidence": 1}
    assert graph.nodes.labels(["HP:0000023"]) == ["Inguinal hernia"]


def test_sssom_is_written_and_comes_back(tmp_path: Path) -> None:
    read_in = read(SAMPLES / "hp_mp.sssom.tsv")
    facts = [*read_in, Fact("HP:1", "skos:closeMatch", "MP:2", 0.1 + 0.2)]
    graph = UncertainGraph.from_facts(facts).with_nodes(read_in.nodes)
    write(graph, tmp_path / "maps.sssom.tsv", format="sssom")
    back, report = read_with_report(tmp_path / "maps.sssom.tsv")
    assert (report.format, list(back), report.skipped) == ("sssom", facts, {})
    assert back.nodes.labels(["HP:0000023"]) == ["Inguinal hernia"]
    prefixes = '#curie_map:\n#  HP: "https://bioregistry.io/HP:"\n#  MP: "https://bioregistry.io/MP:"\nsubject_id'
    assert prefixes in (tmp_path / "maps.sssom.tsv").read_text()
    with pytest.raises(DataError, match=r"1 names cannot be written[\s\S]*is no CURIE \(found 'a cat'\)"):
        write(UncertainGraph.from_facts([("a cat", "r:r", "x:y", 0.5)]), tmp_path / "no.tsv", format="sssom")
    with pytest.raises(DataError, match="is no justification"):
        write(UncertainGraph.from_facts([("a:b", "r:r", "x:y", 0.5, "web")]), tmp_path / "no.tsv", format="sssom")


def open_targets(folder: Path) -> Path:
    """Write associations by data type in two parts, and what targets and diseases are called beside them."""
    parts = [
        {"targetId": ["ENSG00000141510", "ENSG00000141510"], "diseaseId": ["MONDO_0018875", "MONDO_0018875"],
         "aggregationType": ["datatypeId"] * 2, "aggregationValue": ["literature", "somatic_mutation"],
         "associationScore": [0.25, 0.875], "evidenceCount": [3, 40]},
        {"targetId": ["ENSG00000135679"], "diseaseId": ["EFO_0000616"], "aggregationType": ["datatypeId"],
         "aggregationValue": ["literature"], "associationScore": [0.5], "evidenceCount": [1]},
    ]  # fmt: skip
    for name in ("association_by_datatype_direct", "target", "disease"):
        (folder / name).mkdir()
    for at, part in enumerate(parts):
        pq.write_table(pa.table(part), folder / "association_by_datatype_direct" / f"part-{at:05}.snappy.parquet")
    (folder / "association_by_datatype_direct" / "_SUCCESS").touch()
    target = {"id": ["ENSG00000141510"], "approvedSymbol": ["TP53"], "approvedName": ["tumor protein p53"]}
    pq.write_table(pa.table(target), folder / "target" / "part-00000.parquet")
    disease = {"id": ["MONDO_0018875"], "name": ["Li-Fraumeni syndrome"]}
    pq.write_table(pa.table(disease), folder / "disease" / "part-00000.parquet")
    return folder / "association_by_datatype_direct"


def test_open_targets_is_a_directory_of_parts(tmp_path: Path) -> None:
    folder = open_targets(tmp_path)
    graph, report = read_with_report(folder)
    assert report.format == "opentargets"
    assert list(graph) == [
        Fact("ENSG00000141510", "literature", "MONDO_0018875", 0.25),
        Fact("ENSG00000141510", "somatic_mutation", "MONDO_0018875", 0.875),
        Fact("ENSG00000135679", "literature", "EFO_0000616", 0.5),
    ]
    node = graph.nodes.get("ENSG00000141510")
    assert node is not None
    assert (node.label, node.types, node.description) == ("TP53", ("target",), "tumor protein p53")
    assert [fact.relation for fact in read(folder / "part-00001.snappy.parquet", relation="linked")] == ["linked"]
    assert open_dataset(folder, undirected="none").whole().nodes.labels(["MONDO_0018875"]) == ["Li-Fraumeni syndrome"]


def test_open_targets_with_a_part_of_other_columns(tmp_path: Path) -> None:
    folder = open_targets(tmp_path)
    pq.write_table(pa.table({"targetId": ["x"]}), folder / "part-00009.parquet")
    with pytest.raises(DataError, match=r"part-00009.parquet: has no column .*associationScore"):
        read(folder)
    with pytest.raises(DataError, match="is a directory"):
        read(tmp_path)


def test_string_by_its_header_once_per_pair_with_what_proteins_are_called() -> None:
    graph, report = read_with_report(SAMPLES / "string" / "511145.protein.links.detailed.v12.0.txt")
    assert report.format == "string"
    assert list(graph) == [
        Fact("511145.b0001", "interacts", "511145.b0002", 0.931),
        Fact("511145.b0002", "interacts", "511145.b0003", 0.999),
        Fact("511145.b0003", "interacts", "511145.b0001", 0.2),  # the two directions say different scores
        Fact("511145.b0001", "interacts", "511145.b0003", 0.3),
    ]
    assert report.skipped == {"the pair stands there from the other end, too": 2}
    node = graph.nodes.get("511145.b0002")
    assert node is not None
    assert (node.label, node.aliases, node.others) == ("thrA", ("thrA1", "P00561"), {"protein_size": "820"})


def test_string_by_preferred_name_cut_off_and_in_both_directions() -> None:
    path = SAMPLES / "string" / "511145.protein.links.detailed.v12.0.txt"
    named = read(path, names="preferred", min_confidence=0.5)
    assert [fact[:3] for fact in named] == [("thrA", "interacts", "thrL"), ("thrA", "interacts", "thrB")]
    assert named.n_entities == 3
    assert "511145.b0001" in named.nodes.get("thrL").aliases  # type: ignore[union-attr]
    graph, report = read_with_report(path, mirrors=True, min_confidence=0.25)
    assert (len(graph), report.skipped) == (5, {"confidence below 0.25": 1})
    with pytest.raises(DataError, match=r"no fact has a confidence of 1 or more|no facts; 6 skipped"):
        read(path, min_confidence=1)


def test_string_in_one_go_and_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = "protein1 protein2 combined_score\n"
    pairs = [(f"1.p{i % 17:02}", f"1.p{(3 * i) % 19:02}", 150 + i) for i in range(800) if i % 17 != (3 * i) % 19]
    text = header + "".join(f"{a} {b} {s}\n{b} {a} {s}\n" for a, b, s in pairs)
    path = tmp_path / "1.protein.links.v12.0.txt"
    path.write_text(text)
    whole = read(path, min_confidence=0.3)
    monkeypatch.setattr("ukge.graph.readers.delimited.LARGE_BYTES", 1)
    monkeypatch.setattr("ukge.graph.readers.delimited._BLOCK", 512)
    assert list(read(path, min_confidence=0.3)) == list(whole)
    assert {(fact.head, fact.tail, round(1000 * fact.confidence)) for fact in whole} == {
        (min(a, b), max(a, b), s) for a, b, s in pairs if s >= 300
    }


def test_facts_below_a_least_confidence_leave_every_format(tmp_path: Path) -> None:
    (tmp_path / "f.tsv").write_text("a\tr\tb\t0.5\nc\ts\td\t0.1\n")
    graph, report = read_with_report(tmp_path / "f.tsv", min_confidence=0.5)
    assert (list(graph.entities), list(graph.relations)) == (["a", "b"], ["r"])
    assert report.skipped == {"confidence below 0.5": 1}
    with pytest.raises(DataError, match=r"confidence of 0\.6 or more[\s\S]*The highest is 0\.5"):
        read(tmp_path / "f.tsv", min_confidence=0.6)
    with pytest.raises(ConfigError, match="min_confidence"):
        read(tmp_path / "f.tsv", min_confidence=50)


def test_stars_of_diseases() -> None:
    assert list(read(SAMPLES / "disease_human_knowledge_filtered.tsv")) == [
        Fact("ENSP00000269305", "associated_with", "DOID:3012", 1.0, "MedlinePlus"),
        Fact("ENSP00000000442", "associated_with", "DOID:1612", 0.8, "UniProtKB-KW"),
    ]
    mined = read(SAMPLES / "disease_human_textmining_filtered.tsv", relation="mentioned_with")
    assert [fact[:3] for fact in mined] == [
        ("ENSP00000269305", "mentioned_with", "DOID:162"),
        ("18S_rRNA", "mentioned_with", "DOID:0050117"),
    ]
    assert mined.confidence.tolist() == pytest.approx([0.9112, 0.3])
    assert mined.nodes.labels(["DOID:162", "ENSP00000269305"]) == ["Cancer", "TP53"]
    assert read(SAMPLES / "disease_human_integrated_full.tsv", scale="minmax:0,1,0,10").confidence.tolist() == [0.5]


def test_neo4j_s_relationships_and_all_files_of_nodes_beside(tmp_path: Path) -> None:
    path = SAMPLES / "neo4j" / "gene_disease.csv"
    graph = read(path)
    assert list(graph) == [
        Fact("7157", "ASSOCIATED_WITH", "DOID:3012", 0.91),
        Fact("4193", "ASSOCIATED_WITH", "DOID:162", 0.4),
    ]
    assert graph.nodes.labels(["7157", "DOID:162"]) == ["TP53", "Cancer"]
    assert graph.nodes.types == {"Gene": 2, "Disease": 2, "Protein": 1}
    assert read(path, columns={"confidence": "confidence"}, relation="linked")[0] == Fact(
        "7157", "linked", "DOID:3012", 0.91
    )
    bare = tmp_path / "bare.csv"
    bare.write_text(":START_ID;:END_ID;since:int\na;b;1999\n")
    with pytest.raises(DataError, match=r"no column :TYPE[\s\S]*relation=NAME"):
        read(bare)
    with pytest.raises(DataError, match=r"called like a confidence: there is since:int[\s\S]*default_confidence"):
        read(bare, relation="r")
    assert list(read(bare, relation="r", default_confidence=0.5)) == [Fact("a", "r", "b", 0.5)]


def graphrag(folder: Path) -> Path:
    relationships = {
        "id": ["1", "2"], "human_readable_id": [0, 1], "source": ["SCROOGE", "SCROOGE"], "target": ["BOB", "LONDON"],
        "description": ["employs", "lives in"], "weight": [9.0, 1.0], "combined_degree": [3, 3],
        "text_unit_ids": [["a"], ["b"]],
    }  # fmt: skip
    entities = {"id": ["1", "2"], "title": ["SCROOGE", "BOB"], "type": ["PERSON"] * 2, "description": ["a miser", None]}
    pq.write_table(pa.table(relationships), folder / "relationships.parquet")
    pq.write_table(pa.table(entities), folder / "entities.parquet")
    return folder / "relationships.parquet"


def test_sums_of_extracted_graphs_get_a_scale_that_is_said(tmp_path: Path) -> None:
    for path, first in ((graphrag(tmp_path), "SCROOGE"), (SAMPLES / "graph_chunk_entity_relation.graphml", "Scrooge")):
        graph, report = read_with_report(path)
        assert graph.confidence.tolist() == pytest.approx([9 / 10, 1 / 2])
        assert report.notes == ("weights are sums, taken as counts: w/(w + 1)",)
        node = graph.nodes.get(first)
        assert node is not None
        assert (node.types[0].lower(), node.description is not None) == ("person", True)
        raw, report = read_with_report(path, scale="clip:0,10 minmax:0,1,0,10")
        assert (raw.confidence.tolist(), report.notes) == (pytest.approx([0.9, 0.1]), ())
    words = read(SAMPLES / "graph_chunk_entity_relation.graphml", columns={"relation": "keywords"})
    assert list(words.relations) == ["employment,power", "residence"]


def test_a_confidence_of_a_named_graph_is_that_of_its_statements() -> None:
    wd = "http://www.wikidata.org/entity/"
    graph, report = read_with_report(SAMPLES / "claims.trig")
    assert [(f.head.removeprefix(wd), f.tail.removeprefix(wd), f.confidence, f.source) for f in graph] == [
        ("Q14865053", "Q14327652", 0.75, "UniProt"),
        ("Q14865053", "Q15978631", 0.75, "UniProt"),
        ("Q14865053", "Q14327652", 0.5, None),
    ]
    assert list(report.skipped.values()) == [1]  # what it was derived from
    assert list(read(SAMPLES / "claims.nq")) == [Fact("http://x/a", "http://x/likes", "http://x/b", 0.25)]


def test_odds_by_hand() -> None:
    assert as_scale("odds:3")([0, 1, 3, 9]).tolist() == pytest.approx([0, 1 / 4, 1 / 2, 3 / 4])
    assert as_scale("counts")([1, 3, 9]).tolist() == pytest.approx([1 / 2, 3 / 4, 9 / 10])
    with pytest.raises(DataError, match="odds need a weight of 0 or more"):
        as_scale("counts")([-1])
    with pytest.raises(ConfigError, match="odds needs k > 0"):
        as_scale("odds:0")


@pytest.mark.parametrize(
    ("name", "line", "what", "good"),
    [
        ("kgx_score.tsv", 3, "stringdb_combined_score is outside [0, 1000]", 1),
        ("mitab_score.txt", 3, "intact-miscore is not a number", 1),
        ("sssom_confidence.tsv", 5, "confidence is outside [0, 1]", 1),
        ("diseases_stars.tsv", 2, "stars is outside [0, 5]", 1),
        ("neo4j_confidence.csv", 2, "confidence:float is not a number", 1),
    ],
)
def test_bad_rows_of_each_are_put_aside_with_their_place(name: str, line: int, what: str, good: int) -> None:
    bad = BadRows()
    assert len(read(Path(__file__).parent / "corpus" / name, bad_rows=bad)) == good
    assert [(row["line"], row["reason"]) for row in bad.table().to_pylist()] == [(line, what)]
