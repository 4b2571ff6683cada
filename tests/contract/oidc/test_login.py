"""Login through an identity provider."""

import pytest

from mergeyard.adapters.oidc.provider import LOGIN_TIMEOUT_MS
from mergeyard.domain.timestamps import HOUR, MINUTE
from mergeyard.ports.external import IdentityProviderUnavailable, Person, SsoLogin, SsoLoginRefused
from tests.contract.oidc.environment import OidcEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import LosesResponse, RespondsWith

DISCOVERY = "/.well-known/openid-configuration"


def ada(env: OidcEnvironment) -> Person:
    return Person("ada", frozenset({"devs"}), f"{env.provider.issuer} 7")


@asynchronous
async def test_a_login_returns_the_name_the_groups_and_the_requested_page(env: OidcEnvironment):
    assert await env.sign_in("/queues/a?b=c") == SsoLogin(ada(env), "/queues/a?b=c")


@asynchronous
async def test_any_replica_completes_a_login_that_another_began(env: OidcEnvironment):
    answer, login_state = await env.visit_provider()
    assert (await env.replica().complete_login(answer, login_state)).person == ada(env)


@asynchronous
async def test_discovery_and_keys_are_cached_for_an_hour(env: OidcEnvironment):
    await env.sign_in()
    await env.sign_in()
    asked = [call.partition("?")[0] for call in env.provider.faults.calls]
    assert (asked.count(f"GET {DISCOVERY}"), asked.count("GET /keys"), asked.count("POST /token")) == (1, 1, 2)
    env.advance(HOUR)
    await env.sign_in()
    asked = [call.partition("?")[0] for call in env.provider.faults.calls]
    assert (asked.count(f"GET {DISCOVERY}"), asked.count("GET /keys")) == (2, 2)


@asynchronous
async def test_the_client_secret_can_be_sent_in_the_form(env: OidcEnvironment):
    env.provider.discovery_overrides = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    assert (await env.sign_in()).person == ada(env)


# Login state


@asynchronous
async def test_the_login_state_is_encrypted(env: OidcEnvironment):
    login_state = (await env.adapter.begin_login("/pulls/secret")).login_state
    assert "secret" not in login_state
    assert login_state != (await env.adapter.begin_login("/pulls/secret")).login_state


@pytest.mark.parametrize("login_state", ["", "x", "====", "ü", "A" * 200])
@asynchronous
async def test_an_invalid_login_state_is_refused(env: OidcEnvironment, login_state: str):
    answer, _ = await env.visit_provider()
    with pytest.raises(SsoLoginRefused, match="Sign in again"):
        await env.adapter.complete_login(answer, login_state)


@asynchronous
async def test_the_response_to_another_sign_in_is_refused(env: OidcEnvironment):
    answer, _ = await env.visit_provider()
    _, login_state = await env.visit_provider()
    with pytest.raises(SsoLoginRefused, match="started in another window"):
        await env.adapter.complete_login(answer, login_state)
    assert "POST /token" not in env.provider.faults.calls


@asynchronous
async def test_a_stolen_code_is_worth_nothing_in_another_sign_in(env: OidcEnvironment):
    stolen, _ = await env.visit_provider()
    own, login_state = await env.visit_provider()
    with pytest.raises(SsoLoginRefused):
        await env.adapter.complete_login(own | {"code": stolen["code"]}, login_state)


@asynchronous
async def test_a_login_state_of_another_client_secret_is_refused(env: OidcEnvironment):
    answer, login_state = await env.visit_provider()
    with pytest.raises(SsoLoginRefused):
        await env.replica(secret="another").complete_login(answer, login_state)


@asynchronous
async def test_a_login_that_takes_too_long_is_refused(env: OidcEnvironment):
    answer, login_state = await env.visit_provider()
    env.advance(LOGIN_TIMEOUT_MS)
    with pytest.raises(SsoLoginRefused, match="took too long"):
        await env.adapter.complete_login(answer, login_state)
    assert "POST /token" not in env.provider.faults.calls


@asynchronous
async def test_a_used_or_expired_code_is_refused(env: OidcEnvironment):
    answer, login_state = await env.visit_provider()
    await env.adapter.complete_login(answer, login_state)
    with pytest.raises(SsoLoginRefused, match="Sign in again"):
        await env.adapter.complete_login(answer, login_state)
    answer, login_state = await env.visit_provider()
    env.advance(2 * MINUTE)
    with pytest.raises(SsoLoginRefused, match="Sign in again"):
        await env.adapter.complete_login(answer, login_state)


# Responses of the provider


@asynchronous
async def test_a_user_that_the_provider_denies_gets_a_message(env: OidcEnvironment):
    env.provider.error_code = "access_denied"
    with pytest.raises(SsoLoginRefused, match="denied the sign-in"):
        await env.sign_in()


@asynchronous
async def test_any_other_provider_error_is_reported_to_the_operator(env: OidcEnvironment):
    env.provider.error_code = "invalid_scope"
    assert "invalid_scope" in (await env.sign_in_error()).detail


@asynchronous
async def test_a_response_with_another_issuer_is_refused(env: OidcEnvironment):
    answer, login_state = await env.visit_provider()
    with pytest.raises(IdentityProviderUnavailable, match="is not valid"):
        await env.adapter.complete_login(answer | {"iss": "https://evil.example"}, login_state)


@asynchronous
async def test_a_response_without_issuer_is_refused_if_the_provider_sends_it(env: OidcEnvironment):
    env.provider.discovery_overrides = {"authorization_response_iss_parameter_supported": True}
    answer, login_state = await env.visit_provider()
    with pytest.raises(IdentityProviderUnavailable):
        await env.adapter.complete_login(answer, login_state)
    answer, login_state = await env.visit_provider()
    assert (await env.adapter.complete_login(answer | {"iss": env.provider.issuer}, login_state)).person == ada(env)


@pytest.mark.parametrize("place", [DISCOVERY, "/keys", "/token"])
@pytest.mark.parametrize("fault", [RespondsWith(503), RespondsWith(307, {"location": "?"}), LosesResponse()])
@asynchronous
async def test_a_failed_request_is_reported_and_the_next_login_works(
    env: OidcEnvironment, place: str, fault: RespondsWith | LosesResponse
):
    env.provider.faults.plan(fault, place)
    assert f"{env.provider.issuer}{place}" in (await env.sign_in_error()).detail
    assert (await env.sign_in()).person == ada(env)


@asynchronous
async def test_an_unreachable_provider_is_reported(env: OidcEnvironment):
    env.adapter = env.replica(issuer="http://127.0.0.1:9")
    assert str(await env.sign_in_error()).startswith("The identity provider does not answer.")


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"issuer": 1}', b"[" * 100_000, b'{"x": "%s"}' % (b"x" * 2_000_000)]
)
@asynchronous
async def test_an_unexpected_response_of_the_provider_is_reported(env: OidcEnvironment, body: bytes):
    env.provider.faults.plan(RespondsWith(200, body=body), DISCOVERY)
    assert str(await env.sign_in_error()).startswith("The identity provider answered something unexpected.")


@asynchronous
async def test_a_wrong_client_secret_is_reported_to_the_operator(env: OidcEnvironment):
    env.adapter = env.replica(secret="mistyped")
    error = await env.sign_in_error()
    assert "401" in error.detail
    assert "invalid_client" in error.detail
    assert "mistyped" not in error.detail


@asynchronous
async def test_the_issuer_must_be_the_configured_one(env: OidcEnvironment):
    env.provider.discovery_overrides = {"issuer": "https://evil.example"}
    assert "configure exactly that issuer" in (await env.sign_in_error()).detail


@asynchronous
async def test_an_authorization_url_that_is_not_https_is_refused(env: OidcEnvironment):
    env.provider.discovery_overrides = {"authorization_endpoint": "javascript:alert(1)"}
    assert "not https" in (await env.sign_in_error()).detail
