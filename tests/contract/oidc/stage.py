"""A browser that goes from us to a provider and back, and the adapter that waits for it."""

from urllib.parse import parse_qsl, urlsplit

import httpx

from mergeyard.adapters.oidc.provider import OpenIdProvider
from mergeyard.adapters.oidc.registration import Registration
from mergeyard.domain.instants import Instant
from mergeyard.ports.identity import Arrival, IdentityTrouble
from tests.support.clock import HandClock
from tests.support.identity_provider import BACK, CLIENT, SECRET, IdentityProvider

Answer = dict[str, str]


class OidcStage:
    def __init__(self, provider: IdentityProvider, clock: HandClock) -> None:
        self.provider = provider
        self.clock = clock
        self.adapter = self.replica()

    def replica(self, secret: str = SECRET, **registration: str) -> OpenIdProvider:
        """One more process with the same settings."""
        known = Registration(
            issuer=registration.pop("issuer", self.provider.issuer),
            client_id=CLIENT,
            client_secret=secret,
            back=BACK,
            **registration,  # pyright: ignore[reportArgumentType]
        )
        return OpenIdProvider(known, self.clock)

    async def leave(self, there: str = "/") -> tuple[Answer, str]:
        """What the browser brings back from the provider, and what it carried meanwhile."""
        departure = await self.adapter.departure(there)
        async with httpx.AsyncClient(verify=False) as browser:
            led = await browser.get(departure.address)
        assert led.status_code == 302, led.text
        assert led.headers["location"].startswith(f"{BACK}?")
        return dict(parse_qsl(urlsplit(led.headers["location"]).query)), departure.luggage

    async def sign_in(self, there: str = "/") -> Arrival:
        return await self.adapter.arrival(*await self.leave(there))

    async def trouble(self) -> IdentityTrouble:
        """What keeps the visitor out."""
        try:
            arrival = await self.sign_in()
        except IdentityTrouble as trouble:
            return trouble
        raise AssertionError(f"{arrival} came in")

    def time_passes(self, milliseconds: int) -> None:
        self.clock.move_to(Instant(self.clock.now() + milliseconds))
