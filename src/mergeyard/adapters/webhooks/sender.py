"""Posts webhooks to the IP address that the SSRF guard checked, with the original host name."""

import asyncio
from collections.abc import Mapping
from ssl import SSLContext

import httpx2

from mergeyard.adapters.webhooks.ssrf_guard import Destination, Resolver, SsrfGuard, resolve_host
from mergeyard.ports.external import AddressRefused, SendFailed, SendResponse

SEND_TIMEOUT_S = 15
"""In total, so that a receiver that responds slowly does not block the sender."""
CONNECT_TIMEOUT_S = 5
MAX_RESPONSE_BYTES = 4096
MAX_EXCERPT_CHARS = 300


class HttpSender:
    def __init__(
        self,
        resolver: Resolver = resolve_host,
        *,
        allow_private: bool = False,
        ssl_context: SSLContext | None = None,
        timeout_s: float = SEND_TIMEOUT_S,
    ) -> None:
        self._guard = SsrfGuard(resolver, allow_private=allow_private)
        self._ssl_context = ssl_context or httpx2.create_ssl_context()
        self._timeout_s = timeout_s

    async def check(self, url: str) -> None:
        try:
            await self._guard.resolve_destination(url)
        except SendFailed as error:
            raise AddressRefused(f"{error} Check its spelling.") from error

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> SendResponse:
        """Opens a new connection each time: a pooled one would bypass the check of its address."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._send(await self._guard.resolve_destination(url), headers, body)
        except TimeoutError:
            raise SendFailed(f"There was no response within {self._timeout_s} seconds.") from None

    async def _send(self, destination: Destination, headers: Mapping[str, str], body: bytes) -> SendResponse:
        """Tries the addresses in order until one accepts the connection."""
        failure = SendFailed(f"The name {destination.name} has no address.")
        timeout = httpx2.Timeout(self._timeout_s, connect=CONNECT_TIMEOUT_S)
        async with httpx2.AsyncClient(verify=self._ssl_context, trust_env=False, timeout=timeout) as client:
            for address in destination.addresses:
                try:
                    return await _post(client, destination, address, headers, body)
                except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                    failure = SendFailed(
                        f"There is no connection to {destination.name} ({error or 'it took too long'})."
                    )
                except httpx2.HTTPError as error:
                    raise SendFailed(
                        f"The connection to {destination.name} failed ({error or type(error).__name__})."
                    ) from error
        raise failure


async def _post(
    client: httpx2.AsyncClient, destination: Destination, address: str, headers: Mapping[str, str], body: bytes
) -> SendResponse:
    request = client.build_request(
        "POST",
        destination.url.copy_with(host=address),
        content=body,
        headers={**headers, "host": destination.url.netloc.decode("ascii")},
        extensions={"sni_hostname": destination.name},
    )
    response = await client.send(request, stream=True, follow_redirects=False)
    try:
        return SendResponse(response.status_code, await _read_excerpt(response))
    finally:
        await response.aclose()


async def _read_excerpt(response: httpx2.Response) -> str:
    """Not decompressed: a small response could expand to a large one."""
    body = b""
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) >= MAX_RESPONSE_BYTES:
            break
    text = " ".join(body[:MAX_RESPONSE_BYTES].decode("utf-8", "replace").split())
    return "".join(character for character in text if character.isprintable())[:MAX_EXCERPT_CHARS]
