"""Releases of sentence embeddings at an epsilon that leaves no noise to speak of.

What they should hold is computed from the definitions, by the library's own embeddings.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pytest
from encoders import packaged_folder
from public_candidates import PUBLIC_TEXTS
from sentence_releases import DOCUMENTS, INPUT, LAWS, Sentences, corpus, in_order

from quietcorpus.indexes.documents.candidates import Candidates
from quietcorpus.indexes.tokens.segmentation import split

if TYPE_CHECKING:
    from tests.conftest import Workspace

pytestmark = pytest.mark.slow


@functools.cache
def encoded(texts: tuple[str, ...], most: int) -> list[npt.NDArray[np.float32]]:
    """The embeddings of each text's first sentences, by the library alone."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(packaged_folder()), device="cpu", local_files_only=True)
    found = split(texts, most, "en")
    embeddings = model.encode(found.texts, show_progress_bar=False)
    return np.split(embeddings, found.offsets[1:-1])


def utilities(law: str, made: Candidates, own: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """A document's utility of every candidate, from the definition, in floating point."""
    if law == "similarity":
        deviations = [vectors - made.centre for vectors in (own, made.embeddings)]
        ours, theirs = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in deviations)
        low, high = made.manifest.cosines
        return np.clip((ours @ theirs.T - low) / (high - low), 0, 1).sum(axis=0)
    codes = own.astype(np.float64)
    for layer, (weights, bias) in enumerate(
        zip(made.recoder.weights, made.recoder.biases, strict=True)
    ):
        codes = codes @ weights + bias
        codes = np.maximum(codes, 0) if layer < 3 else codes
    directions = made.projections[:2]
    at, of = np.rint(codes) @ directions.T, made.recoded @ directions.T
    above, below = ((sign * (at[:, None] - of) >= 0).sum(axis=0) for sign in (1, -1))
    depths = np.minimum(above, below)
    mean, least, most = depths.mean(axis=1), depths.min(axis=1), depths.max(axis=1)
    return {"depth": least, "optimistic-depth": most, "mean-depth": mean}[law]


@pytest.mark.parametrize(
    "law",
    [
        # `test_deep_candidate.py` has what these make of the depths that `mean-depth` is made of.
        pytest.param("depth", marks=pytest.mark.nightly),
        pytest.param("optimistic-depth", marks=pytest.mark.nightly),
        "mean-depth",
        "similarity",
    ],
)
def test_without_noise_to_speak_of_the_best_is_drawn(
    workspace: Workspace, law: str, sentences: Sentences, opened: Candidates, lee_texts: list[str]
) -> None:
    # At epsilon = 10^6 a candidate of a lesser utility has no chance. Kills: a document's draw
    # from a neighbour's sentences, sentences that are lost, a utility that is another's. A
    # document without a sentence finds all alike.
    texts = ["", *lee_texts[PUBLIC_TEXTS:][:DOCUMENTS], "12 #!"]
    corpus(workspace, texts)
    more = {"most_sentences": 8} | ({} if law == "similarity" else {"projections": 2})
    workspace.release_here(
        {"input": INPUT} | sentences(**{"utility": law, "epsilon": 1000000} | more)
    )
    rows = in_order(workspace)
    assert len(rows) == len(texts)
    drawn = [row["candidate"] for row in rows[1:-1]]
    values = [utilities(law, opened, own) for own in encoded(tuple(texts[1:-1]), 8)]

    def share(numbers: list[int]) -> float:
        """Of documents whose candidate is the best, but for rounding."""
        pairs = zip(values, numbers, strict=True)
        return float(np.mean([own[number] >= own.max() - 0.02 for own, number in pairs]))

    assert share(drawn) > 0.9
    # The negative control: the candidate of the next document.
    assert share([*drawn[1:], drawn[0]]) < 0.75


def test_without_noise_to_speak_of_the_mean_is_released(
    workspace: Workspace,
    sentences: Sentences,
    opened: Candidates,
    lee_texts: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Kills: noise where none was asked for, sums that are not divided, the box's ends mixed up, a
    # document without sentences that gets a neighbour's. In float32, as the library encodes: of
    # bfloat16's coordinates one in twenty falls to another step.
    monkeypatch.setattr(
        "quietcorpus.transforms.artefacts.torch_model._PROCESSOR",
        workspace.folder / "of no known kind",
    )
    texts = ["", *lee_texts[PUBLIC_TEXTS:][:DOCUMENTS], ""]
    corpus(workspace, texts)
    workspace.release_here(
        {"input": INPUT} | sentences(**LAWS["truncation"] | {"epsilon": 100_000_000})
    )
    low, width = opened.box
    released = (np.array([row["embedding"] for row in in_order(workspace)]) - low) / width
    expected = [
        np.floor(np.clip((own - low) / width, 0, 1) * 4 + 0.5).mean(axis=0) / 4
        for own in encoded(tuple(texts[1:-1]), 4)
    ]
    np.testing.assert_allclose(released[[0, -1]], 0.5, atol=1e-5)
    # A coordinate halfway between two steps may be rounded either way.
    close = np.isclose(released[1:-1], expected, atol=1e-4)
    assert close.mean() > 0.999
    assert np.isclose(released[2:], [*expected[2:], *expected[:1], expected[0]]).mean() < 0.5
