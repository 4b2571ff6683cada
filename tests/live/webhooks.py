"""Receives the webhooks of the Git host, records when they arrive, and passes them on to Mergeyard."""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx2
from msgspec import Struct

FORWARD_TIMEOUT_S = 30
POLL_INTERVAL_S = 0.1
"""How often the server looks whether it is closed."""
UNAVAILABLE = 503
OWN_HEADERS = ("host", "content-length", "connection", "transfer-encoding", "accept-encoding")
"""Of the connection to us; the connection to Mergeyard has its own."""


class Webhook(Struct, frozen=True, kw_only=True):
    name: str
    """`push`, or an event and its action, on GitLab the state: `pull_request closed`, `merge_request merged`."""
    ref: str
    number: int | None
    arrived_at: float


class WebhookRecorder:
    def __init__(self, port: int, target: Callable[[], str]) -> None:
        """The target is the address of Mergeyard. Port 0 is any that is free."""
        self.received: list[Webhook] = []
        self._target = target
        self._client = httpx2.Client(timeout=FORWARD_TIMEOUT_S, trust_env=False)
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._make_handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        serve = partial(self._server.serve_forever, poll_interval=POLL_INTERVAL_S)
        Thread(target=serve, name="webhooks of the live kit", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._client.close()

    def find(self, since: float, name: str, *, ref: str = "", number: int | None = None) -> Webhook | None:
        wanted = (name, ref, number)
        return next((one for one in self.received if _key(one) == wanted and one.arrived_at >= since), None)

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                with suppress(ValueError):
                    recorder.received.append(read_webhook(headers, body))
                status, content = recorder._forward(self.path, headers, body)
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """The kit shows no requests."""

        return Handler

    def _forward(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        passed_on = {name: value for name, value in headers.items() if name not in OWN_HEADERS}
        try:
            response = self._client.post(self._target() + path, content=body, headers=passed_on)
        except httpx2.HTTPError:
            return UNAVAILABLE, b""
        return response.status_code, response.content


def _key(webhook: Webhook) -> tuple[str, str, int | None]:
    return webhook.name, webhook.ref, webhook.number


def read_webhook(headers: Mapping[str, str], body: bytes) -> Webhook:
    """GitLab has the event in the body. Gitea sends the header of GitHub, too."""
    content: dict[str, Any] = json.loads(body)
    attributes: dict[str, Any] = content.get("object_attributes") or {}
    event = headers.get("x-github-event") or content.get("object_kind", "")
    action = content.get("action") or attributes.get("state", "")
    number = content.get("number", attributes.get("iid"))
    ref = content.get("ref", "")
    return Webhook(name=f"{event} {action}".strip(), ref=ref, number=number, arrived_at=time.monotonic())
