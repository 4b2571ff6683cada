"""Sign-in through an identity provider."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from mergeyard.adapters.oidc.discovery import ClientRegistration
from mergeyard.adapters.oidc.provider import OpenIdProvider
from mergeyard.domain.access import Grants, Scope
from mergeyard.domain.journal import SignedIn
from mergeyard.domain.timestamps import HOUR, MINUTE, Instant
from mergeyard.ports.store import AuditQuery
from mergeyard.service.audit_log import decode_journal_entry
from mergeyard.service.sessions import SingleSignOn, qualify_name, to_journal_name
from tests.support import scenario
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import RespondsWith
from tests.support.identity_provider import CLIENT_ID, CLIENT_SECRET, REDIRECT_URI, IdentityProvider
from tests.support.log_capture import capture_warnings
from tests.support.scenario import Scenario, a_scenario
from tests.support.web_client import Page, WebClient, a_browser, build_pages

GRANTS = Grants(group_scopes={"devs": frozenset({Scope.SUBMIT}), "ops": frozenset({Scope.ADMIN})})
TOKENS = "/administration/tokens"


class SsoBrowser:
    """A browser between our pages and a provider."""

    def __init__(self, running: Scenario, provider: IdentityProvider, client: httpx2.AsyncClient) -> None:
        self.scenario = running
        self.provider = provider
        self.visitor = WebClient(client)

    def name(self, given: str) -> str:
        """The name of the provider's user in the journal."""
        return qualify_name(given, f"{self.provider.issuer} {self.provider.user_claims['sub']}")

    async def authorize(self, address: str = "/sign-in/sso?next=/") -> str:
        """Follows the redirect to the provider and returns the address to which it redirects back."""
        departure = await self.visitor.get(address)
        assert departure.status == 303, departure.text
        async with httpx2.AsyncClient(verify=False) as browser:
            back = urlsplit((await browser.get(departure.location)).headers["location"])
        return f"{back.path}?{back.query}"

    async def sign_in(self, there: str = "/") -> Page:
        return await self.visitor.get(await self.authorize(f"/sign-in/sso?next={there}"))


@asynccontextmanager
async def an_sso_browser(folder: Path, grants: Grants = GRANTS) -> AsyncGenerator[SsoBrowser]:
    async with a_scenario(folder, setup=scenario.ScenarioSetup(grants=grants)) as running:
        with IdentityProvider(running.clock) as provider:
            registration = ClientRegistration(
                issuer=provider.issuer, client_id=CLIENT_ID, client_secret=CLIENT_SECRET, redirect_uri=REDIRECT_URI
            )
            identities = OpenIdProvider(registration, running.clock)
            sso = SingleSignOn("Acme <b>", identities, running.service.sessions)
            async with a_browser(build_pages(running.service, sso)) as client:
                yield SsoBrowser(running, provider, client)


@asynchronous
async def test_provider_is_offered_before_the_token(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        page = await sso.visitor.get("/sign-in?next=/pulls/a%3Fb")
        assert page.one("a.button").text == "Sign in with Acme <b>"
        assert page.one("a.button")["href"] == "/sign-in/sso?next=/pulls/a%3Fb"
        assert page.text.index("Sign in with Acme") < page.text.index("Or with a token")
        assert page.one("input[name=token]")


@asynchronous
async def test_after_sign_in_the_requested_page_is_shown_with_the_scopes_of_the_group(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        arrived = await sso.sign_in("/queues/git.local/acme/app:main")
        assert (arrived.status, arrived.location) == (303, "/queues/git.local/acme/app:main")
        page = await sso.visitor.get("/")
        assert page.status == 200
        assert page.one("#visitor").one("bdi").text == sso.name("ada")
        assert "/administration" not in page.links()


@asynchronous
async def test_scopes_of_several_groups_are_combined(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        sso.provider.user_claims["groups"] = ["devs", "ops", "choir"]
        await sso.sign_in()
        assert "/administration" in (await sso.visitor.get("/")).links()


@asynchronous
async def test_name_of_the_user_is_sanitized_for_the_journal(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        sso.provider.user_claims["preferred_username"] = "ada#root\u202e\n love"
        await sso.sign_in()
        assert (await sso.visitor.get("/")).one("#visitor").one("bdi").text == sso.name("ada-root love")


@asynchronous
async def test_two_users_with_the_same_name_can_be_distinguished(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        for subject in ("7", "8"):
            sso.provider.user_claims["sub"] = subject
            await sso.sign_in()
        journal = await sso.scenario.store.audit_entries(AuditQuery(take=9, kind="SignedIn"))
        second, first = (decode_journal_entry(entry.body) for entry in journal)
        assert isinstance(first, SignedIn)
        assert isinstance(second, SignedIn)
        assert first.name != second.name
        assert first.name.startswith("ada (")
        assert (first.detail, second.detail) == (f"{sso.provider.issuer} 7", f"{sso.provider.issuer} 8")


@asynchronous
async def test_session_ends_by_expiry_and_by_signing_out(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        await sso.sign_in()
        assert (await sso.visitor.post("/sign-out")).status == 303
        assert (await sso.visitor.get("/")).status == 303
        await sso.sign_in()
        sso.scenario.clock.move_to(Instant(sso.scenario.clock.now() + 12 * HOUR))
        assert (await sso.visitor.get("/")).status == 303


@asynchronous
async def test_login_state_cookie_is_sent_only_to_the_callback(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        departure = (await sso.visitor.get("/sign-in/sso")).headers["set-cookie"]
        parts = {part.strip().lower() for part in departure.split(";")}
        assert {"httponly", "samesite=lax", "path=/sign-in/back", "max-age=600"} <= parts
        assert "max-age=0" in (await sso.sign_in()).headers["set-cookie"].lower()


@pytest.mark.parametrize("there", ["https://evil.example", "//evil.example", "/%5Cevil.example", "/" + "x" * 2000])
@asynchronous
async def test_sso_sign_in_never_redirects_to_another_site(tmp_path: Path, there: str):
    async with an_sso_browser(tmp_path) as sso:
        assert (await sso.sign_in(there)).location == "/"


@pytest.mark.parametrize("name", ["mergeyard", "Operator", " operator\n"])
def test_reserved_names_are_not_used_for_users(name: str):
    assert to_journal_name(name) == f"{name.strip()} (a person)"


@asynchronous
async def test_administrator_can_end_all_sso_sessions_including_their_own(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        sso.provider.user_claims["groups"] = ["ops"]
        await sso.sign_in()
        page = await sso.visitor.get(TOKENS)
        assert "Sign out all users of Acme <b>" in page.text
        assert "you will be signed out" in page.text
        assert (await sso.visitor.post(f"{TOKENS}/sign-out", csrf="guessed")).status == 400
        assert (await sso.visitor.get("/")).status == 200
        assert (await sso.visitor.post(f"{TOKENS}/sign-out")).location == TOKENS
        assert (await sso.visitor.get(TOKENS)).location.startswith("/sign-in")
        await sso.sign_in()
        audit = await sso.visitor.get("/administration/audit?kind=SsoSessionsEnded")
        assert "All single sign-on users signed out" in audit.one("tbody").text


@asynchronous
async def test_only_administrators_can_end_sso_sessions(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        await sso.sign_in()
        assert (await sso.visitor.post(f"{TOKENS}/sign-out")).status == 403
        assert (await sso.visitor.get("/")).status == 200


@asynchronous
async def test_sso_user_can_create_tokens_for_at_most_ninety_days(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        sso.provider.user_claims["groups"] = ["ops"]
        await sso.sign_in()
        page = await sso.visitor.get(TOKENS)
        assert [option["value"] for option in page.one("#lifetime").all("option")] == ["7 days", "30 days", "90 days"]
        assert "you can create tokens for at most 90 days" in page.text
        refused = await sso.visitor.post(TOKENS, name="ci", scope="read", lifetime="never")
        assert "choose a shorter time" in refused.one("main").one("[role=alert]").text
        assert (await sso.visitor.post(TOKENS, name="ci", scope="read", lifetime="90 days")).status == 200


# Refused sign-ins


async def is_refused(sso: SsoBrowser, back: str) -> tuple[int, str]:
    page = await sso.visitor.get(back)
    assert page.one("a.button")["href"] == "/sign-in/sso?next=/", "the sign-in can be started again"
    assert (await sso.visitor.get("/")).status == 303
    return page.status, page.one("main").one("[role=alert]").text


@asynchronous
async def test_user_without_a_permitted_group_is_refused_with_an_explanation(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        sso.provider.user_claims["groups"] = ["choir"]
        status, message = await is_refused(sso, await sso.authorize())
        assert (status, message.startswith("None of your groups has access to Mergeyard.")) == (403, True)


@asynchronous
async def test_a_failed_sign_in_by_the_provider_is_logged(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        sso.provider.user_claims["groups"] = ["choir"]
        with capture_warnings() as lines:
            assert (await sso.sign_in()).status == 403
        (line,) = [line for line in lines if line["event"] == "sign_in_failed"]
        assert (line["client"], line["path"], line["by"]) == ("127.0.0.1", "/sign-in/back", "Acme <b>")


@asynchronous
async def test_default_scopes_admit_users_without_a_group(tmp_path: Path):
    async with an_sso_browser(tmp_path, Grants(group_scopes={}, default_scopes=frozenset({Scope.READ}))) as sso:
        sso.provider.user_claims["groups"] = []
        assert (await sso.sign_in()).status == 303
        assert (await sso.visitor.get("/")).status == 200


@asynchronous
async def test_denial_by_the_provider_is_explained(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        sso.provider.error_code = "access_denied"
        status, message = await is_refused(sso, await sso.authorize())
        assert (status, message.startswith("The identity provider denied the sign-in.")) == (403, True)


@asynchronous
async def test_expired_sign_in_must_be_started_again(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        back = await sso.authorize()
        sso.scenario.clock.move_to(Instant(sso.scenario.clock.now() + 10 * MINUTE))
        assert (await is_refused(sso, back))[1].startswith("This sign-in took too long")


@asynchronous
async def test_callback_without_a_started_sign_in_is_refused(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        for back in ("/sign-in/back", "/sign-in/back?code=x&state=y", "/sign-in/back?error=<script>"):
            assert (await is_refused(sso, back))[0] == 403


@asynchronous
async def test_sign_in_page_explains_that_the_provider_does_not_answer(tmp_path: Path):
    async with an_sso_browser(tmp_path) as sso:
        sso.provider.faults.plan(RespondsWith(503), "/.well-known/openid-configuration")
        status, message = await is_refused(sso, "/sign-in/sso")
        assert (status, message.startswith("The identity provider does not answer.")) == (503, True)
