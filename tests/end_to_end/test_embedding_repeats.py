"""Word embeddings are a function of the corpus, the spec and the key: of no number of workers, and
of no division of the corpus."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from embedding_releases import (
    BUDGETS,
    EITHER,
    PRIVATE,
    digests_of,
    documents,
    embeddings,
    prepare,
    ray_folder,
    release_all,
    vectors_of,
    without_rays_words,
    write_corpus,
)
from machine import OTHER_KEY

if TYPE_CHECKING:
    from tests.conftest import Workspace

pytestmark = pytest.mark.slow

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("sgd", {"budgets": {"column": "team", "epsilon": {"gold": 8, "silver": 3}}}),
    "cooccurrence": ("cooccurrence", {"budgets": BUDGETS, "vocabulary": PRIVATE}),
}


@pytest.fixture(scope="module", params=CASES)
def once(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    lee_texts: list[str],
) -> tuple[Workspace, dict[str, Any]]:
    """A workspace with a release by one process, and the spec's changes."""
    workspace = new_workspace(tmp_path_factory.mktemp(request.param))
    prepare(workspace, lee_texts)
    method, block = CASES[request.param]
    changes = embeddings(workspace, method, **block)
    workspace.release(changes)
    return workspace, changes


def again(
    once: tuple[Workspace, dict[str, Any]], name: str, *arguments: str, **changes: Any
) -> Path:
    """The output of another run of the same release, but for the changes."""
    workspace, first = once
    workspace.release({**first, **changes, "output": f"released/{name}"}, *arguments)
    return workspace.output.with_name(name)


def test_the_workers_do_not_matter(once: tuple[Workspace, dict[str, Any]]) -> None:
    # Two processes of Beam's, and for `sgd` two actors of Ray's. Kills: bits from anywhere but the
    # key, an order that depends on a hash seed, noise of a worker's own, sums that are rounded
    # before they are added, users that are lost between actors or doubled, private text on a
    # cluster that happens to be named.
    workspace, first = once
    spec = str(workspace.spec({**first, "output": "released/two"}))
    with ray_folder() as folder:
        environment = {"RAY_TMPDIR": str(folder), "RAY_ADDRESS": "127.0.0.1:1"}
        done = workspace.run("release", spec, "--workers", "2", environment=environment)
        started = (folder / "ray").exists()
    assert done.returncode == 0, done.stderr
    assert started == (first["mechanism"]["method"] == "sgd")
    said = without_rays_words(done.stderr).splitlines()
    ours = ("INFO ", "WARNING not protected: ")
    assert [line for line in said if not line.startswith(ours)] == []
    assert digests_of(workspace.output.with_name("two")) == digests_of(workspace.output)
    mine, card = workspace.card(workspace.output.with_name("two")), workspace.card()
    for one in (mine, card):
        del one["created"], one["readme_sha256"], one["page_sha256"]
    assert mine == card
    assert workspace.leftovers() == []


@pytest.mark.usefixtures("one_corpus")
def test_the_division_of_the_corpus_does_not_matter(
    once: tuple[Workspace, dict[str, Any]], lee_texts: list[str]
) -> None:
    # Kills: a user's documents in the order in which they are met, choices by a document's place, a
    # bound for a split.
    workspace, first = once
    records = documents(lee_texts)
    random.shuffle(records)
    for number in range(2):
        path = f"divided-{number}.parquet"
        write_corpus(workspace, records[number::2], name=path, row_group_size=31 + number)
    divided = first | {"input": {"path": "input/divided-*.parquet"}}
    release_all(workspace, first, "whole")
    release_all(workspace, divided, "divided")
    whole, others = (workspace.output.with_name(name) for name in ("whole", "divided"))
    assert digests_of(others) == digests_of(whole)


def test_another_key_or_id_draws_anew(once: tuple[Workspace, dict[str, Any]]) -> None:
    # The negative control of the above. Kills: noise of no key, or of one for all releases.
    workspace, first = once
    spec = str(workspace.spec({**first, "output": "released/key"}))
    done = workspace.run("release", spec, environment={"QUIETCORPUS_MASTER_KEY": OTHER_KEY})
    assert done.returncode == 0, done.stderr
    again(once, "id", release="other")
    found = [
        vectors_of(workspace.output.with_name(name) if name else workspace.output)
        for name in ("", "key", "id")
    ]
    for i, one in enumerate(found):
        for other in found[:i]:
            shared = set(one) & set(other)
            assert shared
            assert not [word for word in shared if (one[word] == other[word]).any()]


@pytest.mark.parametrize("method", EITHER)
def test_another_question_draws_anew(
    workspace: Workspace, lee_texts: list[str], method: str
) -> None:
    # Under one id and key, of a word that nobody writes, or a bound that nobody meets: equal
    # vectors would tell that nobody does. Kills: a vocabulary known by its size, draws that know
    # the shards alone.
    prepare(workspace, lee_texts)
    first = embeddings(workspace, method)
    words = (workspace.folder / "words.txt").read_text()
    (workspace.folder / "zebra.txt").write_text(words + "zebraqq\n")
    (workspace.folder / "xylem.txt").write_text(words + "xylemqq\n")
    mechanism = first["mechanism"]
    asked = {
        "zebra": {**mechanism, "vocabulary": {"public": str(workspace.folder / "zebra.txt")}},
        "xylem": {**mechanism, "vocabulary": {"public": str(workspace.folder / "xylem.txt")}},
        "bound": {
            **mechanism,
            "vocabulary": {"public": str(workspace.folder / "zebra.txt")},
            "tokens": 5000,
        },
    }
    found = {}
    for name, block in asked.items():
        workspace.release_here({**first, "mechanism": block, "output": f"released/{name}"})
        found[name] = vectors_of(workspace.output.with_name(name))
    for one, other in (("zebra", "xylem"), ("zebra", "bound")):
        shared = set(found[one]) & set(found[other])
        assert shared
        assert not [word for word in shared if (found[one][word] == found[other][word]).any()]


def test_a_complete_release_is_found_and_not_made_again(
    once: tuple[Workspace, dict[str, Any]],
) -> None:
    # Kills: a second release of the same budget at another place of the same name, one that is
    # taken for the release of another spec.
    workspace, first = once
    before = digests_of(workspace.output)
    done = workspace.run("release", str(workspace.spec(first)))
    assert done.returncode == 2
    assert "holds a release already, of the same id, columns and mechanism" in done.stderr
    done = workspace.release(first, "--if-exists=ok")
    assert "(complete already; nothing was done)" in done.stdout
    assert digests_of(workspace.output) == before
    other = {**first, "mechanism": {**first["mechanism"], "dimensions": 9}}
    done = workspace.run("release", str(workspace.spec(other)), "--if-exists=ok")
    assert workspace.error_of_existing(done) == "other mechanism.dimensions"


@pytest.mark.parametrize("method", EITHER)
def test_defaults_are_found_again(workspace: Workspace, lee_texts: list[str], method: str) -> None:
    # A spec that leaves out what has a default. Kills: a card that is compared with what was left
    # out, so that the same release looks like another one.
    prepare(workspace, lee_texts[:30])
    changes = embeddings(workspace, method, users=30, training=..., dimensions=...)
    workspace.release_here(changes)
    assert workspace.card()["mechanism"]["dimensions"] == 100
    spelt = {**changes["mechanism"], "dimensions": 100}
    if method == "sgd":
        spelt["training"] = {"steps": 100, "lot": 3, "participation": "rates"}
    for block in (changes["mechanism"], spelt):
        done = workspace.release({**changes, "mechanism": block}, "--if-exists=ok")
        assert "(complete already; nothing was done)" in done.stdout
