"""Receives webhooks and keeps them, for whoever wants to read what a forge really sends."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from tests.support.forges.serving import Receive, Scope, Send, answer, body_of, headers_of, served


class Mailbox:
    def __init__(self) -> None:
        self.url = ""
        self.letters: list[tuple[Mapping[str, str], bytes]] = []
        """Each with its headers."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.letters.append((headers_of(scope), await body_of(receive)))
        await answer(send, 200, {})


@contextmanager
def open_mailbox() -> Generator[Mailbox]:
    mailbox = Mailbox()
    with served(mailbox) as mailbox.url:
        yield mailbox
