"""A collector of metrics and events: an HTTP server on the loopback that keeps what it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

METRICS, EVENTS = "/v1/metrics", "/api/v1/lineage"


class Collector:
    """The requests to a server.

    Attributes:
        port: the server's port.
        bodies: the path and the body of each request.
        status: the answer to each request.
        silent: while it is set, no request is answered.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.bodies: list[tuple[str, bytes]] = []
        self.status = 200
        self.silent = threading.Event()
        self.closed = threading.Event()

    @property
    def environment(self) -> dict[str, str | None]:
        """The variables that ask for metrics and events."""
        url = f"http://127.0.0.1:{self.port}"
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OPENLINEAGE_URL": url}

    def events(self) -> list[dict[str, Any]]:
        """The events of OpenLineage, in order."""
        return [json.loads(body) for path, body in self.bodies if path == EVENTS]

    def metrics(self) -> list[dict[str, dict[frozenset[tuple[str, str]], float]]]:
        """For each export: the points of each metric, by their attributes."""
        return [_points(body) for path, body in self.bodies if path == METRICS]

    def resource(self) -> dict[str, str]:
        """The attributes of the process that sent the last metrics."""
        request = ExportMetricsServiceRequest.FromString(
            [body for path, body in self.bodies if path == METRICS][-1]
        )
        return {
            a.key: a.value.string_value for a in request.resource_metrics[0].resource.attributes
        }


def _points(body: bytes) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    request = ExportMetricsServiceRequest.FromString(body)
    return {
        metric.name: {
            frozenset((a.key, a.value.string_value) for a in point.attributes): point.as_double
            or point.as_int
            for point in metric.gauge.data_points
        }
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.bodies.append((self.path, body))
            while collector.silent.is_set() and not collector.closed.wait(0.05):
                pass
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        collector = Collector(server.server_port)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            collector.closed.set()
            server.shutdown()
