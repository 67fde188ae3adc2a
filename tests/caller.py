"""A program of somebody who uses the API. `make check` looks at its types; nothing runs it."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import quietcorpus as qc


def released(spec: qc.Spec, output: Path) -> list[str]:
    """Use a card as a program may: each type is one that the caller can name."""
    try:
        card = qc.release(spec, workers=2, beam_options=["--runner=DirectRunner"])
        assert_type(qc.verify(output), qc.Card)
    except (qc.InputError, qc.Unavailable) as error:
        return [str(error)]
    assert_type(card, qc.Card)
    if card.counts is not None:
        assert_type(card.counts.documents, int)
    assert_type(spec.release, str)
    assert_type(qc.load(output, words=True).card, qc.Card)
    return [card.guarantee.statement]
