"""Beam's `--setup_file` ships the packages to workers by this file; all else is pyproject.toml."""

from setuptools import setup

setup()
