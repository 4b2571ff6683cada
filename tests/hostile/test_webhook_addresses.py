"""However an address is written, events are never sent into a private network."""

import pytest

from mergeyard.adapters.webhooks.sender import HttpSender
from mergeyard.adapters.webhooks.ssrf_guard import is_public, resolve_host
from mergeyard.ports.external import AddressRefused
from tests.hostile.conftest import Target
from tests.support.asynchronous import asynchronous

EMBEDDED = [
    "::ffff:0:0", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:100.64.0.1", "::10.0.0.1", "::ffff:0:127.0.0.1",
    "64:ff9b::a9fe:a9fe", "64:ff9b::", "64:ff9b:1::a00:1", "64:ff9b:1:ffff::1", "2002:a9fe:a9fe::", "2002:a00:1::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:2::1", "fec0::a00:1", "ff0e::1", "2001:470::5efe:a00:1",
    "2a00:1450::200:5efe:7f00:1", "fe80::5efe:10.0.0.1", "::1%lo", "2606:4700::1%eth0", "0.0.0.1", "255.255.255.254",
    "192.0.0.8", "192.0.0.170", "198.19.255.255", "233.252.0.1", "fd12:3456::1", "100.127.255.255", "127.0.0.0",
]  # fmt: skip
SPELLED = [
    "127.0.0.1", "2130706433", "017700000001", "0x7f000001", "0x7f.1", "127.1", "127.0.1", "0", "10.1", "0xa9fea9fe",
    "2852039166", "LOCALHOST", "127\u30020\u30020\u30021", "127.0.0.1:22", "127.0.0.1:0443", "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[::]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fd00:ec2::254]",
    "@127.0.0.1", "127.0.0.1#@there.example", "127.0.0.1?@there.example",
]  # fmt: skip
INVALID = [
    "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460", "\uff11\uff12\uff17.\uff10.\uff10.\uff11", "\u24dbocalhost",
    "loc\u00adalhost", "loc\u200balhost", "0251.0376.0251.0376", "256.256.256.256", "[127.0.0.1]", "[there.example]",
    "127.0.0.1:65536", "127.0.0.1:-1", "there.example@127.0.0.1", "there.example\\@127.0.0.1", "[::1]@there.example",
    "there.example:443@127.0.0.1", "127.0.0.1\t", "127.0.0.1\r\nx:y", "[::1", "::1", "\\\\127.0.0.1\\", "[::1%25lo]",
    "127.0.0.1\\.there.example", "127.0.0.1%00.there.example", "%31%32%37.0.0.1",
]  # fmt: skip


@pytest.mark.parametrize("address", EMBEDDED)
def test_address_that_embeds_a_private_address_is_not_public(address: str):
    assert not is_public(address)


@pytest.mark.parametrize("spelled", SPELLED)
@asynchronous
async def test_every_spelling_of_a_private_address_is_refused(spelled: str):
    with pytest.raises(AddressRefused, match="not public"):
        await HttpSender(resolve_host).check(f"https://{spelled}/")


@pytest.mark.parametrize("text", INVALID)
@asynchronous
async def test_ambiguous_address_is_refused(text: str):
    with pytest.raises(AddressRefused, match=r"not the address of a web server|before the @"):
        await HttpSender(resolve_host).check(f"https://{text}/")


def test_webhook_cannot_be_created_or_changed_to_a_private_address(target: Target):
    for address in ("https://2130706433/", "https://[::ffff:127.0.0.1]/", "http://there.example/", "https://a@127.1/"):
        response = target.post("createWebhook", {"url": address})
        assert (response.status_code, response.json()["code"]) == (400, "address_not_allowed")
    assert target.post("listWebhooks", {}).json() == {"webhooks": []}
    webhook = target.post("createWebhook", {"url": "https://1.1.1.1/hook", "events": ["queue.deleted"]}).json()
    response = target.post("updateWebhook", {"id": webhook["id"], "url": "https://0x7f.1/"})
    assert (response.status_code, response.json()["code"]) == (400, "address_not_allowed")
    assert target.post("listWebhooks", {}).json()["webhooks"][0]["url"] == "https://1.1.1.1/hook"
    assert target.post("deleteWebhook", {"id": webhook["id"]}).status_code == 200
