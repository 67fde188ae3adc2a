"""A command that varies texts: what it gets, what it must write, and how it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from forking_parents import gone
from machine import wait_until

from quietcorpus.pipelines.kinds.public_texts import vary as program
from quietcorpus.pipelines.kinds.public_texts.vary import Program
from quietcorpus.transforms.errors import InputError, StageError

ROWS = [
    {"id": 3, "label": "a", "text": "One \u2028 line.\n"},
    {"id": 7, "label": "b", "text": "Zwölf"},
]
ECHO = "import json, sys\nfor line in sys.stdin:\n    row = json.loads(line)\n"


def python(code: str, minutes: float = 1) -> Program:
    return Program.find([sys.executable, "-c", code], minutes)


def test_a_command_gets_the_rows_and_gives_a_text_for_each() -> None:
    # Kills: rows that are mixed up, keys that are lost, a text that is cut at some newline.
    said = "    print(json.dumps({'id': row['id'], 'text': row['label'] + row['text']}))"
    assert python(ECHO + said).vary(ROWS) == ["aOne \u2028 line.\n", "bZwölf"]


def test_a_command_of_no_rows_writes_none() -> None:
    assert python("").vary([]) == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('hello')", 'line 1 is not {"id": ..., "text": "..."}, in JSON and in UTF-8'),
        ('print(\'{"id": 3, "text": 5}\')', "line 1 is not"),
        ('print(\'{"id": 3, "text": "x", "weight": 1}\')', "line 1 is not"),
        ('print(\'{"id": 3, "text": "\\\\ud800"}\')', "line 1 is not"),
        ('print(\'{"id": 7, "text": "x"}\')', "line 1 has another id than row 1"),
        ('print(\'{"id": 3, "text": "x"}\')', "wrote 1 lines for 2 rows"),
        (
            'for row in 3, 7, 8: print(\'{"id": %s, "text": "x"}\' % row)',
            "wrote more than 2 lines",
        ),
        ("import sys; sys.exit(4)", "failed (exit code 4)"),
        ("import os; os.kill(os.getpid(), 9)", "failed (signal 9)"),
    ],
)
def test_whatever_else_it_writes_is_refused_in_a_line(code: str, said: str) -> None:
    # Kills: an answer that is taken for what it is not, and a failure that is overlooked.
    with pytest.raises(InputError) as raised:
        python(code).vary(ROWS)
    assert str(raised.value).startswith("command: ")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_too_much_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: no limit to what is in memory.
    monkeypatch.setattr(program, "MOST_BYTES", 1_000)
    with pytest.raises(InputError, match=r"wrote 2,001 bytes, and more than 1,000"):
        python("print('x' * 2_000)").vary(ROWS)


def test_a_command_ends_in_time_with_all_that_it_started(tmp_path: Path) -> None:
    # Kills: no time-out, and children that go on, which hold what they were given.
    note = tmp_path / "child"
    child = f"echo $$ > {note}; exec sleep 600"
    code = f"import subprocess; subprocess.run(['sh', '-c', {child!r}])"
    with pytest.raises(StageError, match=r"had not ended after 0\.05 minutes; give it more"):
        python(code, 0.05).vary(ROWS)
    wait_until(lambda: gone(note.read_text()), 60)


def test_no_secret_is_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: the environment as it is.
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY_FILE", "/secret/place")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-of-a-secret")
    monkeypatch.setenv("HF_HOME", "/models")
    code = (
        "import json, os\n"
        "print(json.dumps({'id': 3, 'text': json.dumps(dict(os.environ))}))\n"
        "print(json.dumps({'id': 7, 'text': ''}))"
    )
    seen = python(code).vary(ROWS)[0]
    assert "/models" in seen
    assert "canary-of-a-secret" not in seen
    assert "/secret/place" not in seen


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([], "command: is empty; name a program"),
        (["no-such-program"], "command: there is no program no-such-program; check name and PATH"),
        ([sys.executable, "--api-key=verysecret"], "a secret in a command is seen"),
    ],
)
def test_commands_that_are_not_run(command: list[str], said: str) -> None:
    # Kills: a secret on a card.
    with pytest.raises(InputError) as raised:
        Program.find(command, 1)
    assert said in str(raised.value)
    assert "verysecret" not in str(raised.value)


def test_a_file_that_is_no_program_is_told(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("no program")
    os.chmod(path, 0o755)
    with pytest.raises(InputError, match="command: text cannot be run"):
        Program.find([str(path)], 1).vary(ROWS)
