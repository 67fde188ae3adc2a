"""The sdist and the wheel, their content, and their commands once they are installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from apache_beam.runners.portability.stager import Stager
from machine import PACKAGES, ROOT, namesakes
from retries import tables

from quietcorpus.pipelines.environment.version import environment_digest

if TYPE_CHECKING:
    from tests.conftest import Workspace

FOLDERS = (*PACKAGES, "quietcorpus")
DATA = {
    *("evaluation/pages/head.html.j2", "evaluation/pages/page.css", "quietcorpus/py.typed"),
    *("evaluation/report/report.html.j2", "pipelines/card/page.html.j2"),
    *("pipelines/card/README.md.j2", "pipelines/exports/datasheet.md.j2"),
    *("pipelines/exports/sp800-226.md.j2", "pipelines/ledger/page.html.j2"),
    "pipelines/kinds/overview/overview.html.j2",
}
BUILD = {"LICENSE", "README.md", "pyproject.toml", "setup.py"}
METADATA = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt"}
COMMIT = "quietcorpus/COMMIT"
GIVEN = {"QUIETCORPUS_COMMIT": "0123456789ab" + 28 * "0", "SOURCE_DATE_EPOCH": "1700000000"}
VERSION = r"quietcorpus, version \d+\.\d+\.\d+\+g[0-9a-f]{12}\n"
BUILT_BY = [sys.executable, "-P", "-m", "build", "--no-isolation", "--outdir"]


def sources() -> set[str]:
    """All files of the packages, by their paths in the repository."""
    modules = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return DATA | {path.relative_to(ROOT).as_posix() for path in modules}


def installed() -> set[str]:
    """The same by their paths in an installation."""
    return {f"quietcorpus/{path.removeprefix('quietcorpus/')}" for path in sources()}


def contents(wheel: Path) -> dict[str, bytes | set[bytes]]:
    """The files of a wheel; RECORD has its lines in the order in which packages were found."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    record = next(name for name in files if name.endswith("/RECORD"))
    return {**files, record: set(files[record].splitlines())}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository, with what an earlier build and tests left in it."""
    folder = tmp_path_factory.mktemp("checkout")
    ignored = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info", "rejects")
    shutil.copytree(ROOT, folder, symlinks=True, ignore=ignored, dirs_exist_ok=True)
    left = ("build/lib/pipelines/cli.py", "build/lib/quietcorpus/pipelines/cli.py", "tests/data.py")
    for name in (*left, "pipelines/__pycache__/cli.cpython-311.pyc", "pipelines/master-key"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the copy, as `pip install .` makes one; or that of `make release-dry`."""
    if "QUIETCORPUS_WHEEL" in os.environ:
        return Path(os.environ["QUIETCORPUS_WHEEL"])
    folder = tmp_path_factory.mktemp("wheel")
    command = [*BUILT_BY, str(folder), "--wheel", str(checkout)]
    subprocess.run(command, env=os.environ | GIVEN, check=True)
    (found,) = folder.iterdir()
    return found


@pytest.mark.slow
def test_a_wheel_holds_one_package(wheel: Path) -> None:
    # Kills: a new sub-package that is left out, a folder that comes without its mapping, files of
    # an earlier build.
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    version = wheel.name.split("-")[1]
    metadata = {f"quietcorpus-{version}.dist-info/{name}" for name in METADATA}
    assert names == installed() | metadata | {COMMIT}


@pytest.mark.slow
def test_an_sdist_holds_what_a_build_needs(checkout: Path, tmp_path: Path) -> None:
    # Kills: a package that a wheel has and an sdist lacks, and tests and notes that are shipped.
    given = os.environ.get("QUIETCORPUS_SDIST")
    if given is None:
        command = [*BUILT_BY, str(tmp_path), "--sdist", str(checkout)]
        subprocess.run(command, env=os.environ | GIVEN, check=True)
    (built,) = [Path(given)] if given else tmp_path.iterdir()
    with tarfile.open(built) as archive:
        names = {info.name.partition("/")[2] for info in archive if info.isfile()}
    ours = {name for name in names if not name.startswith("quietcorpus.egg-info/")}
    assert ours == installed() | BUILD | {"PKG-INFO", "setup.cfg", COMMIT}


@pytest.mark.slow
def test_the_setup_file_ships_what_a_build_needs(
    checkout: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: what workers lack of Beam's `--setup_file`, or are sent beyond it: text, keys, tests.
    monkeypatch.chdir(checkout)
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    built = Stager._build_setup_package(str(checkout / "setup.py"), str(tmp_path / "dist"))
    with tarfile.open(built) as archive:
        names = {info.name.partition("/")[2] for info in archive if info.isfile()}
        archive.extractall(tmp_path, filter="data")
    ours = {name for name in names if not name.startswith("quietcorpus.egg-info/")}
    assert ours == installed() | BUILD | {"PKG-INFO", "setup.cfg", COMMIT}
    (unpacked,) = tmp_path.glob("quietcorpus-*")
    monkeypatch.delenv(next(iter(GIVEN)))
    subprocess.run([*BUILT_BY, str(tmp_path / "wheel"), "--wheel", str(unpacked)], check=True)
    (again,) = (tmp_path / "wheel").iterdir()
    with zipfile.ZipFile(again) as archive:
        assert installed() <= set(archive.namelist())
        # Kills: a wheel that no longer knows of which commit its sources were.
        assert archive.read(COMMIT) == b"0123456789ab\n"
    if "QUIETCORPUS_WHEEL" not in os.environ:  # which is of another commit
        # Kills: a wheel that cannot be built again from its sources, byte for byte.
        assert again.read_bytes() == wheel.read_bytes()


@pytest.mark.slow
def test_a_tree_without_links_makes_the_same_wheel(
    checkout: Path, wheel: Path, tmp_path: Path
) -> None:
    # As `pip` unpacks a ZIP of the tree, and as Git checks it out where the system has no links.
    # Kills: an installation of five text files.
    if "QUIETCORPUS_WHEEL" in os.environ:
        pytest.skip("that wheel is of another commit")
    shutil.copytree(checkout, tmp_path / "tree", symlinks=True)
    for name in PACKAGES:
        link = tmp_path / "tree" / "quietcorpus" / name
        target = link.readlink()
        link.unlink()
        link.write_text(target.as_posix())
    command = [*BUILT_BY, str(tmp_path / "wheel"), "--wheel", str(tmp_path / "tree")]
    subprocess.run(command, env=os.environ | GIVEN, check=True)
    (again,) = (tmp_path / "wheel").iterdir()
    assert contents(again) == contents(wheel)


@pytest.mark.slow
def test_an_editable_installation_is_a_path(checkout: Path, tmp_path: Path) -> None:
    # Type checkers and editors read the path; they run no import hook. Kills: a hook in its place.
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    options = ["--no-build-isolation", "--target", str(tmp_path), "--editable", str(checkout)]
    subprocess.run([*command, *options], check=True)
    (path,) = tmp_path.glob("*.pth")
    assert path.read_text().splitlines() == [str(checkout)]
    code = "import quietcorpus.mechanisms.words.madlib as found; print(found.__file__)"
    environment = os.environ | {"PYTHONPATH": path.read_text().strip()}
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=checkout.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == str(checkout / "quietcorpus/mechanisms/words/madlib.py")


@pytest.mark.slow
def test_an_installation_beside_packages_of_our_folders_names(
    wheel: Path, workspace: Workspace
) -> None:
    # Kills: a module that is imported by the name of its folder, workers that do not find the
    # package, and a digest that differs between a checkout and what is installed from it.
    environment = workspace.folder / "environment"
    venv.create(environment)
    python = str(environment / "bin" / "python")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    offline = ["--no-index", "--disable-pip-version-check"]
    subprocess.run([*install, *offline, str(wheel)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    assert {path.name.partition("-")[0] for path in packages.iterdir()} == {"quietcorpus"}
    shared = [path for path in sys.path if path.endswith("-packages")]
    (packages / "shared.pth").write_text("\n".join(shared))  # not what is in editable mode there

    def run(*command: str) -> str:
        done = subprocess.run(
            [str(environment / "bin" / command[0]), *command[1:]],
            cwd=workspace.folder,
            env=workspace.environment | theirs,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    theirs = namesakes(workspace.folder)
    assert re.fullmatch(VERSION, run("quietcorpus", "--version"))
    run("quietcorpus", "release", str(workspace.spec()), "--workers", "2")
    run("quietcorpus", "verify", "released/out")
    workspace.spec({"output": "released/api"})
    release = 'import quietcorpus as qc; card = qc.release("spec.yaml", workers=2)'
    run("python", "-c", f'{release}; assert qc.verify("released/api") == card')
    assert tables(workspace.output) == tables(workspace.output.with_name("api"))
    digest = "from quietcorpus.pipelines.environment.version import environment_digest as digest"
    place = "from quietcorpus.pipelines import __file__ as place"
    assert run("python", "-c", f"{digest}; {place}; print(digest(), place)").split() == [
        environment_digest(),
        str(packages / "quietcorpus" / "pipelines" / "__init__.py"),
    ]
