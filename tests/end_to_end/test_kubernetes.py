"""The files under deploy/kubernetes, each by itself and with the rest; no cluster runs them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy" / "kubernetes"
ENGINES = ("spark", "flink")


def documents(engine: str) -> list[dict[str, Any]]:
    found = list(YAML(typ="safe").load_all(DEPLOY / f"{engine}.yaml"))
    assert all({"apiVersion", "kind", "metadata", "spec"} <= set(document) for document in found)
    names = [(document["kind"], document["metadata"]["name"]) for document in found]
    assert len(set(names)) == len(names)
    return found


def pods(content: Any) -> Iterator[dict[str, Any]]:
    """The pods' specs in a document, however deep."""
    if isinstance(content, dict):
        if "containers" in content:
            yield content
        for value in content.values():
            yield from pods(value)
    elif isinstance(content, list):
        for value in content:
            yield from pods(value)


@pytest.mark.parametrize("engine", ENGINES)
def test_volumes_and_secrets_resolve(engine: str) -> None:
    with_key = 0
    for document in documents(engine):
        for pod in pods(document):
            volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
            for container in pod["containers"]:
                mounts = {mount["name"]: mount for mount in container.get("volumeMounts", [])}
                assert set(mounts) <= set(volumes)
                variables = {entry["name"]: entry["value"] for entry in container.get("env", [])}
                # The key comes as a file, out of a secret, and by no variable.
                assert "QUIETCORPUS_MASTER_KEY" not in variables
                for source in container.get("envFrom", []):
                    assert source["secretRef"]["name"] == "quietcorpus-storage"
                if "QUIETCORPUS_MASTER_KEY_FILE" not in variables:
                    continue
                with_key += 1
                folder, _, name = variables["QUIETCORPUS_MASTER_KEY_FILE"].rpartition("/")
                assert folder == mounts["key"]["mountPath"]
                assert mounts["key"]["readOnly"]
                assert f"--from-file={name}=" in (DEPLOY / "secrets.sh").read_text()
                secret = volumes["key"]["secret"]
                assert secret["secretName"] == "quietcorpus-master-key"
                assert secret["defaultMode"] & 0o037 == 0, oct(secret["defaultMode"])
                # Below the volume, whose own folder anybody in the pod may write to.
                cache = variables["QUIETCORPUS_CACHE"]
                assert cache.startswith(f"{mounts['cache']['mountPath']}/")
            assert pod["securityContext"]["runAsNonRoot"]
            assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsUser"]
    assert with_key == 2  # what executes, and what launches


@pytest.mark.parametrize("engine", ENGINES)
def test_images_are_what_the_dockerfile_makes(engine: str) -> None:
    text = (DEPLOY / f"{engine}.Dockerfile").read_text()
    (image,) = re.findall(r"-t (\S+) \.", text)
    manifests = (DEPLOY / f"{engine}.yaml").read_text()
    assert set(re.findall(r"image: (\S+)", manifests)) == {image}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert image.endswith(f":{project['project']['version']}")
    (user,) = re.findall(r"(?m)^USER (\d+)$", text)
    assert set(re.findall(r"runAsUser: (\d+)", manifests)) == {user}
    copied = [
        source
        for line in re.findall(r"(?m)^COPY (?!--from=)(.+) \S+$", text)
        for source in line.split()
    ]
    assert f"build/{engine}/job-server.jar" in copied
    assert all((ROOT / name).exists() for name in copied if not name.startswith("build/")), copied
    packages = {name.split(".")[0] for name in project["tool"]["setuptools"]["packages"]}
    modules = {f"{name}.py" for name in project["tool"]["setuptools"]["py-modules"]}
    assert packages | modules <= set(copied)


def test_services_are_found() -> None:
    spark = {document["metadata"]["name"]: document for document in documents("spark")}
    service = spark["quietcorpus-spark"]
    labels = spark["quietcorpus-spark-master"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    (port,) = service["spec"]["ports"]
    url = f"spark://{service['metadata']['name']}:{port['port']}"
    assert (DEPLOY / "spark.yaml").read_text().count(url) == 2
    for name in ("quietcorpus-spark-master", "quietcorpus-spark-worker"):
        deployment = spark[name]["spec"]
        wanted = deployment["selector"]["matchLabels"].items()
        assert wanted <= deployment["template"]["metadata"]["labels"].items()
    flink, job = documents("flink")
    (launcher,) = [container for pod in pods(job) for container in pod["containers"]]
    assert f"--flink_master={flink['metadata']['name']}-rest:8081" in launcher["args"]
    (version,) = [value for value in launcher["args"] if value.startswith("--flink_version=")]
    assert flink["spec"]["flinkVersion"] == "v" + version.split("=")[1].replace(".", "_")
    slots = int(flink["spec"]["flinkConfiguration"]["taskmanager.numberOfTaskSlots"])
    assert f"--parallelism={slots * flink['spec']['taskManager']['replicas']}" in launcher["args"]


def test_policy_covers_every_pod() -> None:
    for document in documents("spark"):
        if document["kind"] in ("Deployment", "Job"):
            assert document["spec"]["template"]["metadata"]["labels"]["part-of"] == "quietcorpus"
