"""`audit`: what is written and shown of every kind, and how the command ends."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from machine import SURE

from quietcorpus.evaluation.audits.findings import Exact, run
from quietcorpus.pipelines.audit.audit import audit, audits_of, lines, refuse
from quietcorpus.pipelines.card.parameters import DocumentBudget
from quietcorpus.pipelines.kinds.words import job as word_meaning
from quietcorpus.pipelines.schema.loading import load_spec
from quietcorpus.transforms.errors import InputError, StageError

if TYPE_CHECKING:
    from conftest import Workspace

COMMAND = "from quietcorpus.cli.evidence import audit; audit()"
HISTOGRAM = {
    "kind": "histogram",
    "precision": 3,
    "epsilon": 1,
    "vocabulary": {"private": {"epsilon": 2, "delta": 1e-6}},
}
FAULT = """
import quietcorpus.mechanisms.bags.histogram
from quietcorpus.mechanisms.noise.geometric import DenseNoise
quietcorpus.mechanisms.bags.histogram.DenseNoise = lambda rate, size: DenseNoise(4 * rate, size)
"""


def command_with(
    fault: str, workspace: Workspace, *arguments: str
) -> subprocess.CompletedProcess[str]:
    return workspace.run_code(fault + COMMAND, *arguments)


def spec_of(workspace: Workspace, block: dict[str, Any]) -> str:
    """A spec of a corpus that is not there."""
    return str(workspace.spec({"mechanism": block, "input.path": "nowhere/*.jsonl"}))


def test_what_is_written_is_what_was_found(workspace: Workspace) -> None:
    # Kills: a corpus that is looked for, options that are not passed on, figures that are not the
    # audits', anything left beside the output.
    done = workspace.run(
        "audit",
        *(spec_of(workspace, HISTOGRAM), "--output", "audited"),
        *("--draws", "5000", "--confidence", str(SURE)),
    )
    assert done.returncode == 0, done.stderr
    written = json.loads((workspace.folder / "audited" / "audit.json").read_text())
    assert done.stdout.splitlines() == list(lines(written))
    audits = written.pop("audits")
    assert written == {
        "schema_version": 1,
        "spec": "test",
        "kind": "histogram",
        "confidence": SURE,
        "passed": True,
    }
    delta = math.nextafter(1e-6, 1)  # rounded up, against the publisher
    assert [(a["name"], a["way"], a["stated"], a["delta"], a["draws"]) for a in audits] == [
        ("vocabulary: what a token changes", "exact", 1.0, None, None),
        ("vocabulary: terms of both corpora", "exact", 2.0, delta, None),
        ("vocabulary: terms of one corpus (delta)", "exact", delta, delta, None),
        ("vocabulary: terms of one corpus, selected (delta)", "sampled", delta, delta, 5000),
        ("vocabulary: 3 of 3 terms", "sampled", 2.0, None, 5000),
        ("vocabulary: one term, by frequency", "sampled", pytest.approx(2 / 3), None, 5000),
        ("histogram: what a token changes", "exact", 1.0, None, None),
        ("histogram: the noise's law", "exact", 1.0, None, None),
        ("histogram: 3 tokens", "sampled", 1.0, None, 5000),
    ]
    assert {found["verdict"] for found in audits} == {"passed"}
    for found in audits:
        assert (found["event"] is None) == (found["way"] == "exact")
        assert found["says"].endswith(".")
    assert [path.name for path in workspace.folder.glob(".audited*")] == []
    assert "0.999999: mechanisms that keep" in done.stdout
    assert "no corpus was read" in done.stdout


@pytest.mark.slow
def test_a_mechanism_that_fails_ends_with_1_and_is_written_all_the_same(
    workspace: Workspace,
) -> None:
    # Kills: an audit that only tells. A fourth of the noise: 4 epsilon, of which draws show 2 and
    # more (5,000 of them: a reach of 5), and of the noise itself, not of its law as stated.
    done = command_with(
        FAULT,
        workspace,
        *(spec_of(workspace, HISTOGRAM), "--output", "audited", "--draws", "10000"),
        *("--confidence", str(SURE)),
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("quietcorpus: error: audit: ")
    assert "is more than the" in last
    assert "FAILED" in done.stdout
    assert "failed      histogram: 3 tokens: " in done.stdout
    written = json.loads((workspace.folder / "audited" / "audit.json").read_text())
    assert not written["passed"]
    assert any(not found["passed"] and found["found"] > 1.5 for found in written["audits"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.yaml",), "missing.yaml: no such spec file"),
        (("spec.yaml", "--draws", "7"), "--draws"),
        (("spec.yaml", "--confidence", "1"), "--confidence"),
        (("spec.yaml", "--output", "input"), "not empty"),
        (("spec.yaml", "--output", ""), "give a path or a URI"),
        (("other.yaml",), "mechanism.vocabulary.public"),
    ],
)
def test_bad_input_is_refused(
    workspace: Workspace, arguments: tuple[str, ...], message: str
) -> None:
    spec_of(workspace, HISTOGRAM)
    workspace.spec({"mechanism.vocabulary.public": "nowhere.txt"}, "other.yaml")
    done = workspace.run("audit", *arguments)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def audited(workspace: Workspace, block: dict[str, Any]) -> dict[str, Any]:
    """The audit of a spec in this process, by a few draws."""
    block = {  # paths are the working directory's, which is not the workspace here
        key: {"public": str(workspace.folder / "vocabulary.txt")} if key == "vocabulary" else value
        for key, value in block.items()
    }
    spec = load_spec(spec_of(workspace, block))
    found = audit(spec, draws=2000, confidence=SURE)
    assert found["passed"], found
    refuse(found)
    assert found["kind"] == block["kind"]
    json.dumps(found, allow_nan=False)
    return found


def names(found: dict[str, Any]) -> list[str]:
    return [each["name"] for each in found["audits"]]


BAGS = {
    "kind": "bag-of-words",
    "precision": 5,
    "epsilon": 10,
    "histogram_epsilon": 1,
    "vocabulary": ...,
    "compression": {"method": "frequency", "size": 4},
}
USERS = {
    "kind": "word-embeddings",
    "user": "author",
    "users": 1000,
    "few_users": "accept",
    "delta": 1e-5,
    "vocabulary": ...,
    "dimensions": 2,
}
SUMS = (
    "documents: the noise's law",
    "documents: what a sentence moves sums by",
    "documents: noise drawn, its distribution",
    "documents: noise drawn, its independence",
    "documents: noise drawn, its repeats",
)
STREAMS = "documents: addresses of draws", "documents: draws of one key", "keys drawn"
DRAWN = "a step's sums, with and without a user", "the counts, with and without a user"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            BAGS,
            [
                "histogram: what a token changes",
                "histogram: the noise's law",
                "histogram: 5 tokens",
                "documents: the noise's law",
                "documents: 1 of 5 tokens",
                "documents: 5 tokens",
            ],
        ),
        (
            USERS | {"method": "sgd", "epsilon": 4},
            [
                "a user's update",
                "updates of documents without a part",
                "users of 1 step",
                "users of 2 steps",
                "users after their last step",
                "accounting",
                DRAWN[0],
            ],
        ),
        (
            USERS
            | {
                "method": "cooccurrence",
                "budgets": {"column": "team", "epsilon": {"gold": 8, "silver": 3}},
            },
            [
                "a user's counts: group silver",
                "a user's counts: group gold",
                "counts of documents without a part",
                "accounting: group silver",
                "accounting: group gold",
                DRAWN[1],
            ],
        ),
    ],
)
def test_every_stage_of_a_kind_is_audited(
    workspace: Workspace, block: dict[str, Any], expected: list[str]
) -> None:
    # Kills: a stage left out, a group of users left out, another kind's audits.
    assert names(audited(workspace, block)) == expected


def test_per_entry_accounting_is_held_to_what_is_proved(workspace: Workspace) -> None:
    # 8 terms in 4 bins: twice the paper's figure. Kills: the paper's figure as the statement.
    found = audited(workspace, BAGS | {"epsilon": 1, "accounting": "per-entry"})
    law = next(each for each in found["audits"] if each["name"] == "documents: the noise's law")
    assert law["stated"] == 2
    assert law["found"] == pytest.approx(2, rel=1e-9)


@pytest.mark.parametrize(("mechanism", "epsilon"), [("madlib", 10), ("brr", 0.5)])
def test_words(
    workspace: Workspace, words: Callable[..., dict[str, Any]], mechanism: str, epsilon: float
) -> None:
    block = words(mechanism=mechanism, epsilon=epsilon)["mechanism"]
    found = audited(workspace, block)
    if mechanism == "madlib":
        noise = [
            "noise in one dimension",
            "noise's length, a unit of distance",
            "noise along its weakest direction, a unit of distance",
            "noise's losses along the last dimension",
            "noise's losses along a random direction",
            "noise's squares that vary least",
        ]
    else:
        noise = ["flips of a bit, a unit of distance", "flips that vary least"]
    assert names(found) == [
        *noise,
        "documents: a word of four on a line",
        "documents: one of two equal words",
        "documents: words that documents share",
        "documents: many words on a line",
        "documents: a word out of the vocabulary",
        "documents: case, marks and spaces",
        "documents: one word",
        "words: the largest distance",
    ]


@pytest.mark.parametrize(
    ("fault", "failed"),
    [
        (None, []),
        ("a word's epsilon for half of the words", ["documents: epsilon of 4 words"]),
        ("half the largest distance", ["words: the largest distance"]),
    ],
)
def test_the_card_of_a_documents_epsilon_is_held_to_the_index(
    workspace: Workspace,
    words: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    fault: str | None,
    failed: list[str],
) -> None:
    # Kills: an epsilon solved for documents that are shorter than stated; a distance on the card
    # that pairs of the index exceed.
    if fault == "a word's epsilon for half of the words":
        real = DocumentBudget.word_epsilon

        def halved(self: DocumentBudget, *given: Any) -> Any:
            return real(replace(self, words=self.words // 2), *given)

        monkeypatch.setattr(DocumentBudget, "word_epsilon", halved)
    if fault == "half the largest distance":
        real_distance = word_meaning.distance
        monkeypatch.setattr(word_meaning, "distance", lambda *given: real_distance(*given) / 2)
    document = {"epsilon": 4, "delta": 1e-6, "words": 4, "longer": "cut"}
    block = words(epsilon=..., document_epsilon=document)["mechanism"]
    audits = audits_of(load_spec(spec_of(workspace, block)))
    assert "documents: words beyond the most" in {each.name for each in audits}
    findings = run([each for each in audits if isinstance(each, Exact)], 0, 0.5)
    assert [each.name for each in findings if not each.passed] == failed


def test_an_audit_that_cannot_tell_neither_passes_nor_fails(workspace: Workspace) -> None:
    # 1,000 draws show less than 8. Kills: a pass on the screen or in the file, an exit code of 1.
    found = audited(workspace, BAGS | {"epsilon": 8, "precision": 1})
    told = {each["name"]: each["verdict"] for each in found["audits"]}
    assert told["documents: 1 token"] == "cannot tell"
    assert told["documents: the noise's law"] == "passed"
    shown = list(lines(found))
    row = next(line for line in shown if line.startswith("documents: 1 token"))
    assert row.endswith("cannot tell")
    assert any(line.startswith("cannot tell documents: 1 token: ") for line in shown)


def test_words_that_share_a_documents_epsilon(
    workspace: Workspace, words: Callable[..., dict[str, Any]]
) -> None:
    # Kills: documents of one word alone, for which sharing is nothing.
    block = words(epsilon=..., document_epsilon=10)["mechanism"]
    assert "documents: two equal words of four on a line" in names(audited(workspace, block))


def test_sentences(workspace: Workspace, sentences: Callable[..., dict[str, Any]]) -> None:
    found = audited(workspace, sentences()["mechanism"])
    assert names(found) == [
        "documents: what a sentence moves utilities by",
        "documents: utilities that one sentence may give",
        "documents: public sentences",
        "documents: candidates drawn, their chances",
        "documents: candidates drawn, their independence",
        "documents: candidates drawn, far apart",
        "documents: candidates drawn, near",
        "documents: rows besides the candidate",
        *STREAMS,
    ]
    block = sentences(mechanism="truncation", utility=...)["mechanism"]
    assert names(audited(workspace, block)) == [
        *SUMS,
        "documents: a step apart, in the last dimension",
        "documents: apart in drawn dimensions",
        "documents: far apart, in all dimensions",
        "documents: rows besides noisy sums",
        *STREAMS,
    ]
    block = sentences(mechanism="projected-mean", utility=..., directions=3)["mechanism"]
    assert names(audited(workspace, block)) == [
        *SUMS,
        "documents: a step apart, along the last direction",
        "documents: near, along the last direction",
        "documents: near, along a drawn direction",
        "documents: far apart, along a drawn direction",
        "documents: rows besides noisy sums",
        *STREAMS,
    ]


def test_nothing_is_run_where_the_output_is_in_use(workspace: Workspace) -> None:
    # Kills: minutes of draws before saying so, overwriting.
    (workspace.folder / "audited").mkdir()
    (workspace.folder / "audited" / "mine").write_text("kept")
    spec = load_spec(spec_of(workspace, HISTOGRAM))
    with pytest.raises(InputError, match="not empty"):
        audit(spec, str(workspace.folder / "audited"), draws=-1)
    assert (workspace.folder / "audited" / "mine").read_text() == "kept"


def test_nothing_is_written_into_a_release(workspace: Workspace) -> None:
    # Kills: a file that the card does not know, by which `verify` refuses the release.
    (workspace.folder / "release.json").write_text("{}")
    spec = load_spec(spec_of(workspace, HISTOGRAM))
    with pytest.raises(InputError, match="lies in a release"):
        audit(spec, str(workspace.folder / "audited"), draws=-1)
    assert not (workspace.folder / "audited").exists()


def test_a_loss_without_bound_is_written_as_the_largest_float(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: Infinity in the file, which no JSON parser must read; a pass.
    monkeypatch.setattr(
        "quietcorpus.pipelines.kinds.histogram.checks.selection_loss", lambda _: float("inf")
    )
    output = workspace.folder / "audited"
    found = audit(load_spec(spec_of(workspace, HISTOGRAM)), str(output), draws=1000)
    assert json.loads((output / "audit.json").read_text()) == found
    assert found["audits"][1]["found"] == sys.float_info.max
    with pytest.raises(StageError, match="1 of 9 audits failed"):
        refuse(found)
