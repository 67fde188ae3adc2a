"""Builds that know their commit, with or without links; Beam's `--setup_file` names this file."""

import runpy
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build import build
from setuptools.command.sdist import sdist

FOLDERS = ("mechanisms", "indexes", "evaluation", "transforms", "pipelines")
# A ZIP that `pip` unpacks, and a checkout without links, hold a file of text where a link was.
LINKED = all(Path("quietcorpus", folder).is_dir() for folder in FOLDERS)
COMMIT = runpy.run_path(f"{'quietcorpus/' * LINKED}pipelines/environment/commit.py")


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


# With links, one tree: an editable installation is a path, which type checkers and editors follow.
places = {"": "."} if LINKED else {f"quietcorpus.{folder}": folder for folder in FOLDERS}
packages = find_packages(include=["quietcorpus*"]) if LINKED else ["quietcorpus", *places]
if not LINKED:
    packages += [f"{place}.{inner}" for place in places for inner in find_packages(places[place])]

setup(package_dir=places, packages=packages, cmdclass={"build": Build, "sdist": SDist})
