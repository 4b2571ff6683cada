"""A probe of a server: whether it is alive and ready, its metrics and its log."""

import re
from typing import Any

import httpx2

from tests.support.server import Server

PROBE_TIMEOUT_S = 15.0
"""As long as a deployment waits for a health check."""


class HealthProbe:
    def __init__(self, server: Server) -> None:
        self._server = server

    def is_alive(self) -> bool:
        return self._get("/healthz").status_code == 200

    def is_ready(self) -> bool:
        return self._get("/readyz").status_code == 200

    def readiness_error(self) -> str:
        """The reason why it is not ready; empty when it is."""
        response = self._get("/readyz")
        if response.status_code == 200:
            return ""
        problem = response.json()
        assert (response.status_code, problem["retryable"]) == (503, True), problem
        return problem["detail"]

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all series of a metric that have these labels."""
        lines = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", self._get("/metrics").text, re.MULTILINE)
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(float(value) for found, value in lines if all(label in found for label in wanted))

    def log_entries(self, event: str) -> list[dict[str, Any]]:
        return [entry for entry in self._server.log_entries() if entry["event"] == event]

    def _get(self, path: str) -> httpx2.Response:
        return httpx2.get(f"{self._server.url}{path}", timeout=PROBE_TIMEOUT_S, verify=False)
