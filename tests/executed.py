"""The functions of the product that run in this process, and the values that they run on."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from fractions import Fraction
from functools import cached_property
from types import FrameType, FunctionType, ModuleType
from typing import Any

import numba.core.registry
import numpy as np
import pytest
from apache_beam.utils import thread_pool_executor

WITHOUT_PARAMETERS = ("Keystream", "ReleaseKey", "Table", "Texts", "SampledUsers")
"""Classes of keys, of what is filled as words are asked for, and of users and their texts."""


class Executed:
    """What ran, by its name: the frozen values whose methods ran; none of a function's.

    Names are those of modules within `quietcorpus`, and of functions in them:
    `mechanisms.votes.votes:Votes.release`. Kernels, which run compiled, are among them.
    """

    def __init__(self) -> None:
        self.values: dict[str, set[str]] = {}

    def add(self, name: str, own: object) -> None:
        values = self.values.setdefault(name, set())
        if own is not None:
            values.add(parameters(own))


def parameters(own: object) -> str:
    """Describe an object by its class and by all that it holds, but for keys and tables of its."""
    if isinstance(own, np.ndarray):
        return f"{own.dtype}{own.shape} {zlib.crc32(np.ascontiguousarray(own).data):x}"
    if isinstance(own, str | int | float | Fraction | Enum | None):
        return repr(own)
    if isinstance(own, list | tuple | set | frozenset):
        return f"[{', '.join(map(parameters, own))}]"
    if isinstance(own, Mapping):
        return f"{{{', '.join(f'{key}: {parameters(value)}' for key, value in own.items())}}}"
    kinds = (
        one for one in type(own).__mro__ if one.__module__.startswith("quietcorpus.mechanisms")
    )
    kind = next(kinds, type(own))  # an audit's own subclass leaves out the noise
    shape = kind.__name__
    if not kind.__module__.startswith("quietcorpus.mechanisms") or shape in WITHOUT_PARAMETERS:
        return shape
    held = vars(own) if hasattr(own, "__dict__") else {}
    if kind is not type(own):
        held = {name: held[name] for name in kind.__dataclass_fields__ if name in held}
    remembered = {
        name for name in held if isinstance(getattr(type(own), name, None), cached_property)
    }
    shown = (
        f"{name}={parameters(value)}"
        for name, value in sorted(held.items())
        if name not in remembered
    )
    return f"{shape}({', '.join(shown)})"


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    """Import the modules below a package."""
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        yield importlib.import_module(found.name)


def codes_of(module: ModuleType) -> Iterator[tuple[int, str]]:
    """Yield the identity of the code of each function that a module defines, and its name.

    Code is told apart by its identity, since its hash changes when a kernel is compiled.
    """
    own = module.__name__.removeprefix("quietcorpus.")
    for value in vars(module).values():
        if getattr(value, "__module__", None) == module.__name__:
            for member in vars(value).values() if isinstance(value, type) else [value]:
                for function in parts_of(member):
                    code = function.__code__
                    if code.co_filename == module.__file__:  # and not made by a decorator
                        yield id(code), f"{own}:{code.co_qualname}"


def parts_of(member: Any) -> Iterator[FunctionType]:
    """Yield the functions of a member: a property's getter, a kernel's source, what is wrapped."""
    for name in ("fget", "func", "py_func", "__func__", "__wrapped__"):
        inner = getattr(member, name, None)
        if inner is not None:
            yield from parts_of(inner)
    if isinstance(member, FunctionType):
        yield member


@contextmanager
def executed(names: dict[int, str]) -> Iterator[Executed]:
    """Record which of these functions run, in this thread and in those that start within."""
    found = Executed()

    def record(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            name = names.get(id(frame.f_code))
            if name is not None:
                code = frame.f_code
                own = frame.f_locals.get("self") if code.co_varnames[:1] == ("self",) else None
                found.add(name, own)

    kernel = numba.core.registry.CPUDispatcher
    call = kernel.__call__

    def called(self: Any, *given: Any, **named: Any) -> Any:
        name = names.get(id(self.py_func.__code__))
        if name is not None:
            found.add(name, None)
        return call(self, *given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "__call__", called)
        # Beam's own threads began before, and none of them is recorded.
        pool = thread_pool_executor._SharedUnboundedThreadPoolExecutor()
        patch.setattr(thread_pool_executor, "_SHARED_UNBOUNDED_THREAD_POOL_EXECUTOR", pool)
        threading.setprofile(record)
        sys.setprofile(record)
        try:
            yield found
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
