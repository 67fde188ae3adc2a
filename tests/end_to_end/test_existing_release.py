"""A release that stands at the output already: which one a run accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from public_pools import INPUT, Texts

from quietcorpus.pipelines.card.verify import verify
from quietcorpus.pipelines.release.existing import complete
from quietcorpus.pipelines.schema.loading import load_spec
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"release": "other"}, "release: test"),
        ({"input.keep": ["text2"]}, "other input.keep"),
        ({"mechanism.epsilon": 5}, "other mechanism.epsilon"),
        ({"mechanism.vocabulary": {"public": "v2.txt"}}, "other mechanism.vocabulary"),
    ],
)
def test_another_release_is_not_accepted(
    workspace: Workspace, changes: dict[str, Any], difference: str
) -> None:
    workspace.release()
    done = workspace.run("release", str(workspace.spec(changes)), "--if-exists=ok")
    assert done.returncode == 2
    assert f"released/out holds another release ({difference}); name another" in done.stderr
    done = workspace.run("release", "spec.yaml")
    assert done.returncode == 2
    assert "released/out holds a release already; name another place" in done.stderr


def test_a_release_with_other_ids_is_not_accepted(workspace: Workspace) -> None:
    # Kills: a comparison of the names alone, which are `id` whatever column's values these are.
    workspace.json_lines([{"text": "quiet", "case": "7", "file": "8"}])
    workspace.release({"input.id": "case", "input.keep": ["case"]})
    spec = workspace.spec({"input.id": "file", "input.keep": ["file"]})
    done = workspace.run("release", str(spec), "--if-exists=ok")
    assert workspace.error_of_existing(done) == "other input.id"
    same = workspace.spec({"input.id": "case", "input.keep": ["case"]})
    assert workspace.run("release", str(same), "--if-exists=ok").returncode == 0


def test_a_complete_local_release_is_accepted(workspace: Workspace) -> None:
    first = workspace.release()
    card = (workspace.output / "release.json").read_bytes()
    done = workspace.run("release", "spec.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "of the same id, columns and mechanism; accept it with --if-exists=ok" in done.stderr
    done = workspace.release(None, "--if-exists=ok")
    assert done.stdout.splitlines()[1:] == first.stdout.splitlines()[1:]
    assert (workspace.output / "release.json").read_bytes() == card
    # A card that cannot be read is no complete release.
    (workspace.output / "release.json").write_bytes(card[:-10])
    done = workspace.run("release", "spec.yaml", "--if-exists=ok")
    assert (done.returncode, done.stdout) == (2, "")
    assert "holds a release already; name another place" in done.stderr
    # Nothing there: a release as ever.
    workspace.release({"output": "released/other"}, "--if-exists=ok")


def test_what_the_card_does_not_tell_is_compared_too(workspace: Workspace) -> None:
    """Kills: a comparison of the spec's own keys alone, or of artefacts by their names."""
    dear = {"mechanism.histogram_epsilon": 3}
    workspace.release(dear)
    done = workspace.run("release", str(workspace.spec()), "--if-exists=ok")
    assert workspace.error_of_existing(done) == "other mechanism.histogram_epsilon"
    vocabulary = workspace.folder / "vocabulary.txt"
    text = vocabulary.read_text()
    vocabulary.write_text(text + "zebra\n")
    done = workspace.run("release", str(workspace.spec(dear)), "--if-exists=ok")
    assert workspace.error_of_existing(done) == "other artefacts"
    vocabulary.write_text(text)
    workspace.release(dear, "--if-exists=ok")
    (data,) = (workspace.output / "data").iterdir()
    data.unlink()
    done = workspace.run("release", str(workspace.spec(dear)), "--if-exists=ok")
    assert done.returncode == 2
    assert f"holds a release that lacks data/{data.name}; delete it and run again" in done.stderr


def test_what_was_found_from_the_artefacts_is_no_difference(
    workspace: Workspace, public_texts: Texts
) -> None:
    # The card names the encoder; the spec need not. Kills: a release that its own spec does not
    # accept. Control: a spec that names another one.
    workspace.parquet({"text": ["court judge"] * 30})
    workspace.release_here(INPUT | public_texts())
    card = verify(str(workspace.output))
    assert complete(load_spec(str(workspace.folder / "spec.yaml"))) == card
    spec = load_spec(str(workspace.folder / "spec.yaml"), {"mechanism.encoder": "another"})
    with pytest.raises(InputError, match=r"holds another release \(other mechanism.encoder\)"):
        complete(spec)


DEPTH = {"utility": ...}
SIMILAR = {"utility": "similarity"}
PROJECTED = {"mechanism": "projected-mean", "utility": ...}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("released", "spec", "difference"),
    [
        (DEPTH, DEPTH, None),
        (DEPTH, {"utility": "depth"}, None),
        (DEPTH, SIMILAR, "utility"),
        (SIMILAR, DEPTH, "utility"),
        (DEPTH | {"projections": 5}, DEPTH, "projections"),
        (PROJECTED, PROJECTED, None),
        (PROJECTED | {"directions": 3}, PROJECTED, "directions"),
    ],
)
def test_values_in_use_are_compared(
    workspace: Workspace,
    sentences: Callable[..., dict[str, Any]],
    released: dict[str, Any],
    spec: dict[str, Any],
    difference: str | None,
) -> None:
    # Kills: a release that its own spec does not accept, since the card states what the spec leaves
    # out; and one of another utility that is accepted, since the spec names none.
    workspace.release_here(sentences(**released))
    card = verify(str(workspace.output))
    places = {"output": str(workspace.output)}
    asked = load_spec(str(workspace.spec(sentences(**spec) | places)))
    if difference is None:
        assert complete(asked) == card
    else:
        with pytest.raises(InputError, match=rf"another release \(other mechanism.{difference}\)"):
            complete(asked)
