"""Secrets in options and specs: refused in each stated writing, and repeated by no message."""

from __future__ import annotations

import base64
import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from machine import MASTER_KEY, OTHER_KEY

from quietcorpus.pipelines.environment.credentials import refuse_in_spec
from quietcorpus.pipelines.runners.clusters import explain_failure
from quietcorpus.pipelines.runners.engine import Engine
from quietcorpus.pipelines.schema.loading import load_spec
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace

NAME, FILE = "QUIETCORPUS_MASTER_KEY", "QUIETCORPUS_MASTER_KEY_FILE"
KEY = bytes.fromhex(MASTER_KEY)
JVM, ENVIRONMENT, CONFIG = (
    "--job_server_jvm_properties",
    "--environment_options",
    "--environment_config",
)
HIDDEN = "hiddenhidden"  # a secret that this process does not hold


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FILE, raising=False)
    monkeypatch.setenv(NAME, MASTER_KEY)


def refused(*arguments: str) -> str:
    with pytest.raises(InputError) as raised:
        Engine(arguments, 1)
    message = str(raised.value)
    assert "\n" not in message
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    return message


def in_base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


WRITINGS = [
    MASTER_KEY,
    MASTER_KEY.upper(),
    KEY.hex(":"),
    KEY.hex(" ", 4),
    in_base64(KEY),
    base64.urlsafe_b64encode(KEY).decode().rstrip("="),
    in_base64(MASTER_KEY.encode()),
    in_base64(b"x" + MASTER_KEY.encode()),
    in_base64(b"xy" + KEY),
    quote(KEY),
    quote(in_base64(KEY), safe=""),
    "".join(f"%{ord(digit):02x}" for digit in MASTER_KEY),
    "".join(f"\\u{ord(digit):04x}" for digit in MASTER_KEY),
    "".join(f"\\x{byte:02x}" for byte in KEY),
    base64.encodebytes(MASTER_KEY.encode()).decode(),
    "\n".join(in_base64(KEY)[n : n + 11] for n in range(0, 44, 11)),
    ",".join(f"0x{byte:02x}" for byte in KEY),
    "".join(f"&#{ord(digit)};" for digit in MASTER_KEY),
    MASTER_KEY.encode().hex(),
    "f" + MASTER_KEY.encode().hex(),
    os.fsdecode(KEY),
]


@pytest.mark.parametrize("writing", WRITINGS)
@pytest.mark.parametrize("by_file", [False, True])
def test_the_configured_key_is_in_no_option(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, writing: str, by_file: bool
) -> None:
    # Kills: to look for the variable's name alone, for the key in one writing, or for one that
    # the variable itself holds.
    if by_file:
        path = tmp_path / "key"
        path.touch(mode=0o600)
        path.write_text(MASTER_KEY)
        monkeypatch.delenv(NAME)
        monkeypatch.setenv(FILE, str(path))
    options = [
        (f"{ENVIRONMENT}=KEY={writing}",),
        (ENVIRONMENT, f"process_variables=A=1,B={writing}"),
        (f"{JVM}=-Da=b", f"{JVM}=-Dspark.executorEnv.K={writing}"),
        (f"--experiments=x/{writing}/y",),
        ("--runer=Spark", f"--no_such_option={writing}"),
    ]
    for arguments in options:
        message = refused(*arguments)
        name = arguments[-1].partition("=")[0] if len(arguments) == 1 else arguments[-1]
        assert message.startswith(("--environment_options: ", name.partition("=")[0] + ": "))
        assert "a secret in a command is seen on the machine and logged with the job" in message
        assert "holds the master key" in message
        assert writing not in message
        assert MASTER_KEY[:8] not in message.lower()


def test_the_key_as_an_options_name_or_word() -> None:
    # Kills: to name the option by what holds the key.
    for arguments in ([f"--{MASTER_KEY}=1"], [MASTER_KEY], [f"-{MASTER_KEY}"]):
        message = refused(*arguments)
        assert message.startswith("an argument: a secret in a command")
        assert MASTER_KEY not in message


NAMED = [
    f"{JVM}=-Dspark.executorEnv.{NAME}={HIDDEN}",
    f"{ENVIRONMENT}=process_variables={NAME}={HIDDEN}",
    f"{ENVIRONMENT}=process_variables=A=1,{NAME}={HIDDEN}",
    f"{ENVIRONMENT}={NAME}={HIDDEN}",
    f"{CONFIG}=" + json.dumps({"command": f"env {NAME}={HIDDEN} quietcorpus-worker"}),
    f"{CONFIG}=" + json.dumps({"command": f"env {NAME}='{HIDDEN}' quietcorpus-worker"}),
    f"{CONFIG}=" + json.dumps({"command": "x", "env": {NAME: HIDDEN}}),
    f"{CONFIG}=" + json.dumps({"command": "x", "env": {"AWS_SECRET_ACCESS_KEY": HIDDEN}}),
    f"{CONFIG}=" + json.dumps({"command": "x", "env": {"AWS_SESSION_TOKEN": HIDDEN}}),
    f"{CONFIG}=" + json.dumps({"env": [{"name": "AZURE_CLIENT_SECRET", "value": HIDDEN}]}),
    f"{CONFIG}=" + json.dumps({"command": ["env", NAME, HIDDEN]}),
    f"{CONFIG}=" + json.dumps({"headers": {"Authorization": f"Bearer {HIDDEN}"}}),
    f"{CONFIG}=" + json.dumps(json.dumps({"env": {NAME: HIDDEN}})),
    f"{CONFIG}=" + json.dumps({"env": {NAME: HIDDEN}}).replace("_", "\\u005f"),
    f"{CONFIG}=" + quote(json.dumps({"env": {NAME: HIDDEN}})),
    f"{CONFIG}=" + in_base64(json.dumps({"env": {NAME: HIDDEN}}).encode()),
    f"--profiler_extra_env_vars=A=1,AZURE_STORAGE_CONNECTION_STRING={HIDDEN}",
    f"--profiler_extra_env_vars=AZURE_STORAGE_KEY={HIDDEN}",
    f"--experiments=AccountName=a;AccountKey={HIDDEN};EndpointSuffix=b",
    f"{JVM}=-Dspark.hadoop.fs.s3a.secret.key={HIDDEN}",
    f"{JVM}=-Dspark.hadoop.fs.s3a.encryption.key={HIDDEN}",
    f"{JVM}=-Dspark.hadoop.fs.azure.encryption.encoded.client-provided-key={HIDDEN}",
    f"{JVM}=-Dspark.hadoop.dfs.adls.oauth2.credential={HIDDEN}",
    f"{JVM}=-Dspark.executorEnv.AIRFLOW__CORE__FERNET_KEY={HIDDEN}",
    f"{JVM}=-Dspark.executorEnv.OPENAI_KEY={HIDDEN}",
    f"{JVM}=-Dspark.hadoop.fs.s3a.bucket.raw.session.token={HIDDEN}",
    f"{JVM}=-Dspark.hadoop.fs.azure.account.key.raw.dfs.core.windows.net={HIDDEN}",
    f"{JVM}=-Dspark.hadoop.fs.azure.account.oauth2.client.secret.raw.net={HIDDEN}",
    f"{JVM}=-Dspark.hadoop.fs.azure.sas.container.raw={HIDDEN}",
    f"{JVM}=-Ds3.secret-key={HIDDEN}",
    f"{JVM}=-Daws.secretAccessKey={HIDDEN}",
    f"{JVM}=-Djavax.net.ssl.keyStorePassword={HIDDEN}",
    f"{JVM}=-Dspark.authenticate.secret={HIDDEN}",
    f'{JVM}=-Dcredentials={{"type": "service_account", "private_key": "{HIDDEN}"}}',
    f"--flink_master=https://somebody:{HIDDEN}@flink:8081",
    f"--sdk_container_image=https://somebody:{HIDDEN}@registry/image",
    f"--sdk_container_image=https://{HIDDEN}@registry/image",
    f"--flink_master=HTTPS://{HIDDEN}@flink:8081",
    f"--s3_secret_access_key={HIDDEN}",
    f"--s3_secret_access_key=,{HIDDEN}",
    f"--s3_session_token={HIDDEN}",
    f"--azure_connection_string={HIDDEN}",
    f'{CONFIG}=<property name="{NAME}" value="{HIDDEN}"/>',
    f"{CONFIG}=&quot;password&quot;: &quot;{HIDDEN}&quot;",
    f"{CONFIG}=('{NAME}', '{HIDDEN}')",
    f"{CONFIG}=setenv {NAME} {HIDDEN}",
    f"{CONFIG}=" + json.dumps({"command": f"worker --password '{HIDDEN}'"}),
    f"{CONFIG}=fs.s3a.secret.key {HIDDEN}",
    f"{CONFIG}=jdbc:sqlserver://host;user=u;pwd={HIDDEN}",
    f"{CONFIG}=Driver=x;UID=u;PWD={HIDDEN}",
    f"{CONFIG}=MYSQL_PASS={HIDDEN}",
    f"{CONFIG}=" + f"{NAME}={HIDDEN}".encode().hex(),
]


@pytest.mark.parametrize("argument", NAMED)
def test_a_credentials_name_with_a_value(argument: str) -> None:
    # Kills: to know one option, one form, or one place in it.
    option, _, value = argument.partition("=")
    for arguments in ([argument], [option, value], ["--runner=SparkRunner", argument]):
        message = refused(*arguments)
        assert message.startswith(f"{option}: a secret in a command is seen on the machine")
        assert HIDDEN not in message


def test_a_value_that_the_environment_holds_as_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: to trust a value because its name says nothing.
    held = secrets.token_urlsafe(30) + "+/"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", held)
    for writing in (held, quote(held, safe=""), in_base64(held.encode()), f"x{held}y"):
        message = refused(f"--labels=team={writing}")
        assert message.startswith("--labels: a secret in a command")
        assert "holds what AWS_SECRET_ACCESS_KEY is set to" in message
        assert held not in message
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    Engine([f"--labels=team={held}"], 1)


def test_a_held_value_in_each_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: to read letters of one byte alone, "+" as itself, or one way to escape.
    held = "p\u00e4ss w\u00f6rd+\U0001f511=x"
    monkeypatch.setenv("DB_PASSWORD", held)
    for writing in (
        held,
        quote(held),
        quote_plus(held),
        json.dumps(held),
        "".join(f"&#{ord(letter)};" for letter in held),
        held.encode().hex(),
        *(in_base64(b"x" * n + held.encode()) for n in range(3)),
    ):
        message = refused(f"--labels=team={writing}")
        assert "holds what DB_PASSWORD is set to" in message
        assert writing not in message


def test_long_arguments_are_read_to_their_end_in_linear_time() -> None:
    # Kills: a search that is quadratic (minutes here), or that stops early.
    for filler in ("ab_c", "a<b> ", "a ", "\\{", "%25", "1,-", "[", "://", "&#0", "x\"'"):
        Engine([f"--job_name={filler * 20_000}"], 1)
    assert "master key" in refused(f"--job_name={'ab_c' * 50_000}:{in_base64(KEY)}")


@pytest.mark.parametrize(
    "argument",
    [
        f"{JVM}=-Dspark.executorEnv.{FILE}=/etc/quietcorpus/master-key",
        f"{JVM}=-Dspark.redaction.regex=(?i)secret|password|token|{NAME}",
        f"{JVM}=-Dspark.kubernetes.executor.secrets.quietcorpus-master-key=/key",
        f"{JVM}=-Dspark.executor.memory=4g",
        f"{CONFIG}=" + json.dumps({"command": "x", "env": {NAME: "", FILE: "/key"}}),
        f"{CONFIG}=" + json.dumps({"command": "x", "env": {"AWS_ACCESS_KEY_ID": "an-identity"}}),
        f"{ENVIRONMENT}=process_variables=GOOGLE_APPLICATION_CREDENTIALS=/etc/gcp.json",
        "--sdk_container_image=registry.example.com:5000/worker@sha256:" + "0123456789abcdef" * 4,
        "--dataflow_kms_key=projects/p/locations/l/keyRings/r/cryptoKeys/k",
        "--temp_location=abfss://container@account/tmp",
        "--job_name=keyword-pass-through",
        "--job_name=keyword-pass through",
        "--labels=owner pwd",
        "--labels=the password of nobody, a token count",
        "--labels=my_token",
        "--experiments=AWS_SESSION_TOKEN,AWS_SECRET_ACCESS_KEY",
        "--experiments=single_pass=true,first-pass=1,bypass=localhost",
        "--temp_location=/data/my_token counts/x",
        f"{ENVIRONMENT}=process_variables=PWD=/work,OLDPWD=$HOME",
        f"{CONFIG}=" + json.dumps({"command": 'test -n "$MY_TOKEN" && worker "$MY_TOKEN" x'}),
        f"{CONFIG}=" + json.dumps({"command": f"unset {NAME}; worker < MY_TOKEN > /log"}),
        f"{CONFIG}=<name>fs.s3a.secret.key</name><value></value>",
        "--temp_location=gs://<token>/tmp",
    ],
)
def test_what_is_no_secret_is_taken(argument: str) -> None:
    # Kills: to refuse whatever looks like one.
    Engine([argument], 1)


PEM = serialization.Encoding.PEM
KEYS = {
    "rsa": rsa.generate_private_key(65537, 2048),
    "ec": ec.generate_private_key(ec.SECP256R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate(),
}
FORMS = {
    "PKCS8": serialization.NoEncryption(),
    "PKCS8 encrypted": serialization.BestAvailableEncryption(b"secret"),
    "OpenSSH": serialization.NoEncryption(),
    "TraditionalOpenSSL": serialization.NoEncryption(),
    "TraditionalOpenSSL encrypted": serialization.BestAvailableEncryption(b"secret"),
}
OTHER_KEYS = {
    "OpenPGP": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQVY\n-----END PGP PRIVATE KEY BLOCK-----",
    "PuTTY": "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\nAAAA",
    "age": "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}


def private_keys() -> dict[str, str]:
    """Private keys of all kinds, in all forms that they have."""
    found = dict(OTHER_KEYS)
    for kind, key in KEYS.items():
        for form, encryption in FORMS.items():
            if (kind, form.split()[0]) != ("ed25519", "TraditionalOpenSSL"):
                written = getattr(serialization.PrivateFormat, form.split()[0])
                found[f"{kind} {form}"] = key.private_bytes(PEM, written, encryption).decode()
    return found


WAYS = {
    "as it is": str,
    "in one line": lambda key: key.replace("\n", " "),
    "escaped": lambda key: json.dumps({"a": [key]}),
    "in base64": lambda key: in_base64(key.encode()),
    "in an address": quote,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "key"), private_keys().items(), ids=private_keys())
def test_a_private_key_is_refused(name: str, key: str, way: str) -> None:
    # Kills: a spec, or a job's page, with a key that signs or opens; a message that repeats it.
    written = WAYS[way](key)
    body = max(key.splitlines(), key=len)[:20]
    for content in ({"a": [{"b": written}]}, {written: 1}, written):
        with pytest.raises(InputError) as raised:
            refuse_in_spec(content)
        assert "it holds a private key" in str(raised.value) or "credentials" in str(raised.value)
        assert "\n" not in str(raised.value)
        assert body not in str(raised.value)
    assert body not in refused(f"{CONFIG}={written}")
    assert body not in refused(CONFIG, written)


@pytest.mark.parametrize("kind", KEYS)
def test_a_public_key_is_taken(kind: str) -> None:
    # Kills: a search that finds any key.
    public = KEYS[kind].public_key()
    for form in ("SubjectPublicKeyInfo", "PKCS1" if kind == "rsa" else "SubjectPublicKeyInfo"):
        written = public.public_bytes(PEM, getattr(serialization.PublicFormat, form)).decode()
        refuse_in_spec({"a": written})


def test_an_unknown_option_is_not_quoted_in_full() -> None:
    # A secret whose option is misspelt is known by nothing. Kills: quoting the argument.
    for arguments in (
        [f"--s3_secret_acces_key={HIDDEN}"],
        ["--s3_secret_acces_key", HIDDEN],
        ["--streaming", HIDDEN],
        [HIDDEN],
    ):
        assert HIDDEN not in refused(*arguments)


def test_a_worker_that_is_not_found_is_named_without_its_arguments() -> None:
    # Kills: quoting a command whose arguments may be secrets that nothing knows.
    config = {"command": f"/absent/worker --pass {HIDDEN}"}
    options = ["--environment_type=PROCESS", f"{CONFIG}={json.dumps(config)}"]
    failure = 'java.io.IOException: Cannot run program "x": error=2, No such file or directory'
    found = str(explain_failure(PipelineOptions(options), failure))
    assert found.startswith(f"{CONFIG}: '/absent/worker' is not a program that the cluster's")
    assert HIDDEN not in found


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"input.path": f"s3://somebody:{HIDDEN}@host/corpus"}, "input.path"),
        ({"output": f"released/{MASTER_KEY}"}, "output"),
        ({"input.keep": ["a", in_base64(KEY)]}, "input.keep"),
        ({"mechanism.epsilon": int(MASTER_KEY, 16)}, "mechanism.epsilon"),
        ({"mechanism.epsilon": int(2 * MASTER_KEY, 16)}, "mechanism.epsilon"),
        ({"mechanism.vocabulary": {"public": f"x?AWS_SESSION_TOKEN={HIDDEN}"}}, "mechanism."),
        ({"input": [{"aws_secret_access_key": HIDDEN}]}, "input.aws_secret_access_key"),
        ({"mechanism.epsilon": f"env {NAME}={HIDDEN}"}, "mechanism.epsilon"),
        ({MASTER_KEY: 1}, "the spec"),
    ],
)
def test_secrets_in_a_spec(workspace: Workspace, changes: dict[str, object], key: str) -> None:
    # Kills: a spec that shows a secret to whoever reads it, or an error that does.
    path = str(workspace.spec(changes))
    with pytest.raises(InputError) as raised:
        load_spec(path)
    message = str(raised.value)
    assert message.startswith(f"{path}: {key}")
    assert "a secret in a spec is seen by all who read it" in message
    assert HIDDEN not in message
    assert MASTER_KEY not in message


def test_a_spec_that_refers_to_itself(tmp_path: Path) -> None:
    # Kills: looking for secrets without end.
    path = tmp_path / "spec.yaml"
    path.write_text("release: &a [*a]\n")
    with pytest.raises(InputError):
        load_spec(str(path))


def test_a_spec_is_read_whatever_the_key_is(
    monkeypatch: pytest.MonkeyPatch, workspace: Workspace
) -> None:
    # Plans and audits need no key. Kills: to refuse them for one that is not good.
    monkeypatch.setenv(NAME, "00" * 32)
    assert load_spec(str(workspace.spec())).release == "test"
    # Kills: to let a key through because it is a bad one.
    with pytest.raises(InputError, match="a secret in a spec"):
        load_spec(str(workspace.spec({"output": "x" + "00" * 32})))
    monkeypatch.setenv(NAME, OTHER_KEY)
    load_spec(str(workspace.spec({"output": MASTER_KEY})))
