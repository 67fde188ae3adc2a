"""The lines of the README and of the guides, run as they are written, on a small corpus.

What a page leaves to its reader (a spec's values, a head that a command has printed) is filled in,
and numbers are made small.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from guide_pages import Desk, blocks, lines
from machine import ROOT
from s3_server import S3Server

GUIDES = "docs/guides"
SMALL = {"size: 100": "size: 40"}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A desk of a test's own."""
    return Desk(tmp_path)


@pytest.mark.slow
def test_the_readme(desk: Desk) -> None:
    # From a first spec to a report. Kills: a line that names another file or option than there is.
    init, release, check = blocks("README.md")
    desk.run(init)
    desk.spec("complaints.yaml", "README.md", {"size: 100": "size: 40"})
    desk.run(release)
    assert "epsilon 2.5" in desk.run(check)
    released = desk.folder / "releases" / "complaints-2026-11"
    (tree,) = re.findall(
        r"```\n(releases/.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    for name in re.findall(r"── (\S+)", tree):
        assert any(released.glob(name)), name
    assert (desk.folder / "private" / "evaluation" / "evaluation.html").exists()


@pytest.mark.slow
def test_the_guide_to_cards(desk: Desk) -> None:
    # Kills: a form that is no longer made, a signature that OpenSSL does not verify.
    desk.spec(
        "complaints.yaml",
        "README.md",
        {"size: 100": "size: 40", "releases/complaints-2026-11": "released/complaints"},
    )
    forms, signed, verified = blocks(f"{GUIDES}/cards.md")
    desk.run(signed)
    assert "Verified Successfully" in desk.run(verified)
    desk.run(forms, {"> complaints.yaml": "> registry.yaml"})
    for name in ("registry.yaml", "croissant.json", "sp800-226.md", "datasheet.md"):
        assert (desk.folder / name).stat().st_size > 100


@pytest.mark.nightly
def test_the_guides_to_bags(desk: Desk) -> None:
    # The guides to bags, histograms, audits, canaries, evaluation, provenance and reconstruction,
    # which are about one spec. Kills: a line of theirs that no longer runs.
    changes = SMALL | {
        "complaints-2026-11": "complaints",
        "\n  kind": "\n  include: [bins]\n  kind",
    }
    desk.spec("spec.yaml", f"{GUIDES}/bags-of-words.md", changes)
    named = {
        "complaints-terms": "complaint-words",
        "{private: {epsilon: 1, delta: 1e-8}}": "{public: vocabulary.txt}",
    }
    desk.spec("terms.yaml", f"{GUIDES}/histogram.md", named)
    (audit,) = blocks(f"{GUIDES}/audits.md")
    assert "passed" in desk.run(audit)
    (canaries,) = blocks(f"{GUIDES}/canaries.md")
    desk.run(canaries)
    (provenance,) = blocks(f"{GUIDES}/provenance.md")
    desk.run(provenance)
    desk.run("quietcorpus release spec.yaml && quietcorpus release terms.yaml")
    evaluate, *_ = blocks(f"{GUIDES}/evaluation.md")
    desk.run(evaluate)
    reconstruct, calibrate = blocks(f"{GUIDES}/reconstruction.md")
    desk.run(reconstruct)
    desk.run(calibrate, {"7156": "120", "0.5,2": "2 --bins 20,40 --runs 2"})


@pytest.mark.nightly
def test_the_guides_to_words(desk: Desk) -> None:
    # With the guide to text on a device, and what the guide to evaluation says of words.
    first, index, small, searched, rescaled, *more = blocks(f"{GUIDES}/words.md")
    chosen, solved, compared = more
    desk.spec("words.yaml", f"{GUIDES}/words.md")
    assert "london" in desk.run(index)
    desk.run(first)
    desk.run(small)
    desk.run(
        searched,
        {
            "--output index": "--output searchable",
            "lists=512": "lists=8",
            "calibrate words index": "calibrate words searchable",
            "probes=32": "probes=4",
        },
    )
    desk.run(rescaled)
    desk.run(chosen, {"least 50": "least 5", "--output calibration": "--output chosen"})
    desk.run(solved)
    desk.run(
        "cp -r index glove-840b && cp -r glove-index glove-6b\n" + compared,
        {"--words 512": "--words 40"},
    )
    evaluated = blocks(f"{GUIDES}/evaluation.md")[2]
    desk.run(
        evaluated, {"reviews-words": "complaints-words", "reviews.parquet": "corpus/a.parquet"}
    )
    (device,) = blocks(f"{GUIDES}/on-device.md")
    desk.write("lines.txt", desk.text() + "\n")
    desk.write("app.jsonl", json.dumps({"message": desk.text(), "time": 3, "secret": 4}) + "\n")
    own = {"tail -f": "cat", "--output small": "--output codes", "--index small": "--index codes"}
    *_, released = desk.run(device, own).splitlines()
    assert json.loads(released).keys() == {"message", "time"}
    assert (desk.folder / "private.txt").read_text().count("\n") == 1


@pytest.mark.nightly
def test_the_guide_to_public_texts(desk: Desk) -> None:
    page = f"{GUIDES}/public-texts.md"
    build, calibrated, evaluated, varied, narrowed, of_rounds = blocks(page)
    desk.spec("texts.yaml", page, {"pool: pool": "pool: pool\n  nearest: 5"}, 2)
    desk.run(build)
    desk.run(
        "\n".join(
            f"quietcorpus index build-pool {source}.parquet --output {pool} --provenance public "
            "--encoder lsa"
            for source, pool in (("public", "pool-a"), ("more-public", "pool-b"))
        )
    )
    desk.run(calibrated, {"20,100,500": "5,10", "25000": "120"})
    desk.run(evaluated)
    desk.run(varied, {"examples/paraphrase.py": str(ROOT / "examples" / "paraphrase.py")})
    desk.run(lines(build)[0], {"--output pool": "--search ivf:lists=4 --output lists"})
    for name, pool in (("both", "lists"), ("first", "lists"), ("second", "pool-narrow")):
        changes = {
            "pool: pool": f"pool: {pool}\n  nearest: 5",
            "complaints-texts": name,
            "mechanism:": "accept: [large-epsilon]\nmechanism:",
        }
        desk.spec(f"{name}.yaml", page, changes | {"epsilon: 1 ": "epsilon: 20 "})
    desk.run(narrowed, {"--pool pool ": "--pool lists "})
    own = {"--pool pool": "--pool lists", "--nearest 500": "--nearest 5", "25000": "120"}
    assert "At epsilon 1, " in desk.run(of_rounds, own)


@pytest.mark.slow
def test_the_guide_to_overviews(desk: Desk) -> None:
    # Kills: a pool without lists, a key that the spec does not have.
    page = f"{GUIDES}/overview.md"
    (made,) = blocks(page)
    own = {"user: sender": "user: author", "words/words.txt": "words.txt", "  # months": "  months"}
    desk.spec("overview.yaml", page, own | {"column: date": "column: label"})
    desk.run(made, {"lists=20": "lists=4"})
    assert (desk.folder / "releases" / "mail-overview" / "overview.html").exists()


@pytest.mark.nightly
def test_the_guide_to_sentence_embeddings(desk: Desk) -> None:
    page = f"{GUIDES}/sentence-embeddings.md"
    first, _static, _multilingual = blocks(page)
    desk.spec("sentences.yaml", page)
    few = "--provenance public --candidates 40 --clusters 4 --projections 20"
    desk.run(first, {"--provenance public": few})


@pytest.mark.nightly
def test_the_guides_to_word_embeddings(desk: Desk) -> None:
    # With what the guide to evaluation says of word vectors.
    page = f"{GUIDES}/word-embeddings.md"
    desk.spec(
        "embeddings.yaml",
        page,
        {
            "s3://raw/forum/*.parquet": "reviews.parquet",
            "s3://released/forum-words-2026-11": "releases/reviews-vectors",
            "checkpoints: s3": "# s3",
            "users: 200000 ": "users: 40",
            "{private: {epsilon: 1, delta: 1e-8, words: 100}}": "{public: words.txt}",
            "# few_users": "few_users",
            "dimensions: 100": "dimensions: 8",
            "steps: 100, lot: 20000": "steps: 4, lot: 20",
        },
    )
    (release,) = blocks(page)
    desk.run(release)
    evaluated = blocks(f"{GUIDES}/evaluation.md")[1]
    desk.run(evaluated)
    assert (desk.folder / "private" / "evaluation" / "evaluation.html").exists()


@pytest.mark.slow
@pytest.mark.nightly
def test_the_guide_to_ledgers(desk: Desk, s3: S3Server) -> None:
    # Kills: a command of the ledger that was renamed.
    page = f"{GUIDES}/ledger.md"
    place = "s3://corpus/complaints"
    own = {"s3://ledger/complaints": place}
    desk.environment |= s3.environment
    first, planned, signed, changed = blocks(page)
    (caps,) = [block for block in blocks(page, "yaml") if "caps:" in block]
    caps = re.sub(r"(?m)^.*definition: metric.*\n", "", caps)  # the index is for the reader to name
    caps = caps.replace("s3://raw/complaints", str(desk.folder / "corpus"))
    desk.write("caps.yaml", caps)
    for name in ("january", "february", "weekly"):
        changes = {"complaints-2026-11": name, "mechanism:": f"ledger: {place}\nmechanism:"}
        desk.spec(f"{name}.yaml", f"{GUIDES}/bags-of-words.md", SMALL | changes)
    desk.run(first, own)
    assert (desk.folder / "ledger.html").stat().st_size > 1_000
    assert "january" in desk.run(f"quietcorpus ledger history {place}")
    desk.run(planned)
    *made, init, sign, verify = lines(signed)
    desk.run("".join(made))
    unsigned = head(desk, place)
    desk.environment["QUIETCORPUS_LEDGER_KEY_FILE"] = str(desk.folder / "ledger.pem")
    desk.run(init, {"s3://ledger/complaints": "s3://corpus/signed"})
    desk.run(sign, own | {"HEAD": unsigned})
    desk.run(verify, own | {"HEAD": head(desk, place)})
    desk.write("caps.yaml", caps.replace("epsilon: 20", "epsilon: 30"))
    desk.run(changed, own)
    rotated, _ = blocks(f"{GUIDES}/upgrades.md")
    desk.run(rotated, {"PLACE": place, "HEAD": head(desk, place)})


def head(desk: Desk, place: str) -> str:
    """Return the head that `ledger verify` prints."""
    (found,) = re.findall(r"head\W+(\S+)", desk.run(f"quietcorpus ledger verify {place}"))
    return str(found)


@pytest.mark.nightly
def test_the_guides_to_schedules(desk: Desk) -> None:
    # The loop of cron over seven days, and what they would cost.
    desk.environment["PATH"] = f"{ROOT / 'deploy' / 'cron'}:{desk.environment['PATH']}"
    place = f"ledger: {desk.folder / 'ledger'}"
    template = {
        "s3://raw/complaints/{{ ds }}/*.parquet": "corpus/*.parquet",
        "s3://released/complaints/": "released/",
        "mechanism:": f"{place}\nmechanism:",
    }
    desk.spec("template.yaml", f"{GUIDES}/schedules.md", template)
    caps = "{definition: limited-precision, precision: 10, epsilon: 40}"
    desk.write("caps.yaml", f"corpus: {desk.folder / 'corpus'}\ncaps: [{caps}]\n")
    desk.run("quietcorpus ledger init ledger caps.yaml")
    (plan,) = blocks(f"{GUIDES}/schedules.md")
    assert "15" in desk.run(plan)
    (loop,) = blocks(f"{GUIDES}/cron.md")
    desk.run(loop)
    assert len(list((desk.folder / "released").glob("2*"))) == 7


@pytest.mark.slow
def test_the_guide_to_this_machine(desk: Desk) -> None:
    (key,) = blocks(f"{GUIDES}/this-machine.md")
    del desk.environment["QUIETCORPUS_MASTER_KEY"]
    desk.spec("spec.yaml", f"{GUIDES}/bags-of-words.md", SMALL)
    desk.run(key + "quietcorpus release spec.yaml")


@pytest.mark.nightly
def test_the_guide_to_pipelines(desk: Desk) -> None:
    own, rows = blocks(f"{GUIDES}/beam.md")
    examples = {"examples/": f"{ROOT / 'examples'}/"}
    key = desk.folder / ".config" / "quietcorpus" / "master-key"
    key.parent.mkdir(parents=True)
    key.touch(0o600)
    key.write_text(desk.environment.pop("QUIETCORPUS_MASTER_KEY"))
    desk.run(own, examples)
    desk.environment["QUIETCORPUS_MASTER_KEY_FILE"] = str(key)
    desk.run(rows, examples)


@pytest.mark.slow
def test_the_guide_to_debugging(desk: Desk) -> None:
    # Kills: a step that is renamed, and a DoFn whose arguments are others than the example's.
    page = f"{GUIDES}/debugging.md"
    (example,) = blocks(page)
    (printed,) = (block for block in blocks(page, "text") if block.startswith("splits"))
    assert desk.run(example, {"examples/": f"{ROOT / 'examples'}/"}) == printed
