"""The site's settings: `make docs` builds it into build/docs, without a network."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "quietcorpus"
author = "The quietcorpus contributors"
copyright = author
release = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "schema_keys",
    "verbatim_help",
]
exclude_patterns = ["_ext", "_static"]
myst_enable_extensions = ["attrs_inline", "deflist"]
myst_heading_anchors = 3

# Docstrings are written as Markdown is: `name`, not ``name``.
default_role = "code"
highlight_language = "text"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
add_module_names = False
# Types are named for people: no page describes those of other libraries, nor our aliases.
nitpick_ignore_regex = [("py:class", ".*"), ("py:obj", ".*")]

html_theme = "furo"
html_title = f"quietcorpus {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = [
    f"reference/{name}.schema.json"
    for name in ("spec", "release", "ledger", "summary", "budget-facet")
]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
