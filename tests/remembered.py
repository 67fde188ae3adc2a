"""Remembers what Beam works out again dozens of times in a pipeline: those of tests are small."""

from __future__ import annotations

import bz2
import copy
import inspect
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

from apache_beam.internal import cloudpickle_pickler
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.worker import statecache
from apache_beam.transforms import core, userstate
from apache_beam.typehints import decorators, trivial_inference


def remember() -> None:
    """Let Beam find out once what does not change: the state of DoFns, and parsed options.

    What its cache holds weighs nothing: to weigh a side input, it looks through all modules, of
    which there are 7,000 here.
    """
    _remember_specs()
    _remember_options()
    _remember_all_options()
    _remember_functions()
    _remember_types()
    # Where a type hint was given, line by line: only messages about types show it.
    decorators.IOTypeHints._make_origin = lambda *_, **__: []
    # Level 9 sets aside megabytes for each of hundreds of pickles of a few bytes.
    cloudpickle_pickler.bz2 = SimpleNamespace(
        compress=lambda data, **_: bz2.compress(data, 1), decompress=bz2.decompress
    )
    statecache.get_deep_size = lambda *_: 0


def _remember_specs() -> None:
    """Let Beam look for state and timers once in each class of DoFn.

    It looks through all methods a dozen times a release. None of ours has state or timers.
    """
    search, found = userstate.get_dofn_specs, dict[type, Any]()

    def remembered(dofn: Any) -> Any:
        if type(dofn) not in found:
            found[type(dofn)] = search(dofn)
        return found[type(dofn)]

    userstate.get_dofn_specs = remembered


def _remember_options() -> None:
    """Let Beam parse a command line once for each class of options.

    Each of the 170 looks at an option that a small release takes makes a parser of its own.
    """
    parse, parsed = PipelineOptions.__init__, dict[tuple[Any, ...], dict[str, Any]]()

    def remembered(options: Any, flags: Any = None, **overrides: Any) -> None:
        if overrides or not isinstance(flags, list):
            parse(options, flags, **overrides)
            return
        asked = (type(options), *flags)
        if asked not in parsed:
            parse(options, flags)
            parsed[asked] = copy.deepcopy(vars(options))
        else:
            vars(options).update(copy.deepcopy(parsed[asked]), _flags=flags)

    PipelineOptions.__init__ = remembered


def _remember_all_options() -> None:
    """Let Beam collect once what a command line and defaults come to.

    Flags that no option has are reported each time.
    """
    collect, found = PipelineOptions.get_all_options, dict[str, dict[str, Any]]()

    def remembered(options: Any, *given: Any, **named: Any) -> dict[str, Any]:
        count = len(PipelineOptions.__subclasses__())
        asked = repr((count, type(options), options._flags, options._all_options, given, named))
        if asked not in found:
            result = collect(options, *given, **named)
            flags = (flag.removeprefix("--").partition("=")[0] for flag in options._flags)
            if not all(flag in result for flag in flags):
                return result
            found[asked] = result
        return copy.deepcopy(found[asked])

    PipelineOptions.get_all_options = remembered


def _remember_functions() -> None:
    """Let Beam look once at the signature and the source of each function."""

    def once(look: Callable[[Any], Any]) -> Callable[[Any], Any]:
        found = WeakKeyDictionary[FunctionType, dict[bool, Any]]()

        def remembered(function: Any) -> Any:
            plain = getattr(function, "__func__", function)
            if not isinstance(plain, FunctionType):
                return look(function)
            own = found.setdefault(plain, {})
            bound = inspect.ismethod(function)
            if bound not in own:
                own[bound] = look(function)
            return own[bound]

        return remembered

    core.get_signature = decorators.get_signature = once(decorators.get_signature)
    core._check_fn_use_yield_and_return = once(core._check_fn_use_yield_and_return)


def _remember_types() -> None:
    """Let Beam read once in each function's code what type it returns for a type."""
    infer, found = trivial_inference.infer_return_type, dict[Any, Any]()

    def remembered(function: Any, types: Any, debug: bool = False, depth: int = 5) -> Any:
        if not isinstance(function, FunctionType) or function.__closure__ or debug:
            return infer(function, types, debug, depth)
        try:
            asked = (function.__module__, function.__code__, tuple(types), depth)
            hash(asked)
        except TypeError:  # a type of an object that has no hash
            return infer(function, types, debug, depth)
        if asked not in found:
            found[asked] = infer(function, types, debug, depth)
        return found[asked]

    trivial_inference.infer_return_type = remembered
