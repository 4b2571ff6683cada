"""Posts to the address that was checked, under the name that it was given by, once and briefly."""

import asyncio
from collections.abc import Mapping
from ssl import SSLContext

import httpx

from mergeyard.adapters.tell_webhooks.guarding import Destination, Guard, Resolve, resolve
from mergeyard.ports.sending import AddressRefused, NotSent, Response

SECONDS = 15
"""For all of it, so that a receiver that answers drop by drop holds nobody up."""
SECONDS_TO_CONNECT = 5
BYTES_READ = 4096
WORDS_KEPT = 300


class HttpSender:
    def __init__(
        self,
        resolving: Resolve = resolve,
        *,
        allow_private: bool = False,
        trust: SSLContext | None = None,
        seconds: float = SECONDS,
    ) -> None:
        self._guard = Guard(resolving, allow_private=allow_private)
        self._trust = trust or httpx.create_ssl_context()
        self._seconds = seconds

    async def check(self, url: str) -> None:
        try:
            await self._guard.admit(url)
        except NotSent as unknown:
            raise AddressRefused(f"{unknown} Check its spelling.") from unknown

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        """A new connection each time: what was checked for one must not be used for another."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._send(await self._guard.admit(url), headers, body)
        except TimeoutError:
            raise NotSent(f"There was no answer within {self._seconds} seconds.") from None

    async def _send(self, there: Destination, headers: Mapping[str, str], body: bytes) -> Response:
        trouble = NotSent(f"The name {there.name} leads nowhere.")
        timeout = httpx.Timeout(self._seconds, connect=SECONDS_TO_CONNECT)
        async with httpx.AsyncClient(verify=self._trust, trust_env=False, timeout=timeout) as client:
            for address in there.addresses:
                try:
                    return await _post(client, there, address, headers, body)
                except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                    trouble = NotSent(f"There is no connection to {there.name} ({error or 'it took too long'}).")
                except httpx.HTTPError as error:
                    raise NotSent(f"{there.name} broke off ({error or type(error).__name__}).") from error
        raise trouble


async def _post(
    client: httpx.AsyncClient, there: Destination, address: str, headers: Mapping[str, str], body: bytes
) -> Response:
    request = client.build_request(
        "POST",
        there.url.copy_with(host=address),
        content=body,
        headers={**headers, "host": there.url.netloc.decode("ascii")},
        extensions={"sni_hostname": there.name},
    )
    answer = await client.send(request, stream=True, follow_redirects=False)
    try:
        return Response(answer.status_code, await _beginning(answer))
    finally:
        await answer.aclose()


async def _beginning(answer: httpx.Response) -> str:
    """As it came, never unpacked: a small answer could become a large one."""
    read = b""
    async for part in answer.aiter_raw():
        read += part
        if len(read) >= BYTES_READ:
            break
    text = " ".join(read[:BYTES_READ].decode("utf-8", "replace").split())
    return "".join(letter for letter in text if letter.isprintable())[:WORDS_KEPT]
