"""Knows a provider: where it wants to be asked, and the keys that it signs with, both as it tells them itself."""

from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from mergeyard.adapters.oidc.asking import CONFUSING, ask
from mergeyard.domain.instants import HOUR, Instant, later
from mergeyard.ports.clock import Clock
from mergeyard.ports.identity import IdentityTrouble

REMEMBERED = HOUR

Jwk = dict[str, Any]


class Places(Struct, frozen=True, kw_only=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False

    def addresses(self) -> tuple[str, ...]:
        every = (self.authorization_endpoint, self.token_endpoint, self.jwks_uri, self.userinfo_endpoint)
        return tuple(address for address in every if address is not None)


class Keys(Struct, frozen=True):
    keys: tuple[Jwk, ...]


class Knowledge:
    def __init__(self, issuer: str, clock: Clock) -> None:
        self._issuer = issuer
        self._clock = clock
        self._places: tuple[Instant, Places] | None = None
        self._keys: tuple[Instant, tuple[Jwk, ...]] | None = None

    async def places(self) -> Places:
        if self._places is None or self._places[0] <= self._clock.now():
            address = self._issuer.rstrip("/") + "/.well-known/openid-configuration"
            places = await ask(address, Places)
            self._check(places, address)
            self._places = (later(self._clock.now(), REMEMBERED), places)
        return self._places[1]

    async def keys(self) -> tuple[Jwk, ...]:
        if self._keys is None or self._keys[0] <= self._clock.now():
            return await self.keys_anew()
        return self._keys[1]

    async def keys_anew(self) -> tuple[Jwk, ...]:
        """For a token whose key is unknown: providers change their keys whenever they like."""
        keys = (await ask((await self.places()).jwks_uri, Keys)).keys
        self._keys = (later(self._clock.now(), REMEMBERED), keys)
        return keys

    def _check(self, places: Places, address: str) -> None:
        if places.issuer != self._issuer:
            raise IdentityTrouble(
                CONFUSING, f"{address} calls its issuer {places.issuer[:200]!r}: configure it like that"
            )
        allowed = {"https", urlsplit(self._issuer).scheme}
        wrong = [place for place in places.addresses() if urlsplit(place).scheme not in allowed]
        if wrong:
            raise IdentityTrouble(CONFUSING, f"{address} leads to {wrong[0][:200]!r}, which is not https")
