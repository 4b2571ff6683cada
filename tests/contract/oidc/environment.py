"""A browser that goes to an identity provider and back, and the adapter that completes the login."""

from urllib.parse import parse_qsl, urlsplit

import httpx2

from mergeyard.adapters.oidc.discovery import ClientRegistration
from mergeyard.adapters.oidc.provider import OpenIdProvider
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.external import IdentityProviderUnavailable, SsoLogin
from tests.support.clock import ManualClock
from tests.support.identity_provider import CLIENT_ID, CLIENT_SECRET, REDIRECT_URI, IdentityProvider

Answer = dict[str, str]


class OidcEnvironment:
    def __init__(self, provider: IdentityProvider, clock: ManualClock) -> None:
        self.provider = provider
        self.clock = clock
        self.adapter = self.replica()

    def replica(self, secret: str = CLIENT_SECRET, **registration: str) -> OpenIdProvider:
        """Another process with the same settings."""
        known = ClientRegistration(
            issuer=registration.pop("issuer", self.provider.issuer),
            client_id=CLIENT_ID,
            client_secret=secret,
            redirect_uri=REDIRECT_URI,
            **registration,  # pyright: ignore[reportArgumentType]
        )
        return OpenIdProvider(known, self.clock)

    async def visit_provider(self, there: str = "/") -> tuple[Answer, str]:
        """Returns the parameters of the provider's response and the login state of the browser."""
        redirect = await self.adapter.begin_login(there)
        async with httpx2.AsyncClient(verify=False) as browser:
            response = await browser.get(redirect.url)
        assert response.status_code == 302, response.text
        assert response.headers["location"].startswith(f"{REDIRECT_URI}?")
        return dict(parse_qsl(urlsplit(response.headers["location"]).query)), redirect.login_state

    async def sign_in(self, there: str = "/") -> SsoLogin:
        return await self.adapter.complete_login(*await self.visit_provider(there))

    async def sign_in_error(self) -> IdentityProviderUnavailable:
        """Returns the error of a failed sign-in."""
        try:
            login = await self.sign_in()
        except IdentityProviderUnavailable as error:
            return error
        raise AssertionError(f"{login} signed in")

    def advance(self, milliseconds: int) -> None:
        self.clock.move_to(Instant(self.clock.now() + milliseconds))
