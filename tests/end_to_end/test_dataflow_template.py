"""Dataflow's template: its step, options and parameters, its images, and whence its key comes."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from apache_beam.options.pipeline_options import DebugOptions, PipelineOptions, WorkerOptions
from dataflow import DEPLOY, run
from machine import OTHER_KEY, PACKAGES, ROOT, namesakes

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.mark.slow
@pytest.mark.usefixtures("gcp")
def test_the_templates_step_makes_a_release(workspace: Workspace) -> None:
    folder = workspace.folder
    spec = workspace.spec(
        {
            "input.path": str(folder / "input" / "corpus.jsonl"),
            "output": str(workspace.output),
            "mechanism.vocabulary": {"public": str(folder / "vocabulary.txt")},
        }
    )
    launch = (str(DEPLOY / "launch.py"), "--runner=FnApiRunner", "--max_num_workers=50")
    done = run(workspace, *launch, f"--spec={spec}", "--job_name=once")
    assert done.returncode == 0, done.stderr
    assert workspace.card()["release"] == "test"
    # The command's one line is the job's error; the output is taken now.
    done = run(workspace, *launch, f"--spec={spec}", "--job_name=twice")
    assert done.returncode != 0
    assert "quietcorpus: error: output: " in done.stderr
    # Kills: a launching job whose options have what the command would refuse, too late.
    secret = "--environment_options=process_variables=QUIETCORPUS_MASTER_KEY=hidden"
    done = run(workspace, *launch, f"--spec={spec}", secret)
    assert done.returncode == 1
    assert done.stderr.startswith("quietcorpus: error: --environment_options: a secret in a comm")
    assert "hidden" not in done.stderr
    done = run(workspace, *launch)
    assert done.returncode == 1
    assert done.stderr == "quietcorpus: error: --spec: missing; give the spec's URI\n"


@pytest.mark.slow
@pytest.mark.usefixtures("gcp")
def test_the_templates_step_beside_packages_of_our_folders_names(workspace: Workspace) -> None:
    """Kills: a module of ours that is imported by a name that others have, too."""
    spec = workspace.spec({"output": str(workspace.output)})
    launch = (str(DEPLOY / "launch.py"), "--runner=FnApiRunner", f"--spec={spec}")
    done = run(workspace, *launch, **namesakes(workspace.folder))
    assert done.returncode == 0, done.stderr
    assert workspace.card()["release"] == "test"


@pytest.mark.parametrize("spec", [["--spec=gs://s/a=b.yaml"], ["--spec", "gs://s/a=b.yaml"]])
def test_the_templates_options_are_those_given(spec: list[str]) -> None:
    """Repeated ones, and values that follow as words of their own, for one job or for both."""
    found = importlib.util.spec_from_file_location("launch", DEPLOY / "launch.py")
    assert found is not None
    assert found.loader is not None
    launch = importlib.util.module_from_spec(found)
    found.loader.exec_module(launch)
    both = ["--experiments=a", "--no_use_public_ips", "--experiments=b=c", "--region", "europe"]
    uri, mine, theirs = launch.split(
        [*both[:1], "--job_name=once", "--max_num_workers", "50", *both[1:], *spec]
    )
    assert uri == "gs://s/a=b.yaml"
    assert mine == [*both[:1], "--job_name=once", *both[1:], "--max_num_workers=1"]
    assert theirs == [*both[:1], "--max_num_workers", "50", *both[1:]]
    options = PipelineOptions(theirs)
    assert options.view_as(DebugOptions).experiments == ["a", "b=c"]
    assert options.view_as(WorkerOptions).max_num_workers == 50


@pytest.mark.parametrize(
    "name", ["", "quietcorpus-master-key", "projects/p/secrets/s/versions/latest"]
)
def test_a_secret_is_named_by_its_version(workspace: Workspace, name: str) -> None:
    done = run(
        workspace,
        str(DEPLOY / "with_master_key.py"),
        "env",
        QUIETCORPUS_MASTER_KEY_SECRET=name,
    )
    assert done.returncode == 1
    assert "QUIETCORPUS_MASTER_KEY_SECRET: name one version" in done.stderr
    assert done.stdout == ""


# A Secret Manager on this machine, spoken to by Google's client: its answers are a test's.
SECRETS = """
import importlib.util, sys
from concurrent import futures
import google_crc32c, grpc
from google.cloud import secretmanager
from google.cloud.secretmanager_v1.services.secret_manager_service.transports import (
    SecretManagerServiceGrpcTransport as Transport,
)
kind = secretmanager.AccessSecretVersionResponse
asked = secretmanager.AccessSecretVersionRequest
def access(request, context):
    content = (sys.argv[2] + "\\n").encode()
    wrong = request.name.endswith("/666")
    checksum = int(google_crc32c.value(content)) + wrong
    return kind(payload={"data": content, "data_crc32c": checksum})
handler = grpc.unary_unary_rpc_method_handler(access, asked.deserialize, kind.serialize)
server = grpc.server(futures.ThreadPoolExecutor(1))
service = "google.cloud.secretmanager.v1.SecretManagerService"
server.add_generic_rpc_handlers(
    [grpc.method_handlers_generic_handler(service, {"AccessSecretVersion": handler})]
)
port = server.add_insecure_port("127.0.0.1:0")
server.start()
client = secretmanager.SecretManagerServiceClient
secretmanager.SecretManagerServiceClient = lambda: client(
    transport=Transport(channel=grpc.insecure_channel(f"127.0.0.1:{port}"))
)
spec = importlib.util.spec_from_file_location("entry", sys.argv[1])
entry = importlib.util.module_from_spec(spec)
spec.loader.exec_module(entry)
entry.main([sys.executable, "-c", sys.argv[3]])
"""
BECOMES = """
import os, stat
from quietcorpus.pipelines.environment.keys import configured_master_key
path = os.environ["QUIETCORPUS_MASTER_KEY_FILE"]
for found in (path, os.path.dirname(path)):
    print(oct(stat.S_IMODE(os.stat(found).st_mode)))
print(path.startswith("/dev/shm/"), "QUIETCORPUS_MASTER_KEY" in os.environ)
print(configured_master_key().hex())
os.unlink(path)
os.rmdir(os.path.dirname(path))
"""


@pytest.mark.usefixtures("gcp")
def test_a_workers_key_comes_from_secret_manager(workspace: Workspace) -> None:
    key = OTHER_KEY
    arguments = ("-c", SECRETS, str(DEPLOY / "with_master_key.py"), key, BECOMES)
    name = "projects/p/secrets/s/versions/"
    done = run(workspace, *arguments, QUIETCORPUS_MASTER_KEY_SECRET=f"{name}1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0o600", "0o700", "True", "False", key]
    done = run(workspace, *arguments, QUIETCORPUS_MASTER_KEY_SECRET=f"{name}666")
    assert done.returncode == 1
    assert done.stderr.endswith(f"{name}666 cannot be read (ValueError)\n")
    assert key not in done.stdout + done.stderr


def test_the_templates_parameters() -> None:
    metadata = json.loads((DEPLOY / "metadata.json").read_text())
    assert set(metadata) == {"name", "description", "parameters"}
    names = [parameter["name"] for parameter in metadata["parameters"]]
    assert len(set(names)) == len(names)
    for parameter in metadata["parameters"]:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", parameter["name"])
        assert {"name", "label", "helpText"} <= set(parameter)
        assert set(parameter) <= {
            "name", "label", "helpText", "paramType", "isOptional", "regexes"
        }  # fmt: skip
        assert parameter["paramType"] in {"TEXT", "GCS_READ_FILE"}
        example = parameter["helpText"].rpartition("Example: ")[2]
        for regex in parameter["regexes"]:
            assert re.fullmatch(regex, example), (regex, example)
            assert not re.fullmatch(regex, "")
            assert not re.fullmatch(regex, f"{example}\n")
    (spec,) = metadata["parameters"][0]["regexes"]
    assert not re.fullmatch(spec, "spec.yaml")
    assert not re.fullmatch(spec, "s3://specs/spec.yaml")
    (image,) = metadata["parameters"][1]["regexes"]
    assert not re.fullmatch(image, "europe-west1-docker.pkg.dev/p/quietcorpus/worker:latest")


def instructions(name: str) -> list[list[str]]:
    text = (DEPLOY / name).read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    return [line.split() for line in lines if line and not line.startswith("#")]


def test_the_images_agree_with_the_repository() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pinned = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    worker, launcher = instructions("worker.Dockerfile"), instructions("launcher.Dockerfile")
    arguments = [line[1] for line in [*worker, *launcher] if line[0] == "ARG" and "=" in line[1]]
    given = dict(argument.split("=") for argument in arguments)
    image = given["BEAM_IMAGE"]
    found = re.fullmatch(r"apache/beam_python(\d)\.(\d+)_sdk:(.+)", image)
    assert found is not None
    assert found[3] == pinned["apache-beam"]
    least = re.findall(r"\d+", project["project"]["requires-python"])
    assert (int(found[1]), int(found[2])) >= (int(least[0]), int(least[1]))
    template = given["TEMPLATE_IMAGE"]
    assert f"/python{found[1]}{found[2]}-template-launcher-base:" in template
    assert not template.endswith(":latest")
    # Where Python starts, the folder `quietcorpus` of the sources would hide the installed one.
    built, started = [line[1] for line in [*worker, *launcher] if line[0] == "WORKDIR"]
    assert started != built
    copied: list[str] = []
    for instruction in [*worker, *launcher]:
        if instruction[0] == "COPY" and not instruction[1].startswith("--from="):
            copied += instruction[1:-1]
    assert all((ROOT / source).exists() for source in copied), copied
    # All of the package, and nothing of what a release needs is left behind.
    assert {"quietcorpus", *PACKAGES} <= set(copied)
    text = " ".join(" ".join(line) for line in [*worker, *launcher])
    assert "/opt/apache/beam/boot" in text
    assert not re.search(r"QUIETCORPUS_MASTER_KEY(_FILE)?[ =]", text)


def test_a_build_is_sent_what_it_copies(tmp_path: Path) -> None:
    """.gcloudignore, whose language is git's."""
    lines = [*instructions("worker.Dockerfile"), *instructions("launcher.Dockerfile")]
    copied = {source for line in lines if line[0] == "COPY" for source in line[1:-1]}
    sent = {".dockerignore"}
    for source in copied:
        if not source.startswith(("--from=", "/")):
            sent |= {f"{source}/__init__.py" if (ROOT / source).is_dir() else source}
    assert {"pipelines/__init__.py", "deploy/dataflow/launch.py"} <= sent
    kept = {"master-key", "deploy/dataflow/master-key", "deploy/storage.env", "spec.yaml"}
    kept |= {".git/config", "build/demo/corpus.jsonl", "pipelines/__pycache__/x.pyc", "tests/x"}
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_bytes((ROOT / ".gcloudignore").read_bytes())
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", *sorted(sent | kept)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    # Git itself never speaks of .git.
    assert set(done.stdout.splitlines()) | {".git/config"} == kept


def test_the_runbook_names_files_that_exist() -> None:
    text = (DEPLOY / "README.md").read_text()
    for name in re.findall(r"`([\w.]+\.(?:py|json|yaml|Dockerfile))`", text):
        assert (DEPLOY / name).exists(), name
    for path in re.findall(r"deploy/dataflow/[\w.]+", text):
        assert (ROOT / path).exists(), path
