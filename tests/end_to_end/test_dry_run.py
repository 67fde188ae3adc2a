"""A dry run, by the command line: it tells what the release then does, and leaves nothing."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from embedding_releases import embeddings, prepare
from ledgers import opened, refusal, spec, used
from machine import OTHER_KEY
from public_pools import INPUT, Texts, texts_on
from ruamel.yaml import YAML
from s3_server import BUCKET, S3Server

if TYPE_CHECKING:
    from tests.conftest import Workspace

PRIVATE = {"mechanism.vocabulary": {"private": {"epsilon": 2, "delta": 1e-6}}}
"""No sample is taken where the vocabulary is private, which keeps a test short."""


def state(workspace: Workspace) -> dict[str, tuple[int, bytes]]:
    """Every file and folder, when it was changed, and its content.

    A sample comes and goes in the folder for temporary files, which must then hold what it held.
    """
    return {
        str(path): (
            path.stat().st_mtime_ns if path != workspace.temporary else 0,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(workspace.folder.rglob("*"))
    }


def said(output: str) -> dict[str, list[str]]:
    """Sort the printed lines by their first words."""
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        found.setdefault(line[:9].strip(), []).append(line[10:])
    return found


def dry(
    workspace: Workspace, changes: Mapping[str, Any], *arguments: str, code: int = 0, **given: Any
) -> dict[str, list[str]]:
    """Return the lines of a dry run, once it is checked that it has left nothing."""
    path = workspace.spec(changes)
    before = state(workspace)
    done = workspace.run("release", str(path), "--dry-run", *arguments, **given)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert state(workspace) == before
    return said(done.stdout) | ({"error": [refusal(done)]} if code else {})


def of_card(workspace: Workspace, output: str = "released/out") -> tuple[list[str], list[str]]:
    """The guarantee and the total of a card, as `verify` prints them."""
    found = said(workspace.run("verify", output).stdout)
    return found["guarantee"], [found["cost"][0].partition(" (")[0]]


@pytest.mark.slow
def test_it_is_what_the_release_then_is(workspace: Workspace) -> None:
    # Kills: a reservation, a claim, a probe, a sample that stays; another cost than the card's;
    # an account as it is before the release; a sample that reads the corpus.
    folder = opened(workspace)
    workspace.parquet({"text": ["hello quiet world, my canary"] * 40})
    changes = spec("one", input={"path": "input/corpus.parquet"})
    found = dry(workspace, changes)
    assert found["dry run"] == [
        f"{workspace.folder}/released/one; nothing is spent, and nothing is published"
    ]
    (account,) = found["ledger"]
    assert account.endswith("N = 2: epsilon 4 of 10, after this release")
    assert found["documents"] == ["40 records"]
    assert len(found["noise"]) == 3
    assert re.fullmatch(
        r"(at most )?about \d+ \w+ in one process on this machine, and about [\d.]+ kB, "
        r"by a sample of generated documents of \d+ bytes",
        found["time"][0],
    )
    (verdict,) = found["verdict"]
    assert verdict.startswith("of 8 words in a row about ")
    assert "canary" not in str(found)
    assert len(list(folder.glob("*.json"))) == 1
    workspace.release(changes)
    assert used(workspace) == 4
    assert (found["guarantee"], found["cost"]) == of_card(workspace, "released/one")


@pytest.mark.slow
def test_the_ledger_answers_as_it_will(workspace: Workspace) -> None:
    # Kills: an id that is not looked up, another run that may go on, a code of another end, a
    # refusal that hides what else was foreseen.
    opened(workspace)
    changes = spec("one") | PRIVATE
    workspace.json_lines(["hello quiet world"] * 60)
    first = dry(workspace, changes)
    assert first["ledger"][0].endswith("epsilon 6 of 10, after this release")
    assert first["noise"][-1].startswith("a word must be in about ")
    assert first["time"] == [
        "not estimated: generated text would not show it for this kind of release"
    ]
    workspace.release(changes)
    path = str(workspace.spec(changes))
    message = workspace.run("release", path).stderr.splitlines()[-1]
    assert dry(workspace, changes, code=2)["error"][0] in message
    ok = dry(workspace, changes, "--if-exists=ok", environment={"QUIETCORPUS_MASTER_KEY": None})
    assert ok["dry run"][0].endswith(
        "(complete already; nothing would be done); nothing is spent, and nothing is published"
    )
    assert (ok["guarantee"], ok["cost"]) == (first["guarantee"], first["cost"])
    assert "ledger" not in ok
    # The same run again, once its output was lost, and nothing else: it has paid already.
    shutil.rmtree(workspace.folder / "released")
    assert dry(workspace, changes)["ledger"][0].endswith("epsilon 6 of 10, reserved already")
    workspace.release(changes)
    # Two more of them would pass the cap.
    second = spec("two") | PRIVATE
    capped = dry(workspace, second, code=3)
    assert capped["ledger"][0] == f"it would refuse the release: {capped['error'][0]}"
    assert capped["cost"] == first["cost"]
    assert refusal(workspace.run("release", str(workspace.spec(second)))) == capped["error"][0]
    # The id again, for another place, by another key.
    other = changes | {"output": "released/other"}
    for given in ({}, {"environment": {"QUIETCORPUS_MASTER_KEY": OTHER_KEY}}):
        mine = dry(workspace, other, code=2, **given)["error"][0]
        assert mine == refusal(workspace.run("release", str(workspace.spec(other)), **given))


@pytest.mark.slow
def test_a_partition_whose_ids_are_of_another_key(workspace: Workspace) -> None:
    # Kills: a key that is taken to be that of the partitions so far, as a plan without a key does.
    opened(workspace)
    workspace.json_lines([{"text": "hello", "n": 1}])
    own = {"input": {"path": "input/corpus.jsonl", "id": "n"}}
    workspace.release(spec("one", **own, ledger={"path": "ledger", "partition": "a"}))
    other = spec("two", **own, ledger={"path": "ledger", "partition": "b"})
    found = dry(workspace, other)
    assert found["ledger"] == [
        "limited-precision privacy at N = 2: epsilon 4 of 10, after this release",
        "whether other partitions have any of its documents is seen in the run alone",
    ]
    environment = {"QUIETCORPUS_MASTER_KEY": OTHER_KEY}
    mine = dry(workspace, other, code=2, environment=environment)["error"][0]
    assert "under another master key" in mine
    path = str(workspace.spec(other))
    assert mine == refusal(workspace.run("release", path, environment=environment))


@pytest.mark.parametrize(
    ("changes", "arguments"),
    [
        ({"mechanism.epsilon": 0}, []),
        ({"input.path": "input/none.jsonl"}, []),
        ({"mechanism.vocabulary.public": "none.txt"}, []),
        ({"mechanism.epsilon": 40, "accept": []}, []),
        ({"output": "input"}, []),
        ({"output": "occupied"}, []),
        ({"ledger": "ledger"}, []),
        ({"input": {"path": "input/copies.jsonl", "keep": ["note"]}}, []),
        ({}, ["--workers", "2", "--runner=SparkRunner"]),
        ({}, ["--unknown"]),
    ],
)
def test_what_a_release_refuses(
    workspace: Workspace, changes: dict[str, Any], arguments: list[str]
) -> None:
    # Kills: a check that is left out, or another line or code for the same mistake.
    (workspace.folder / "occupied" / "before").mkdir(parents=True)
    text = "hello quiet world of many words, which a column repeats as they are"
    workspace.json_lines([{"text": text, "note": text}] * 40, "copies.jsonl")
    code = 4 if "input.path" in changes else 2  # schedulers wait for an input that is not there
    mine = dry(workspace, changes, *arguments, code=code)["error"][0]
    assert mine == workspace.refused(changes, *arguments, code=code)


def test_a_summary_is_not_written(workspace: Workspace) -> None:
    # Kills: an option that is dropped in silence.
    found = dry(workspace, {}, "--summary", "summary.json", code=2)
    assert found["error"] == ["--summary: a dry run writes none; drop it"]


@pytest.mark.slow
def test_numbers_of_documents_that_no_card_states(
    workspace: Workspace, public_texts: Texts
) -> None:
    # They would tell whether a document is there. Kills: a number, or a time that tells it.
    workspace.parquet({"text": texts_on(["law"], 61, 2)})
    found = dry(workspace, INPUT | public_texts())
    assert found["documents"] == ["not told, as on the card"]
    assert found["time"][0].startswith("not estimated: it would tell ")
    assert "61" not in str(found)


@pytest.mark.slow
@pytest.mark.parametrize("block", [{}, {"user": "author", "users": 1000}])
def test_public_texts(workspace: Workspace, public_texts: Texts, block: dict[str, Any]) -> None:
    # Kills: a statement of numbers that the card leaves out, a cost of documents for users.
    columns = {"text": texts_on(["law"], 61, 2), "author": [f"user-{n}" for n in range(61)]}
    workspace.parquet(columns)
    changes = INPUT | public_texts(**block)
    found = dry(workspace, changes)
    needed = " users must vote " if block else " documents must vote "
    assert needed in found["noise"][0]
    workspace.release(changes)
    assert (found["guarantee"], found["cost"]) == of_card(workspace)


def test_word_embeddings(workspace: Workspace, lee_texts: list[str]) -> None:
    # Kills: a schedule that the training alone would find, users that are not the spec's.
    prepare(workspace, lee_texts[:60])
    changes = embeddings(workspace, "cooccurrence", users=60)
    found = dry(workspace, changes)
    assert found["documents"][0].endswith(" records")  # which the card states
    workspace.release(changes)
    multiplier = Fraction(workspace.card()["mechanism"]["noise_multiplier"])
    (noise,) = found["noise"]
    assert noise.startswith(f"there are about {math.floor(60 / multiplier)} users ")
    assert (found["guarantee"], found["cost"]) == of_card(workspace)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["madlib", "brr"])
def test_words(workspace: Workspace, words: Callable[..., dict[str, Any]], mechanism: str) -> None:
    # Kills: a sample of words that the index lacks, which would take no time at all.
    changes = words(mechanism=mechanism)
    found = dry(workspace, changes)
    assert "95 % of the chance is on" in found["noise"][0]
    assert found["documents"] == ["not known before they are read"]
    assert " for 1,000 documents, by a sample of " in found["time"][0]
    workspace.release(changes)
    assert (found["guarantee"], found["cost"]) == of_card(workspace)
    card = workspace.card()
    unchanged = card["meaning"]["typical"][0]["unchanged"]["median"]
    assert f"unchanged with a chance of {unchanged:.2g};" in found["noise"][0]


@pytest.mark.slow
def test_sentences(workspace: Workspace, sentences: Callable[..., dict[str, Any]]) -> None:
    # Kills: text without sentences.
    (workspace.folder / "home" / "torch").mkdir()  # which torch makes when it is imported
    found = dry(workspace, sentences())
    assert found["noise"][0].startswith("a document needs ")
    assert " for 1,000 documents, by a sample of " in found["time"][0]
    workspace.release(sentences())
    assert (found["guarantee"], found["cost"]) == of_card(workspace)


@pytest.mark.slow
def test_a_store_is_only_read(workspace: Workspace, s3: S3Server) -> None:
    # Kills: a probe that writes, a claim that is taken, an output that the sample is staged in.
    workspace.environment |= s3.environment
    client = s3.client()
    client.upload_file(str(workspace.parquet({"text": ["hello"] * 9})), BUCKET, "in/a.parquet")
    with (workspace.folder / "caps.yaml").open("w") as stream:
        caps = [{"definition": "limited-precision", "precision": 2, "epsilon": 10}]
        YAML(typ="safe").dump({"corpus": "s3://corpus/in", "caps": caps}, stream)
    done = workspace.run("ledger", "init", "s3://corpus/ledger", "caps.yaml")
    assert done.returncode == 0, done.stderr
    changes = {
        "input.path": "s3://corpus/in/*.parquet",
        "output": "s3://corpus/released/a",
        "rejects": {"path": "s3://corpus/rejects"},
        "ledger": "s3://corpus/ledger",
    }
    before = s3.keys("")
    begun = [entry["LastModified"] for entry in client.list_objects_v2(Bucket=BUCKET)["Contents"]]
    # Who may only read can tell, too.
    found = dry(workspace, changes, environment=s3.environment_of("reader"))
    assert found["documents"] == ["9 records"]
    assert found["ledger"][0].endswith("epsilon 4 of 10, after this release")
    assert s3.keys("") == before
    after = [entry["LastModified"] for entry in client.list_objects_v2(Bucket=BUCKET)["Contents"]]
    assert after == begun


@pytest.mark.slow
def test_noise_alone_puts_as_many_words_there(workspace: Workspace) -> None:
    """Documents without words, by a map to bins, whose words come from the histogram.

    Alpha is 1e-6 an assertion: 4.9 deviations of a mean of 2,000 documents. Power: half the noise
    has means 16 % and more away, and is refused.
    """
    # Kills: words that the map or the histogram would add or drop beside the noise.
    count = 2000
    workspace.parquet({"text": [""] * count})
    changes = {
        "input": {"path": "input/corpus.parquet"},
        "mechanism.compression": {"method": "random", "size": 3},
        "mechanism.histogram_epsilon": 1,
        "mechanism.epsilon": 1,
    }
    found = dry(workspace, changes)
    (line,) = (one for one in found["noise"] if one.startswith("a document without a word"))
    expected = float(re.findall(r"about ([\d.]+),", line)[0])
    workspace.release(changes)
    rows = [pq.read_table(path) for path in (workspace.output / "data").iterdir()]
    totals = [sum(counts) for table in rows for counts in table["counts"].to_pylist()]
    assert len(totals) == count
    mean = sum(totals) / count
    deviation = (sum((one - mean) ** 2 for one in totals) / count) ** 0.5 / count**0.5
    rounding = 0.05  # the line has two digits
    assert abs(mean - expected) < 4.9 * deviation + rounding
    assert abs(mean - expected / 2) > 4.9 * deviation + rounding
