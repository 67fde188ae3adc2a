"""`quietcorpus calibrate sentence-embeddings`: expectations over draws, on public documents."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from public_candidates import PUBLIC_TEXTS

from quietcorpus.indexes.sentences import split
from quietcorpus.mechanisms.deep_candidate import DeepCandidate, Utility
from quietcorpus.pipelines.calibrate.sentences import CalibratedUtility, calibrate
from quietcorpus.transforms.artefacts.candidates import CandidatesSource
from quietcorpus.transforms.artefacts.encoder import PACKAGED, EncoderSource
from quietcorpus.transforms.privatizers.sentences import utilities
from quietcorpus.transforms.reading.documents import Corpus

if TYPE_CHECKING:
    from tests.conftest import Workspace

EPSILONS = Fraction(1), Fraction(10)
DOCUMENTS = 12


@pytest.fixture
def public(workspace: Workspace, lee_texts: list[str]) -> Path:
    """Public documents that no candidates were made of, each as long as a candidate."""
    texts = [text for text in lee_texts[PUBLIC_TEXTS:] if len(split([text], 9, "en").texts) >= 7]
    return workspace.parquet({"text": texts[:DOCUMENTS]}, "more.parquet")


def outcomes(
    candidates: Path, public: Path
) -> dict[tuple[Utility, int | None, Fraction], CalibratedUtility]:
    found = calibrate(
        CandidatesSource.resolve("CANDIDATES", str(candidates)),
        EncoderSource.resolve("encoder", PACKAGED),
        Corpus(str(public)),
        EPSILONS,
        documents=DOCUMENTS,
        seed=1,
    )
    return {(one.utility, one.projections, one.epsilon): one for one in found}


def test_what_is_expected_is_the_mean_over_the_law(
    public: Path, candidates: Path, lee_texts: list[str]
) -> None:
    # From the definitions. Kills: a law at another rate, depths of other documents, cosines that
    # are not from the centre, a mean over candidates.
    found = outcomes(candidates, public)
    opened = CandidatesSource.resolve("CANDIDATES", str(candidates)).open()
    texts = [text for text in lee_texts[PUBLIC_TEXTS:] if len(split([text], 9, "en").texts) >= 7]
    sentences = split(texts[:DOCUMENTS], 5, "en")
    embeddings = EncoderSource.resolve("encoder", PACKAGED).open().encode(sentences.texts)
    for utility, projections in ((Utility.SIMILARITY, None), (Utility.DEPTH, 20)):
        law = DeepCandidate(EPSILONS[1], utility, projections or 1)
        values = utilities(utility, projections or 1, opened)(embeddings, sentences.offsets)
        depths, cosines = [], []
        for document in range(DOCUMENTS):
            own = embeddings[sentences.offsets[document] : sentences.offsets[document + 1]]
            shares = np.exp(float(law.epsilon) / 2 * values[document] / law.units)
            shares /= shares.sum()
            mean = own.astype(float).mean(axis=0) - opened.centre
            others = opened.embeddings - opened.centre
            norms = np.linalg.norm(others, axis=1) * np.linalg.norm(mean)
            cosines.append(shares @ (others @ mean / norms))
            depths.append(shares @ values[document] / law.units / len(own))
        one = found[utility, projections, EPSILONS[1]]
        assert one.closeness == pytest.approx(np.mean(cosines), abs=1e-5)
        assert one.depth == pytest.approx(np.mean(depths), abs=1e-5)


@pytest.mark.slow
def test_the_command(workspace: Workspace, public: Path, candidates: Path) -> None:
    # Kills: a line too few, a best of each epsilon that is not the closest, other numbers than
    # those of the function.
    done = workspace.run(
        *("calibrate", "sentence-embeddings", str(candidates), str(public)),
        *("--epsilons", "1,10", "--documents", str(DOCUMENTS)),
    )
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["epsilon", "utility", "projections", "closeness", "depth", "/", "k"]
    found = outcomes(candidates, public)
    assert len(lines) == len(EPSILONS) * len(Utility)
    for epsilon in EPSILONS:
        own = [line.split() for line in lines if line.split()[0] == str(epsilon)]
        assert {line[1] for line in own} == {utility.value for utility in Utility}
        (best,) = (line for line in own if line[-1] == "best")
        assert best[3] == max(line[3] for line in own)
        for _, utility, projections, closeness, depth, *_ in own:
            number = None if projections == "-" else int(projections)
            one = found[Utility(utility), number, epsilon]
            assert (closeness, depth) == (f"{one.closeness:.3f}", f"{one.depth:.3f}")
            same = [o for (u, _, e), o in found.items() if (u, e) == (one.utility, epsilon)]
            assert one.closeness == max(other.closeness for other in same)
            # More of epsilon comes closer.
            assert found[one.utility, number, EPSILONS[1]].depth >= (
                found[one.utility, number, EPSILONS[0]].depth
            )


def test_bad_input(workspace: Workspace, public: Path, candidates: Path) -> None:
    def refused(*arguments: str) -> str:
        return workspace.error_of(
            workspace.run("calibrate", "sentence-embeddings", *arguments, "--epsilons=1")
        )

    assert "is not a set of candidates: it has no manifest.json" in refused("absent", str(public))
    assert refused(str(candidates), "absent.parquet").startswith("SOURCE: no file matches ")
    message = refused(str(candidates), str(public))
    assert message.startswith(f"SOURCE: {public} has {DOCUMENTS} documents of 7 sentences or more")
    assert refused(str(candidates), str(public), "--text=body").startswith("--text: ")
