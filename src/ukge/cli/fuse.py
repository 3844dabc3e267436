"""`ukge fuse`: candidate facts with an extractor's confidence, joined with the graph's opinion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ukge.cli.console import err, note

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ukge.evidence import Evidence
    from ukge.evidence.fact_tables import FactTable


def fuse(
    run: Annotated[Path, typer.Argument(help="A run with evidence.", metavar="RUN")],
    candidates: Annotated[
        Path, typer.Argument(help="Head, relation, tail and the extractor's confidence.", metavar="CANDIDATES")
    ],
    out_file: Annotated[Path, typer.Option("--out", help="The file to write (.tsv, .csv or .parquet).")],
    labelled: Annotated[
        Path | None, typer.Option("--labelled", help="Candidates with a column label (0…1) to learn from.")
    ] = None,
    prior: Annotated[
        float, typer.Option("--prior", help="Share of true facts among what the extractor was made for.")
    ] = 0.5,
) -> None:
    """Make one calibrated confidence of an extractor's and the graph's.

    With labelled candidates the weight of each opinion is learnt. Candidates with names that the graph does not know
    keep the extractor's opinion.
    """
    import numpy as np
    import pyarrow as pa

    from ukge.evidence import Evidence
    from ukge.evidence.fact_tables import read_facts, write_table
    from ukge.evidence.fuse import Fusion

    table = read_facts(candidates, confidence=True)
    learnt_from = None if labelled is None else read_facts(labelled, confidence=True, label=True)
    with err().status("asking the graph"):
        evidence = Evidence.load(run)
        opinion = _opinion(evidence, table)
        fusion = Fusion.by_prior(prior)
        if learnt_from is not None and learnt_from.confidence is not None and learnt_from.label is not None:
            own = _opinion(evidence, learnt_from)
            fusion = Fusion.fit(own, learnt_from.confidence, learnt_from.label, prior=prior)
    extractor = table.confidence
    assert extractor is not None
    columns = {"head": table.head, "relation": table.relation, "tail": table.tail}
    numbers = {"extractor": extractor, "graph": pa.array(opinion, from_pandas=True)}
    write_table(out_file, pa.table({**columns, **numbers, "confidence": fusion(opinion, extractor)}))
    unknown = int(np.isnan(opinion).sum())
    if unknown:
        note(f"{unknown:,} candidates have names that the graph does not know: they keep the extractor's opinion")
    note(f"{len(table):,} candidates were judged and written to {out_file}")


def _opinion(evidence: Evidence, table: FactTable) -> npt.NDArray[np.float64]:
    """Return the graph's confidence in each row, NaN where it does not know a name; its own row does not count."""
    import numpy as np

    ids = table.encode(evidence.entities, evidence.relations)
    known = (ids[0] >= 0) & (ids[1] >= 0) & (ids[2] >= 0)
    head, relation, tail = (column[known] for column in ids)
    found = np.full(len(table), np.nan)
    own = evidence.own_rows(head, relation, tail)
    found[known] = evidence.predict_ids(head, relation, tail, own=own)
    return found
