"""The guard of every DoFn: an error leaves without what it quoted."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator

import pytest
from apache_beam.runners.worker import statecache

from quietcorpus.transforms.errors import (
    UNREDACTED,
    InputError,
    NoisyOutcome,
    StageError,
    keep_messages,
    redacted,
    redacted_call,
)

SECRET = "the patient's name"


def plainly(secret: str) -> Iterator[int]:
    yield 1
    raise ValueError(f"cannot parse {secret!r}")


def with_a_cause(secret: str) -> Iterator[int]:
    try:
        raise KeyError(secret)
    except KeyError as error:
        raise RuntimeError(f"while reading {secret}") from error
    yield 1


def in_a_handler(secret: str) -> Iterator[int]:
    try:
        raise KeyError(secret)
    except KeyError:
        raise InputError("input.path: damaged; write it again")  # noqa: B904
    yield 1


def deliberately(secret: str) -> Iterator[int]:
    if secret:
        raise InputError("input.path: damaged; write it again")
    yield 1


def of_a_noisy_outcome(secret: str) -> Iterator[int]:
    yield 1
    raise NoisyOutcome("mechanism.vocabulary: none is left; raise epsilon")


class Quoting(Exception):
    """An exception whose class could quote as well, by its arguments."""


def of_its_own_class(secret: str) -> Iterator[int]:
    yield 1
    raise Quoting(secret, {"text": secret})


class Panic(BaseException):
    """As Rust's panics come: not an `Exception`."""


def panicking(secret: str) -> Iterator[int]:
    yield 1
    raise Panic(f"byte index 3 is not a char boundary of {secret!r}")


@pytest.mark.parametrize(
    ("process", "kind"),
    [
        (panicking, StageError),
        (plainly, StageError),
        (with_a_cause, StageError),
        (in_a_handler, InputError),
        (deliberately, InputError),
        (of_a_noisy_outcome, NoisyOutcome),
        (of_its_own_class, StageError),
    ],
)
def test_an_error_leaves_without_what_it_quoted(
    process: Callable[[str], Iterator[int]], kind: type[Exception]
) -> None:
    for guarded in (redacted(process), redacted_call(lambda text: list(process(text)))):
        with pytest.raises(kind) as raised:
            list(guarded(SECRET))
        require_no_text(raised.value, kind, process)


def require_no_text(
    error: Exception, kind: type[Exception], process: Callable[[str], Iterator[int]]
) -> None:
    # Kills: a noisy outcome that leaves as bad input, which spends no budget.
    assert type(error) is kind
    assert error.__cause__ is None
    # Kills: an error that is raised inside the handler, whose context still quotes.
    assert error.__context__ is None
    assert SECRET not in "".join(traceback.format_exception(error))
    assert SECRET not in repr(error.args)
    if kind is StageError:
        # What is left names the class and the place, so that the failure can be found.
        assert f"test_errors.py:{line_of(process)} {process.__name__}" in str(error)


def line_of(process: Callable[[str], Iterator[int]]) -> int:
    """The last line of these functions that raises."""
    import inspect

    lines, start = inspect.getsourcelines(process)
    return start + max(i for i, line in enumerate(lines) if line.strip().startswith("raise"))


def test_what_is_yielded_before_is_passed_on() -> None:
    guarded = redacted(plainly)(SECRET)
    assert next(guarded) == 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_left_alone(kind: type[BaseException]) -> None:
    def process() -> Iterator[int]:
        raise kind
        yield 1

    with pytest.raises(kind):
        list(redacted(process)())
    with pytest.raises(kind):
        redacted_call(lambda: list(process()))()


class Unweighed(str):
    def __sizeof__(self) -> int:
        raise ValueError(self)


def test_a_side_input_that_beam_cannot_weigh_is_not_quoted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Kills: exact sums, which wait as side inputs for their noise, in warnings of Beam's cache.
    monkeypatch.setattr(statecache, "get_deep_size", lambda *_: 0)
    monkeypatch.setattr(statecache._size_func, "last_log_time", -1e9)
    with caplog.at_level(logging.DEBUG):
        assert statecache.StateCache(1 << 20).get("sums", lambda _: [SECRET]) == [SECRET]
        assert statecache._size_func(Unweighed(SECRET)) > 0
    assert SECRET not in caplog.text


def test_beams_loggers_that_quote_elements_are_silent_at_debug() -> None:
    # These two are found by a search for what Beam logs; the canary test watches for others.
    for name in ("worker.operations", "portability.fn_api_runner.trigger_manager"):
        assert not logging.getLogger(f"apache_beam.runners.{name}").isEnabledFor(logging.DEBUG)


def test_an_error_keeps_its_message_where_a_local_engine_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Kills: a variable that every process with a guard obeys, a worker of a cluster included; a
    # process that goes on to show messages once the variable is gone.
    guarded = redacted(plainly)
    monkeypatch.setenv(UNREDACTED, "1")
    for asked in (False, True):
        if asked:
            keep_messages()
        with pytest.raises(StageError) as caught:
            list(guarded(SECRET))
        assert (SECRET in str(caught.value), SECRET in capsys.readouterr().err) == (asked, asked)
    monkeypatch.setenv(UNREDACTED, "0")
    keep_messages()
    with pytest.raises(StageError) as caught:
        list(guarded(SECRET))
    assert SECRET not in str(caught.value)


def test_below_the_guard_an_error_keeps_its_message() -> None:
    # Kills: a guard that cannot be passed by, as docs/guides/debugging.md does on invented text.
    guarded = redacted(plainly)
    with pytest.raises(StageError) as caught:
        list(guarded(SECRET))
    assert SECRET not in str(caught.value)
    with pytest.raises(ValueError, match=SECRET):
        list(guarded.__wrapped__(SECRET))  # type: ignore[attr-defined]
