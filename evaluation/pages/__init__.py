"""Self-contained pages for people: their common head, their style, and how they are rendered."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(package: str, template: str, **content: Any) -> str:
    """Render a template of a package as a page; equal contents give equal pages.

    Names and text in `content` are shown, never run. A template begins with `head.html.j2`, for
    which it sets `title`: the page loads nothing and runs no script.
    """
    page: str = _environment(package).get_template(template).render(**content)
    return page


@functools.cache
def _environment(package: str) -> Environment:
    """Return what keeps the compiled templates of a package."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader(__name__, ".")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
