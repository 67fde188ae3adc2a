"""The packages in the folders that pyproject.toml maps; Beam's `--setup_file` names this file."""

import runpy
import shutil
import tomllib
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build import build
from setuptools.command.sdist import sdist

COMMIT = runpy.run_path("pipelines/environment/commit.py")


def write_commit(folder):
    """Write the commit into a folder that is built or packed, if anything tells it."""
    if found := COMMIT["commit_to_build"](Path("quietcorpus").resolve()):
        Path(folder, "quietcorpus", COMMIT["NAME"]).write_text(found + "\n")


class Build(build):
    """A build without the files that an earlier one left behind, which knows its commit."""

    def run(self) -> None:
        """Delete an earlier build, then build."""
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        write_commit(self.build_lib)


class SDist(sdist):
    """Sources that know their commit, which have no history."""

    def make_release_tree(self, base_dir, files):
        """Copy the files, and add the commit."""
        super().make_release_tree(base_dir, files)
        write_commit(base_dir)


PROJECT = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))
FOLDERS = PROJECT["tool"]["setuptools"]["package-dir"]

setup(
    packages=[
        f"{package}.{inner}".rstrip(".")
        for package, folder in FOLDERS.items()
        for inner in ("", *find_packages(folder))
    ],
    cmdclass={"build": Build, "sdist": SDist},
)
