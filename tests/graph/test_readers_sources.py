"""The dumps of STRING, ConceptNet and NELL, and RDF: tiny invented samples with values computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ukge.errors import ConfigError, DataError
from ukge.graph.readers import read, read_with_report
from ukge.graph.readers.stringdb import combine, without_prior
from ukge.graph.uncertain import Fact

FULL_HEADER = (
    "protein1 protein2 neighborhood neighborhood_transferred fusion cooccurence homology coexpression "
    "coexpression_transferred experiments experiments_transferred database database_transferred textmining "
    "textmining_transferred combined_score\n"
)
# Only the first row has evidence in co-occurrence, experiments and text mining, and its proteins are homologous.
FULL = FULL_HEADER + (
    "P1 P2 0 0 0 300 500 0 0 700 200 0 0 400 100 828\n"
    "P2 P3 0 0 0 0 0 0 45 0 134 0 0 0 81 173\n"
    "P3 P4 90 0 0 0 0 0 0 0 0 0 0 0 0 90\n"
)
DETAILED = (
    "protein1 protein2 neighborhood fusion cooccurence coexpression experimental database textmining combined_score\n"
    "P1 P2 0 0 0 0 600 800 0 916\nP2 P1 0 0 0 0 20 0 0 41\n"
)


def write_file(folder: Path, text: str, name: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_string_s_combined_score_is_in_thousandths(tmp_path: Path) -> None:
    path = write_file(tmp_path, "protein1 protein2 combined_score\nP1 P2 900\nP2 P1 150\n", "links.txt")
    assert list(read(path, format="string")) == [
        Fact("P1", "interacts", "P2", 0.9),
        Fact("P2", "interacts", "P1", 0.15),
    ]
    assert read(path, format="string", relation="binds")[0].relation == "binds"
    assert read(path, format="string", scale=lambda w: w / 2).confidence.tolist() == [0.45, 0.075]


def test_the_prior_is_taken_out_and_put_back_once() -> None:
    assert without_prior(np.array([0.0, 0.041, 1.0])).tolist() == pytest.approx([0.0, 0.0, 1.0])
    assert without_prior(np.array([0.7]))[0] == pytest.approx(0.659 / 0.959)
    # One channel alone keeps its score; no evidence at all is the prior.
    assert combine([without_prior(np.array([0.7, 0.0]))]).tolist() == pytest.approx([0.7, 0.041])


def test_channels_of_a_full_file_are_recombined_with_homology_and_transfer(tmp_path: Path) -> None:
    path = write_file(tmp_path, FULL, "full.txt")
    every = ["neighborhood", "fusion", "cooccurrence", "coexpression", "experiments", "database", "textmining"]
    graph = read(path, format="string", channels=every)
    # By hand, with p = 0.041 and s' = (s - p)/(1 - p): experiments 0.739040, text mining 0.412840 x (1 - 0.5),
    # co-occurrence 0.270073 x (1 - 0.5); 1 - product of doubts, times 0.959, plus 0.041.
    assert graph.confidence.tolist() == pytest.approx([0.8282166124, 0.1735823943, 0.09])
    assert (graph.confidence * 1000).astype(int).tolist() == [828, 173, 90]  # STRING's own combined scores


def test_chosen_channels_and_pairs_without_evidence(tmp_path: Path) -> None:
    path = write_file(tmp_path, FULL, "full.txt")
    graph, report = read_with_report(path, format="string", channels=["experiments", "textmining"])
    assert [fact[:3] for fact in graph] == [("P1", "interacts", "P2"), ("P2", "interacts", "P3")]
    assert graph.confidence[0] == pytest.approx(0.8013981089)
    assert report.skipped == {"no evidence in experiments, textmining": 1}
    assert (report.rows, report.facts) == (3, 2)
    assert read(path, format="string", channels="experiments").confidence[0] == pytest.approx(0.7497393118)


def test_one_relation_per_channel(tmp_path: Path) -> None:
    path = write_file(tmp_path, FULL, "full.txt")
    graph = read(path, format="string", per_channel=True, channels=["textmining", "cooccurence", "experimental"])
    assert [fact[:3] for fact in graph] == [
        ("P1", "textmining", "P2"),
        ("P1", "cooccurrence", "P2"),
        ("P1", "experiments", "P2"),
        ("P2", "textmining", "P3"),
        ("P2", "experiments", "P3"),
    ]
    assert graph.confidence.tolist() == pytest.approx([0.2389567258, 0.1705, 0.7497393118, 0.081, 0.134])


def test_a_detailed_file(tmp_path: Path) -> None:
    path = write_file(tmp_path, DETAILED, "detailed.txt")
    graph = read(path, format="string", channels=["experiments", "database"])
    assert graph.confidence.tolist() == pytest.approx([0.9165797706, 0.041])  # a score below the prior counts as none
    assert len(read(path, format="string", per_channel=True)) == 3


def test_string_channels_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no channel gossip[\s\S]*experiments, database"):
        read(write_file(tmp_path, DETAILED, "detailed.txt"), format="string", channels=["gossip"])
    with pytest.raises(DataError, match="only combined scores"):
        read(
            write_file(tmp_path, "protein1 protein2 combined_score\nA B 1\n", "l.txt"),
            format="string",
            per_channel=True,
        )


CONCEPTNET = (
    '/a/1\t/r/IsA\t/c/en/cat/n\t/c/en/animal/n/wn/animal\t{"weight": 2.0, "surfaceText": "a } { b"}\n'
    '/a/2\t/r/IsA\t/c/fr/chat\t/c/fr/animal\t{"weight": 1.0}\n'
    '/a/3\t/r/Antonym\t/c/en/hot\t/c/en/cold\t{"sources": [{"weight": 9}, {"a": 1}], "weight": 0.1}\n'
    '/a/4\t/r/ExternalURL\t/c/en/cat\thttp://example.org/cat\t{"weight": 1.0}\n'
)


def test_conceptnet_in_one_language_with_the_paper_s_scale(tmp_path: Path) -> None:
    path = write_file(tmp_path, CONCEPTNET, "assertions.csv")
    graph, report = read_with_report(path, format="conceptnet", scale="conceptnet")
    assert [fact[:3] for fact in graph] == [("cat", "IsA", "animal"), ("hot", "Antonym", "cold")]
    # log 2 lies at log(20)/log(30) of the way from log 0.1 to log 3; the way goes from 0.1 to 1.
    assert graph.confidence.tolist() == pytest.approx([0.1 + 0.9 * np.log(20) / np.log(30), 0.1])
    assert report.skipped == {"start or end is no concept of language 'en'": 2}
    assert report.rows == 4


def test_conceptnet_by_uri_and_in_all_languages(tmp_path: Path) -> None:
    path = write_file(tmp_path, CONCEPTNET, "assertions.csv")
    graph = read(path, format="conceptnet", names="uri", scale=lambda weights: weights / 10)
    assert graph[0] == Fact("/c/en/cat/n", "IsA", "/c/en/animal/n/wn/animal", 0.2)
    everything, report = read_with_report(path, format="conceptnet", language=None, scale=lambda weights: weights / 10)
    assert [fact.head for fact in everything] == ["/c/en/cat/n", "/c/fr/chat", "/c/en/hot", "/c/en/cat"]
    assert report.skipped == {}
    assert read(path, format="conceptnet", language="fr")[0] == Fact("chat", "IsA", "animal", 1.0)
    with pytest.raises(ConfigError, match="names='term'"):
        read(path, format="conceptnet", language=None, names="term")
    with pytest.raises(DataError, match=r"no facts; 4 skipped: .*'xx'"):
        read(path, format="conceptnet", language="xx")


def test_conceptnet_s_weights_are_read_alike_fast_and_one_by_one(tmp_path: Path) -> None:
    rows = [f'/a/{i}\t/r/R\t/c/en/a{i}\t/c/en/b\t{{"weight": {i / 100}, "x": {{"weight": 7}}}}\n' for i in range(90)]
    fast = read(write_file(tmp_path, "".join(rows), "fast.csv"), format="conceptnet")
    odd = '/a/x\t/r/R\t/c/en/z\t/c/en/b\t{"weight": 0.5, "surfaceText": "} {"}\n'
    slow = read(write_file(tmp_path, "".join([*rows, odd]), "slow.csv"), format="conceptnet")
    assert fast.confidence.tolist() == [i / 100 for i in range(90)]
    assert slow.confidence.tolist() == [*fast.confidence.tolist(), 0.5]


NELL = (
    "Entity\tRelation\tValue\tIteration of Promotion\tProbability\tSource\tCandidate Source\n"
    "concept:animal:cat\tconcept:eats\tconcept:animal:mouse\t12\t0.95\tCPL-Iter:12\tx\n"
    'concept:animal:dog\tgeneralizations\t"pet"\t3\t1.0\tMBL-Iter:3\ty\n'
)


def test_nell_s_beliefs(tmp_path: Path) -> None:
    path = write_file(tmp_path, NELL, "nell.csv")
    graph, report = read_with_report(path, format="nell")
    assert list(graph) == [
        Fact("concept:animal:cat", "concept:eats", "concept:animal:mouse", 0.95),
        Fact("concept:animal:dog", "generalizations", '"pet"', 1.0),
    ]
    assert report.ignored_columns == ("Iteration of Promotion", "Source", "Candidate Source")
    assert read(path, format="nell", sources=True)[0].source == "CPL-Iter:12"


PREFIXES = (
    "@prefix : <http://example.org/> .\n@prefix u: <https://w3id.org/ukge#> .\n"
    "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n"
)
CAT = ("http://example.org/cat", "http://example.org/hunts", "http://example.org/mouse")


@pytest.mark.parametrize(
    "statement",
    [
        ":cat :hunts :mouse {| u:confidence 0.9 |} .",
        ":cat :hunts :mouse {| :confidence 0.9 |} .",
        ":cat :hunts :mouse ~ :fact {| u:confidence 9e-1 |} .",
        "<< :cat :hunts :mouse >> u:confidence 0.9 .",
        ":f rdf:reifies <<( :cat :hunts :mouse )>> ; u:confidence '0.9' .",
        ":f u:confidence 0.9 ; rdf:reifies <<( :cat :hunts :mouse )>> . :cat :hunts :mouse .",
        "[] a rdf:Statement ; rdf:subject :cat ; rdf:predicate :hunts ; rdf:object :mouse ; u:confidence 0.9 .",
    ],
)
def test_every_way_to_annotate_a_statement(tmp_path: Path, statement: str) -> None:
    path = write_file(tmp_path, PREFIXES + statement, "facts.ttl")
    assert list(read(path)) == [Fact(*CAT, 0.9)]


def test_rdf_keeps_order_repetition_and_kinds_of_terms(tmp_path: Path) -> None:
    text = PREFIXES + (
        ":cat :hunts :mouse {| u:confidence 0.9 ; u:source 'book' |} .\n"
        ":cat :hunts :mouse {| u:confidence 0.5 |} .\n"
        "_:b :name 'Tom'@en {| u:confidence 1 ; :seen 'often' |} .\n"
    )
    graph, report = read_with_report(write_file(tmp_path, text, "facts.ttl"))
    assert list(graph) == [
        Fact(*CAT, 0.9, "book"),
        Fact(*CAT, 0.5),
        Fact("_:b", "http://example.org/name", '"Tom"@en', 1.0),
    ]
    assert report.skipped == {"statements about facts other than their confidence and source": 1}


def test_the_confidence_predicate_and_the_default_confidence(tmp_path: Path) -> None:
    text = PREFIXES + ":cat :hunts :mouse {| :belief 0.9 |} .\n:dog :hunts :cat .\n"
    path = write_file(tmp_path, text, "facts.ttl")
    with pytest.raises(DataError, match=r"2 problems[\s\S]*statement 2: has no confidence"):
        read(path)
    graph = read(path, confidence_predicate="http://example.org/belief", default_confidence=0.25)
    assert graph.confidence.tolist() == [0.9, 0.25]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "facts.nt",
            '_:f <{rdf}reifies> <<( <{a}> <{b}> <{c}> )>> .\n_:f <https://w3id.org/ukge#confidence> "0.9" .\n',
        ),
        (
            "facts.trig",
            "<http://example.org/g> {{ <{a}> <{b}> <{c}> {{| <https://w3id.org/ukge#confidence> 0.9 |}} . }}\n",
        ),
    ],
)
def test_other_syntaxes(tmp_path: Path, name: str, text: str) -> None:
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    path = write_file(tmp_path, text.format(rdf=rdf, a=CAT[0], b=CAT[1], c=CAT[2]), name)
    assert list(read(path)) == [Fact(*CAT, 0.9)]
    other = path.rename(tmp_path / "facts.txt")
    syntax = "ntriples" if name.endswith("nt") else "trig"
    assert list(read(other, format="rdf", syntax=syntax)) == [Fact(*CAT, 0.9)]


def test_rdf_options_that_do_not_exist(tmp_path: Path) -> None:
    path = write_file(tmp_path, ":a", "facts.data")
    with pytest.raises(DataError, match=r"no RDF syntax[\s\S]*turtle"):
        read(path, format="rdf")
    with pytest.raises(ConfigError, match=r"unknown RDF syntax 'turtel'"):
        read(path, format="rdf", syntax="turtel")


def test_rdf_without_its_library_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    with pytest.raises(ConfigError, match=r"pip install 'ukge\[rdf\]'"):
        read(write_file(tmp_path, PREFIXES, "facts.ttl"))


@pytest.mark.parametrize(
    ("format_name", "name", "text"),
    [
        ("string", "l.txt", DETAILED),
        ("conceptnet", "a.csv", CONCEPTNET),
        ("rdf", "f.ttl", PREFIXES),
        ("graphml", "g.graphml", "<graphml/>"),
    ],
)
def test_formats_of_names_refuse_vocabularies(tmp_path: Path, format_name: str, name: str, text: str) -> None:
    from ukge.graph.vocabulary import Vocabulary

    options: dict[str, Any] = {"entities": Vocabulary(["a"])}
    with pytest.raises(DataError, match="names, not ids"):
        read(write_file(tmp_path, text, name), format=format_name, **options)
