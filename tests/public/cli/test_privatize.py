"""`quietcorpus privatize`: as a filter in a pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [str(Path(sys.executable).with_name("quietcorpus")), "privatize"]
CANARY = "zqxcanary"
ACCEPT = ("--accept", "unchanged-words")


def options(index: Path, *more: str) -> list[str]:
    return [
        *COMMAND,
        "--index",
        str(index),
        "--mechanism",
        "brr",
        "--epsilon",
        "50",
        *ACCEPT,
        *more,
    ]


def filtered(
    index: Path, content: bytes, *more: str, code: int = 0
) -> subprocess.CompletedProcess[bytes]:
    """Run the filter on some input; at this epsilon every known word stays as it is."""
    done = subprocess.run(options(index, *more), input=content, capture_output=True, check=False)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    assert CANARY.encode() not in done.stdout + done.stderr
    return done


def test_a_line_comes_out_before_the_next_one_goes_in(word_index: Path) -> None:
    # Kills: a filter that waits for the end of its input, or holds back what it has.
    with subprocess.Popen(
        options(word_index), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        for said in ("the report", "a good one"):
            process.stdin.write(f"{said}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline() == f"{said}\n".encode()
        process.stdin.close()
        assert process.wait(120) == 0


@pytest.mark.slow
def test_every_line_has_its_line(word_index: Path) -> None:
    # Kills: empty lines and an unfinished last one that are lost; a carriage return that stays.
    done = filtered(word_index, f"the\n\n{CANARY}\r\nreport\r\na good".encode())
    assert done.stdout == b"the\n\n\nreport\na good\n"
    many = b"the report\n" * 20_000  # more than is read at once
    assert filtered(word_index, many).stdout == many
    assert filtered(word_index, b"").stdout == b""


def test_of_objects_the_text_and_what_is_kept_comes_out(word_index: Path) -> None:
    # Kills: a key that is copied unasked, and one that is lost.
    record = {"id": 7, "said": f"the report {CANARY}", "author": CANARY, "text": CANARY}
    done = filtered(
        word_index, json.dumps(record).encode(), "--jsonl", "--text", "said", "--keep", "id"
    )
    assert json.loads(done.stdout) == {"said": "the report", "id": 7}


@pytest.mark.parametrize(
    ("line", "more", "message"),
    [
        (b"\xff " + CANARY.encode(), (), "line 2 of standard input is not UTF-8"),
        (CANARY.encode(), ("--jsonl",), "line 2 of standard input is not a JSON object with a"),
        (b'{"text": 1}', ("--jsonl",), "line 2 of standard input is not a JSON object with a"),
        (b'{"text": "\\ud800"}', ("--jsonl",), "line 2 of standard input is not a JSON object"),
        (b'{"text": "a"}', ("--jsonl", "--keep", "id"), "line 2 of standard input has no 'id'"),
    ],
    ids=str,
)
def test_a_bad_line_ends_it_after_those_before(
    word_index: Path, line: bytes, more: tuple[str, ...], message: str
) -> None:
    # Kills: good lines that are lost with a bad one, and a message that quotes it.
    first = b'{"text": "the report", "id": 1}' if "--jsonl" in more else b"the report"
    done = filtered(word_index, first + b"\n" + line + b"\nthe\n", *more, code=2)
    assert len(done.stdout.splitlines()) == 1
    assert b"the report" in done.stdout
    warned, said = done.stderr.decode().splitlines()
    assert warned.startswith("WARNING epsilon protects little: 100 of 100 words")
    assert said.startswith(f"quietcorpus: error: {message}")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--keep", "id"), "--keep: is for JSON objects; give --jsonl as well, or drop it"),
        (("--jsonl", "--keep", "text"), "--keep: text is the text, which is privatised; drop it"),
        (("--jsonl", "--keep", "Text"), "--keep: 'Text' reads like 'text', the text; drop it"),
        (("--epsilon", "0"), "'0' is not above zero"),
    ],
)
def test_bad_options_are_one_line(word_index: Path, more: tuple[str, ...], message: str) -> None:
    done = filtered(word_index, b"the\n", *more, code=2)
    assert done.stdout == b""
    assert done.stderr.decode().splitlines()[-1] == f"quietcorpus: error: {message}"


LOADED = """
import sys
from quietcorpus.cli.main import main
try:
    main()
finally:
    loaded = [name for name in ("apache_beam", "torch", "ray", "pydantic") if name in sys.modules]
    print(loaded, file=sys.stderr)
"""


@pytest.mark.slow
def test_the_command_loads_no_engine(word_index: Path) -> None:
    # Kills: a command that needs Beam for a line of text, through the one that it is part of.
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *options(word_index)[1:]],
        input=b"the report\n",
        capture_output=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == b"[]", done.stderr
