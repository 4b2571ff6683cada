"""What is sent arrives under the right name, once, and no answer leads any further."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from mergeyard.adapters.tell_webhooks.sender import HttpSender
from mergeyard.ports.sending import AddressRefused, NotSent, Response
from tests.contract.sending.receiver import a_receiver, an_identity
from tests.contract.sending.test_guarding import leads_to
from tests.support.asynchronous import asynchronous

HERE = leads_to("127.0.0.1")


@asynchronous
async def test_what_is_sent_arrives_as_it_is():
    async with a_receiver() as receiver:
        sender = HttpSender(HERE, allow_private=True)
        url = f"http://there.example:{receiver.port}/hook?a=b"
        answer = await sender.send(url, {"webhook-id": "msg_1"}, b'{"a":1}')
        assert answer == Response(200, "thanks")
        (heard,) = receiver.heard
        assert heard.startswith(b"POST /hook?a=b HTTP/1.1\r\n")
        assert f"host: there.example:{receiver.port}\r\n".encode() in heard.lower()
        assert b"webhook-id: msg_1\r\n" in heard
        assert heard.endswith(b'\r\n\r\n{"a":1}')


@asynchronous
async def test_the_name_is_what_the_certificate_must_have(tmp_path: Path):
    server, client = an_identity("there.example", tmp_path)
    async with a_receiver(identity=server) as receiver:
        sender = HttpSender(HERE, allow_private=True, trust=client)
        assert (await sender.send(f"https://there.example:{receiver.port}/", {}, b"{}")).status == 200
        with pytest.raises(NotSent, match="certificate"):
            await sender.send(f"https://elsewhere.example:{receiver.port}/", {}, b"{}")
        assert len(receiver.heard) == 1


@asynchronous
async def test_a_certificate_that_nobody_vouches_for_is_not_trusted(tmp_path: Path):
    server, _ = an_identity("there.example", tmp_path)
    async with a_receiver(identity=server) as receiver:
        with pytest.raises(NotSent, match="certificate"):
            await HttpSender(HERE, allow_private=True).send(f"https://there.example:{receiver.port}/", {}, b"{}")
        assert receiver.heard == []


@asynchronous
async def test_a_redirect_leads_nowhere():
    async with a_receiver() as inside:
        redirect = f"HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:{inside.port}/\r\ncontent-length: 0\r\n\r\n"
        async with a_receiver(redirect.encode()) as receiver:
            sender = HttpSender(HERE, allow_private=True)
            assert (await sender.send(f"http://there.example:{receiver.port}/", {}, b"{}")).status == 307
        assert inside.heard == []


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
        assert receiver.heard == []


@asynchronous
async def test_if_one_address_does_not_answer_the_next_one_may():
    async with a_receiver() as receiver:
        sender = HttpSender(leads_to("127.0.0.2", "127.0.0.1"), allow_private=True)
        assert (await sender.send(f"http://there.example:{receiver.port}/", {}, b"{}")).status == 200


@asynchronous
async def test_where_nobody_listens_nothing_is_sent():
    async with a_receiver() as receiver:
        port = receiver.port
    with pytest.raises(NotSent, match="There is no connection"):
        await HttpSender(HERE, allow_private=True).send(f"http://there.example:{port}/", {}, b"{}")


@asynchronous
async def test_what_is_no_answer_is_told_in_words():
    async with a_receiver(b"nonsense\r\n\r\n") as receiver:
        with pytest.raises(NotSent, match="broke off"):
            await HttpSender(HERE, allow_private=True).send(f"http://there.example:{receiver.port}/", {}, b"{}")


@asynchronous
async def test_an_answer_without_an_end_is_not_waited_for():
    endless = b"HTTP/1.1 200 OK\r\n\r\n"
    async with a_receiver(endless, drop_by_drop=True) as receiver:
        sender = HttpSender(HERE, allow_private=True, seconds=0.1)
        with pytest.raises(NotSent, match="no answer within"):
            await sender.send(f"http://there.example:{receiver.port}/", {}, b"{}")


@asynchronous
async def test_of_a_long_answer_only_the_beginning_is_read():
    long = b"HTTP/1.1 500 No\r\ncontent-length: 90000000\r\n\r\n" + b"\x00\x1b[31mwords \xff" * 5000
    async with a_receiver(long) as receiver:
        answer = await HttpSender(HERE, allow_private=True).send(f"http://there.example:{receiver.port}/", {}, b"{}")
        assert (answer.status, len(answer.words)) == (500, 300)
        assert answer.words.isprintable()


@asynchronous
async def test_no_proxy_of_the_environment_comes_in_between(monkeypatch: pytest.MonkeyPatch):
    async with a_receiver() as proxy, a_receiver() as receiver:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await HttpSender(HERE, allow_private=True).send(f"http://there.example:{receiver.port}/", {}, b"{}")
        assert (len(proxy.heard), len(receiver.heard)) == (0, 1)
