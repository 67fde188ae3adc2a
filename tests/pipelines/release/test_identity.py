"""The identity of a run, by which it may finish what an equal one has begun."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sentence_releases import Sentences

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.kinds.prepare import prepare
from quietcorpus.pipelines.kinds.sentences import SentencesKind
from quietcorpus.pipelines.release.identity import identity
from quietcorpus.pipelines.spec.loading import load_spec
from quietcorpus.transforms.reading.documents import Plan

if TYPE_CHECKING:
    from tests.conftest import Workspace


def test_what_encodes_is_part_of_a_runs_identity(
    workspace: Workspace, sentences: Sentences
) -> None:
    # Kills: a run that finishes another's files with draws of other embeddings.
    spec = load_spec(str(workspace.spec(sentences())))
    kind = prepare(spec)
    assert isinstance(kind, SentencesKind)
    key = ReleaseKey.derive(bytes(32), "test", b"")

    def identity_with(**encoder: str) -> str:
        parameters = replace(kind.parameters, encoder=replace(kind.parameters.encoder, **encoder))
        other = replace(kind, parameters=parameters)
        return identity(spec, Plan([], pa.schema([])), other, key)

    own = {"precision": "float32", "software": "torch 2"}
    assert identity_with(**own) == identity_with(**own)
    assert identity_with(**own) != identity_with(**own | {"precision": "bfloat16"})
    assert identity_with(**own) != identity_with(**own | {"software": "torch 3"})
