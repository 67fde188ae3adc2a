"""`quietcorpus evaluate` on real text: its numbers, its files, its privacy, going on."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from embedding_releases import ray_folder
from evaluations import (
    BAGS,
    CANARY,
    CLASSES,
    assert_silent,
    content_of,
    evaluate,
    figures,
    write_corpus,
)
from scipy import stats

from quietcorpus.indexes.tokens.tokenizer import tokenize
from quietcorpus.pipelines.evaluate.definition import EXACT

if TYPE_CHECKING:
    from tests.conftest import Workspace

pytestmark = pytest.mark.slow

ALPHA = 1e-6
DOCUMENTS = 300
OPTIONS = ("--label=label", "--user=user", "--draws=2", "--sweep", "epsilon=0.01,6")


@pytest.fixture(scope="module")
def evaluated(
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    lee_texts: list[str],
) -> Workspace:
    """A release of bags of words, and its report with a sweep."""
    workspace = new_workspace(tmp_path_factory.mktemp("evaluated"))
    write_corpus(workspace, lee_texts)
    workspace.release(BAGS)
    done = evaluate(workspace, *OPTIONS)
    assert done.returncode == 0, done.stderr
    (workspace.folder / "printed").write_text(done.stdout + done.stderr)
    return workspace


def test_the_files(evaluated: Workspace) -> None:
    folder = evaluated.folder / "report"
    draws = sorted(folder.glob("draws/*.json"))
    assert len(draws) == 6
    names = {path.name for path in folder.iterdir()}
    assert names == {"evaluation.html", "evaluation.json", "evaluation.parquet", "draws"}
    content = content_of(evaluated)
    rows = pq.read_table(folder / "evaluation.parquet").to_pylist()
    for figure in content["figures"]:
        own = [
            row["value"]
            for row in rows
            if dict(row["setting"]) == figure["setting"]
            and all(row[key] == figure[key] for key in ("measure", "subject", "group"))
        ]
        assert len(own) == figure["draws"] == 2, figure
        assert figure["mean"] == pytest.approx(sum(own) / 2)
        assert (figure["low"] is None) == (own[0] == own[1])
        assert figure["low"] is None or figure["low"] <= figure["mean"] <= figure["high"]
    assert content["corpus"] == {
        "documents": DOCUMENTS,
        "of": DOCUMENTS,
        "label": "label",
        "user": "user",
        "placed": True,
    }
    assert content["draws"] == 2


def test_attacks_find_what_is_there_and_nothing_in_noise(evaluated: Workspace) -> None:
    # Kills: rows paired with other documents, a control that is not dealt out, features swapped.
    content = content_of(evaluated)
    own, faint = figures(content), figures(content, epsilon="0.01")
    assert own["linkage", "original"] > 0.95  # the corpus holds a few texts twice
    assert own["linkage", "release"] > 0.9
    # A permutation links a Poisson number of rows; the mean of two draws of it.
    most = stats.poisson.isf(ALPHA, 2)
    for found in (own, faint):
        assert found["linkage", "noise"] * 2 * DOCUMENTS <= most
    # At this epsilon all is noise, and the best guess is next to chance.
    assert faint["linkage", "release"] * 2 * DOCUMENTS <= stats.poisson.isf(ALPHA, 2 * 1.1 * 2)
    assert own["linkage", "release"] == pytest.approx(
        figures(content, epsilon="6")["linkage", "release"], abs=0.1
    )
    facts = {
        (way, subject): figures(content, f"by 5 {way}")["facts", subject]
        for way in ("sentences", "rare words")
        for subject in ("release", "noise", "original")
    }
    for way in ("sentences", "rare words"):
        assert facts[way, "original"] > 0.9
        # Hardly any noise is left at this epsilon: a row or two may be found by chance.
        assert facts[way, "original"] >= facts[way, "release"] - 0.05
        assert facts[way, "noise"] * 2 * DOCUMENTS <= most
    # All rows together find no less than each alone, but for chance, and nothing in noise.
    together = figures(content, "by all rows together")
    assert together["linkage", "release"] > own["linkage", "release"] - 0.02
    every = figures(content, "by 5 sentences of every document")
    assert every["facts", "release"] > facts["sentences", "release"] - 0.05
    for found in (together["linkage", "noise"], every["facts", "noise"]):
        assert found * 2 * DOCUMENTS <= most
    # One token is hidden by the rows at epsilon 6 and by the histogram at 1: two answers.
    law, shown = figures(content, EXACT), 1 / (1 + math.exp(-6))
    assert shown < law["definition", "guarantee"] < 1 / (1 + math.exp(-7))
    assert law["definition", "release"] == pytest.approx(law["definition", "guarantee"], abs=2e-3)
    for subject in ("release", "noise", "original"):
        assert 0 <= own["membership", subject] <= 1
        assert 0 <= own["authorship", subject] <= 0.5


def test_utility_falls_with_epsilon(evaluated: Workspace) -> None:
    content = content_of(evaluated)
    own, faint = figures(content), figures(content, epsilon="0.01")
    assert own["f1", "original"] > 0.7
    assert own["length", "release"] < 2
    assert faint["length", "release"] > 20
    assert own["length", "release"] < own["length", "geometric"] > 20
    assert own["topic-jaccard", "ceiling"] > own["topic-jaccard", "floor"]
    for subject in ("laplace", "geometric"):  # of the noisy documents, not of the originals
        assert own["topic-jaccard", subject] < own["topic-jaccard", "ceiling"] - 0.05
    assert own["reconstruction", "original"] < faint["reconstruction", "release"]


def test_the_release_itself_is_the_first_draw(evaluated: Workspace) -> None:
    # By the release's own rows. Kills: a fresh draw in its place.
    table = pq.read_table(evaluated.folder / "input/corpus.parquet")
    vocabulary = set((evaluated.folder / "vocabulary.txt").read_text().split())
    tokens = tokenize(table["text"].combine_chunks())
    spans = zip(tokens.starts, tokens.ends, strict=True)
    words = sum(bytes(tokens.data[start:end]).decode() in vocabulary for start, end in spans)
    released = sum(sum(row["counts"]) for row in evaluated.rows())
    rows = pq.read_table(evaluated.folder / "report/evaluation.parquet").to_pylist()
    first, second = (
        {
            row["measure"]: row["value"]
            for row in rows
            if (row["subject"], row["draw"], list(row["setting"])) == ("release", draw, [])
            and math.isfinite(row["value"])
        }
        for draw in (0, 1)
    )
    assert first["length"] == pytest.approx(released / words)
    # One of them may well be the same: lengths of few words are close to each other.
    assert second.keys() == first.keys()
    assert second != first


def test_no_text_is_in_the_report(evaluated: Workspace) -> None:
    # Nor any value of a column. Control: what was read holds them all.
    secrets = [CANARY, *CLASSES, "somebody-1", "paper-17"]
    read = str(pq.read_table(evaluated.folder / "input/corpus.parquet").to_pylist())
    assert all(secret in read for secret in secrets)
    assert_silent(evaluated, (evaluated.folder / "printed").read_text(), secrets)


def linked(draw: Path) -> dict[str, float]:
    """The documents that are found again in a draw, by what they are sought in."""
    measured = json.loads(draw.read_text())["observations"]
    return {one["subject"]: one["value"] for one in measured if one["measure"] == "linkage"}


def test_a_second_run_measures_nothing_again(evaluated: Workspace) -> None:
    # But what is damaged, which a worker of Ray's does. Kills: other documents, or noise of others,
    # in what it measures.
    folder = evaluated.folder / "report"
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("draws/*.json")}
    content = content_of(evaluated)
    gone = min(before)
    before_it_was = linked(folder / "draws" / gone)
    (folder / "draws" / gone).write_text('{"observations": [')  # cut short
    with ray_folder() as ray:
        where = {"RAY_TMPDIR": str(ray)}
        done = evaluate(evaluated, *OPTIONS, "--workers=2", environment=where)
    assert done.returncode == 0, done.stderr
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("draws/*.json")}
    assert {name for name in after if after[name] != before.get(name)} == {gone}
    assert linked(folder / "draws" / gone) == pytest.approx(before_it_was, abs=0.1)
    again = content_of(evaluated)
    assert [(f["measure"], f["subject"], f["group"], f["setting"]) for f in again["figures"]] == [
        (f["measure"], f["subject"], f["group"], f["setting"]) for f in content["figures"]
    ]


def test_what_is_printed(evaluated: Workspace) -> None:
    printed = (evaluated.folder / "printed").read_text()
    assert "release   test (bag-of-words), epsilon 7 at N = 1\n" in printed
    assert f"measured  {DOCUMENTS} of {DOCUMENTS} documents, 2 draws" in printed
    assert "report    report/evaluation.html\n" in printed
    # The terminal, the page and the numbers open with one verdict.
    verdict = content_of(evaluated)["verdict"]
    page = (evaluated.folder / "report/evaluation.html").read_text()
    assert printed.startswith(f"verdict   ✗ {verdict['sentence']}\n")
    assert verdict["sentence"] in page
    assert verdict["state"] == "harm"
    assert f"of {DOCUMENTS} rows back to their documents" in verdict["sentence"]
    assert len(verdict["numbers"]) == 3
    for one in verdict["numbers"]:
        assert f"  {one['value']} {one['what']}" in printed
        assert f"<b>{one['value']}</b>" in page
    assert " find more than in noise\n" in printed
    assert "documents are traced back to their originals" in printed


def test_without_a_spec_the_release_is_the_only_draw(
    workspace: Workspace, lee_texts: list[str]
) -> None:
    write_corpus(workspace, lee_texts)
    workspace.release(BAGS)
    done = evaluate(workspace, "--id", "article", "--topics", spec=None)
    assert done.returncode == 0, done.stderr
    content = content_of(workspace)
    assert content["draws"] == 1
    assert all(one["low"] is None for one in content["figures"])
    # Documents tell what one draw can: an attack's own interval, and that it is no chance.
    ways = [
        one
        for one in content["figures"]
        if (one["measure"], one["subject"]) == ("linkage", "release")
    ]
    assert [one["group"] for one in ways] == ["", "by all rows together"]
    for linked in ways:
        assert 0.8 < linked["first"]["low"] < linked["first"]["high"] <= 1
        assert linked["against_noise"] == "above"
    most = max(linked["first"]["value"] for linked in ways)
    share = f"{100 * most:.1f}\N{NO-BREAK SPACE}% of {DOCUMENTS} documents"
    assert content["verdict"]["above"][0].startswith(share)
    assert any("No spec was given" in note for note in content["notes"])
    assert figures(content)["linkage", "release"] > 0.9
    assert ("membership", "release") not in figures(content)
    # Topics in words stand in a file of their own.
    topics = json.loads((workspace.folder / "report/topics.json").read_text())
    known = set((workspace.folder / "vocabulary.txt").read_text().split())
    assert len(topics) == 20
    for pair in topics:
        original, own = set(pair["original"]), set(pair["released"])
        assert original | own <= known
        assert pair["jaccard"] == pytest.approx(len(original & own) / len(original | own))
    assert "topics" not in content


def test_rows_of_unknown_documents(workspace: Workspace, lee_texts: list[str]) -> None:
    # No id is kept: what needs to know whose row it is comes from fresh draws alone.
    write_corpus(workspace, lee_texts)
    workspace.release(BAGS | {"input": {"path": "input/*.parquet", "keep": ["label"]}})
    done = evaluate(workspace, "--label", "label", "--draws", "2")
    assert done.returncode == 0, done.stderr
    content = content_of(workspace)
    counts = {(one["measure"], one["subject"]): one["draws"] for one in content["figures"]}
    assert counts["linkage", "release"] == 1
    assert counts["f1", "release"] == 2
    assert content["corpus"]["placed"] is False
    assert any("Which document a row" in note for note in content["notes"])
