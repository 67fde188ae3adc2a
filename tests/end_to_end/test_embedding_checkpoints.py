"""Checkpoints that are of no use: each is refused with one line, and nothing goes on from it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from embedding_releases import digests_of, embeddings, prepare
from machine import OTHER_KEY
from s3_server import BUCKET, S3Server
from sentence_releases import refusal

from quietcorpus.transforms.errors import Unavailable

if TYPE_CHECKING:
    from tests.conftest import Workspace

TRAINING = {"steps": 6, "lot": 60}
OTHERS = (
    "is damaged, or of another training, key, corpus or machine; delete it, or name another place"
)


@pytest.fixture(scope="module")
def base(
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    lee_texts: list[str],
) -> tuple[Workspace, bytes]:
    """A workspace, and its checkpoint after three steps of `TRAINING` under the tests' key."""
    workspace = new_workspace(tmp_path_factory.mktemp("checkpoint"))
    prepare(workspace, lee_texts[:60])
    workspace.release_here(changes_of(workspace, training={**TRAINING, "stop_after": 3}))
    return workspace, place_of(workspace).read_bytes()


@pytest.fixture
def checkpoint(base: tuple[Workspace, bytes]) -> bytes:
    return base[1]


@pytest.fixture
def trained(base: tuple[Workspace, bytes]) -> Iterator[Workspace]:
    """A workspace in which that training has been cut short: the corpus is the very same one."""
    workspace, content = base
    for name in ("released", "elsewhere", "checkpoints"):
        shutil.rmtree(workspace.folder / name, ignore_errors=True)
    place_of(workspace).parent.mkdir()
    place_of(workspace).write_bytes(content)
    words, environment = workspace.folder / "words.txt", dict(workspace.environment)
    listed = words.read_text()
    yield workspace
    words.write_text(listed)
    workspace.environment = environment


def place_of(workspace: Workspace) -> Path:
    return workspace.folder / "checkpoints" / "test.checkpoint"


def changes_of(workspace: Workspace, **block: Any) -> dict[str, Any]:
    changes = embeddings(workspace, "sgd", **{"users": 60, "training": TRAINING, **block})
    return {**changes, "checkpoints": str(workspace.folder / "checkpoints")}


OTHER_BLOCKS: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": 7},
    "delta": {"delta": 1e-6},
    "dimensions": {"dimensions": 7},
    "window": {"window": 4},
    "tokens": {"tokens": 50},
    "users": {"users": 61},
    "budgets": {"budgets": {"column": "team", "epsilon": {"gold": 8, "silver": 8}}},
    **{
        name: {"training": {**TRAINING, name: value}}
        for name, value in {
            "steps": 5,
            "lot": 50,
            "negatives": 4,
            "clip": 19,
            "learning_rate": 0.06,
        }.items()
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHER_BLOCKS)
def test_of_another_training(trained: Workspace, checkpoint: bytes, name: str) -> None:
    # Kills: a parameter that the checkpoint does not know of: what its steps cost was accounted for
    # under another.
    assert refusal(trained, changes_of(trained, **OTHER_BLOCKS[name])) == (
        f"checkpoints: {place_of(trained)} {OTHERS}"
    )
    assert place_of(trained).read_bytes() == checkpoint


@pytest.mark.slow
def test_of_another_budget_of_one_group(trained: Workspace) -> None:
    # Noise and texts are the same; how often the group takes part is not. Kills: an identity
    # without the schedule, by which users would spend what they had and what they have now.
    place_of(trained).unlink()

    def changes(silver: float, **training: int) -> dict[str, Any]:
        budgets = {"column": "team", "epsilon": {"gold": 8, "silver": silver}}
        return changes_of(trained, budgets=budgets, training={**TRAINING, **training})

    trained.release_here({**changes(3, stop_after=3), "output": "elsewhere/out"})
    assert OTHERS in refusal(trained, changes(4))
    trained.release_here(changes(3))


@pytest.mark.slow
def test_of_another_vocabulary(trained: Workspace) -> None:
    # Kills: vectors of other words, of which there are as many.
    words = (trained.folder / "words.txt").read_text().split()
    (trained.folder / "words.txt").write_text("\n".join([*words[1:], words[0]]))
    assert OTHERS in refusal(trained, changes_of(trained))


def test_of_another_corpus(workspace: Workspace, checkpoint: bytes, lee_texts: list[str]) -> None:
    # The same documents at another place, whose noise is another.
    prepare(workspace, lee_texts[:60])
    place_of(workspace).parent.mkdir()
    place_of(workspace).write_bytes(checkpoint)
    assert OTHERS in refusal(workspace, changes_of(workspace))


def test_of_another_key(trained: Workspace) -> None:
    # Kills: noise of two keys in one training.
    trained.environment["QUIETCORPUS_MASTER_KEY"] = OTHER_KEY
    assert OTHERS in refusal(trained, changes_of(trained))


def test_of_another_release(trained: Workspace) -> None:
    # Under this one's name: its noise is drawn from another key.
    # Kills: an identity that leaves out which release it is.
    place_of(trained).rename(place_of(trained).with_name("other.checkpoint"))
    assert OTHERS in refusal(trained, {**changes_of(trained), "release": "other"})


@pytest.mark.slow
def test_the_negative_control(trained: Workspace) -> None:
    # The training that it is of goes on, in a process of its own; another id begins anew beside it.
    done = trained.release(changes_of(trained))
    assert "INFO going on after step 3" in done.stderr
    changes = {**changes_of(trained), "output": "released/anew", "checkpoints": ...}
    trained.release_here(changes)
    assert digests_of(trained.output.with_name("anew")) == digests_of(trained.output)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "short": lambda content: content[:9],
    "truncated": lambda content: content[:-1],
    "a bit": lambda content: content[:-99] + bytes([content[-99] ^ 1]) + content[-98:],
    "the first bit": lambda content: bytes([content[0] ^ 1]) + content[1:],
    "another file": lambda content: b"PK\x03\x04" + bytes(1000),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged(trained: Workspace, checkpoint: bytes, damage: str) -> None:
    # Kills: an exception of NumPy's or of zipfile's, numbers of which some are not what was saved.
    place_of(trained).write_bytes(DAMAGES[damage](checkpoint))
    assert refusal(trained, changes_of(trained)) == f"checkpoints: {place_of(trained)} {OTHERS}"


def test_that_has_come_further(trained: Workspace) -> None:
    # Kills: a card that states fewer steps than the vectors have.
    changes = changes_of(trained, training={**TRAINING, "stop_after": 2})
    assert refusal(trained, changes) == (
        "mechanism.training.stop_after: 2 steps are fewer than the 3 that the checkpoint has; give "
        "at least as many"
    )


def test_that_cannot_be_read(trained: Workspace) -> None:
    # Kills: beginning anew where a checkpoint is there.
    place_of(trained).unlink()
    place_of(trained).mkdir()
    with pytest.raises(Unavailable, match=r"test.checkpoint cannot be read; check the path and "):
        trained.release_here(changes_of(trained))
    trained.assert_nothing_left()


def test_without_a_master_key(trained: Workspace) -> None:
    # Kills: checkpoints under a fresh key, from which nothing ever goes on.
    message = trained.refused(changes_of(trained), environment={"QUIETCORPUS_MASTER_KEY": None})
    assert message == (
        "checkpoints: a run resumes from there only with the same master key; set "
        "QUIETCORPUS_MASTER_KEY or QUIETCORPUS_MASTER_KEY_FILE"
    )


def test_where_nothing_can_be_written(trained: Workspace) -> None:
    # Kills: hours of training without a checkpoint, which a line of the log may have told.
    (trained.folder / "file").write_text("")
    changes = {**changes_of(trained), "checkpoints": str(trained.folder / "file" / "below")}
    message = refusal(trained, changes)
    assert message.startswith(f"checkpoints: {trained.folder}/file/below cannot be written to; ")


def test_in_a_bucket_that_is_not_there(trained: Workspace, s3: S3Server) -> None:
    # Kills: finding out after the first step.
    changes = {**changes_of(trained), "checkpoints": "s3://absent/checkpoints"}
    message = trained.refused(changes, environment=s3.environment)
    assert message.startswith("checkpoints: s3://absent/checkpoints")
    assert "the bucket does not exist; create it, or check the spelling" in message
    assert s3.keys("checkpoints") == []
    assert BUCKET != "absent"


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("input", "lies in the input; name a restricted place"),
        ("released/out/checkpoints", "lies in the output; name a restricted place"),
        ("check*points", "is a glob; name one folder"),
    ],
)
def test_a_place_of_no_use(trained: Workspace, place: str, problem: str) -> None:
    # Kills: checkpoints among what is released, or read.
    changes = {**changes_of(trained), "checkpoints": place, "input": {"path": "input/*"}}
    message = trained.refused(changes)
    assert f"checkpoints: {trained.folder}/{place} {problem}" in message
