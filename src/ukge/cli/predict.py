"""`ukge predict`: every fact of a file judged, alone or together with an extractor's confidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ukge.cli.console import err, note
from ukge.cli.flags import (
    AUTO,
    AsJson,
    Coverage,
    Negatives,
    NetworkOut,
    PriorOfMany,
    Reasons,
    Run,
    SpreadsheetSafe,
    To,
)
from ukge.cli.reading import Reading, file_of, tell_bad, tell_skipped
from ukge.cli.results import check_out, deliver, facts_table, labelled, open_predictor, tell_of_judge

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from ukge.asking import Predictor
    from ukge.evidence import Evidence
    from ukge.evidence.fact_tables import KnownFacts
    from ukge.graph.readers.rows import Rows
    from ukge.graph.uncertain import UncertainGraph


def predict(
    run: Run,
    file: Annotated[
        Path,
        typer.Argument(
            help="Facts to judge: head, relation, tail, and any other columns; - is standard input.", metavar="FILE"
        ),
    ],
    out_file: NetworkOut = None,
    to: To = None,
    safe: SpreadsheetSafe = False,
    coverage: Coverage = 0.9,
    prior: PriorOfMany = None,
    negatives: Negatives = None,
    reasons: Reasons = True,
    new_facts: Annotated[
        Path | None,
        typer.Option("--with", help="Facts to take in first, new entities and relations too.", metavar="FACTS"),
    ] = None,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Judge every fact of a file; rows keep their order and their other columns.

    A row with a name that the run does not know has no confidence, and its column note says why. A column of the file
    that is called like one of ours is given_NAME in the result. A fact that the graph has is judged by the others.
    """
    from ukge.evidence.fact_tables import KnownFacts, judged, read_facts

    check_out(out_file, to, networks=True)
    with file_of(file, reading.format) as path:
        rows = read_facts(path, **reading.options)
    tell_skipped(str(file), rows.skipped)
    tell_bad(str(file), rows.aside)
    console, known = err(), None if prior == AUTO else prior
    with console.status("judging the facts"), open_predictor(run, console, known, negatives) as opened:
        predictor = opened if new_facts is None else _folded(opened, reading.read(new_facts))
        hint = "Check that the run is of this graph, or tell of new entities: ‹with=FACTS›."
        facts = KnownFacts.of(rows, *predictor.names, hint=hint, nodes=predictor.nodes)
        if prior == AUTO:
            predictor = _adapted(predictor, facts, negatives)
        columns = predictor.columns(*facts.ids, coverage=coverage, reasons=reasons)
        table = judged(rows, {name: facts.spread(values) for name, values in columns.items()}, facts.notes)
        table = labelled(table, predictor.nodes)
    deliver(
        table,
        out_file,
        as_json=as_json,
        safe=safe,
        shown=lambda: facts_table(table, coverage),
        what="facts",
        network=lambda: (_as_network(predictor, facts, table), predictor.nodes),
        to=to,
    )
    tell_unknown(table, "they have no confidence")
    tell_of_judge(predictor, run)


def _as_network(predictor: Predictor, facts: KnownFacts, table: pa.Table) -> pa.Table:
    """Return the judged rows with the names of their entities, however they were given, and whether they are known."""
    import numpy as np

    from ukge.graph.writers.network import with_status

    known = np.zeros(len(table), dtype=np.bool_)
    known[facts.known] = predictor.is_known(*facts.ids)
    for role, ids in (("head", facts.head), ("tail", facts.tail)):
        names = facts.spread(predictor.entities.decode(ids).to_pylist())
        table = table.set_column(table.column_names.index(role), role, names.fill_null(""))
    return with_status(table, known)


def _adapted(predictor: Predictor, facts: KnownFacts, negatives: str | None) -> Predictor:
    """Return a predictor for links such as these, and say what was found out about them."""
    import numpy as np

    from ukge.evidence.false_links import in_words
    from ukge.graph.uncertain import UncertainGraph

    links = UncertainGraph.from_ids(*facts.ids, np.zeros(len(facts.ids[0])), *predictor.names)
    adapted = predictor.adapted_to(links, negatives=negatives)
    evidence = adapted.fitted
    note(f"judged together, {in_words(evidence.asked, evidence.asked_negatives, len(links))}")
    return adapted


def _folded(predictor: Predictor, facts: UncertainGraph) -> Predictor:
    """Return a predictor that knows more facts, and new entities."""
    from ukge.asking import Predictor
    from ukge.evidence.fold_in import fold_in

    evidence = fold_in(predictor.fitted, facts)
    return Predictor(lambda: evidence.dataset, evidence=evidence)


def tell_unknown(table: pa.Table, what: str) -> None:
    """Say how many rows have names that the run does not know."""
    unknown = len(table) - table["note"].null_count
    if unknown:
        note(f"{unknown:,} of {len(table):,} rows have names that the run does not know: {what}; see the column note")


def fuse_one(
    run: Path,
    rows: Rows,
    labelled: Path | None,
    prior: float,
    out_file: Path | None,
    *,
    safe: bool,
    as_json: bool,
    reading: Reading,
) -> None:
    """Weigh the opinion of one extractor against a run's; candidates with unknown names keep the extractor's."""
    import pyarrow as pa

    from ukge.evidence import Evidence
    from ukge.evidence.fact_tables import judged, read_facts
    from ukge.evidence.fuse import Fusion

    learnt_from = None if labelled is None else read_facts(labelled, confidence=True, label=True, **reading.options)
    with err().status("asking the graph"):
        evidence = Evidence.load(run)
        graph, notes = _opinion(evidence, rows)
        fusion = Fusion.by_prior(prior)
        if learnt_from is not None:
            own, _ = _opinion(evidence, learnt_from)
            fusion = Fusion.fit(own, learnt_from.numbers["confidence"], learnt_from.numbers["label"], prior=prior)
    extractor = rows.numbers["confidence"]
    opinions = {"extractor": extractor, "graph": pa.array(graph, from_pandas=True)}
    table = judged(rows, {"confidence": fusion(graph, extractor), **opinions}, notes)
    deliver(table, out_file, as_json=as_json, safe=safe, shown=lambda: facts_table(table), what="candidates")
    tell_unknown(table, "they keep the extractor's opinion")


def _opinion(evidence: Evidence, rows: Rows) -> tuple[npt.NDArray[np.float64], tuple[str | None, ...]]:
    """Return the graph's confidence in each row, NaN where it does not know a name; its own row does not count."""
    import numpy as np

    from ukge.evidence.fact_tables import KnownFacts

    facts = KnownFacts.of(rows, evidence.entities, evidence.relations, hint="Check that the run is of this graph.")
    found = np.full(len(rows), np.nan)
    found[facts.known] = evidence.predict_ids(*facts.ids)
    return found, facts.notes
