"""Refuses addresses that lead into the operator's own network, before anything is sent there.

A name is resolved once, every address behind it is checked, and the connection goes to one of these very addresses:
a name that means something else a moment later leads nowhere.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence

from httpx import URL, InvalidURL
from msgspec import Struct

from mergeyard.adapters.tell_webhooks.public_addresses import is_public
from mergeyard.ports.sending import AddressRefused, NotSent

LONGEST_URL = 2048
SECONDS_TO_RESOLVE = 5
NAME = re.compile(rb"[0-9A-Za-z._:-]+")
"""What else might be read in two ways, by us and by whoever resolves it."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class Destination(Struct, frozen=True):
    """Where a URL leads: its name, and the addresses behind it."""

    url: URL
    name: str
    addresses: tuple[str, ...]


class Guard:
    def __init__(self, resolve: Resolve, *, allow_private: bool) -> None:
        self._resolve = resolve
        self._allow_private = allow_private

    async def admit(self, text: str) -> Destination:
        """Raises `AddressRefused`, or `NotSent` when the name is not known now."""
        url = self._parsed(text)
        name = url.raw_host.decode("ascii")
        addresses = tuple(dict.fromkeys(await self._resolve(name, url.port or PORTS[url.scheme])))
        if not self._allow_private and not all(map(is_public, addresses)):
            raise AddressRefused(
                f"{name} leads to an address that is not public. Use one that the internet can reach, "
                "or let the operator set allow_private_webhooks."
            )
        return Destination(url, name, addresses)

    def _parsed(self, text: str) -> URL:
        try:
            url = URL(text) if len(text) <= LONGEST_URL and text.isprintable() and " " not in text else None
        except InvalidURL:
            url = None
        if url is None or url.scheme not in PORTS or not NAME.fullmatch(url.raw_host) or not is_port(url.port):
            raise AddressRefused("This is no address of a web server: give one such as https://ci.example.com/hook.")
        if url.userinfo:
            raise AddressRefused("The address holds a name or password before the @: leave it out.")
        if url.scheme != "https" and not self._allow_private:
            raise AddressRefused("Events are sent only over https: use an address that begins with https://.")
        return url


PORTS = {"https": 443, "http": 80}


def is_port(number: int | None) -> bool:
    return number is None or 0 < number < 65_536


async def resolve(name: str, port: int) -> Sequence[str]:
    try:
        async with asyncio.timeout(SECONDS_TO_RESOLVE):
            found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError) as error:
        raise NotSent(f"The name {name} cannot be resolved ({error or 'it took too long'}).") from error
    return [str(address[0]) for *_, address in found]
