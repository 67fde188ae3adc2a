"""The settings of a sweep, and their measurement in this process or by Ray's workers."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from quietcorpus.evaluation.measures import MEASURES
from quietcorpus.evaluation.results import POINT, MeasuredDraw, Observation, Setting
from quietcorpus.transforms.errors import InputError, require_installed, shown

from ..runners.parallel import ray_session
from ..schema.loading import read_yaml
from ..storage import files as storage
from ..terminal.progress import Steps
from .comparison import COMPARE, Compared, Comparison

Task = tuple[Setting, int]


def parsed(sweep: Iterable[str]) -> dict[str, list[str]]:
    """Parse `key=value,value` into each key's values; raises InputError for anything else."""
    axes: dict[str, list[str]] = {}
    for given in sweep:
        key, equals, values = given.partition("=")
        listed = [value.strip() for value in values.split(",")]
        if not (key.strip() and equals and all(listed)):
            raise InputError(
                f"sweep: {shown(given)} is not KEY=VALUE,VALUE, such as epsilon=1,2,5,10"
            )
        if key.strip() in axes:
            raise InputError("sweep: a key is given twice; give all of its values at once")
        axes[key.strip()] = listed
    return axes


def named(path: str) -> Compared:
    """Read a file of named changes of the mechanism's block; raises InputError for anything else.

    It maps names to keys and their values, such as `{dense: {compression: {method: none}}}`. A
    value may be a whole block. A name may also map numbers to such keys, for the points of a curve.
    """
    content = read_yaml(path, "file to compare")
    if not isinstance(content, dict) or not content:
        raise InputError(
            f"compare: {path} has no names; give NAME: {{KEY: VALUE}} for each variant"
        )
    variants: dict[Setting, dict[str, str]] = {}
    for name, given in content.items():
        own: Setting = ((COMPARE, name),)
        for setting, changes in _points(own, given):
            if not (isinstance(name, str) and isinstance(changes, dict) and changes):
                raise InputError(
                    f"compare: {shown(name)} in {path} maps no keys of the mechanism to values, "
                    "such as `compression: {method: none}`"
                )
            variants[setting] = {str(k): json.dumps(v, default=str) for k, v in changes.items()}
    return variants


def _points(variant: Setting, given: Any) -> Iterator[tuple[Setting, Any]]:
    """Yield a variant's points and the changes of each; the variant itself if it has no points."""
    if isinstance(given, dict) and given and all(type(key) in (int, float) for key in given):
        for number, changes in given.items():
            yield (*variant, (POINT, str(number))), changes
    else:
        yield variant, given


def grid(sweep: Mapping[str, Sequence[object]], variants: Iterable[Setting] = ()) -> list[Setting]:
    """Return all combinations of variants and the keys' values; none without any."""
    axes = [[(key, value) for value in dict.fromkeys(map(str, sweep[key]))] for key in sweep]
    return [
        (*variant, *combination)
        for variant in list(variants) or [()]
        for combination in itertools.product(*axes)
        if variant or combination
    ]


@dataclass(frozen=True)
class Done:
    """The stored results, an object for each draw, from which a stopped run can go on.

    Attributes:
        folder: the place of the objects, in the report's folder.
        identity: a digest of the evaluation; results of another one are not used.
    """

    folder: str
    identity: str

    def find(self, task: Task) -> MeasuredDraw | None:
        """Return the result of a task, or None if it is missing or incomplete."""
        try:
            content = json.loads(storage.read_bytes(self._uri(task)))
            found = [_observation(**one) for one in content["observations"]]
        except Exception:  # never written, or cut short: measured again either way
            return None
        return MeasuredDraw(*task, found)

    def keep(self, measured: MeasuredDraw) -> None:
        """Store a result."""
        observations = [asdict(one) for one in measured.observations]
        content = {
            "setting": dict(measured.setting),
            "draw": measured.draw,
            "observations": observations,
        }
        uri = self._uri((measured.setting, measured.draw))
        storage.write_bytes(uri, json.dumps(content, indent=1).encode())

    def _uri(self, task: Task) -> str:
        digest = hashlib.sha256(repr((self.identity, task)).encode()).hexdigest()[:24]
        return f"{self.folder}/{digest}.json"


def _observation(**kept: Any) -> Observation:
    """Restore an observation; raises KeyError, TypeError or ValueError for what is none."""
    assert MEASURES[kept["measure"]]
    for name in ("value", "low", "high", "tried", "family_low", "family_high"):
        if not (isinstance(kept[name], int | float) or (name != "value" and kept[name] is None)):
            raise ValueError(name)
    return Observation(**kept)


def run(
    comparison: Comparison, tasks: Sequence[Task], done: Done, workers: int, steps: Steps
) -> list[MeasuredDraw]:
    """Return the results of all tasks; measure and store those that are missing."""
    found = [(task, done.find(task)) for task in tasks]
    measured = [one for _, one in found if one is not None]
    left = [task for task, one in found if one is None]
    count = min(workers, len(left))
    results = _here(comparison, left) if count < 2 else _by_ray(comparison, left, count)
    with steps.step("measuring draws", len(tasks), "draws", done=len(measured)) as display:
        for one in results:
            done.keep(one)
            measured.append(one)
            display.advance()
    return measured


def _here(comparison: Comparison, tasks: Sequence[Task]) -> Iterator[MeasuredDraw]:
    for task in tasks:
        yield comparison.measured(*task)


def _by_ray(comparison: Comparison, tasks: Sequence[Task], workers: int) -> Iterator[MeasuredDraw]:
    """Measure by Ray's workers, which read the corpus themselves: Ray's store holds no text."""
    require_installed("ray", key="workers", extra="evaluate", otherwise=", or give 1")
    remedy = "the same command goes on from the draws that are done"
    with ray_session(workers, work="evaluation", remedy=remedy, private=True) as ray:
        from ray.util import ActorPool

        worker = ray.remote(num_cpus=1)(_Worker)
        pool = ActorPool([worker.remote(comparison) for _ in range(workers)])
        yield from pool.map_unordered(lambda own, task: own.measured.remote(*task), tasks)


class _Worker:
    """A comparison in a separate process."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def measured(self, setting: Setting, draw: int) -> MeasuredDraw:
        return self._comparison.measured(setting, draw)
