"""A webhook endpoint on loopback that records what it accepted."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, json

from mergeyard.ports.external import AddressRefused, SendFailed, SendResponse
from tests.support.http_server import Receive, Scope, Send, read_body, read_headers, respond, serve_in_thread


class ReceivedWebhook(Struct, frozen=True):
    headers: Mapping[str, str]
    body: str

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def payload(self) -> dict[str, Any]:
        return json.decode(self.body)


class WebhookReceiver:
    def __init__(self) -> None:
        self.received: list[ReceivedWebhook] = []
        self.on_arrival: Callable[[int], None] = lambda _: None
        """Called with the number of requests so far, before the response is sent."""
        self._arrival_count = 0
        self._lock = Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook"

    def unique_payloads(self) -> list[dict[str, Any]]:
        """Payloads without repeated deliveries."""
        return list({receipt.id: receipt.payload for receipt in reversed(self.received)}.values())[::-1]

    @contextmanager
    def serve(self) -> Generator["WebhookReceiver"]:
        thread = Thread(target=self._server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def _receive(self, receipt: ReceivedWebhook) -> None:
        with self._lock:
            self._arrival_count += 1
            self.on_arrival(self._arrival_count)
            self.received.append(receipt)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receive = self._receive

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = self.rfile.read(length).decode()
                try:
                    if len(body.encode()) < length:
                        raise ConnectionError  # the sender died while sending
                    receive(ReceivedWebhook({name.lower(): value for name, value in self.headers.items()}, body))
                    self.send_response(204)
                    self.end_headers()
                except ConnectionError:
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Logs nothing."""

        return Handler


class SentWebhook(Struct, frozen=True):
    url: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def payload(self) -> dict[str, Any]:
        return json.decode(self.body)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


class FakeSender:
    def __init__(self) -> None:
        self.received = list[SentWebhook]()
        """Requests with a successful response."""
        self.attempts = list[SentWebhook]()
        self.statuses: dict[str, int] = {}
        """Response status by host; 0 for no response."""
        self.rejected_type = ""
        """An event type that every receiver rejects."""
        self.secrets: dict[str, str] = {}
        """By name of the webhook."""

    async def check(self, url: str) -> None:
        if "private" in url:
            raise AddressRefused(f"{url} is private: use another.")

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> SendResponse:
        await self.check(url)
        status = self.statuses.get(urlsplit(url).hostname or "", 200)
        sent = SentWebhook(url, headers, body)
        if sent.payload.get("type") == self.rejected_type:
            status = 400
        self.attempts.append(sent)
        if not status:
            raise SendFailed("No response.")
        if status == 200:
            self.received.append(sent)
        return SendResponse(status, "thank you" if status == 200 else "no")

    def received_types(self) -> list[str]:
        return [each.payload["type"] for each in self.received]

    @staticmethod
    def time_of(webhook: SentWebhook) -> datetime:
        return datetime.fromtimestamp(int(webhook.headers["webhook-timestamp"]), UTC)


class WebhookRecorder:
    def __init__(self) -> None:
        self.url = ""
        self.requests: list[tuple[Mapping[str, str], bytes]] = []
        """Headers and body of each."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.append((read_headers(scope), await read_body(receive)))
        await respond(send, 200, {})


@contextmanager
def record_webhooks() -> Generator[WebhookRecorder]:
    recorder = WebhookRecorder()
    with serve_in_thread(recorder) as recorder.url:
        yield recorder
