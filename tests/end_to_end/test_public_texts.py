"""Releases of public texts: what is in them, and that nothing else is."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from card_schema import assert_valid
from documents_on_topics import DOCUMENTS, FOUND, LABELLED, corpus
from machine import SURE
from manifests import digest_of
from public_pools import (
    INPUT,
    TOPICS,
    Release,
    Texts,
    estimates_of_exact_sums,
    make_pool,
    refusal,
    share_of,
    sums_met,
    texts_on,
)
from tampering import card as card_change
from tampering import edit_card, refused, restate, rewrite

import quietcorpus as qc
from quietcorpus.indexes.documents.pool import open_pool
from quietcorpus.mechanisms.accounting.guarantees import DocumentPrivacy, Spending
from quietcorpus.mechanisms.users.clipped_sum import STEPS
from quietcorpus.pipelines.card.verify import verify
from quietcorpus.pipelines.terminal.progress import Numbers
from quietcorpus.transforms.artefacts.encoder import EncoderSource

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.fixture(scope="module", params=["one", "strata"])
def released(request: pytest.FixtureRequest, release_public_texts: Release) -> Workspace:
    """A release, with strata or without, that nobody may change."""
    return release_public_texts(corpus, **(LABELLED if request.param == "strata" else {}))


def test_no_listener_learns_the_number_of_documents(
    workspace: Workspace, public_texts: Texts
) -> None:
    # It would tell whether a document is there. Kills: a metric of what the card is silent about.
    corpus(workspace)
    told: list[Numbers] = []
    workspace.release_here(INPUT | public_texts(), on_progress=told.append)
    assert told == []
    terms = {"mechanism.vocabulary.public": str(workspace.folder / "vocabulary.txt")}
    bags = INPUT | terms | {"output": "released/bags"}
    workspace.release_here(bags, on_progress=told.append)
    assert told[-1] == {"documents": len(DOCUMENTS), "rejected": 0}


def test_every_released_text_is_in_the_pool(released: Workspace, pool: Path) -> None:
    # Byte by byte, under its number. Kills: texts of the corpus, texts that are altered on the way.
    public = open_pool(str(pool)).texts.to_pylist()
    rows = pq.read_table(released.output / "texts.parquet").to_pylist()
    assert rows
    assert not set(public) & set(DOCUMENTS)
    for row in rows:
        assert row["text"].encode() == public[row["id"]].encode()
        assert row["weight"] > 0
    assert sum(row["weight"] for row in rows) == pytest.approx(len(rows))


def test_texts_by_the_exact_sums_are_refused(
    workspace: Workspace, public_texts: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What stands out, and its weight, is told by the released votes alone. Kills: a threshold or
    # weights of the votes before their noise, which no guarantee protects.
    corpus(workspace)
    estimates_of_exact_sums(monkeypatch)
    workspace.release_here(INPUT | public_texts())
    assert refused(workspace.output).endswith(
        "not the texts whose votes stand out, with their weights"
    )


def test_the_topics_of_the_corpus_are_found(released: Workspace) -> None:
    # Of two topics, 61 documents at epsilon 8. Kills: votes for the farthest, strata mixed up.
    rows = pq.read_table(released.output / "texts.parquet").to_pylist()
    strata = "strata" in released.card()["mechanism"]
    for label, topics in (("a", FOUND[:1]), ("b", FOUND[1:])) if strata else ((None, FOUND),):
        assert share_of(rows, topics, label) > 0.9


def test_votes_are_the_exact_ones_and_noise(released: Workspace, pool: Path) -> None:
    # Kills: noise that is drawn for what stands out alone, a document that votes twice or not.
    card = released.card()["mechanism"]
    votes = pq.read_table(released.output / "votes.parquet")
    labels = card["strata"]["labels"] if "strata" in card else [None]
    assert len(votes) == 40 * len(labels)
    noisy = votes["votes"].to_numpy().reshape(len(labels), 40)
    deviation = float(np.divide(*map(int, card["noise_multiplier"].split("/")))) * STEPS
    assert (np.abs(noisy[:, :8]) < 7 * deviation).all()  # food, which nobody writes of
    if len(labels) == 3:
        assert (np.abs(noisy[2]) < 7 * deviation).all()
        assert len(np.unique(noisy[2])) > 20
    voters = 122 if len(labels) == 1 else 121
    total = voters * card["nearest"] * card["vote"]
    assert abs(noisy.sum() - total) < 7 * deviation * np.sqrt(noisy.size)


def test_no_number_of_documents_is_told(released: Workspace) -> None:
    # It would tell whether one document is there. Kills: counts on the card, in the README.
    made = verify(str(released.output))
    assert made.counts is None
    with pytest.raises(ValueError, match="does not state how many"):
        made.documents  # noqa: B018
    card = released.card()
    assert "counts" not in card
    assert_valid(card)
    digests = "artefacts", "files", "readme_sha256", "page_sha256"  # may have any digits
    plain = {name: own for name, own in card.items() if name not in digests}
    whole = json.dumps(plain) + (released.output / "README.md").read_text().split("Artefacts:")[0]
    assert not any(number in whole for number in ("122", "121"))
    assert card["guarantee"]["definition"] == "document-level differential privacy"
    assert card["guarantee"]["parameters"]["epsilon_exact"] == "8"


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["a model", "carried"])
def test_adding_a_document_changes_sums_by_its_votes(
    workspace: Workspace,
    public_texts: Texts,
    carrying: Path,
    monkeypatch: pytest.MonkeyPatch,
    encoder: str,
) -> None:
    # The exact sums, as the noise meets them, with and without each of some documents, in one file
    # and in several. Kills: an embedding or a search that depends on other documents or on the
    # division of the corpus, a split that is lost.
    block = {"pool": str(carrying)} if encoder == "carried" else {}
    met = sums_met(monkeypatch)

    def sums(texts: list[str], rows: int, name: str) -> np.ndarray:
        workspace.parquet({"text": texts}, row_group_size=rows)
        workspace.release_here(INPUT | {"output": f"released/{name}"} | public_texts(**block))
        return met.pop()

    # The last two have no word that the carried encoder knows, and then they do not vote.
    some = [*DOCUMENTS[:20], "", "a text of no topic " * 200]
    whole = sums(some, 100, "whole")
    np.testing.assert_array_equal(sums(some[::-1], 3, "divided"), whole)
    for out in (0, 20, 21):
        change = whole - sums(some[:out] + some[out + 1 :], 7, f"without-{out}")
        if encoder == "carried" and out >= 20:
            assert not change.any()
            continue
        assert 0 < int((change**2).sum()) <= STEPS**2
        assert sorted(change.ravel())[-4:] == [0, *[STEPS * 295 // STEPS] * 3]


def test_a_pool_that_carries_its_encoder_needs_no_other(
    workspace: Workspace, public_texts: Texts, carrying: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a model that is loaded all the same, texts of the corpus in the release, a card that
    # names another encoder.
    monkeypatch.setattr(EncoderSource, "resolve", None)
    for name in ("torch", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    corpus(workspace)
    workspace.release_here(INPUT | public_texts(pool=str(carrying), **LABELLED))
    found = open_pool(str(carrying))
    public = found.texts.to_pylist()
    rows = pq.read_table(workspace.output / "texts.parquet").to_pylist()
    assert len(rows) > 8
    for row in rows:
        assert row["text"].encode() == public[row["id"]].encode()
    for label, topic in zip("ab", FOUND, strict=True):
        assert share_of(rows, [topic], label) > 0.9
    card = verify(str(workspace.output))
    pooled, encoder = card.artefacts
    assert (encoder.uri, encoder.digest) == ("lsa", found.manifest.encoder["sha256"])
    assert pooled.digest == digest_of(carrying)
    assert card.mechanism.encoder == "lsa"
    assert card.mechanism.encoder_precision == "whole numbers"
    assert card.mechanism.encoder_software.startswith("unicode-words-v2 ")


def test_another_encoder_than_the_one_carried_is_refused(
    workspace: Workspace, public_texts: Texts, carrying: Path, pool: Path
) -> None:
    corpus(workspace)
    block = public_texts(pool=str(carrying), encoder="all-MiniLM-L6-v2")
    assert refusal(workspace, block) == (
        f"mechanism.encoder: all-MiniLM-L6-v2 is not the encoder of {carrying}, which carries its "
        "own; drop the key, or build a pool with this one"
    )
    assert refusal(workspace, public_texts(encoder="lsa")).startswith("mechanism.encoder: lsa ")
    workspace.release_here(INPUT | public_texts(pool=str(carrying), encoder="lsa"))


@pytest.mark.slow
def test_two_of_five_topics_are_found_at_epsilon_1(
    workspace: Workspace, public_texts: Texts, tmp_path: Path
) -> None:
    # 2,000 documents; 40 texts of each topic get 250 votes' weight each or none, the noise of a
    # text is 4.3 documents' norm. Kills: noise or weights out of proportion.
    made = make_pool(tmp_path / "pool", texts_on(list(TOPICS), 40, 3))
    workspace.parquet({"text": texts_on(FOUND, 1000, 4)})
    block = public_texts(pool=str(made), epsilon=1, nearest=10)
    workspace.release_here(INPUT | block)
    shares = dict.fromkeys(TOPICS, 0.0)
    rows = pq.read_table(workspace.output / "texts.parquet").to_pylist()
    for row in rows:
        shares[list(TOPICS)[row["id"] // 40]] += row["weight"] / len(rows)
    assert all(0.4 < shares[topic] < 0.6 for topic in FOUND), shares
    assert sum(shares[topic] for topic in FOUND) > 0.95


def less_noise(release: Path) -> None:
    edit_card(release, lambda card: card["mechanism"].update(noise_multiplier="1/10"))


def cheaper(content: dict[str, Any]) -> None:
    """Have the card promise epsilon 1 throughout, in words as in numbers."""
    promised = DocumentPrivacy(Fraction(1), Fraction(1, 10**6))
    restate(content, [Spending("votes", promised)], promised)
    content["mechanism"]["epsilon"] = 1.0


def text_less(release: Path) -> None:
    rewrite(release, "texts.parquet", lambda table: table.slice(1))
    edit_card(release, lambda card: card["files"][0].update(rows=card["files"][0]["rows"] - 1))


TAMPERED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "counts": (
        card_change(lambda card: card.update(counts={"documents": 122, "rejected": 0})),
        "counts: not what a release of this kind states there",
    ),
    "a private pool": (
        card_change(lambda card: card["artefacts"][0].update(provenance="private")),
        "artefacts: pool is private, at no stated cost",
    ),
    "less noise": (less_noise, "the noise that the card tells costs more than it says"),
    "longer votes": (
        card_change(lambda card: card["mechanism"].update(vote=512)),
        "the noise that the card tells costs more than it says",
    ),
    "another threshold": (
        card_change(lambda card: card["mechanism"].update(least_votes=1)),
        "the noise that the card tells costs more than it says",
    ),
    "another epsilon": (
        card_change(cheaper),
        "the noise that the card tells costs more than it says",
    ),
    "another epsilon, in the block alone": (
        card_change(lambda card: card["mechanism"].update(epsilon=1.0)),
        "the noise that the card tells costs more than it says",
    ),
    "a text less": (
        text_less,
        "not the texts whose votes stand out, with their weights",
    ),
    "another weight": (
        lambda release: rewrite(
            release,
            "texts.parquet",
            lambda t: t.set_column(t.column_names.index("weight"), "weight", [[0.5] * len(t)]),
        ),
        "not the texts whose votes stand out, with their weights",
    ),
    "votes in another order": (
        lambda release: rewrite(
            release, "votes.parquet", lambda table: table.sort_by([("id", "descending")])
        ),
        "not a row for each text of the pool",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_release_that_was_changed_is_refused(
    released: Workspace, tmp_path: Path, name: str
) -> None:
    # Kills: each check of the card's numbers and of the tables.
    copied = shutil.copytree(released.output, tmp_path / "release")
    change, message = TAMPERED[name]
    change(copied)
    assert message in refused(copied)


def test_an_audit_runs_and_can_fail(
    workspace: Workspace, public_texts: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: an audit of other parameters than the spec's.
    from quietcorpus.mechanisms.votes.votes import Votes

    corpus(workspace)
    monkeypatch.chdir(workspace.folder)
    spec = str(workspace.spec(INPUT | public_texts(epsilon=2)))
    found = qc.audit(spec, confidence=SURE)
    assert found["passed"]
    assert [one["verdict"] for one in found["audits"]] == ["passed"] * 3
    monkeypatch.setattr(Votes, "weight", STEPS)
    assert not qc.audit(spec)["passed"]


@pytest.mark.slow
def test_the_command_builds_a_pool_and_releases_from_it(workspace: Workspace) -> None:
    # Kills: an option that the command lacks, a line that tells of documents.
    corpus(workspace)
    workspace.parquet({"text": texts_on(list(TOPICS), 4, 5)}, "public.parquet")
    built = workspace.run(
        *("index", "build-pool", "input/public.parquet", "--output", "pool"),
        "--provenance=public",
    )
    assert built.returncode == 0, built.stderr
    assert built.stdout.splitlines()[0] == "pool          pool"
    block = {"kind": "public-texts", "pool": "pool", "epsilon": 4, "delta": 1e-6, "nearest": 2}
    done = workspace.release(INPUT | {"mechanism": block}, "--summary", "summary.json")
    told = json.loads((workspace.folder / "summary.json").read_text())
    assert told["outcome"] == "published"
    assert told.keys().isdisjoint({"documents", "rejects"})
    assert "guarantee Whether one document is in the corpus or not" in done.stdout
    assert "documents " not in done.stdout.split("guarantee")[0]
    refused_build = workspace.run(
        *("index", "build-pool", "input/public.parquet", "--output", "other"),
        "--provenance=private",
    )
    assert refused_build.returncode == 2
    assert "--provenance: the texts of a pool are released" in refused_build.stderr
