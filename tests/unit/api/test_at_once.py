"""A whole answer is sent in one write where nothing is in the way, and as ASGI has it everywhere else."""

import asyncio

from msgspec import json

from tests.support.door import PR, SECRET, Yard, over_a_socket


class Plug(asyncio.Protocol):
    """Notes what comes in one go."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[bytes] = asyncio.Queue()

    def data_received(self, data: bytes) -> None:
        self.received.put_nowait(data)


def asked(*headers: str, version: str = "1.1", method: str = "POST") -> bytes:
    body = json.encode(PR)
    own = (f"x-api-token: {SECRET}", "content-type: application/json", f"content-length: {len(body)}")
    lines = (f"{method} /v1/getSubmittedPullRequest HTTP/{version}", *own, *headers, "", "")
    return "\r\n".join(lines).encode() + body


def answer_to(*requests: bytes) -> bytes:
    """All that is answered until the server hangs up."""
    answers: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(requests))
        answers.append(await reader.read())

    over_a_socket(talk, Yard())
    return answers[0]


def test_head_and_body_come_together():
    pieces: list[bytes] = []

    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = writer.get_extra_info("peername")
        transport, plug = await asyncio.get_running_loop().create_connection(Plug, *address)
        for _ in range(2):
            transport.write(asked())
            pieces.append(await plug.received.get())
        transport.close()

    over_a_socket(talk, Yard())
    for piece in pieces:
        above, _, body = piece.partition(b"\r\n\r\n")
        assert above.startswith(b"HTTP/1.1 200 OK\r\n")
        assert f"content-length: {len(body)}".encode() in above
        assert b"date: " in above


def test_who_wants_the_connection_to_end_is_told_that_it_does():
    assert b"\r\nconnection: close\r\n" in answer_to(asked("connection: close"))
    assert b"\r\nconnection: close\r\n" in answer_to(asked(version="1.0"))


def test_many_questions_at_once_are_answered_in_their_order():
    questions = [asked("x-request-id: one"), asked("x-request-id: two"), asked("connection: close")]
    answers = answer_to(*questions)
    assert answers.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert answers.index(b"x-request-id: one") < answers.index(b"x-request-id: two")


def test_a_question_for_the_head_alone_gets_no_body():
    above, _, body = answer_to(asked("connection: close", method="HEAD")).partition(b"\r\n\r\n")
    assert above.startswith(b"HTTP/1.1 405 ")
    assert not body
