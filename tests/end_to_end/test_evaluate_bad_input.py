"""Bad input of `quietcorpus evaluate`: one line each, exit code 2, and no report."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from embedding_releases import not_installed
from evaluations import BAGS, CANARY, CLASSES, evaluate, write_corpus

if TYPE_CHECKING:
    from tests.conftest import Workspace

DOCUMENTS = 60


@pytest.fixture(scope="module")
def released(
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Any], Workspace],
    lee_texts: list[str],
) -> Workspace:
    """A release that nobody changes, and its corpus."""
    workspace = new_workspace(tmp_path_factory.mktemp("released"))
    write_corpus(workspace, lee_texts[:DOCUMENTS])
    workspace.release(BAGS)
    return workspace


def refused(workspace: Workspace, *arguments: str, code: int = 2, **options: Any) -> str:
    """The one line of a refusal, which quotes nothing that is private."""
    done = evaluate(workspace, *arguments, **options)
    assert done.returncode == code, done.stderr
    *before, last = done.stderr.splitlines()
    assert all(line.startswith(("INFO ", "WARNING ")) for line in before), done.stderr
    assert last.startswith("quietcorpus: error: ")
    assert done.stdout == ""
    for secret in (CANARY, *CLASSES, "somebody-1"):
        assert secret not in done.stderr
    assert not (workspace.folder / "report/evaluation.html").exists()
    assert workspace.leftovers() == []
    return last.removeprefix("quietcorpus: error: ")


def other_corpus(workspace: Workspace, **columns: Any) -> tuple[str, str]:
    """Another corpus, as arguments."""
    whole = {
        "text": [f"the government said {CANARY}"] * DOCUMENTS,
        "article": [f"paper-{n}" for n in range(DOCUMENTS)],
        **columns,
    }
    whole["label"] = ["either"] * len(whole["article"])  # the release keeps it
    workspace.parquet(whole, "../other.parquet")
    return "--against", "other.parquet"


def test_a_release_that_was_altered(workspace: Workspace, lee_texts: list[str]) -> None:
    write_corpus(workspace, lee_texts[:DOCUMENTS])
    workspace.release(BAGS)
    path = workspace.output / "vocabulary.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert "sha256 differs" in refused(workspace)


def test_no_release(released: Workspace) -> None:
    done = released.run("evaluate", "nowhere", "--against", "input/*", "--output", "report")
    assert done.returncode == 2
    assert "nowhere: no release here" in done.stderr


def test_text_of_another_tool_beside_bags(released: Workspace) -> None:
    # Kills: an option that a study ignores.
    said = refused(released, "--reference-text", "input/*.parquet")
    assert said == "--reference-text: is for releases of words, not of bag-of-words"


@pytest.mark.parametrize("spec", ["spec.yaml", None])
def test_a_corpus_of_another_size(released: Workspace, spec: str | None) -> None:
    columns = {"text": ["a"] * 70, "article": [f"paper-{n}" for n in range(70)]}
    said = refused(released, *other_corpus(released, **columns), spec=spec)
    assert said == (
        "--against: the corpus has 70 documents and the release 60; give the corpus that the "
        "release was made of"
    )


def test_a_corpus_without_a_column_that_the_release_keeps(released: Workspace) -> None:
    # An attacker compares it. Kills: documents that are compared with no column.
    released.parquet({"text": ["a"], "article": ["paper-0"]}, "../bare.parquet")
    said = refused(released, "--against", "bare.parquet")
    assert "bare.parquet has no column 'label'; it has " in said


def test_a_corpus_of_other_documents(released: Workspace) -> None:
    columns = {"article": [f"b{n}" for n in range(DOCUMENTS)]}
    said = refused(released, *other_corpus(released, **columns))
    assert said.startswith("--against: 60 of 60 sampled documents have no row in the release")


@pytest.mark.slow
def test_other_texts_under_the_same_ids(released: Workspace, lee_texts: list[str]) -> None:
    # Kills: a report by which nobody's document is found, since nobody's was looked for.
    turned = [*lee_texts[1:DOCUMENTS], lee_texts[0]]
    where = other_corpus(released, text=turned)
    said = refused(released, *where, "--draws", "2", "--no-audit")
    assert said.startswith("--against: ")
    assert said.endswith("these are not the texts that the release was made of; give those")


@pytest.mark.parametrize("found", ['{"release": {"id": "test"}}', "{", "[]", '"other"'])
def test_a_place_that_holds_another_report(released: Workspace, found: str) -> None:
    # Kills: a report that another release's is lost to.
    place = released.folder / "taken"
    place.mkdir(exist_ok=True)
    (place / "evaluation.json").write_text(found)
    said = refused(released, "--output", "taken", "--no-audit")
    assert said.endswith("taken holds the report of another release; name a place of its own")
    assert (place / "evaluation.json").read_text() == found


@pytest.mark.parametrize("text", ["", f"{CANARY} {CANARY}"])
def test_texts_without_a_known_word(released: Workspace, text: str) -> None:
    said = refused(released, *other_corpus(released, text=[text] * DOCUMENTS))
    assert said.startswith("--text: none of 60 documents has a word that the release knows")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--label", "topic"], "--label: "),
        (["--text", "body"], "--text: "),
        (["--user", "writer"], "--user: "),
        (["--id", "number"], "--id: the release keeps no column 'number' (it keeps 'article', "),
        (["--id", "text"], "--id: the release keeps no column 'text' (it keeps 'article', 'la"),
        (["--label", "user"], "--label: the column 'user' has fewer than two classes of 20 docu"),
        (["--user", "article"], "--user: the column 'article' has fewer than two authors of 10"),
        (["--public-text", "x"], "--public-text: is for releases of words, not of bag-of"),
        (["--sweep", "epsilon"], "--sweep: 'epsilon' is not KEY=VALUE,VALUE"),
        (["--sweep", "epsilon=1,-1"], "mechanism.epsilon: -1 is not allowed"),
        (["--sweep", "epsilon=much"], "mechanism.epsilon: 'much' is not a number"),
        (
            ["--sweep", "colour=1"],
            "--sweep: 'colour' is not a key that a draw can follow here; give",
        ),
        (["--sweep", "vocabulary.public=x"], "--sweep: 'vocabulary.public' is not a key that a"),
        (["--compare", "missing.yaml"], "missing.yaml: no such file to compare"),
        (["--compare", "vocabulary.txt"], "--compare: "),
        (["--output", "released/out/report"], "--output: "),
        (["--output", "vocabulary.txt"], "--output: "),
    ],
)
def test_what_is_asked_for(released: Workspace, arguments: list[str], message: str) -> None:
    said = refused(released, *arguments)
    assert message in said


def test_what_no_draw_can_have_is_refused_before_the_first(released: Workspace) -> None:
    # Kills: a value that is refused when its turn comes, after hours of other draws.
    given = "--sweep", "compression.size=5,1000", "--output", "early"
    assert "mechanism.compression.size: 1000 is larger than" in refused(released, *given)
    assert not (released.folder / "early").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: {colour: red}", "--compare: 'colour' is not a key that a draw can follow here; give"),
        ("a: {compression: {method: none, size: 5}}", "mechanism.compression.size: "),
        ("a: {vocabulary: {public: x}}", "--compare: 'vocabulary' is not a key"),
        ("a: {epsilon: -1}", "mechanism.epsilon: -1 is not allowed"),
        ("a: {1: {epsilon: 2}, 2: {epsilon: -1}}", "mechanism.epsilon: -1 is not allowed"),
    ],
)
def test_variants_that_no_draw_follows(released: Workspace, content: str, message: str) -> None:
    (released.folder / "maps.yaml").write_text(content)
    assert message in refused(released, "--compare", "maps.yaml")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["x"] * DOCUMENTS, "has fewer than two classes"),
        ([None] * (DOCUMENTS - 1) + ["x"], "has fewer than two classes"),
        ([f"{CANARY}{n}" for n in range(DOCUMENTS)], "has fewer than two classes"),
    ],
)
def test_labels_of_which_nothing_can_be_learnt(
    released: Workspace, labels: list[str | None], message: str
) -> None:
    where = other_corpus(released, group=labels)
    assert message in refused(released, *where, "--label", "group")


def test_too_few_documents(workspace: Workspace, lee_texts: list[str]) -> None:
    write_corpus(workspace, lee_texts[:19])
    workspace.release(BAGS)
    assert "has 19 documents, of which nothing can be said; give 20 or more" in refused(workspace)


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"mechanism.epsilon": 7}, "other mechanism.epsilon"),
        ({"release": "another"}, "release: test"),
        ({"input": {"path": "input/*.parquet", "keep": []}}, "other input.keep"),
    ],
)
def test_a_spec_of_another_release(
    released: Workspace, changes: Mapping[str, Any], difference: str
) -> None:
    released.spec({**BAGS, **changes}, "another.yaml")
    said = refused(released, spec="another.yaml")
    assert f"describes another release ({difference})" in said


def test_a_spec_of_another_vocabulary(released: Workspace) -> None:
    # Of the same name. Kills: draws of another artefact than the release's.
    folder = released.folder / "elsewhere"
    folder.mkdir()
    terms = (released.folder / "vocabulary.txt").read_text().split()
    (folder / "vocabulary.txt").write_text("\n".join(reversed(terms)) + "\n")
    changes = {"mechanism.vocabulary": {"public": "elsewhere/vocabulary.txt"}}
    released.spec({**BAGS, **changes}, "another.yaml")
    said = refused(released, spec="another.yaml")
    assert "describes another release (other artefacts)" in said


def test_no_spec_where_one_is_needed(
    workspace: Workspace, lee_texts: list[str], words: Callable[..., dict[str, Any]]
) -> None:
    write_corpus(workspace, lee_texts[:DOCUMENTS])
    kept = {"path": "input/*.parquet", "id": "article", "keep": ["article"]}
    workspace.release({"input": kept} | words())
    assert refused(workspace, spec=None) == (
        "--spec: missing; evaluating words needs the artefacts that the spec names"
    )
    # And other texts under the same ids, whose words are not as many.
    where = other_corpus(workspace)
    said = refused(workspace, *where, "--no-audit")
    assert said.startswith("--against: the release's texts are not as long as the corpus's")


def test_a_sweep_without_a_spec(released: Workspace) -> None:
    said = refused(released, "--sweep", "epsilon=1,2", spec=None)
    assert said.startswith("--spec: missing; the spec says what")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "package"),
    [("sklearn", "scikit-learn"), ("tomotopy", "tomotopy"), ("jinja2", "jinja2")],
)
def test_what_is_not_installed(released: Workspace, module: str, package: str) -> None:
    environment = not_installed(released, module)
    said = refused(released, environment=environment, fresh=True)
    shutil.rmtree(released.folder / "not-installed")
    assert said == f"{package} is not installed; install the extra [evaluate]"


def test_a_release_of_an_unknown_kind(workspace: Workspace, lee_texts: list[str]) -> None:
    write_corpus(workspace, lee_texts[:DOCUMENTS])
    workspace.release(BAGS)
    path = workspace.output / "release.json"
    card = json.loads(path.read_text())
    card["mechanism"]["kind"] = "poems"
    path.write_text(json.dumps(card))
    assert "mechanism.kind: 'poems' is not a kind of release that is known here" in refused(
        workspace
    )
