"""A program of somebody else that receives webhooks on loopback, and remembers what it said yes to."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from msgspec import Struct, json


class Receipt(Struct, frozen=True):
    headers: Mapping[str, str]
    body: str

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def payload(self) -> dict[str, Any]:
        return json.decode(self.body)


class Receiver:
    def __init__(self) -> None:
        self.receipts: list[Receipt] = []
        self.on_arrival: Callable[[int], None] = lambda _: None
        """Is told how many have come, before the answer is given."""
        self._arrived = 0
        self._lock = Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook"

    def once_each(self) -> list[dict[str, Any]]:
        """As a receiver sees them that knows what it has already."""
        return list({receipt.id: receipt.payload for receipt in reversed(self.receipts)}.values())[::-1]

    @contextmanager
    def open(self) -> Generator["Receiver"]:
        thread = Thread(target=self._server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def _receive(self, receipt: Receipt) -> None:
        with self._lock:
            self._arrived += 1
            self.on_arrival(self._arrived)
            self.receipts.append(receipt)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receive = self._receive

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = self.rfile.read(length).decode()
                try:
                    if len(body.encode()) < length:
                        raise ConnectionError  # whoever sent it died over it
                    receive(Receipt({name.lower(): value for name, value in self.headers.items()}, body))
                    self.send_response(204)
                    self.end_headers()
                except ConnectionError:
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Nobody reads it."""

        return Handler
