"""Requests to the identity provider (limited in time and size): its metadata, signing keys and our registration."""

import asyncio
import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec
from msgspec import Struct

from mergeyard.domain.timestamps import HOUR, Instant, later
from mergeyard.ports.external import Clock, IdentityProviderUnavailable

REQUEST_TIMEOUT_S = 10
MAX_RESPONSE_BYTES = 1024 * 1024
MAX_DETAIL_CHARS = 300
REQUEST_HEADERS = {"user-agent": "mergeyard", "accept": "application/json"}
NO_RESPONSE = "The identity provider does not answer. Try again soon, or sign in with a token."
UNEXPECTED_RESPONSE = (
    "The identity provider answered something unexpected. Try again, or ask your administrator to look into the log."
)

T = TypeVar("T")


class ProviderResponse(Struct, frozen=True):
    url: str
    status: int
    body: bytes

    def decode(self, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise IdentityProviderUnavailable(
                UNEXPECTED_RESPONSE, f"unexpected response from {self.url}: {error}"
            ) from error

    def to_error(self) -> IdentityProviderUnavailable:
        """Redirects are errors as well: the request is meant for this URL only."""
        message = NO_RESPONSE if self.status >= 500 else UNEXPECTED_RESPONSE
        detail = " ".join(self.body.decode(errors="replace").split())[:MAX_DETAIL_CHARS]
        return IdentityProviderUnavailable(message, f"{self.url} answered {self.status}: {detail}")


async def get_json(url: str, kind: type[T], headers: Mapping[str, str] | None = None) -> T:
    response = await _send(httpx2.Request("GET", url, headers=REQUEST_HEADERS | dict(headers or {})))
    if response.status != 200:
        raise response.to_error()
    return response.decode(kind)


async def post_form(url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> ProviderResponse:
    return await _send(httpx2.Request("POST", url, data=dict(form), headers=REQUEST_HEADERS | dict(headers)))


async def _send(request: httpx2.Request) -> ProviderResponse:
    """Without a connection pool: logins are rare."""
    url = str(request.url.copy_with(query=None))
    try:
        async with (
            asyncio.timeout(REQUEST_TIMEOUT_S),
            httpx2.AsyncClient(
                timeout=REQUEST_TIMEOUT_S, verify=_load_certificates(), follow_redirects=False
            ) as client,
        ):
            response = await client.send(request, stream=True)
            return ProviderResponse(url, response.status_code, await _read_body(response, url))
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        raise IdentityProviderUnavailable(NO_RESPONSE, f"{url}: {str(error) or type(error).__name__}") from error


async def _read_body(response: httpx2.Response, url: str) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            raise IdentityProviderUnavailable(
                UNEXPECTED_RESPONSE, f"{url} answers with more than {MAX_RESPONSE_BYTES} bytes"
            )
    return bytes(body)


@cache
def _load_certificates() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


CACHE_MS = HOUR

Jwk = dict[str, Any]


class ProviderMetadata(Struct, frozen=True, kw_only=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class JwkSet(Struct, frozen=True):
    keys: tuple[Jwk, ...]


class Discovery:
    def __init__(self, issuer: str, clock: Clock) -> None:
        self._issuer = issuer
        self._clock = clock
        self._metadata: tuple[Instant, ProviderMetadata] | None = None
        """With its expiry time."""
        self._keys: tuple[Instant, tuple[Jwk, ...]] | None = None

    async def get_metadata(self) -> ProviderMetadata:
        if self._metadata is None or self._metadata[0] <= self._clock.now():
            url = self._issuer.rstrip("/") + "/.well-known/openid-configuration"
            metadata = await get_json(url, ProviderMetadata)
            self._validate(metadata, url)
            self._metadata = (later(self._clock.now(), CACHE_MS), metadata)
        return self._metadata[1]

    async def get_keys(self) -> tuple[Jwk, ...]:
        if self._keys is None or self._keys[0] <= self._clock.now():
            return await self.refresh_keys()
        return self._keys[1]

    async def refresh_keys(self) -> tuple[Jwk, ...]:
        """Ignores the cache, for a token with an unknown key: providers rotate their keys at any time."""
        keys = (await get_json((await self.get_metadata()).jwks_uri, JwkSet)).keys
        self._keys = (later(self._clock.now(), CACHE_MS), keys)
        return keys

    def _validate(self, metadata: ProviderMetadata, url: str) -> None:
        if metadata.issuer != self._issuer:
            raise IdentityProviderUnavailable(
                UNEXPECTED_RESPONSE, f"{url} names the issuer {metadata.issuer[:200]!r}: configure exactly that issuer"
            )
        allowed = {"https", urlsplit(self._issuer).scheme}
        endpoints = (
            *(metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri),
            metadata.userinfo_endpoint,
        )
        insecure = [endpoint for endpoint in endpoints if endpoint and urlsplit(endpoint).scheme not in allowed]
        if insecure:
            raise IdentityProviderUnavailable(
                UNEXPECTED_RESPONSE, f"{url} contains the endpoint {insecure[0][:200]!r}, which is not https"
            )


class ClientRegistration(Struct, frozen=True, kw_only=True):
    issuer: str
    """The provider's identifier, which is also the base URL of its discovery document."""
    client_id: str
    client_secret: str
    redirect_uri: str
    """The redirect URI, exactly as registered at the provider."""
    scopes: tuple[str, ...] = ("openid", "profile")
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"

    def __repr__(self) -> str:
        """Omits the secret, because this text can end up in logs."""
        return f"{type(self).__name__}({self.issuer!r}, {self.client_id!r})"
