"""Rules for all DoFns of the product."""

from __future__ import annotations

import ast

from machine import ROOT

FOLDERS = "transforms", "pipelines"


def test_none_can_fail_before_its_bundle_has_begun() -> None:
    # A worker opens its stream of data after `setup`. If that fails, a job server waits three
    # minutes for the stream, in each of four tries, before it tells of the failure: so long did
    # Spark take to say that a worker has another version. Kills: keys that are read in `setup`.
    found = {
        (kind.name, ast.unparse(one))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for kind in ast.walk(ast.parse(path.read_text()))
        if isinstance(kind, ast.ClassDef)
        for one in kind.body
        if isinstance(one, ast.FunctionDef) and one.name == "setup"
    }
    ((name, code),) = found
    assert name == "ReleaseShards"
    assert "(" not in code.partition("\n")[2]  # it calls nothing
