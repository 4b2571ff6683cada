"""What somebody sees who watches over a server: whether it lives, whether it can work, and what its log tells."""

import re
from typing import Any

import httpx

from tests.support.server import Server

SECONDS_TO_ANSWER = 15.0
"""A probe that gets no answer for so long has been told nothing."""


class Watching:
    def __init__(self, server: Server) -> None:
        self._server = server

    def lives(self) -> bool:
        return self._get("/healthz").status_code == 200

    def is_ready(self) -> bool:
        return self._get("/readyz").status_code == 200

    def in_the_way(self) -> str:
        """What keeps it from working, in its own words; nothing when it is ready."""
        answer = self._get("/readyz")
        if answer.status_code == 200:
            return ""
        problem = answer.json()
        assert (answer.status_code, problem["retryable"]) == (503, True), problem
        return problem["detail"]

    def figure(self, name: str, **labels: str) -> float:
        """The sum of all series of a metric that have these labels."""
        lines = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", self._get("/metrics").text, re.MULTILINE)
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(float(value) for told, value in lines if all(label in told for label in wanted))

    def told(self, event: str) -> list[dict[str, Any]]:
        return [entry for entry in self._server.told() if entry["event"] == event]

    def _get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self._server.url}{path}", timeout=SECONDS_TO_ANSWER, verify=False)
