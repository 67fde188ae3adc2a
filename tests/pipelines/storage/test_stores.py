"""Conditional writes whose answers get lost."""

from __future__ import annotations

import pytest

from quietcorpus.pipelines.storage import stores
from quietcorpus.transforms.errors import InputError


class Failure(Exception):
    def __init__(self, status: int | None) -> None:
        self.status_code = status


class Store:
    """An object in memory; each entry of a script is what the next write does.

    A status is answered without writing; `lost` writes, and then fails as a broken connection does;
    `raced` has another write come first; `fine` is as it should be.
    """

    def __init__(self, script: list[str | int | None], content: bytes | None = None) -> None:
        self.script = script
        self.content = content
        self.host = "memory"

    def read(self) -> tuple[bytes, str] | None:
        return None if self.content is None else (self.content, self.content.hex())

    def put(self, content: bytes, replacing: str | None) -> None:
        step = self.script.pop(0)
        if step is None or isinstance(step, int):
            raise Failure(step)
        if step == "raced":
            self.content = b"another's"
        found = self.read()
        if (found[1] if found else None) != replacing:
            raise Failure(412)
        self.content = content
        if step == "lost":
            raise Failure(None)


@pytest.fixture
def write(monkeypatch: pytest.MonkeyPatch) -> object:
    def run(store: Store, version: str | None = None) -> bool:
        monkeypatch.setattr(stores, "stored", lambda uri: store)
        if version is None:
            return stores.create_exclusively("s3://bucket/name", b"mine")
        return stores.replace("s3://bucket/name", b"mine", version)

    monkeypatch.setattr(stores, "_LONGEST_PAUSE_SECONDS", 0)
    return run


@pytest.mark.parametrize(
    ("script", "there", "created"),
    [
        (["fine"], None, True),
        (["fine"], b"another's", False),
        (["raced"], None, False),
        # The write happened, and its answer was lost.
        (["lost"], None, True),
        # The client itself tried again, and met its own first attempt.
        (["fine"], b"mine", True),
        # The store asks for another attempt, or the other object went away.
        ([409, 412, "fine"], None, True),
        ([409, "raced"], None, False),
    ],
)
def test_creating(write, script, there, created) -> None:  # type: ignore[no-untyped-def]
    store = Store(script, there)
    assert write(store) is created
    assert store.content == (b"mine" if created else b"another's")


@pytest.mark.parametrize(
    ("script", "there", "replaced"),
    [
        (["fine"], b"old", True),
        (["lost"], b"old", True),
        (["raced"], b"old", False),
        (["fine"], None, False),
        ([404], None, False),
    ],
)
def test_replacing(write, script, there, replaced) -> None:  # type: ignore[no-untyped-def]
    assert write(Store(script, there), b"old".hex()) is replaced


@pytest.mark.parametrize("script", [[None], [500], [403], [501], [409] * 99])
def test_a_write_that_did_not_happen_raises(write, script) -> None:  # type: ignore[no-untyped-def]
    store = Store(script)
    with pytest.raises(Failure):
        write(store)
    assert store.content is None


def test_other_stores_are_refused() -> None:
    with pytest.raises(InputError, match="hdfs://place/x: a store of this kind offers no condit"):
        stores.create_exclusively("hdfs://place/x", b"")
