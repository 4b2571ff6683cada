"""A request reaches the right host once, and no response leads to another request."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from mergeyard.adapters.webhooks.sender import HttpSender
from mergeyard.ports.external import AddressRefused, SendFailed, SendResponse
from tests.contract.webhooks.receiver import a_receiver, an_identity
from tests.contract.webhooks.test_ssrf_guard import resolves_to
from tests.support.asynchronous import asynchronous

HERE = resolves_to("127.0.0.1")


@asynchronous
async def test_a_request_arrives_unchanged():
    async with a_receiver() as receiver:
        sender = HttpSender(HERE, allow_private=True)
        url = f"http://there.example:{receiver.port}/hook?a=b"
        answer = await sender.send(url, {"webhook-id": "msg_1"}, b'{"a":1}')
        assert answer == SendResponse(200, "thanks")
        (request,) = receiver.requests
        assert request.startswith(b"POST /hook?a=b HTTP/1.1\r\n")
        assert f"host: there.example:{receiver.port}\r\n".encode() in request.lower()
        assert b"webhook-id: msg_1\r\n" in request
        assert request.endswith(b'\r\n\r\n{"a":1}')


@asynchronous
async def test_the_certificate_must_match_the_name(tmp_path: Path):
    server, client = an_identity("there.example", tmp_path)
    async with a_receiver(identity=server) as receiver:
        sender = HttpSender(HERE, allow_private=True, ssl_context=client)
        assert (await sender.send(f"https://there.example:{receiver.port}/", {}, b"{}")).status == 200
        with pytest.raises(SendFailed, match="certificate"):
            await sender.send(f"https://elsewhere.example:{receiver.port}/", {}, b"{}")
        assert len(receiver.requests) == 1


@asynchronous
async def test_an_untrusted_certificate_is_refused(tmp_path: Path):
    server, _ = an_identity("there.example", tmp_path)
    async with a_receiver(identity=server) as receiver:
        with pytest.raises(SendFailed, match="certificate"):
            await HttpSender(HERE, allow_private=True).send(f"https://there.example:{receiver.port}/", {}, b"{}")
        assert receiver.requests == []


@asynchronous
async def test_a_redirect_is_not_followed():
    async with a_receiver() as inside:
        redirect = f"HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:{inside.port}/\r\ncontent-length: 0\r\n\r\n"
        async with a_receiver(redirect.encode()) as receiver:
            sender = HttpSender(HERE, allow_private=True)
            assert (await sender.send(f"http://there.example:{receiver.port}/", {}, b"{}")).status == 307
        assert inside.requests == []


@asynchronous
async def test_a_name_that_leads_elsewhere_a_moment_later_is_refused_then():
    answers: list[Sequence[str]] = [["1.1.1.1"], ["127.0.0.1"]]

    async def fickle(_: str, __: int) -> Sequence[str]:
        return answers.pop(0)

    async with a_receiver() as receiver:
        sender, url = HttpSender(fickle), f"https://there.example:{receiver.port}/"
        await sender.check(url)
        with pytest.raises(AddressRefused):
            await sender.send(url, {}, b"{}")
        assert receiver.requests == []


@asynchronous
async def test_the_next_address_is_tried_if_one_does_not_respond():
    async with a_receiver() as receiver:
        sender = HttpSender(resolves_to("127.0.0.2", "127.0.0.1"), allow_private=True)
        assert (await sender.send(f"http://there.example:{receiver.port}/", {}, b"{}")).status == 200


@asynchronous
async def test_a_closed_port_is_a_failed_delivery():
    async with a_receiver() as receiver:
        port = receiver.port
    with pytest.raises(SendFailed, match="There is no connection"):
        await HttpSender(HERE, allow_private=True).send(f"http://there.example:{port}/", {}, b"{}")


@asynchronous
async def test_an_invalid_response_is_reported_with_a_message():
    async with a_receiver(b"nonsense\r\n\r\n") as receiver:
        with pytest.raises(SendFailed, match=r"The connection to .* failed"):
            await HttpSender(HERE, allow_private=True).send(f"http://there.example:{receiver.port}/", {}, b"{}")


@asynchronous
async def test_a_response_without_an_end_is_not_waited_for():
    endless = b"HTTP/1.1 200 OK\r\n\r\n"
    async with a_receiver(endless, endless=True) as receiver:
        sender = HttpSender(HERE, allow_private=True, timeout_s=0.1)
        with pytest.raises(SendFailed, match="no response within"):
            await sender.send(f"http://there.example:{receiver.port}/", {}, b"{}")


@asynchronous
async def test_only_the_beginning_of_a_long_response_is_read():
    long = b"HTTP/1.1 500 No\r\ncontent-length: 90000000\r\n\r\n" + b"\x00\x1b[31mwords \xff" * 5000
    async with a_receiver(long) as receiver:
        answer = await HttpSender(HERE, allow_private=True).send(f"http://there.example:{receiver.port}/", {}, b"{}")
        assert (answer.status, len(answer.body_excerpt)) == (500, 300)
        assert answer.body_excerpt.isprintable()


@asynchronous
async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch):
    async with a_receiver() as proxy, a_receiver() as receiver:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await HttpSender(HERE, allow_private=True).send(f"http://there.example:{receiver.port}/", {}, b"{}")
        assert (len(proxy.requests), len(receiver.requests)) == (0, 1)
