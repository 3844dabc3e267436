"""`ukge fuse`: candidate facts with an extractor's confidence, joined with the graph's opinion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ukge.cli.console import err
from ukge.cli.predict import tell_unknown
from ukge.cli.reading import Reading, tell_skipped
from ukge.cli.results import AsJson, Out, check_out, deliver, facts_table
from ukge.cli.standard_input import file_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ukge.evidence import Evidence
    from ukge.graph.readers.rows import Rows


def fuse(
    run: Annotated[Path, typer.Argument(help="A run with evidence.", metavar="RUN")],
    candidates: Annotated[
        Path,
        typer.Argument(
            help="Head, relation, tail, the extractor's confidence, and any other columns; - is standard input.",
            metavar="CANDIDATES",
        ),
    ],
    out_file: Out = None,
    labelled: Annotated[
        Path | None,
        typer.Option("--labelled", help="Candidates with a column label (0…1) to learn from.", metavar="FILE"),
    ] = None,
    prior: Annotated[
        float,
        typer.Option("--prior", help="Share of true facts among what the extractor was made for.", metavar="SHARE"),
    ] = 0.5,
    as_json: AsJson = False,
    *,
    reading: Reading,
) -> None:
    """Make one calibrated confidence of an extractor's and the graph's; rows keep their order and other columns.

    With labelled candidates the weight of each opinion is learnt. Candidates with names that the graph does not know
    keep the extractor's opinion, and their column note says so. A column of the file that is called like one of ours
    is given_NAME in the result.
    """
    import pyarrow as pa

    from ukge.evidence import Evidence
    from ukge.evidence.fact_tables import judged, read_facts
    from ukge.evidence.fuse import Fusion

    check_out(out_file)
    with file_of(candidates, reading.format) as path:
        rows = read_facts(path, confidence=True, **reading.options)
    tell_skipped(str(candidates), rows.skipped)
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
    deliver(table, out_file, as_json=as_json, shown=lambda: facts_table(table), what="candidates")
    tell_unknown(table, "they keep the extractor's opinion")


def _opinion(evidence: Evidence, rows: Rows) -> tuple[npt.NDArray[np.float64], tuple[str | None, ...]]:
    """Return the graph's confidence in each row, NaN where it does not know a name; its own row does not count."""
    import numpy as np

    from ukge.evidence.fact_tables import KnownFacts

    facts = KnownFacts.of(rows, evidence.entities, evidence.relations, hint="Check that the run is of this graph.")
    found = np.full(len(rows), np.nan)
    found[facts.known] = evidence.predict_ids(*facts.ids)
    return found, facts.notes
