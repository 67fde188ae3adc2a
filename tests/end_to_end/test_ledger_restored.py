"""A ledger that was restored from a backup, between releases of a schedule."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ledgers import PRECISION, opened, records, refusal, spec, used
from signing_keys import KeyFiles

if TYPE_CHECKING:
    from tests.conftest import Workspace

HEAD = "QUIETCORPUS_LEDGER_HEAD_FILE"
HALF = {"mechanism__epsilon": 5.5}
CAP = PRECISION | {"epsilon": 11}


@pytest.fixture(params=["unsigned", "signed"])
def corpus(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    new_workspace: Callable[[Path], Workspace],
) -> Workspace:
    (tmp_path / "work").mkdir()
    workspace = new_workspace(tmp_path / "work")
    workspace.json_lines(["hello quiet world", "alpha beta gamma"])
    if request.param == "signed":
        key = KeyFiles(tmp_path, "ledger").private
        workspace.environment["QUIETCORPUS_LEDGER_KEY_FILE"] = key
    return workspace


def restored(corpus: Workspace) -> None:
    """Make w0 and w1 of a ledger that then is as it was between them."""
    folder = opened(corpus, CAP)
    corpus.release(spec("w0", **HALF))
    backup = shutil.copytree(folder, corpus.folder / "backup")
    corpus.release(spec("w1", **HALF))
    shutil.rmtree(folder)
    backup.rename(folder)


def test_a_release_beside_the_output_shows_what_was_lost(corpus: Workspace) -> None:
    # Kills: a budget that is spent twice; a way out that does not count what was spent, or that
    # leaves the ledger refused.
    restored(corpus)
    path = str(corpus.spec(spec("w2", **HALF)))
    lost = f"lacks record 3, which the card of w1 at {corpus.folder}/released/w1 names"
    assert lost in refusal(corpus.run("release", path))
    done = corpus.run("release", path, "--dry-run")
    assert (done.returncode, lost in done.stderr) == (2, True)
    assert len(records(corpus.folder / "ledger")) == 3
    assert "1 of 2 releases do not agree" in refusal(corpus.run("ledger", "verify", "ledger"))
    adopt = ("ledger", "adopt", "ledger", "released/w1", "--reason", "restored on 3 December")
    for _ in range(2):  # a call that was interrupted is repeated
        done = corpus.run(*adopt)
        assert done.returncode == 0, done.stderr
    assert used(corpus) == 11
    assert corpus.run("ledger", "verify", "ledger").returncode == 0
    assert corpus.run("verify", "released/w1", "--ledger", "ledger").returncode == 0
    assert corpus.run("release", path).returncode == 3
    events = json.loads(corpus.run("ledger", "history", "ledger", "--json").stdout)
    assert [one["event"] for one in events] == ["opening", "reservation", "commit", "adoption"]
    assert events[-1]["says"].endswith("restored on 3 December")
    assert "restored on 3 December" in corpus.run("ledger", "show", "ledger", "--html").stdout
    again = str(corpus.spec(spec("w1", output="released/again", **HALF)))
    assert "cannot be made again" in refusal(corpus.run("release", again))


def test_a_kept_head_shows_what_was_lost(corpus: Workspace) -> None:
    # Kills: a head that no run keeps, or that covers what is not published; a loss that nothing
    # beside the output shows; an acceptance that leaves no record.
    head = corpus.folder / "kept" / "head"
    corpus.environment[HEAD] = str(head)
    restored(corpus)
    assert head.read_text().startswith("4:")
    (corpus.folder / "released/w1").rename(corpus.folder / "handed-out")
    path = str(corpus.spec(spec("w2", **HALF)))
    assert "ends with record 2, and had record 4" in refusal(corpus.run("release", path))
    without = {HEAD: None}
    by_option = corpus.run("release", path, "--expect-head", str(head), environment=without)
    assert "ends with record 2, and had record 4" in refusal(by_option)
    adopt = ("ledger", "adopt", "ledger", "--reason", "restored on 3 December")
    done = corpus.run(*adopt, "handed-out")
    assert done.returncode == 0, done.stderr
    assert head.read_text().startswith("4:")
    kinds = [one["record"] for one in records(corpus.folder / "ledger")]
    assert kinds[3:] == ["adoption", "restoration"]
    assert corpus.run("release", path).returncode == 3
    assert "has lost no record" in refusal(corpus.run(*adopt))
    assert corpus.run("ledger", "verify", "ledger").returncode == 0


def test_the_summary_names_the_head(corpus: Workspace) -> None:
    # Kills: a head of other records than the ledger's last ones.
    opened(corpus, CAP)
    corpus.release(spec("w0", **HALF), "--summary", "summary.json")
    summary = json.loads((corpus.folder / "summary.json").read_text())
    done = corpus.run("ledger", "verify", "ledger", "--expect-head", summary["ledger_head"])
    assert done.returncode == 0, done.stderr
    assert summary["ledger_head"].startswith("2:")
