"""Nothing is sent to an address that is not public, however it is written."""

from collections.abc import Sequence

import pytest

from mergeyard.adapters.webhooks.sender import HttpSender
from mergeyard.adapters.webhooks.ssrf_guard import Resolver, SsrfGuard, is_public, resolve_host
from mergeyard.ports.external import AddressRefused, SendFailed
from tests.support.asynchronous import asynchronous

PRIVATE = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
    "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1",
    "192.168.1.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:10.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::",
    "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "nonsense",
    "1.2.3",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.255.255", "172.32.0.1", "2606:4700:4700::1111",
    "2a00:1450::1",
]  # fmt: skip

INVALID_URLS = [
    "",
    "there.example/hook",
    "ftp://there.example/",
    "file:///etc/passwd",
    "https:///nowhere",
    "https://",
    "https://there.example:0/",
    "https://there.example:99999/",
    "https://there example/",
    "https://there.example/\n",
    "https://there.example/" + "a" * 2048,
    "javascript:alert(1)",
]


def resolves_to(*addresses: str) -> Resolver:
    async def answer(_: str, __: int) -> Sequence[str]:
        return addresses

    return answer


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_recognized(address: str):
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_recognized(address: str):
    assert is_public(address)


@pytest.mark.parametrize("address", PRIVATE)
@asynchronous
async def test_a_name_that_resolves_to_a_private_address_is_refused(address: str):
    with pytest.raises(AddressRefused, match="not public"):
        await HttpSender(resolves_to(address)).check("https://there.example/")


@asynchronous
async def test_one_private_address_among_public_ones_is_enough():
    with pytest.raises(AddressRefused):
        await HttpSender(resolves_to("1.1.1.1", "2606:4700::1", "10.0.0.1")).check("https://there.example/")


@asynchronous
async def test_a_public_name_is_accepted_with_all_its_addresses():
    there = await SsrfGuard(resolves_to("1.1.1.1", "2606:4700::1", "1.1.1.1"), allow_private=False).resolve_destination(
        "https://There.example:8443/hook?a=b"
    )
    assert (there.name, there.addresses) == ("there.example", ("1.1.1.1", "2606:4700::1"))


@pytest.mark.parametrize(
    "name",
    ["127.0.0.1", "[::1]", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "[::ffff:127.0.0.1]", "0"],
)
@asynchronous
async def test_every_spelling_of_this_machine_is_refused(name: str):
    with pytest.raises(AddressRefused):
        await HttpSender(resolve_host).check(f"https://{name}/")


@pytest.mark.parametrize("text", INVALID_URLS)
@asynchronous
async def test_an_invalid_url_is_refused(text: str):
    with pytest.raises(AddressRefused, match="not the address of a web server"):
        await HttpSender(resolves_to("1.1.1.1")).check(text)


@asynchronous
async def test_a_password_in_the_address_is_refused_even_where_much_is_allowed():
    for allowed in (False, True):
        with pytest.raises(AddressRefused, match="password"):
            await HttpSender(resolves_to("1.1.1.1"), allow_private=allowed).check("https://ada:secret@there.example/")


@asynchronous
async def test_plain_http_and_private_addresses_are_accepted_if_the_operator_allows_them():
    with pytest.raises(AddressRefused, match="only over https"):
        await HttpSender(resolves_to("1.1.1.1")).check("http://there.example/")
    await HttpSender(resolves_to("10.0.0.1"), allow_private=True).check("http://there.example/")


@asynchronous
async def test_a_name_that_does_not_resolve_is_refused_when_it_is_saved():
    async def unknown(name: str, _: int) -> Sequence[str]:
        raise SendFailed(f"The name {name} cannot be resolved.")

    with pytest.raises(AddressRefused, match="Check its spelling"):
        await HttpSender(unknown).check("https://there.example/")


@asynchronous
async def test_an_invalid_host_name_is_refused():
    with pytest.raises(AddressRefused):
        await HttpSender(resolve_host).check(f"https://{'a' * 64}.invalid/")
