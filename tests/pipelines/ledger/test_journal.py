"""Where records are kept: nothing is changed, lost or added without being told."""

from __future__ import annotations

import os
import platform
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from quietcorpus.mechanisms.guarantees import LimitedPrecision
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import Cost, Terms
from quietcorpus.pipelines.ledger.journal import Damaged, Journal
from quietcorpus.pipelines.ledger.records import digest
from quietcorpus.pipelines.ledger.request import Request
from quietcorpus.transforms.errors import InputError

RECORDS = 6
ROOT = Path(__file__).parents[3]


def request(release: str) -> Request:
    cost = Cost(LimitedPrecision(1, Fraction(1)))
    return Request(release, "0" * 32, "/corpus/a.csv", f"/nowhere/{release}", None, cost)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of six records, of every kind; nobody may change it."""
    folder = tmp_path_factory.mktemp("original") / "ledger"
    own = {"definition": "limited-precision", "precision": 1, "epsilon": 9}
    ledger = Ledger.init(str(folder), Terms.model_validate({"corpus": "/corpus", "caps": [own]}))
    first = ledger.reserve(request("a"))
    ledger.reserve(request("b"))
    ledger.commit(first, "0" * 32, "0" * 64)
    ledger.cancel("b", "a trial")
    ledger.reserve(request("c"))
    return folder


@pytest.fixture
def spoiled(original: Path) -> Iterator[Path]:
    """A copy that a test may spoil, in memory where there is such a folder."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = Path(tempfile.mkdtemp(dir=memory))
    folder.chmod(0o755)
    shutil.copytree(original, folder / "ledger")
    yield folder / "ledger"
    shutil.rmtree(folder)


def record(folder: Path, number: int) -> Path:
    return folder / f"{number:08d}.json"


def seal(folder: Path, number: int) -> Path:
    return folder / f"{number:08d}.sha256"


def reseal(folder: Path, number: int) -> None:
    path = record(folder, number)
    seal(folder, number).write_text(f"{digest(path.read_bytes())}  {path.name}\n")


def assert_damaged(folder: Path) -> str:
    """Opening says so in one line, and writes nothing."""
    before = sorted(folder.iterdir())
    with pytest.raises(InputError) as caught:
        Ledger.open(str(folder))
    said = str(caught.value)
    assert said.startswith(f"ledger: {folder} is damaged: "), said
    assert "\n" not in said
    assert sorted(folder.iterdir()) == before
    return said


def assert_whole(folder: Path, count: int = RECORDS) -> Ledger:
    ledger = Ledger.open(str(folder))
    assert len(ledger.records) == count
    return ledger


def test_as_it_was_written_it_opens(spoiled: Path) -> None:
    # The control of all tests below. Kills: a seal that `sha256sum --check` does not take.
    ledger = assert_whole(spoiled)
    assert [one.record for one in ledger.records] == [
        "opening",
        "reservation",
        "reservation",
        "commit",
        "cancellation",
        "reservation",
    ]
    assert sorted(path.name for path in spoiled.iterdir()) == sorted(
        f"{number:08d}.{kind}" for number in range(RECORDS) for kind in ("json", "sha256")
    )
    seals = [seal(spoiled, number).name for number in range(RECORDS)]
    subprocess.run(["sha256sum", "--check", "--strict", *seals], cwd=spoiled, check=True)


@pytest.mark.parametrize("kind", ["json", "sha256"])
@pytest.mark.parametrize("number", range(RECORDS))
def test_every_byte_counts(spoiled: Path, number: int, kind: str) -> None:
    # Kills: a seal or a record that is compared in part, by its values, or up to its white space.
    path = spoiled / f"{number:08d}.{kind}"
    content = path.read_bytes()
    everywhere = range(len(content))
    tried = everywhere if kind == "sha256" else sorted(random.sample(everywhere, 60))
    for position in tried:
        before, byte, after = content[:position], content[position], content[position + 1 :]
        edits = [
            before + bytes([byte ^ 1 << random.randrange(8)]) + after,
            before + bytes([random.randrange(256)]) + content[position:],
            before + after,
        ]
        for edit in edits:
            path.write_bytes(edit)
            assert edit != content
            assert_damaged(spoiled)
    for edit in (b"", content + b"\n", content + b" ", b"\n" + content, content * 2):
        path.write_bytes(edit)
        assert_damaged(spoiled)
    path.write_bytes(content)
    assert_whole(spoiled)


@pytest.mark.parametrize("number", range(RECORDS))
def test_every_byte_of_a_record_counts_in_the_chain(spoiled: Path, number: int) -> None:
    # A record is edited and sealed anew: the next one's digest tells, but for the last record's.
    # Kills: a chain that is not looked at, or that has the digest of the seal.
    path = record(spoiled, number)
    content = path.read_bytes()
    position = content.index(b'"nonce": "') + 10
    other = b"1" if content[position : position + 1] == b"0" else b"0"
    path.write_bytes(content[:position] + other + content[position + 1 :])
    reseal(spoiled, number)
    if number < RECORDS - 1:
        assert f"record {number + 1}: it does not follow" in assert_damaged(spoiled)
    else:
        assert_whole(spoiled)  # its card and the next record are what tells


@pytest.mark.parametrize("number", range(RECORDS))
def test_a_record_that_is_gone_is_missed(spoiled: Path, number: int) -> None:
    # Kills: a gap that ends the ledger, or is passed over.
    record(spoiled, number).unlink()
    assert f"record {number} is missing" in assert_damaged(spoiled)
    if number < RECORDS - 1:
        seal(spoiled, number).unlink()
        assert f"record {number} is missing" in assert_damaged(spoiled)


@pytest.mark.parametrize("number", range(1, RECORDS - 1))
def test_records_that_move_up_are_told(spoiled: Path, number: int) -> None:
    # Kills: a number that is not compared with the name.
    for following in range(number, RECORDS - 1):
        record(spoiled, following + 1).replace(record(spoiled, following))
        reseal(spoiled, following)
    seal(spoiled, RECORDS - 1).unlink()
    assert f"record {number}: it does not follow" in assert_damaged(spoiled)


@pytest.mark.parametrize("number", range(RECORDS))
def test_only_the_last_seal_may_be_missing(spoiled: Path, number: int) -> None:
    # Kills: seals that may all be missing, or none.
    seal(spoiled, number).unlink()
    if number < RECORDS - 1:
        assert f"the seal of record {number} is missing" in assert_damaged(spoiled)
    else:
        assert_whole(spoiled)


def test_two_records_that_change_places_are_told(spoiled: Path) -> None:
    # Kills: an order that is not checked, with the seals or without.
    for one in range(RECORDS):
        for other in range(one):
            for sealed in (False, True):
                swap(record(spoiled, one), record(spoiled, other))
                if sealed:
                    reseal(spoiled, one)
                    reseal(spoiled, other)
                assert_damaged(spoiled)
                swap(record(spoiled, one), record(spoiled, other))
                reseal(spoiled, one)
                reseal(spoiled, other)
    assert_whole(spoiled)


def swap(one: Path, other: Path) -> None:
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


def test_records_of_another_ledger_are_told(spoiled: Path, tmp_path: Path) -> None:
    # Kills: a chain of numbers alone: a ledger of equal caps and requests has other nonces.
    own = {"definition": "limited-precision", "precision": 1, "epsilon": 9}
    terms = Terms.model_validate({"corpus": "/corpus", "caps": [own]})
    other = Ledger.init(str(tmp_path / "ledger"), terms)
    other.reserve(request("a"))
    for number in range(2):
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(spoiled, copy)
        shutil.copy(record(tmp_path / "ledger", number), record(copy, number))
        reseal(copy, number)
        assert_damaged(copy)


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        "00000006",
        "6.json",
        "000000006.json",
        "00000006.json~",
        "00000006.json.tmp",
        "00000006.JSON",
        "-0000006.json",
        "identifiers.json",
        "\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0661.json",
    ],
)
def test_a_stranger_is_told(spoiled: Path, name: str) -> None:
    # Kills: a name that is nearly a record's and is passed over, or taken for one.
    (spoiled / name).write_bytes(record(spoiled, 5).read_bytes())
    assert f"{name} is not a record" in assert_damaged(spoiled)


def test_a_folder_in_a_records_place_is_told(spoiled: Path) -> None:
    # Kills: an error of the operating system for a line that says what is wrong.
    record(spoiled, RECORDS).mkdir()
    assert_damaged(spoiled)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["json", "sha256"])
def test_a_record_far_beyond_the_last_is_told_at_once(spoiled: Path, kind: str) -> None:
    # Kills: as many reads as the largest number says, which never end.
    (spoiled / f"99999999.{kind}").write_bytes(b"{}")
    script = (
        "import sys\n"
        "from quietcorpus.pipelines.ledger.book import Ledger\n"
        "from quietcorpus.transforms.errors import InputError\n"
        "import resource\n"
        "used = int(resource.getrusage(resource.RUSAGE_SELF).ru_utime)\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (used + 4, used + 4))\n"
        "try:\n"
        "    Ledger.open(sys.argv[1])\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(spoiled)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "is damaged: record 6 is missing" in found.stdout


def test_what_killed_writers_left_is_passed_over(spoiled: Path) -> None:
    # Kills: half a record that is read, and a leftover that stops all others.
    for name in (".00000006.json.0123", ".probe-0123", ".00000000.json.0123"):
        (spoiled / name).write_bytes(b'{"schema')
    (spoiled / "identifiers").mkdir()
    (spoiled / "identifiers" / "anything").write_bytes(b"?")
    ledger = assert_whole(spoiled)
    ledger.reserve(request("d"))
    assert_whole(spoiled, RECORDS + 1)


def test_half_a_record_under_its_own_name_is_told(spoiled: Path) -> None:
    # Kills: a last record that is taken before it is whole, with its seal or without.
    content = record(spoiled, RECORDS - 1).read_bytes()
    seal(spoiled, RECORDS - 1).unlink()
    for length in random.sample(range(len(content)), 60):
        record(spoiled, RECORDS - 1).write_bytes(content[:length])
        assert "record 5: it is no" in assert_damaged(spoiled)
    record(spoiled, RECORDS - 1).write_bytes(content[:-1])
    assert "record 5: it is not written as records are" in assert_damaged(spoiled)
    record(spoiled, RECORDS - 1).write_bytes(content)
    assert_whole(spoiled)


def test_a_record_without_its_seal_is_sealed_by_the_next_writer(spoiled: Path) -> None:
    # Kills: a gap in the seals after a crash; a seal that reading makes.
    content = seal(spoiled, RECORDS - 1).read_bytes()
    seal(spoiled, RECORDS - 1).unlink()
    ledger = assert_whole(spoiled)
    assert not seal(spoiled, RECORDS - 1).exists()
    ledger.reserve(request("d"))
    assert seal(spoiled, RECORDS - 1).read_bytes() == content
    assert seal(spoiled, RECORDS).exists()
    assert_whole(spoiled, RECORDS + 1)


def test_a_record_that_changes_before_it_is_sealed_is_told(spoiled: Path) -> None:
    # Kills: a writer who takes another's seal as it finds it, and goes on from a broken one.
    seal(spoiled, RECORDS - 1).unlink()
    ledger = assert_whole(spoiled)
    seal(spoiled, RECORDS - 1).write_text(f"{'0' * 64}  {RECORDS - 1:08d}.json\n")
    with pytest.raises(InputError, match="is damaged: record 5 is not the one that its seal is of"):
        ledger.reserve(request("d"))
    assert not record(spoiled, RECORDS).exists()


def loaded(folder: Path) -> Journal:
    journal = Journal(str(folder))
    journal.load()
    return journal


def test_of_two_writers_one_wins_and_the_other_follows(spoiled: Path) -> None:
    # Kills: a record that is written over, a loser that believes it won, a record that is followed
    # twice or not at all.
    one, other = loaded(spoiled), loaded(spoiled)
    assert one.append(b"one")
    assert not other.append(b"other")
    assert record(spoiled, RECORDS).read_bytes() == b"one"
    assert len(other.contents) == RECORDS
    assert list(other.follow()) == [b"one"]
    assert list(other.follow()) == []
    assert other.contents == one.contents
    assert other.append(b"other")
    assert not one.append(b"third")
    assert list(one.follow()) == [b"other"]
    assert one.append(b"third")
    assert other.append(b"fourth") is False
    assert list(other.follow()) == [b"third"]
    assert loaded(spoiled).contents == one.contents == other.contents
    assert len(one.contents) == RECORDS + 3
    assert not [path for path in spoiled.iterdir() if path.name.startswith(".")]


def test_a_follower_makes_up_for_a_missing_seal(spoiled: Path) -> None:
    # Kills: a record that is followed upon one without a seal.
    one, other = loaded(spoiled), loaded(spoiled)
    one.append(b"one")
    seal(spoiled, RECORDS).unlink()
    assert list(other.follow()) == [b"one"]
    assert other.append(b"two")
    assert seal(spoiled, RECORDS).read_text() == f"{digest(b'one')}  {RECORDS:08d}.json\n"
    loaded(spoiled)


def test_nothing_is_added_after_a_broken_seal(spoiled: Path) -> None:
    # Kills: a writer that trusts the seal of the record that it followed last.
    one, other = loaded(spoiled), loaded(spoiled)
    one.append(b"one")
    seal(spoiled, RECORDS).write_bytes(b"")
    other.follow()
    with pytest.raises(Damaged, match=f"record {RECORDS} is not the one that its seal is of"):
        other.append(b"two")


def test_an_empty_folder_and_none_hold_no_ledger(tmp_path: Path) -> None:
    # Kills: a ledger that is made by looking for it.
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="holds no ledger; open one with"):
            Ledger.open(str(place))
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_ledger(tmp_path: Path) -> None:
    # Kills: an error of the operating system for a line that says what is wrong.
    place = tmp_path / "file"
    place.write_text("a file")
    with pytest.raises(InputError, match=f"^ledger: {place}"):
        Ledger.open(str(place))


@contextmanager
def as_nobody() -> Iterator[None]:
    """Modes do not bind root, who is somebody else meanwhile."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(own)


def test_a_folder_that_is_not_writable_is_told(spoiled: Path) -> None:
    # Kills: an error of the operating system for a line that says what is wrong.
    ledger = assert_whole(spoiled)
    spoiled.chmod(0o555)
    with as_nobody(), pytest.raises(InputError, match="cannot be written to; check the perm"):
        ledger.reserve(request("d"))
    spoiled.chmod(0o755)
    assert_whole(spoiled)


@pytest.mark.parametrize("what", ["folder", "record"])
def test_a_ledger_that_is_not_readable_is_told(spoiled: Path, what: str) -> None:
    # Kills: an error of the operating system for a line that says what is wrong.
    path = spoiled if what == "folder" else record(spoiled, 3)
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        with as_nobody(), pytest.raises(InputError, match=f"^ledger: {spoiled}"):
            Ledger.open(str(spoiled))
    finally:
        path.chmod(mode)


NO_LINKS = """
import ctypes, errno, platform, struct, sys
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import as_terms
from quietcorpus.transforms.errors import InputError

# A filter of system calls answers `link` and `linkat` as a file system without links does.
calls = {"x86_64": [86, 265], "aarch64": [37]}[platform.machine()]
steps = [(0x20, 0, 0, 0)]
steps += [(0x15, len(calls) - at, 0, call) for at, call in enumerate(calls)]
steps += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | errno.EPERM)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
if libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0) != 0:
    print("no filter")
    sys.exit()
try:
    Ledger.init(sys.argv[1], as_terms(sys.argv[2]))
except InputError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64"), reason="the filter's numbers are not known"
)
def test_a_file_system_without_links_is_told(tmp_path: Path) -> None:
    # Kills: a record that is written without a link, or an error of the operating system.
    caps = tmp_path / "caps.yaml"
    caps.write_text("corpus: /corpus\ncaps: [{definition: sentence, epsilon: 1}]\n")
    place = tmp_path / "ledger"
    found = subprocess.run(
        [sys.executable, "-c", NO_LINKS, str(place), str(caps)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if found.stdout == "no filter\n":
        pytest.skip("filters of system calls are not allowed here")
    assert found.stdout == (
        f"ledger: the file system of {place} has no hard links, by which writers keep out of each "
        "other's way; name a place on another one, or in an object store\n"
    )
    assert list(place.iterdir()) == []


def test_a_file_system_that_refuses_is_told_in_one_line() -> None:
    # /proc refuses new files, root's too. Kills: an error of the operating system that is raised.
    place = "/proc/sys/quietcorpus"
    own = {"definition": "limited-precision", "precision": 1, "epsilon": 9}
    terms = Terms.model_validate({"corpus": "/corpus", "caps": [own]})
    with pytest.raises(InputError, match=f"^ledger: {place} cannot be written to; check the path"):
        Ledger.init(place, terms)


def test_a_process_that_may_write_no_more_leaves_the_ledger_whole(spoiled: Path) -> None:
    # A limit on the size of files stops the writer half-way through a record, as a full disk does.
    # Kills: a record that appears before it is whole; a leftover that others trip over.
    ledger = assert_whole(spoiled)
    before = sorted(path.name for path in spoiled.iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            ledger.reserve(request("d"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(path.name for path in spoiled.iterdir()) == before
    assert_whole(spoiled).reserve(request("d"))
    assert_whole(spoiled, RECORDS + 1)
