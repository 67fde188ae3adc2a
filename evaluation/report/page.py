"""The report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..pages import rendered
from ..verdict import Figure, of_everything
from . import wording
from .plots import comparison, curve, swept_key
from .wording import MeasureFigures, by_measure

_PARTS = ("utility", "attack")
_BESIDE = ("original", "reference", "ceiling", "noise", "floor")

Cell = tuple[str, str]
"""A number and its interval, in words."""


@dataclass(frozen=True)
class Exhibit:
    """A measure as it is shown: in words, as a plot and as a table."""

    name: str
    measure: dict[str, Any]
    figures: list[Figure]
    plot: str | None
    caution: str
    swept: str | None = None

    @property
    def grouped(self) -> bool:
        """Return whether a column for groups is needed."""
        return any(figure["group"] for figure in self.figures)

    @property
    def settings(self) -> bool:
        """Return whether a column for settings is needed."""
        return self.swept is not None


@dataclass(frozen=True)
class Glance:
    """The key figures of a part.

    Attributes:
        columns: the columns' titles.
        rows: each row's title, a number and its interval for each column (None where nothing was
            measured), and for an attack, its comparison with noise alone.
    """

    columns: list[str]
    rows: list[tuple[str, list[tuple[str, str] | None], str | None]]


def render(content: dict[str, Any]) -> str:
    """Render the content of `evaluation.json` as a page; equal contents give equal pages.

    Names and text in `content` are shown, never run. A figure that is not a finite number is shown
    as a dash and the reason. The page refers to `evaluation.json` and `evaluation.parquet` in its
    folder.
    """
    measured = by_measure(content)
    return rendered(
        "quietcorpus.evaluation.report",
        "report.html.j2",
        content=content,
        wording=wording,
        glances={
            "utility": _glance(_of("utility", measured), wording.mean),
            "attack": _glance(_of("attack", measured), wording.first),
        },
        utility=_exhibits("utility", _of("utility", measured), _own),
        attacks=_exhibits("attack", _of("attack", measured), _own),
        others=_exhibits("other", _of("other", measured), _own),
        sweeps=_sweeps(measured),
        settings=_settings(measured),
    )


def _of(part: str, measured: list[MeasureFigures]) -> list[MeasureFigures]:
    """Return the measures of a part; those of no known part belong to `other`."""
    known = [each for each in measured if each.measure["part"] in _PARTS]
    if part == "other":
        return [each for each in measured if each not in known]
    return [each for each in known if each.measure["part"] == part]


def _glance(measured: list[MeasureFigures], shown: Callable[[Figure], Cell]) -> Glance:
    """Tabulate the figures of the release and of draws like it, then others as `shown`."""
    rows = [
        (_titled(each, group), figures)
        for each in measured
        for group, figures in each.in_short.items()
    ]
    seen = {name for _, figures in rows for name in figures}
    columns: list[tuple[str, str, Callable[[Figure], Cell]]] = []
    own = [figures["release"] for _, figures in rows if "release" in figures]
    if own:
        fresh = [figure["first"]["fresh"] for figure in own]
        title = "One draw like it" if all(fresh) else "First draw" if any(fresh) else "This release"
        columns.append((title, "release", wording.first_or_fresh if any(fresh) else wording.first))
        if any(figure["draws"] > 1 for figure in own):
            columns.append(("Mean of such draws", "release", wording.mean))
    columns += [
        (wording.subject(name).capitalize(), name, shown) for name in _BESIDE if name in seen
    ]
    return Glance(
        [title for title, *_ in columns],
        [
            (
                title,
                [cell(figures[name]) if name in figures else None for _, name, cell in columns],
                figures.get("release", {}).get("against_noise"),
            )
            for title, figures in rows
        ],
    )


def _titled(measured: MeasureFigures, group: str) -> str:
    title = ", ".join(filter(None, (measured.measure["title"], group)))
    return f"{title} (does not tell structure here)" if measured.blind else title


def _own(name: str, measured: MeasureFigures) -> Exhibit:
    return Exhibit(
        name,
        dict(measured.measure),
        measured.own,
        comparison(measured, name),
        wording.caution(measured),
    )


def _swept(name: str, measured: MeasureFigures) -> Exhibit:
    key = swept_key(measured.swept)
    drawn = curve(measured, name)
    caution = wording.caution(measured)
    return Exhibit(
        name, dict(measured.measure), measured.swept, drawn, caution, wording.symbol(key)
    )


def _exhibits(
    prefix: str, measured: list[MeasureFigures], shown: Callable[[str, MeasureFigures], Exhibit]
) -> list[Exhibit]:
    return [shown(f"{prefix}-{number}", each) for number, each in enumerate(measured, 1)]


def _settings(measured: list[MeasureFigures]) -> Glance:
    """Tabulate the release's overall figures: a row for each setting, a column for each measure."""
    rows: dict[str, dict[str, Figure]] = {}
    titles = []
    for each in measured:
        shown = [one for one in each.swept if one["subject"] == "release" and of_everything(one)]
        for figure in [*each.own_release, *shown] if shown else ():
            title = ", ".join(filter(None, (each.measure["title"], figure["group"])))
            name = wording.setting(figure["setting"]) or "the release as it is"
            rows.setdefault(name, {})[title] = figure
            titles.append(title)
    columns = list(dict.fromkeys(titles))
    return Glance(
        columns,
        [
            (
                name,
                [wording.mean_or_first(own[one]) if one in own else None for one in columns],
                None,
            )
            for name, own in rows.items()
        ],
    )


def _sweeps(measured: list[MeasureFigures]) -> dict[str, list[Exhibit]]:
    """Return the swept measures by part, without empty parts."""
    found = {}
    for part in (*_PARTS, "other"):
        swept = [each for each in _of(part, measured) if each.swept]
        if swept:
            found[part] = _exhibits(f"sweep-{part}", swept, _swept)
    return found
