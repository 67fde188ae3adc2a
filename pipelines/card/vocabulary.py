"""The vocabulary of a release on its card: the format of its file, and the check of its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quietcorpus.pipelines.card.mechanism import FileFormat
from quietcorpus.pipelines.card.model import Stage
from quietcorpus.transforms.errors import InputError

VOCABULARY_FORMAT = FileFormat(
    "`term_id`, `term`, `weight`: the private histogram's noisy count of the term in the corpus; "
    "it may be negative, and is empty where no histogram is released",
    ("term_id", "term", "weight"),
    (pa.int32(), pa.string(), pa.int64()),
    nullable=frozenset({"weight"}),
)


def misfit_of(rows: pa.Table, *, weighted: bool) -> str | None:
    """Return what in a vocabulary is not as it is written; `weighted`, if it has noisy counts."""
    if not np.array_equal(rows["term_id"].to_numpy(), np.arange(len(rows))):
        return "term_id is not the number of the row"
    if (
        pc.count_distinct(rows["term"]).as_py() != len(rows)
        or pc.any(pc.equal(rows["term"], "")).as_py()
    ):
        return "a term is empty, or stands twice"
    if rows["weight"].null_count != (0 if weighted else len(rows)):
        return "weight is not the count of a histogram, or one was not released"
    return None


def check_vocabulary(uri: str, vocabulary: Mapping[str, Any], stages: Sequence[Stage]) -> None:
    """Check that the stages before all others are what the mechanism says of the vocabulary.

    A public one costs nothing. Raises InputError.
    """
    spent = [
        (stage.stage, parameters.epsilon, getattr(parameters, "delta", None))
        for stage in stages
        for parameters in [stage.parameters]
        if not getattr(parameters, "groups", None)
    ]
    try:
        private = vocabulary.get("private")
        stated = [("vocabulary", private["epsilon"], private["delta"])] if private else []
    except (KeyError, TypeError):
        stated = None
    if spent != stated or len(spent) < len(stages):
        raise InputError(f"{uri}: budget: the vocabulary's cost is not the mechanism's")
