"""Flink's task managers, by the job manager's REST API."""

from __future__ import annotations

import json
from http.client import HTTPException
from typing import Any
from urllib.request import urlopen

from .heartbeat import Sight

_PATIENCE_SECONDS = 10


class TaskManagers:
    """The task managers of a cluster, and the job that runs there."""

    workers = "task managers"

    def __init__(self, address: str) -> None:
        """Take the URL of the job manager."""
        self._address = address.rstrip("/")
        self._most = 0

    def look(self) -> Sight | None:
        """Return those that are registered, those that are gone, and the tasks done."""
        try:
            live = int(self._asked("overview")["taskmanagers"])
            step = self._tasks(self._asked("jobs/overview")["jobs"])
        except (OSError, ValueError, LookupError, TypeError, HTTPException):
            return None
        self._most = max(self._most, live)
        return Sight(live, self._most - live, step)

    def _tasks(self, jobs: list[dict[str, Any]]) -> str:
        """Return how far the job is; nothing if several run: they do not say whose they are."""
        running = [job["tasks"] for job in jobs if job["state"] == "RUNNING"]
        if len(running) != 1:
            return ""
        return f"{running[0]['finished']} of {running[0]['total']} tasks"

    def _asked(self, path: str) -> Any:
        with urlopen(f"{self._address}/{path}", timeout=_PATIENCE_SECONDS) as answer:  # noqa: S310
            return json.loads(answer.read(1 << 22))
