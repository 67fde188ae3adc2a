"""A stranger with write access, by Hypothesis: whatever is done to a signed ledger is found."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from signed_ledgers import KINDS, chained, contents, lay, signed, write
from signing_keys import KeyFiles, configured

from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.records import digest
from quietcorpus.pipelines.ledger.trust import Trust
from quietcorpus.transforms.errors import InputError

_NUMBERS = st.integers(0, len(KINDS) - 1)
MOVES = st.one_of(
    st.tuples(st.just("cut"), _NUMBERS, _NUMBERS),
    st.tuples(st.just("drop"), _NUMBERS, _NUMBERS),
    st.tuples(st.just("swap"), _NUMBERS, _NUMBERS),
    st.tuples(st.just("replay"), _NUMBERS, _NUMBERS),
    st.tuples(st.just("foreign"), _NUMBERS, _NUMBERS),
    st.tuples(st.just("edit"), _NUMBERS, _NUMBERS),
)
"""The deeds, and the records that they are done to."""
REPAIRS = st.one_of(
    st.none(),
    st.tuples(st.sampled_from(["unsigned", "signed", "signed on"]), _NUMBERS),
)
"""The ways in which records are made to agree again, if they are, and from which one on."""


@dataclass(frozen=True)
class Scene:
    """Two ledgers of the same keys, the keys, and a place for what becomes of the first one."""

    records: list[bytes]
    others: list[bytes]
    pins: tuple[KeyFiles, KeyFiles]
    stranger: KeyFiles
    place: Path


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("attacked")
    first, then, stranger = (KeyFiles(folder, name) for name in ("first", "then", "stranger"))
    ledgers = [contents(write(folder / name, first, then)) for name in ("one", "other")]
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    made = Path(tempfile.mkdtemp(dir=memory))
    yield Scene(*ledgers, (first, then), stranger, made / "ledger")
    shutil.rmtree(made)


def moved(
    records: Sequence[bytes], move: tuple[str, int, int], others: Sequence[bytes]
) -> list[bytes]:
    """The records after one move; there is one record at least."""
    found, (name, one, other) = list(records), move
    one, other = one % len(found), other % len(found)
    match name:
        case "cut":
            del found[one + 1 :]
        case "drop":
            del found[one]
        case "swap":
            found[one], found[other] = found[other], found[one]
        case "replay":
            found.insert(other, found[one])
        case "foreign":
            found[other] = others[one]
        case "edit":
            fields = json.loads(found[one])
            fields["nonce"] = fields["nonce"][::-1]
            found[one] = (json.dumps(fields, indent=1) + "\n").encode()
    return found or list(records[:1])


def repaired(
    records: Sequence[bytes], repair: tuple[str, int] | None, stranger: KeyFiles
) -> list[bytes]:
    """The records once they are numbered and chained anew from one on."""
    if repair is None:
        return list(records)
    name, begin = repair[0], repair[1] % len(records)
    if name != "signed on":
        return chained(records, begin, stranger if name == "signed" else None)
    fields = json.loads(records[0]) | {"number": 0, "previous": None}
    if fields["record"] == "opening":
        fields |= {"schema_version": 3, "key": stranger.key.public}
    return chained([signed(fields, stranger), *records[1:]], 1, stranger)


def opens(place: Path, pin: KeyFiles, head: str | None = None) -> bool:
    with configured():
        try:
            Ledger.open(str(place), Trust.configured(pin.public, head))
        except InputError as error:
            said = str(error)
        else:
            return True
    assert said.startswith("ledger: ")
    assert "\n" not in said
    return False


@settings(max_examples=80, deadline=None)
@given(moves=st.lists(MOVES, min_size=1, max_size=4), repair=REPAIRS)
def test_all_is_found_but_a_cut_and_that_by_its_head(
    scene: Scene, moves: list[tuple[str, int, int]], repair: tuple[str, int] | None
) -> None:
    """Move records, make them agree again, and look: with a key alone, and with a head as well.

    Kills: each check of `Signatures` and of `Trust`; tests/project/planted_faults.json lists them.
    """
    records = scene.records
    for move in moves:
        records = moved(records, move, scene.others)
    records = repaired(records, repair, scene.stranger)
    lay(scene.place, records)
    # Of another ledger of the same key, the beginning is one of a ledger of that key.
    is_cut = records in (scene.records[: len(records)], scene.others[: len(records)])
    event("cut" if is_cut else "anything else")
    head = f"{len(scene.records) - 1}:{digest(scene.records[-1])}"
    for pin in scene.pins:
        known = is_cut and (pin is scene.pins[0] or len(records) > KINDS.index("key"))
        assert opens(scene.place, pin) == known
        assert opens(scene.place, pin, head) == (records == scene.records)
