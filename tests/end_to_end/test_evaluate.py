"""`quietcorpus evaluate` on real text: its numbers, its files, its privacy, going on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from embedding_releases import ray_folder
from scipy import stats

from indexes.tokenizer import tokenize

if TYPE_CHECKING:
    from tests.conftest import Workspace

ALPHA = 1e-6
CANARY = "zanzibarquokka"
TERMS = 400
DOCUMENTS = 300
CLASSES = ("warcorrespondence", "homeaffairs")


def write_corpus(workspace: Workspace, texts: list[str]) -> None:
    """The texts with a canary in each, a class that their words tell, and twelve authors."""
    own = [f"{text} {CANARY}" for text in texts]
    labels = [CLASSES["israeli" not in text and "afghan" not in text.lower()] for text in texts]
    numbers = range(len(texts))
    users = [f"somebody-{number % 12}" for number in numbers]
    workspace.parquet(
        {"text": own, "article": [f"a{n}" for n in numbers], "label": labels} | {"user": users}
    )
    counts: dict[str, int] = {}
    for text in texts:
        for word in set(text.lower().split()):
            if word.isalpha() and word.isascii():
                counts[word] = counts.get(word, 0) + 1
    frequent = sorted(counts, key=lambda word: -counts[word])[:TERMS]
    (workspace.folder / "vocabulary.txt").write_text("\n".join(frequent) + "\n")


def evaluate(
    workspace: Workspace, *arguments: str, spec: str | None = "spec.yaml", **options: Any
) -> Any:
    """Run the command on the workspace's release."""
    given = ["--spec", spec] if spec else []
    return workspace.run(
        "evaluate", "released/out", "--against", "input/corpus.parquet", *given, *arguments,
        "--output", "report", **options,
    )  # fmt: skip


def content_of(workspace: Workspace) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((workspace.folder / "report/evaluation.json").read_text())
    return content


def figures(
    content: dict[str, Any], group: str = "", **setting: str
) -> dict[tuple[str, str], float]:
    """Means by measure and subject."""
    return {
        (one["measure"], one["subject"]): one["mean"]
        for one in content["figures"]
        if one["setting"] == setting and one["group"] == group
    }


BAGS = {
    "input": {"path": "input/*.parquet", "id": "article", "keep": ["article", "label"]},
    "mechanism.precision": 1,
    "mechanism.epsilon": 6,
    "mechanism.histogram_epsilon": 1,
    "mechanism.compression": {"method": "frequency", "size": 200},
}


@pytest.fixture(scope="module")
def evaluated(
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    lee_texts: list[str],
) -> Workspace:
    """A release of bags of words, and its report with a sweep, made by two workers."""
    workspace = new_workspace(tmp_path_factory.mktemp("evaluated"))
    write_corpus(workspace, lee_texts)
    workspace.release(BAGS)
    sweep = ("--sweep", "epsilon=0.01,6")
    columns = ("--label", "label", "--user", "user")
    with ray_folder() as folder:
        where = {"RAY_TMPDIR": str(folder)}
        done = evaluate(
            workspace, *sweep, *columns, "--draws", "2", "--workers", "2", environment=where
        )
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
        assert figure["low"] <= figure["mean"] <= figure["high"]
    assert content["corpus"] == {
        "documents": DOCUMENTS,
        "of": DOCUMENTS,
        "label": "label",
        "user": "user",
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
    (first,) = (
        row["value"]
        for row in rows
        if (row["measure"], row["subject"], row["draw"], list(row["setting"]))
        == ("length", "release", 0, [])
    )
    assert first == pytest.approx(released / words)
    (second,) = (
        row["value"]
        for row in rows
        if (row["measure"], row["subject"], row["draw"], list(row["setting"]))
        == ("length", "release", 1, [])
    )
    assert second != first


def test_no_text_is_in_the_report(evaluated: Workspace) -> None:
    # Nor any value of a column. The canary is in every text; what is read must hold it (control).
    assert CANARY.encode() in (evaluated.folder / "input/corpus.parquet").read_bytes()
    secrets = [CANARY, *CLASSES, "somebody-1", "a17"]
    files = [path for path in (evaluated.folder / "report").rglob("*") if path.is_file()]
    for path in [*files, evaluated.folder / "printed"]:
        found = path.read_bytes().decode("utf-8", "replace")
        for secret in secrets:
            assert secret not in found, path
    assert evaluated.leftovers() == []


def test_a_second_run_measures_nothing_again(evaluated: Workspace) -> None:
    folder = evaluated.folder / "report"
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("draws/*.json")}
    content = content_of(evaluated)
    gone = min(before)
    (folder / "draws" / gone).write_text('{"observations": [')  # cut short
    done = evaluate(
        evaluated, "--label", "label", "--user", "user", "--draws", "2", "--sweep", "epsilon=0.01,6"
    )
    assert done.returncode == 0, done.stderr
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("draws/*.json")}
    assert {name for name in after if after[name] != before.get(name)} == {gone}
    again = content_of(evaluated)
    assert [(f["measure"], f["subject"], f["group"], f["setting"]) for f in again["figures"]] == [
        (f["measure"], f["subject"], f["group"], f["setting"]) for f in content["figures"]
    ]


def test_what_is_printed(evaluated: Workspace) -> None:
    printed = (evaluated.folder / "printed").read_text()
    assert "release   test (bag-of-words), epsilon 7 at N = 1\n" in printed.replace(
        "epsilon 7\n", "epsilon 7 at N = 1\n"
    )
    assert f"measured  {DOCUMENTS} of {DOCUMENTS} documents, 2 draws" in printed
    assert "report    report/evaluation.html\n" in printed


def test_without_a_spec_the_release_is_the_only_draw(
    workspace: Workspace, lee_texts: list[str]
) -> None:
    write_corpus(workspace, lee_texts)
    workspace.release(BAGS)
    done = evaluate(workspace, "--id", "article", spec=None)
    assert done.returncode == 0, done.stderr
    content = content_of(workspace)
    assert content["draws"] == 1
    assert all(one["low"] is None for one in content["figures"])
    assert any("No spec was given" in note for note in content["notes"])
    assert figures(content)["linkage", "release"] > 0.9
    assert ("membership", "release") not in figures(content)


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
    assert any("Which document a row" in note for note in content["notes"])
