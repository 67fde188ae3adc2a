"""The version of Beam's job servers, which are made of parts from Maven's registry."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from machine import ROOT, required

PARTS = ("beam-runners-spark-3", "beam-runners-flink-1.19", "beam-runners-java-job-service")


def has_part(part: str, version: str) -> bool:
    """Ask the registry for a part in a version; `-U` asks again for one that was not there."""
    artefact = f"org.apache.beam:{part}:{version}:pom"
    done = subprocess.run(
        [
            "mvn",
            "--batch-mode",
            "-U",
            "dependency:get",
            "-Dtransitive=false",
            f"-Dartifact={artefact}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    # Kills: a registry that does not answer, taken for one that lacks the part.
    missing = f"Could not find artifact org.apache.beam:{part}:pom:{version}"
    assert done.returncode == 0 or missing in done.stdout, done.stdout
    return done.returncode == 0


@pytest.mark.slow
def test_job_servers_are_of_pythons_beam_once_there_is_one() -> None:
    """Fails once the reason for the older version is gone; see docs/guides/images.md."""
    if shutil.which("mvn") is None:
        required("Maven is not installed")
    pom = (ROOT / "deploy" / "job-server" / "pom.xml").read_text()
    (ours,) = re.findall(r"<beam\.version>(.*)</beam\.version>", pom)
    constraints = (ROOT / "constraints.txt").read_text()
    (pythons,) = re.findall(r"(?m)^apache-beam==(.*)$", constraints)
    assert all(has_part(part, ours) for part in PARTS)
    if ours != pythons:
        assert not all(has_part(part, pythons) for part in PARTS)
