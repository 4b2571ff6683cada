"""Guards against server-side request forgery: rejects URLs that lead into the operator's network.

A name is resolved once, all of its addresses are checked, and the connection goes to one of these addresses. So a name
that resolves differently a moment later (DNS rebinding) has no effect.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv6Address, ip_address, ip_network

from httpx2 import URL, InvalidURL
from msgspec import Struct

from mergeyard.ports.external import AddressRefused, SendFailed

NOT_PUBLIC_NETWORKS = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # carrier-grade NAT, and the metadata service of some clouds
            "127.0.0.0/8",
            "168.63.129.16/32",  # the metadata service of Azure, at a public-looking address
            "169.254.0.0/16",  # link-local, and the metadata service of most clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",  # multicast, reserved and broadcast
            "::/96",  # unspecified, loopback and IPv4-compatible
            "::ffff:0:0/96",  # IPv4-mapped, which would reach any of the above
            "::ffff:0:0:0/96",
            "64:ff9b::/96",  # NAT64
            "64:ff9b:1::/48",
            "100::/64",
            "2001::/23",  # Teredo and other protocol assignments
            "2001:db8::/32",
            "2002::/16",  # 6to4
            "3fff::/20",
            "5f00::/16",
            "fc00::/7",
            "fe80::/9",  # link-local and site-local
            "ff00::/8",
        ),
    )
)


def is_public(address: str) -> bool:
    """False also for text that is not an address, and for addresses with a scope id."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address) and (parsed.scope_id is not None or _is_isatap(parsed)):
        return False
    return parsed.is_global and not any(parsed in network for network in NOT_PUBLIC_NETWORKS)


def _is_isatap(address: IPv6Address) -> bool:
    """ISATAP tunnel addresses embed an IPv4 address in their last four bytes, after any prefix."""
    return address.packed[8:12] in (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")


MAX_URL_CHARS = 2048
RESOLVE_TIMEOUT_S = 5
HOST_PATTERN = re.compile(rb"[0-9A-Za-z._:-]+")
"""Other characters could be interpreted differently by us and by the resolver."""

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]


class Destination(Struct, frozen=True):
    """A URL with its host name and the addresses of that name."""

    url: URL
    name: str
    addresses: tuple[str, ...]


class SsrfGuard:
    def __init__(self, resolve: Resolver, *, allow_private: bool) -> None:
        self._resolve = resolve
        self._allow_private = allow_private

    async def resolve_destination(self, text: str) -> Destination:
        """Raises `AddressRefused`, or `SendFailed` if the name cannot be resolved."""
        url = self._parse_url(text)
        name = url.raw_host.decode("ascii")
        addresses = tuple(dict.fromkeys(await self._resolve(name, url.port or DEFAULT_PORTS[url.scheme])))
        if not self._allow_private and not all(map(is_public, addresses)):
            raise AddressRefused(
                f"{name} leads to an address that is not public. Use one that the internet can reach, "
                "or let the operator set allow_private_webhooks."
            )
        return Destination(url, name, addresses)

    def _parse_url(self, text: str) -> URL:
        try:
            url = URL(text) if len(text) <= MAX_URL_CHARS and text.isprintable() and " " not in text else None
        except InvalidURL:
            url = None
        if (
            url is None
            or url.scheme not in DEFAULT_PORTS
            or not HOST_PATTERN.fullmatch(url.raw_host)
            or (url.port is not None and not 0 < url.port < 65_536)
        ):
            raise AddressRefused(
                "This is not the address of a web server. Use one such as https://ci.example.com/hook."
            )
        if url.userinfo:
            raise AddressRefused("The address contains a name or password before the @. Leave it out.")
        if url.scheme != "https" and not self._allow_private:
            raise AddressRefused("Events are sent only over https. Use an address that begins with https://.")
        return url


DEFAULT_PORTS = {"https": 443, "http": 80}


async def resolve_host(name: str, port: int) -> Sequence[str]:
    try:
        async with asyncio.timeout(RESOLVE_TIMEOUT_S):
            found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError) as error:
        raise SendFailed(f"The name {name} cannot be resolved ({error or 'it took too long'}).") from error
    return [str(address[0]) for *_, address in found]
