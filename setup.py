"""The packages in the folders that pyproject.toml maps; Beam's `--setup_file` names this file."""

import shutil
import tomllib
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build import build


class Build(build):
    """A build without the files that an earlier one left behind."""

    def run(self) -> None:
        """Delete an earlier build, then build."""
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


PROJECT = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))
FOLDERS = PROJECT["tool"]["setuptools"]["package-dir"]

setup(
    packages=[
        f"{package}.{inner}".rstrip(".")
        for package, folder in FOLDERS.items()
        for inner in ("", *find_packages(folder))
    ],
    cmdclass={"build": Build},
)
