"""The door, for those whom an identity provider knows."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from mergeyard.adapters.oidc.provider import OpenIdProvider
from mergeyard.adapters.oidc.registration import Registration
from mergeyard.domain.instants import HOUR, MINUTE, Instant
from mergeyard.domain.journal import SignedIn
from mergeyard.domain.sessions import Grants
from mergeyard.domain.tokens import Scope
from mergeyard.ports.store import AuditPage
from mergeyard.service.auditing import decode_kept
from mergeyard.service.vouching import Vouching, fit_for_the_journal, qualify
from mergeyard.web.app import application
from tests.support import scenario
from tests.support.asynchronous import asynchronous
from tests.support.browsing import Page, Visitor
from tests.support.forges.faults import Answers
from tests.support.identity_provider import BACK, CLIENT, SECRET, IdentityProvider
from tests.support.quiet import captured_warnings
from tests.support.scenario import Scenario, a_scenario

GRANTS = Grants(to_groups={"devs": frozenset({Scope.SUBMIT}), "ops": frozenset({Scope.ADMIN})})
TOKENS = "/administration/tokens"


class Stage:
    """A browser between our pages and a provider."""

    def __init__(self, played: Scenario, provider: IdentityProvider, client: httpx.AsyncClient) -> None:
        self.scenario = played
        self.provider = provider
        self.visitor = Visitor(client)

    def name(self, given: str) -> str:
        """As the journal has it for the provider's visitor."""
        return qualify(given, f"{self.provider.issuer} {self.provider.visitor['sub']}")

    async def leave(self, address: str = "/sign-in/elsewhere?next=/") -> str:
        """To the provider, and to the address that it leads back to."""
        left = await self.visitor.get(address)
        assert left.status == 303, left.text
        async with httpx.AsyncClient(verify=False) as browser:
            back = urlsplit((await browser.get(left.location)).headers["location"])
        return f"{back.path}?{back.query}"

    async def sign_in(self, there: str = "/") -> Page:
        return await self.visitor.get(await self.leave(f"/sign-in/elsewhere?next={there}"))


@asynccontextmanager
async def a_stage(folder: Path, grants: Grants = GRANTS) -> AsyncGenerator[Stage]:
    async with a_scenario(folder, stage=scenario.Stage(grants=grants)) as played:
        with IdentityProvider(played.clock) as provider:
            registration = Registration(issuer=provider.issuer, client_id=CLIENT, client_secret=SECRET, back=BACK)
            identities = OpenIdProvider(registration, played.clock)
            vouching = Vouching("Acme <b>", identities, played.service.sessions)
            transport = httpx.ASGITransport(application(played.service, vouching))
            async with httpx.AsyncClient(transport=transport, base_url="http://yard.example") as client:
                yield Stage(played, provider, client)


@asynchronous
async def test_the_provider_comes_first_and_the_token_second(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        page = await stage.visitor.get("/sign-in?next=/pulls/a%3Fb")
        assert page.one("a.button").text == "Sign in with Acme <b>"
        assert page.one("a.button")["href"] == "/sign-in/elsewhere?next=/pulls/a%3Fb"
        assert page.text.index("Sign in with Acme") < page.text.index("Or with a token")
        assert page.one("input[name=token]")


@asynchronous
async def test_who_comes_back_sees_the_page_that_they_wanted_with_what_their_group_may_do(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        arrived = await stage.sign_in("/queues/git.local/acme/app:main")
        assert (arrived.status, arrived.location) == (303, "/queues/git.local/acme/app:main")
        page = await stage.visitor.get("/")
        assert page.status == 200
        assert page.one("#visitor").text == stage.name("ada")
        assert "/administration" not in page.links()


@asynchronous
async def test_several_groups_may_together_do_what_each_of_them_may(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        stage.provider.visitor["groups"] = ["devs", "ops", "choir"]
        await stage.sign_in()
        assert "/administration" in (await stage.visitor.get("/")).links()


@asynchronous
async def test_their_name_is_made_fit_for_the_journal(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        stage.provider.visitor["preferred_username"] = "ada#root\u202e\n love"
        await stage.sign_in()
        assert (await stage.visitor.get("/")).one("#visitor").text == stage.name("ada-root love")


@asynchronous
async def test_a_person_who_takes_the_name_of_another_can_be_told_apart(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        for subject in ("7", "8"):
            stage.provider.visitor["sub"] = subject
            await stage.sign_in()
        journal = await stage.scenario.store.audit(AuditPage(take=9, kind="SignedIn"))
        second, first = (decode_kept(entry.body) for entry in journal)
        assert isinstance(first, SignedIn)
        assert isinstance(second, SignedIn)
        assert first.name != second.name
        assert first.name.startswith("ada (")
        assert (first.words, second.words) == (f"{stage.provider.issuer} 7", f"{stage.provider.issuer} 8")


@asynchronous
async def test_a_session_ends_by_itself_and_by_signing_out(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        await stage.sign_in()
        assert (await stage.visitor.post("/sign-out")).status == 303
        assert (await stage.visitor.get("/")).status == 303
        await stage.sign_in()
        stage.scenario.clock.move_to(Instant(stage.scenario.clock.now() + 12 * HOUR))
        assert (await stage.visitor.get("/")).status == 303


@asynchronous
async def test_what_the_browser_carries_is_for_the_way_back_alone(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        left = (await stage.visitor.get("/sign-in/elsewhere")).headers["set-cookie"]
        parts = {part.strip().lower() for part in left.split(";")}
        assert {"httponly", "samesite=lax", "path=/sign-in/back", "max-age=600"} <= parts
        assert "max-age=0" in (await stage.sign_in()).headers["set-cookie"].lower()


@pytest.mark.parametrize("there", ["https://evil.example", "//evil.example", "/%5Cevil.example", "/" + "x" * 2000])
@asynchronous
async def test_nobody_is_led_elsewhere(tmp_path: Path, there: str):
    async with a_stage(tmp_path) as stage:
        assert (await stage.sign_in(there)).location == "/"


@pytest.mark.parametrize("name", ["mergeyard", "Operator", " operator\n"])
def test_nobody_goes_by_a_name_that_is_ours(name: str):
    assert fit_for_the_journal(name) == f"{name.strip()} (a person)"


@asynchronous
async def test_an_administrator_signs_everybody_out_who_came_that_way_and_so_perhaps_themselves(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        stage.provider.visitor["groups"] = ["ops"]
        await stage.sign_in()
        page = await stage.visitor.get(TOKENS)
        assert "Sign everybody out who came by Acme <b>" in page.text
        assert "you will be signed out, too" in page.text
        assert (await stage.visitor.post(f"{TOKENS}/sign-out", csrf="guessed")).status == 400
        assert (await stage.visitor.get("/")).status == 200
        assert (await stage.visitor.post(f"{TOKENS}/sign-out")).location == TOKENS
        assert (await stage.visitor.get(TOKENS)).location.startswith("/sign-in")
        await stage.sign_in()
        audit = await stage.visitor.get("/administration/audit?kind=SignedOut")
        assert "Everybody signed out" in audit.one("tbody").text


@asynchronous
async def test_only_administrators_sign_others_out(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        await stage.sign_in()
        assert (await stage.visitor.post(f"{TOKENS}/sign-out")).status == 403
        assert (await stage.visitor.get("/")).status == 200


@asynchronous
async def test_who_has_no_token_is_offered_none_that_lasts_longer_than_ninety_days(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        stage.provider.visitor["groups"] = ["ops"]
        await stage.sign_in()
        page = await stage.visitor.get(TOKENS)
        assert [option["value"] for option in page.one("#lifetime").all("option")] == ["7 days", "30 days", "90 days"]
        assert "you make tokens for 90 days at most" in page.text
        refused = await stage.visitor.post(TOKENS, name="ci", scope="read", lifetime="never")
        assert "choose a shorter time" in refused.one("[role=alert]").text
        assert (await stage.visitor.post(TOKENS, name="ci", scope="read", lifetime="90 days")).status == 200


# Who does not come in


async def stays_out(stage: Stage, back: str) -> tuple[int, str]:
    page = await stage.visitor.get(back)
    assert page.one("a.button")["href"] == "/sign-in/elsewhere?next=/", "they may begin again"
    assert (await stage.visitor.get("/")).status == 303
    return page.status, page.one("[role=alert]").text


@asynchronous
async def test_who_is_in_no_permitted_group_is_told_so(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        stage.provider.visitor["groups"] = ["choir"]
        status, words = await stays_out(stage, await stage.leave())
        assert (status, words.startswith("You are known, but none of your groups may come in here.")) == (403, True)


@asynchronous
async def test_a_failed_sign_in_by_the_provider_is_logged(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        stage.provider.visitor["groups"] = ["choir"]
        with captured_warnings() as lines:
            assert (await stage.sign_in()).status == 403
        (line,) = [line for line in lines if line["event"] == "sign_in_failed"]
        assert (line["client"], line["path"], line["by"]) == ("127.0.0.1", "/sign-in/back", "Acme <b>")


@asynchronous
async def test_everybody_may_come_in_where_that_is_said(tmp_path: Path):
    async with a_stage(tmp_path, Grants(to_groups={}, to_everybody=frozenset({Scope.READ}))) as stage:
        stage.provider.visitor["groups"] = []
        assert (await stage.sign_in()).status == 303
        assert (await stage.visitor.get("/")).status == 200


@asynchronous
async def test_who_is_denied_there_is_told_so(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        stage.provider.refuses_with = "access_denied"
        status, words = await stays_out(stage, await stage.leave())
        assert (status, words.startswith("The identity provider did not let you in.")) == (403, True)


@asynchronous
async def test_who_comes_too_late_begins_again(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        back = await stage.leave()
        stage.scenario.clock.move_to(Instant(stage.scenario.clock.now() + 10 * MINUTE))
        assert (await stays_out(stage, back))[1].startswith("This sign-in took too long")


@asynchronous
async def test_who_never_left_does_not_come_back(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        for back in ("/sign-in/back", "/sign-in/back?code=x&state=y", "/sign-in/back?error=<script>"):
            assert (await stays_out(stage, back))[0] == 403


@asynchronous
async def test_a_provider_that_does_not_answer_leaves_the_token(tmp_path: Path):
    async with a_stage(tmp_path) as stage:
        stage.provider.faults.plan(Answers(503), "/.well-known/openid-configuration")
        status, words = await stays_out(stage, "/sign-in/elsewhere")
        assert (status, words.startswith("The identity provider does not answer.")) == (503, True)
