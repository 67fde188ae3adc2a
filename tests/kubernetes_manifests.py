"""The manifests that kustomize makes of deploy/kubernetes."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterator
from typing import Any

from machine import BUILD, ROOT, required
from ruamel.yaml import YAML

KUSTOMIZE = BUILD / "kustomize" / "kustomize"
DEPLOY = ROOT / "deploy" / "kubernetes"
ENGINES = ("spark", "flink")
MANAGERS = ("jobManager", "taskManager")
PODS = {"spark": ("master", "worker", "launcher"), "flink": (*MANAGERS, "launcher")}
OURS = {"part-of": "quietcorpus"}


@functools.cache
def rendered(engine: str) -> str:
    """The manifests that kustomize makes of an overlay."""
    if not KUSTOMIZE.exists():
        required(f"{KUSTOMIZE} is missing; `make kustomize` brings it")
    command = [str(KUSTOMIZE), "build", str(DEPLOY / engine)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def documents(engine: str) -> list[dict[str, Any]]:
    found = list(YAML(typ="safe").load_all(rendered(engine)))
    assert all({"apiVersion", "kind", "metadata"} <= set(document) for document in found)
    names = [(document["kind"], document["metadata"]["name"]) for document in found]
    assert len(set(names)) == len(names)
    return found


def of_kind(engine: str, kind: str) -> dict[str, Any]:
    (found,) = [document for document in documents(engine) if document["kind"] == kind]
    return found


def merged(common: Any, own: Any) -> Any:
    """Pod templates as the operator makes one of two; lists, by position, so they may not meet."""
    if not (isinstance(common, dict) and isinstance(own, dict)):
        assert not isinstance(common, list), common
        return own
    shared = {name: merged(common[name], own[name]) for name in common.keys() & own.keys()}
    return common | own | shared


def pods(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The pods of a document, with labels and spec, by the name of what runs in them."""
    kind, spec = document["kind"], document.get("spec", {})
    if kind == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    if kind == "FlinkDeployment":
        found = [merged(spec["podTemplate"], spec[m]["podTemplate"]) for m in MANAGERS]
        return dict(zip(MANAGERS, found, strict=True))
    if kind in ("Deployment", "CronJob"):
        return {spec["template"]["spec"]["containers"][0]["name"]: spec["template"]}
    assert kind in ("Service", "NetworkPolicy", "ConfigMap")
    return {}


def pods_of(engine: str) -> dict[str, dict[str, Any]]:
    found = [pair for document in documents(engine) for pair in pods(document).items()]
    assert sorted(name for name, _ in found) == sorted(PODS[engine])
    return dict(found)


def containers(pod: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from pod["spec"].get("initContainers", [])
    yield from pod["spec"]["containers"]


def variables(container: dict[str, Any]) -> dict[str, str]:
    """The variables with a value of their own."""
    return {entry["name"]: entry["value"] for entry in container.get("env", []) if "value" in entry}
