"""Remembers what Beam works out again dozens of times in a pipeline: those of tests are small."""

from __future__ import annotations

import copy
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.worker import statecache
from apache_beam.transforms import userstate


def remember() -> None:
    """Let Beam find out once what does not change: the state of DoFns, and parsed options.

    What its cache holds weighs nothing: to weigh a side input, it looks through all modules, of
    which there are 7,000 here.
    """
    _remember_specs()
    _remember_options()
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
