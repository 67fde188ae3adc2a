"""The master key: where it may come from, and that no message or representation shows it."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from mechanisms.keystream import ReleaseKey
from pipelines.keys import WorkerKey, configured_master_key, master_key
from transforms.errors import InputError

NAME, FILE = "QUIETCORPUS_MASTER_KEY", "QUIETCORPUS_MASTER_KEY_FILE"
RAW = bytes(range(32))


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    monkeypatch.delenv(FILE, raising=False)


def test_a_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured_master_key() is None
    monkeypatch.setenv(NAME, f" {RAW.hex().upper()}\n")
    assert configured_master_key() == RAW
    monkeypatch.setenv(NAME, "")
    assert configured_master_key() is None


def test_a_key_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(RAW.hex() + "\n")
    monkeypatch.setenv(FILE, str(tmp_path / "key"))
    assert configured_master_key() == RAW


@pytest.mark.parametrize(
    "value", [RAW.hex()[:-2], RAW.hex() + "00", RAW.hex()[:-1] + "g", "hunter2-hunter2", "0x" * 32]
)
@pytest.mark.parametrize("source", [NAME, FILE])
def test_a_bad_key_is_refused_but_not_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, value: str
) -> None:
    (tmp_path / "key").write_text(value)
    monkeypatch.setenv(source, value if source == NAME else str(tmp_path / "key"))
    with pytest.raises(InputError) as raised:
        configured_master_key()
    message = str(raised.value)
    assert message.startswith(f"{source}: the master key is not 64 hexadecimal digits; make one")
    assert value not in message
    assert value[:8] not in message
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_two_keys_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, RAW.hex())
    monkeypatch.setenv(FILE, "/nowhere")
    with pytest.raises(InputError) as raised:
        configured_master_key()
    assert str(raised.value) == f"{NAME} and {FILE} are both set; set one of them"


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_key_file_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv(FILE, str(path))
    with pytest.raises(InputError) as raised:
        configured_master_key()
    # The value may be the key itself, put in the wrong variable. Kills: echoing it.
    assert str(raised.value) == f"{FILE}: the file that it names cannot be read as text"


def test_a_fresh_key_lives_as_long_as_the_run() -> None:
    with master_key(local=True) as first:
        # Worker processes inherit it.
        assert os.environ[NAME] == first.hex()
        assert configured_master_key() == first
    assert NAME not in os.environ
    with pytest.raises(RuntimeError), master_key(local=True) as second:
        raise RuntimeError
    assert NAME not in os.environ
    assert first != second


def test_a_configured_key_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, RAW.hex())
    for local in (True, False):
        with master_key(local=local) as key:
            assert key == RAW
    assert os.environ[NAME] == RAW.hex()


def test_a_cluster_needs_a_configured_key() -> None:
    with (
        pytest.raises(InputError, match=f"{NAME}: not set; workers on a cluster"),
        master_key(local=False),
    ):
        pass


def test_a_worker_checks_that_its_key_is_the_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = ReleaseKey.derive(RAW, "test")
    key = WorkerKey("test", launcher.fingerprint)
    with pytest.raises(InputError, match=f"{NAME}: not set in a worker; set it on every worker"):
        key()
    monkeypatch.setenv(NAME, RAW[::-1].hex())
    with pytest.raises(InputError, match="a worker has another master key than the launcher"):
        key()
    monkeypatch.setenv(NAME, RAW.hex())
    assert key() == launcher


def test_no_representation_shows_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    # What goes into a pipeline is pickled and may be shown by a runner's console.
    monkeypatch.setenv(NAME, RAW.hex())
    launcher = ReleaseKey.derive(RAW, "test")
    key = WorkerKey("test", launcher.fingerprint)
    shown = [repr(key).encode(), pickle.dumps(key), repr(launcher).encode()]
    for secret in (RAW, launcher.secret):
        for form in (secret, secret.hex().encode(), repr(secret)[2:-1].encode()):
            assert all(form not in text for text in shown)
