"""The variables that ask for metrics; `tests/end_to_end/test_observed.py` has what is sent."""

from __future__ import annotations

import os

import pytest

from quietcorpus.pipelines.release import telemetry
from quietcorpus.transforms.errors import InputError

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
OF_METRICS = {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:1/x"}


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("environment", "asked"),
    [
        ({}, False),
        (ENDPOINT, True),
        (OF_METRICS, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, False),
        ({"OTEL_METRICS_EXPORTER": "otlp"}, True),
        ({"OTEL_METRICS_EXPORTER": "console, otlp"}, True),
        (ENDPOINT | {"OTEL_METRICS_EXPORTER": "none"}, False),
        (ENDPOINT | {"OTEL_METRICS_EXPORTER": "prometheus"}, False),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "True"}, False),
    ],
)
def test_the_standard_environment_asks(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], asked: bool
) -> None:
    # Kills: metrics by default, or in spite of a variable that says no.
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert telemetry.is_asked() is asked


def test_another_protocol_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: requests over HTTP to a port of gRPC, of which nobody would see why they fail.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(InputError, match=r"^the protocol grpc is not http/protobuf"):
        telemetry.listener("0" * 32)
