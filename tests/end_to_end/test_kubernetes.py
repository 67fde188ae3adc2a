"""The manifests that kustomize makes of deploy/kubernetes, and its scripts; no cluster is here."""

from __future__ import annotations

import functools
import json
import os
import re
import socket
import subprocess
import time
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from apache_beam.options.pipeline_options import JobServerOptions, PipelineOptions
from machine import BUILD, MASTER_KEY, OTHER_KEY, ROOT, required
from ruamel.yaml import YAML

if TYPE_CHECKING:
    from tests.conftest import Workspace

KUSTOMIZE = BUILD / "kustomize" / "kustomize"
OPERATOR = BUILD / "flink-operator" / "flink-kubernetes-operator-api.jar"
DEPLOY = ROOT / "deploy" / "kubernetes"
ENGINES = ("spark", "flink")
MANAGERS = ("jobManager", "taskManager")
PODS = {"spark": ("master", "worker", "launcher"), "flink": (*MANAGERS, "launcher")}
OURS = {"part-of": "quietcorpus"}


@functools.cache
def rendered(engine: str) -> str:
    """What kustomize makes of an overlay."""
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


@pytest.mark.parametrize("engine", ENGINES)
def test_volumes_and_secrets_resolve(engine: str) -> None:
    with_key = []
    for name, pod in pods_of(engine).items():
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
        for container in containers(pod):
            mounts = {mount["name"]: mount for mount in container.get("volumeMounts", [])}
            assert set(mounts) <= set(volumes)
            # The key comes as a file, out of a secret, and by no variable.
            assert "QUIETCORPUS_MASTER_KEY" not in [e["name"] for e in container.get("env", [])]
            for source in container.get("envFrom", []):
                # A store may as well be open to the pods' own account.
                wanted = {"name": "quietcorpus-storage", "optional": True}
                assert source == {"secretRef": wanted}
            given = variables(container)
            if "QUIETCORPUS_MASTER_KEY_FILE" not in given:
                assert "key" not in mounts
                continue
            with_key.append(name)
            folder, _, file = given["QUIETCORPUS_MASTER_KEY_FILE"].rpartition("/")
            assert folder == mounts["key"]["mountPath"]
            assert mounts["key"]["readOnly"]
            assert f"--from-file={file}=" in (DEPLOY / "secrets.sh").read_text()
            secret = volumes["key"]["secret"]
            assert secret["secretName"] == "quietcorpus-master-key"
            assert secret["defaultMode"] & 0o037 == 0, oct(secret["defaultMode"])
            # Below the volume, whose own folder anybody in the pod may write to.
            assert given["QUIETCORPUS_CACHE"].startswith(f"{mounts['cache']['mountPath']}/")
    assert sorted(with_key) == sorted([PODS[engine][1], "launcher"])  # what executes and launches


@pytest.mark.parametrize("engine", ENGINES)
def test_private_text_goes_to_the_volume(engine: str) -> None:
    """Shuffled and spilled data lie on the disk of a node's choice, not in a container's own."""
    found = pods_of(engine)
    for name in (PODS[engine][1], "launcher"):
        (container,) = found[name]["spec"]["containers"]
        assert variables(container)["TMPDIR"] == "/scratch"
    if engine == "spark":
        holders = [found["worker"], found["launcher"]]
        for pod in holders:
            assert variables(pod["spec"]["containers"][0])["SPARK_LOCAL_DIRS"] == "/scratch"
        assert "--work-dir=/scratch/work" in found["worker"]["spec"]["containers"][0]["args"]
    else:
        holders = [found[name] for name in (*MANAGERS, "launcher")]
        flink = of_kind(engine, "FlinkDeployment")
        assert flink["spec"]["flinkConfiguration"]["io.tmp.dirs"] == "/scratch"
    for pod in holders:
        (container,) = pod["spec"]["containers"]
        assert {"name": "scratch", "mountPath": "/scratch"} in container["volumeMounts"]
        (volume,) = [v for v in pod["spec"]["volumes"] if v["name"] == "scratch"]
        assert "sizeLimit" in volume["emptyDir"]
        assert "medium" not in volume["emptyDir"]


@pytest.mark.parametrize("engine", ENGINES)
def test_pods_may_do_little(engine: str) -> None:
    for name, pod in pods_of(engine).items():
        spec = pod["spec"]
        assert spec["enableServiceLinks"] is False
        # The job manager asks Kubernetes for the task managers' pods.
        assert spec.get("automountServiceAccountToken") is (None if name == "jobManager" else False)
        user = spec["securityContext"]
        assert user["runAsNonRoot"]
        assert user["fsGroup"] == user["runAsUser"]
        assert user["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(pod):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            # Kills: a container that starves others, or that no scheduler has room for. Flink's
            # operator makes the resources of its managers' containers.
            if name not in MANAGERS:
                asked = container["resources"]
                assert asked["requests"].keys() == {"cpu", "memory"}
                assert asked["limits"] == {"memory": asked["requests"]["memory"]}
            elif container["name"] == "flink-main-container":
                manager = of_kind(engine, "FlinkDeployment")["spec"][name]
                assert manager["resource"].keys() == {"cpu", "memory"}


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_written_to_is_a_volume(engine: str) -> None:
    # Kills: a program that cannot write where it must, since the image cannot be written to.
    for pod in pods_of(engine).values():
        for container in pod["spec"]["containers"]:
            mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
            assert "/tmp" in mounts
            given = variables(container)
            for name in ("TMPDIR", "SPARK_LOCAL_DIRS", "QUIETCORPUS_CACHE", "NUMBA_CACHE_DIR"):
                if name in given:
                    assert f"/{given[name].split('/')[1]}" in mounts
            volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
            for mount in container["volumeMounts"]:
                if "emptyDir" in volumes[mount["name"]]:
                    assert "sizeLimit" in volumes[mount["name"]]["emptyDir"]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_keeps_running_is_probed(engine: str) -> None:
    for name, pod in pods_of(engine).items():
        for container in pod["spec"]["containers"]:
            if name == "launcher":  # its job has a deadline
                assert "livenessProbe" not in container
                continue
            probe = container["livenessProbe"]
            port = (probe.get("tcpSocket") or probe["httpGet"])["port"]
            said = json.dumps(container.get("args", [])) + json.dumps(container.get("ports", []))
            flink = [] if engine == "spark" else of_kind(engine, "FlinkDeployment")["spec"].items()
            options = dict(flink).get("flinkConfiguration", {})
            assert str(port) in said or str(port) in (*options.values(), "8081")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", ["1.31", "latest"])
def test_manifests_are_what_kubernetes_takes(engine: str, version: str) -> None:
    """Kills: a key that is misspelt, and that a cluster would leave out or refuse."""
    try:
        import kubernetes_validate as kubernetes
    except ImportError:
        required("kubernetes-validate is not installed")
    version = kubernetes.latest_version() if version == "latest" else version
    own = [one for one in documents(engine) if one["kind"] != "FlinkDeployment"]
    assert {one["kind"] for one in own} >= {"ConfigMap", "CronJob", "NetworkPolicy"}
    for document in own:
        kubernetes.validate(document, version, strict=True)
    broken = of_kind(engine, "CronJob") | {"spec": {"concurencyPolicy": "Forbid"}}
    with pytest.raises(kubernetes.ValidationError):
        kubernetes.validate(broken, version, strict=True)


def strict(schema: Any) -> Any:
    """A schema of a custom resource that takes no key which it does not name."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: strict(value) for name, value in schema.items()}
    if "properties" in found and "x-kubernetes-preserve-unknown-fields" not in found:
        found.setdefault("additionalProperties", False)
    if found.get("x-kubernetes-int-or-string"):
        found.pop("type", None)
    return found


def test_flinks_manifest_is_what_its_operator_takes() -> None:
    """Kills: a key that Flink's operator does not know; by the schema of its own release."""
    if not OPERATOR.exists():
        required(f"{OPERATOR} is missing; `make flink-operator` brings it")
    with zipfile.ZipFile(OPERATOR) as jar:
        text = jar.read("META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml")
    (version,) = YAML(typ="safe").load(text)["spec"]["versions"]
    assert version["name"] == "v1beta1"
    fields = strict(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    wanted = of_kind("flink", "FlinkDeployment")["spec"]
    jsonschema.Draft7Validator(fields).validate(wanted)
    for broken in (wanted | {"flinkVersion": "v0_9"}, wanted | {"taskManagers": {}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft7Validator(fields).validate(broken)


@pytest.mark.parametrize("engine", ENGINES)
def test_images_are_what_the_dockerfile_makes(engine: str) -> None:
    text = (DEPLOY / f"{engine}.Dockerfile").read_text()
    (image,) = re.findall(r"-t (\S+) \.", text)
    manifests = rendered(engine)
    assert set(re.findall(r"image: (\S+)", manifests)) == {image}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert image.endswith(f":{project['project']['version']}")
    (user,) = re.findall(r"(?m)^USER (\d+)$", text)
    assert set(re.findall(r"runAsUser: (\d+)", manifests)) == {user}
    copied = sources(text)
    assert f"build/{engine}/job-server.jar" in copied
    # Where Python starts, the folder `quietcorpus` of the sources would hide the installed one.
    built, started = re.findall(r"(?m)^WORKDIR (\S+)$", text)
    assert started != built
    assert all((ROOT / name).exists() for name in copied if not name.startswith("build/")), copied
    assert set(project["tool"]["setuptools"]["package-dir"].values()) <= set(copied)


def sources(dockerfile: str) -> list[str]:
    """Return the paths that a Dockerfile copies out of the repository."""
    lines = re.findall(r"(?m)^COPY (?!--from=)(.+) \S+$", dockerfile)
    return [source for line in lines for source in line.split()]


def let_through(path: str) -> bool:
    """Return whether .dockerignore leaves a path in a build's context: the last fit decides."""
    places = [path, *(str(parent) for parent in PurePosixPath(path).parents)]
    through = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#"):
            parts = re.split(r"(\*\*/|\*)", line.removeprefix("!"))
            meant = {"**/": "(?:.*/)?", "*": "[^/]*"}
            pattern = "".join(meant.get(part) or re.escape(part) for part in parts)
            if any(re.fullmatch(pattern, place) for place in places):
                through = line.startswith("!")
    return through


def test_the_context_of_a_build_has_what_is_copied_alone() -> None:
    files = sorted(ROOT.glob("deploy/*/*.Dockerfile"))
    assert len(files) == 4
    copied = {source for file in files for source in sources(file.read_text())}
    assert {"pipelines", "deploy/dataflow/launch.py", "build/spark/job-server.jar"} <= copied
    for source in copied:
        assert let_through(source), source
        if (ROOT / source).is_dir():
            assert let_through(f"{source}/__init__.py")
            assert not let_through(f"{source}/__pycache__/cli.cpython-311.pyc")
            assert not let_through(f"{source}/master-key")
    for name in ("master-key", "storage.env", "spec.yaml", ".git/config", ".venv/bin/python"):
        assert not let_through(name), name
    for name in ("build/spark/cluster/local", "deploy/kubernetes/secrets.sh", "tests/conftest.py"):
        assert not let_through(name), name


def test_services_are_found() -> None:
    spark = {document["metadata"]["name"]: document for document in documents("spark")}
    service = spark["quietcorpus-spark"]
    labels = pods_of("spark")["master"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    (port,) = service["spec"]["ports"]
    url = f"spark://{service['metadata']['name']}:{port['port']}"
    assert rendered("spark").count(url) == 2
    for name in ("quietcorpus-spark-master", "quietcorpus-spark-worker"):
        deployment = spark[name]["spec"]
        wanted = deployment["selector"]["matchLabels"].items()
        assert wanted <= deployment["template"]["metadata"]["labels"].items()
    flink = of_kind("flink", "FlinkDeployment")
    (launcher,) = pods_of("flink")["launcher"]["spec"]["containers"]
    assert f"--flink_master={flink['metadata']['name']}-rest:8081" in launcher["args"]
    (version,) = [value for value in launcher["args"] if value.startswith("--flink_version=")]
    assert flink["spec"]["flinkVersion"] == "v" + version.split("=")[1].replace(".", "_")
    slots = int(flink["spec"]["flinkConfiguration"]["taskmanager.numberOfTaskSlots"])
    # As on the cluster of this machine: a lost worker's tasks are repeated.
    local = (ROOT / "deploy" / "flink" / "cluster.sh").read_text()
    restarts = {
        f"{name}: {value}"
        for name, value in flink["spec"]["flinkConfiguration"].items()
        if name.startswith("restart-strategy")
    }
    assert restarts == set(re.findall(r"(?m)^restart-strategy.*$", local))
    assert f"--parallelism={slots * flink['spec']['taskManager']['replicas']}" in launcher["args"]


def test_an_executor_gets_what_its_worker_offers() -> None:
    found = pods_of("spark")
    (worker,), (launcher,) = (found[name]["spec"]["containers"] for name in ("worker", "launcher"))
    asked = PipelineOptions(launcher["args"]).view_as(JobServerOptions).job_server_jvm_properties
    assert asked == ["-Dspark.executor.memory=7g"]
    (offered,) = re.findall(r"--memory=(\d+)g", " ".join(worker["args"]))
    limit = int(worker["resources"]["limits"]["memory"].removesuffix("Gi"))
    # One executor a worker; as much again is the Python workers'.
    assert int(offered) / 2 < 7 < int(offered) <= limit / 2
    # Where executors find their driver.
    (address,) = [entry for entry in launcher["env"] if entry["name"] == "SPARK_LOCAL_IP"]
    assert address["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_launcher_waits_for_the_cluster(engine: str) -> None:
    """The init container's own command, which ends once somebody listens."""
    pod = pods_of(engine)["launcher"]["spec"]
    (container,) = pod["initContainers"]
    text = " ".join(container["args"])
    host, port = re.findall(r"/dev/tcp/([\w-]+)/(\d+)'", text)[0]
    options = pod["containers"][0]["args"]
    assert any(re.fullmatch(rf"--\w+=(spark://)?{host}:{port}", option) for option in options)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        there = text.replace(f"/{host}/{port}'", f"/127.0.0.1/{listener.getsockname()[1]}'")
        waiting = subprocess.Popen([*container["command"], there])
        try:
            time.sleep(1)
            assert waiting.poll() is None
            listener.listen()
            assert waiting.wait(timeout=30) == 0
        finally:
            waiting.kill()
            waiting.wait()


@pytest.mark.parametrize("engine", ENGINES)
def test_bad_input_alone_is_not_tried_again(engine: str) -> None:
    job = of_kind(engine, "CronJob")["spec"]["jobTemplate"]["spec"]
    assert job["backoffLimit"] > 0
    (rule,) = job["podFailurePolicy"]["rules"]
    wanted = {"containerName": "launcher", "operator": "In", "values": [2, 3]}
    assert rule == {"action": "FailJob", "onExitCodes": wanted}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_schedule_neither_overlaps_nor_runs_for_ever(engine: str) -> None:
    # Kills: two releases at once, a job without an end, and pods that nobody deletes.
    schedule = of_kind(engine, "CronJob")["spec"]
    assert schedule["concurrencyPolicy"] == "Forbid"
    job = schedule["jobTemplate"]["spec"]
    assert 0 < job["activeDeadlineSeconds"] <= 24 * 3600
    assert job["ttlSecondsAfterFinished"] > 0
    (script,) = [document for document in documents(engine) if document["kind"] == "ConfigMap"]
    assert script["data"]["release.sh"] == (DEPLOY / "base" / "release.sh").read_text()
    volumes = pods_of(engine)["launcher"]["spec"]["volumes"]
    assert {"configMap": {"name": script["metadata"]["name"]}, "name": "scripts"} in volumes


def launched(workspace: Workspace, job: str) -> subprocess.CompletedProcess[str]:
    """Run the launcher's own command as a job of this name; /spec is the workspace."""
    (container,) = pods_of("spark")["launcher"]["spec"]["containers"]
    *bash, script = container["command"]
    text = (DEPLOY / "base" / PurePosixPath(script).name).read_text()
    place = workspace.folder / "release.sh"
    place.write_text(text.replace("/spec/", f"{workspace.folder}/"))
    path = f"{Path(workspace.command()[0]).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [*bash, str(place)],
        env=workspace.environment | {"JOB_NAME": job, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_all_tries_of_a_job_make_one_release(workspace: Workspace) -> None:
    # Kills: a retry that is named by the day on which it runs, which would be a second release.
    own = {"input.path": f"{workspace.input}/corpus.jsonl"}
    vocabulary = {"public": f"{workspace.folder}/vocabulary.txt"}
    output = workspace.folder / "released"
    named = {"release": "all-INTERVAL", "output": f"{output}/INTERVAL"}
    workspace.spec(own | named | {"mechanism.vocabulary": vocabulary})
    minutes = 29_384_640  # since 1970, as the CronJob's controller names its jobs
    for job in (minutes, minutes, "2026-10-01"):
        done = launched(workspace, f"quietcorpus-release-{job}")
        assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in output.iterdir()) == ["2025-11-14", "2026-10-01"]
    assert workspace.card(output / "2025-11-14")["release"] == "all-2025-11-14"
    workspace.spec(own | named | {"mechanism.epsilon": -1})
    assert launched(workspace, "quietcorpus-release-2026-10-02").returncode == 2


# Keeps secrets in files, and has of kubectl what the script asks for.
KUBECTL = """#!/usr/bin/env bash
set -euo pipefail
echo "$@" >> calls
case "$1 $2" in
  "get secret") [ ! -f "secret-$3" ] || base64 --wrap=0 "secret-$3" ;;
  "create secret")
    [[ "$*" != *--dry-run=client* ]] || { echo "$4"; exit 0; }
    [ ! -f "secret-$4" ] || { echo "already exists" >&2; exit 1; }
    source="${5#--from-file=master-key=}"
    cp "$source" "secret-$4" ;;
  "apply --server-side") cat > applied ;;
  *) exit 64 ;;
esac
"""


def test_secrets_can_be_made_again(tmp_path: Path) -> None:
    # Kills: a second run that fails, and one that replaces the key under a release. A stand-in
    # takes kubectl's place.
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o700)
    (tmp_path / "storage.env").write_text("AWS_ACCESS_KEY_ID=x\n")

    def run(key: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "key").write_text(f"{key}\n")
        return subprocess.run(
            [DEPLOY / "secrets.sh", "key", "storage.env"],
            cwd=tmp_path,
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )

    for _ in range(2):
        done = run(MASTER_KEY)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "applied").read_text() == "quietcorpus-storage\n"
        (tmp_path / "applied").unlink()
    done = run(OTHER_KEY)
    assert done.returncode == 1
    assert "quietcorpus-master-key holds another key" in done.stderr
    assert (tmp_path / "secret-quietcorpus-master-key").read_text() == f"{MASTER_KEY}\n"
    assert not (tmp_path / "applied").exists()
    said = (tmp_path / "calls").read_text() + done.stdout + done.stderr
    assert MASTER_KEY not in said
    assert OTHER_KEY not in said


def test_flinks_image_has_what_its_entry_point_calls() -> None:
    # Kills: `envsubst` and jemalloc, which Flink's own image has and Python's lacks.
    text = (DEPLOY / "flink.Dockerfile").read_text()
    assert re.search(r"apt-get install .* gettext-base libjemalloc-dev", text)


@pytest.mark.parametrize("engine", ENGINES)
def test_policy_covers_every_pod(engine: str) -> None:
    for name, pod in pods_of(engine).items():
        assert pod["metadata"]["labels"].items() >= OURS.items(), name
    policy = of_kind(engine, "NetworkPolicy")["spec"]
    assert policy["podSelector"] == {"matchLabels": OURS}
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    ours, *others = policy["ingress"]
    assert ours == {"from": [{"podSelector": {"matchLabels": OURS}}]}
    out = policy["egress"]
    assert out[0] == {"to": ours["from"]}
    # Elsewhere, only name servers, stores and, with Flink, Kubernetes itself.
    ports = [[port["port"] for port in rule["ports"]] for rule in out[1:]]
    if engine == "spark":
        assert ports == [[53, 53], [443]]
        assert others == []
        return
    assert ports == [[53, 53], [443], [6443]]
    # The operator's pods, in its namespace, may ask the job manager.
    (operator,) = others
    assert operator["ports"] == [{"port": 8081, "protocol": "TCP"}]
    (peer,) = operator["from"]
    assert set(peer) == {"namespaceSelector", "podSelector"}
    assert all(selector["matchLabels"] for selector in peer.values())
