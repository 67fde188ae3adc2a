"""Self-contained pages for people: their common head, their style, and how templates make them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

_HTML = ".html.j2"


def rendered(package: str, template: str, **content: Any) -> str:
    """Render a template of a package, HTML or Markdown; equal contents give equal pages.

    In HTML, names and text in `content` are shown, never run. Its template begins with
    `head.html.j2`, for which it sets `title`: the page loads nothing and runs no script.
    """
    page: str = _environment(package).get_template(template).render(**content)
    return page if template.endswith(_HTML) else f"{page}\n"


@functools.cache
def _environment(package: str) -> Environment:
    """Return what keeps the compiled templates of a package."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

    return Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader(__name__, ".")]),
        autoescape=select_autoescape([_HTML]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
