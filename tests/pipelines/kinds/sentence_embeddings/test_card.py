"""Verification of releases of sentence embeddings: what is changed is caught, on the card too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tampering import (
    DATA,
    PROMISE,
    TEN,
    add_vocabulary,
    card,
    edit_card,
    everywhere,
    flip,
    promising,
    rewrite,
)

from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision, MetricPrivacy
from quietcorpus.mechanisms.words.madlib import Madlib
from quietcorpus.pipelines.card.verify import verify
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace

SUM = "budget: the stages do not add up to the total"
PUBLIC = "artefacts: not those that the mechanism names"
PRIVATE = "is private, and must be public"


@pytest.fixture(scope="module")
def originals(
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    sentences: Callable[..., dict[str, Any]],
) -> Path:
    """A folder with a release by either mechanism."""
    workspace = new_workspace(tmp_path_factory.mktemp("release"))
    workspace.json_lines(["Police found him. The river rose."] * 40)
    noisy = sentences(mechanism="truncation", utility=...)
    projected = sentences(mechanism="projected-mean", utility=...)
    for name, changes in (("drawn", sentences()), ("noisy", noisy), ("projected", projected)):
        workspace.release_here({"output": f"released/{name}"} | changes)
    return workspace.output.parent


def copied(originals: Path, folder: Path, name: str) -> Path:
    """A copy that a test may spoil."""
    return shutil.copytree(originals / name, folder / "released" / "out")


@pytest.fixture
def release(tmp_path: Path, originals: Path) -> Path:
    """A release that has drawn candidates."""
    return copied(originals, tmp_path, "drawn")


def artefact(number: int, **values: Any) -> Callable[[Path], None]:
    return card(lambda content: content["artefacts"][number].update(values))


TAMPERINGS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "data byte": (lambda r: flip(r, DATA), f"{DATA}: not the file that release.json describes"),
    "a text": (
        lambda r: rewrite(r, DATA, lambda t: t.append_column("text", t["id"])),
        f"{DATA}: columns that release.json does not account for: text",
    ),
    "sentences": (
        lambda r: rewrite(r, DATA, lambda t: t.append_column("sentences", pa.array([2] * 40))),
        f"{DATA}: columns that release.json does not account for: sentences",
    ),
    "no candidate": (
        lambda r: rewrite(r, DATA, lambda t: t.drop_columns("candidate")),
        f"{DATA}: columns that release.json does not account for: candidate",
    ),
    "no embedding": (
        lambda r: rewrite(r, DATA, lambda t: t.drop_columns("embedding")),
        f"{DATA}: columns that release.json does not account for: embedding",
    ),
    "fewer rows": (lambda r: rewrite(r, DATA, lambda t: t.slice(3)), "37 rows, but release.json"),
    "a vocabulary": (add_vocabulary, "vocabulary.parquet: "),
    "smaller epsilon": (
        everywhere(epsilon=1.0, epsilon_exact="1"),
        "guarantee: its words do not match the budget",
    ),
    "rounded down": (everywhere(epsilon=9.5), SUM),
    "smaller total": (
        card(lambda c: c["budget"]["total"].update(epsilon_exact="1", epsilon=1.0)),
        SUM,
    ),
    "smaller guarantee": (
        card(lambda c: c["guarantee"]["parameters"].update(epsilon_exact="1", epsilon=1.0)),
        SUM,
    ),
    "another epsilon of the mechanism": (
        card(lambda c: c["mechanism"].update(epsilon_exact="1")),
        "mechanism: epsilon_exact is not the number that a spec has",
    ),
    "a statement about documents": (
        card(
            lambda c: c["guarantee"].update(
                statement=c["guarantee"]["statement"].replace("one sentence", "any sentences")
            )
        ),
        "guarantee: its words do not match the budget",
    ),
    **{
        f"another {name}": (
            card(lambda c, name=name: c["guarantee"].update({name: "one document"})),
            "guarantee: its words do not match the budget",
        )
        for name in ("definition", "adjacency", "unit")
    },
    "no number": (everywhere(epsilon_exact="ten"), "release.json: "),
    "negative": (everywhere(epsilon_exact="-10"), "release.json: "),
    "a metric": (promising(MetricPrivacy(Madlib.metric, TEN)), PROMISE),
    "limited precision": (promising(LimitedPrecision(1, TEN)), PROMISE),
    "a mechanism that there is not": (
        card(lambda c: c["mechanism"].update(mechanism="deepest-candidate")),
        PROMISE,
    ),
    "another epsilon in words": (
        card(lambda c: c["mechanism"].update(epsilon=1.0)),
        "mechanism: epsilon_exact is not the number that a spec has",
    ),
    "private candidates": (artefact(0, provenance="private"), PRIVATE),
    "candidates under a guarantee": (
        card(
            lambda c: (
                c["artefacts"][0].update(provenance="private", guarantee={"statement": "s"}),
                c["budget"].update(inherited=[{"artefact": "candidates", "statement": "s"}]),
                c["guarantee"].update(
                    statement=f"{c['guarantee']['statement']} This takes the candidates as given; "
                    "it was made from private data, whose cost comes on top: s"
                ),
            )
        ),
        PRIVATE,
    ),
    "a private encoder": (artefact(1, provenance="private"), PRIVATE),
    "no candidates": (card(lambda c: c["artefacts"].pop(0)), PUBLIC),
    "no encoder": (card(lambda c: c["artefacts"].pop(1)), PUBLIC),
    "something else": (artefact(1, name="index"), PUBLIC),
    "another kind": (
        card(lambda c: c["mechanism"].update(kind="essays")),
        "is not a kind of release that is known here",
    ),
    "the other mechanism": (
        card(lambda c: c["mechanism"].update(mechanism="truncation")),
        "mechanism: utility: is for deep-candidate alone",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["drawn", "noisy"])
def test_an_untouched_release_passes(tmp_path: Path, originals: Path, name: str) -> None:
    # Kills: a column that only one of the mechanisms releases, asked of both.
    found = verify(str(copied(originals, tmp_path, name)))
    assert [file.path for file in found.files] == [DATA]
    assert json.loads(found.to_json())["mechanism"]["kind"] == "sentence-embeddings"


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_tampering_is_caught(release: Path, tampering: str) -> None:
    # Kills: each of the checks of cards of this kind.
    change, message = TAMPERINGS[tampering]
    change(release)
    with pytest.raises(InputError) as raised:
        verify(str(release))
    assert message in str(raised.value)
    assert str(raised.value).startswith(str(release))
    assert "\n" not in str(raised.value)


def test_a_candidate_is_no_column_of_noisy_means(tmp_path: Path, originals: Path) -> None:
    # Kills: a column that is let through because another mechanism has it.
    release = copied(originals, tmp_path, "noisy")
    rewrite(release, DATA, lambda t: t.append_column("candidate", pa.array([2] * 40)))
    with pytest.raises(InputError, match="does not account for: candidate"):
        verify(str(release))


def test_the_helper_spoils_nothing_else(release: Path) -> None:
    # The negative control of what covers up its traces.
    edit_card(release, lambda card: card.update(created=card["created"]))
    verify(str(release))
