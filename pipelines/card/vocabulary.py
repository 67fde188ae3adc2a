"""The vocabulary of a release on its card: the format of its file, and the check of its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quietcorpus.pipelines.card.mechanism import FileFormat
from quietcorpus.pipelines.card.model import Stage
from quietcorpus.transforms.errors import InputError

VOCABULARY_FORMAT = FileFormat(
    "`term_id`, `term`, `weight`: the private histogram's noisy count of the term in the corpus; "
    "it may be negative, and is empty where no histogram is released",
    ("term_id", "term", "weight"),
)


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
