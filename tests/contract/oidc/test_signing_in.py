"""People go to a provider and come back with its word for who they are."""

import pytest

from mergeyard.adapters.oidc.luggage import LASTING
from mergeyard.domain.instants import HOUR, MINUTE
from mergeyard.ports.identity import Arrival, IdentityTrouble, NotVouchedFor, Person
from tests.contract.oidc.stage import OidcStage
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import Answers, LosesReply

DISCOVERY = "/.well-known/openid-configuration"


def ada(stage: OidcStage) -> Person:
    return Person("ada", frozenset({"devs"}), f"{stage.provider.issuer} 7")


@asynchronous
async def test_who_comes_back_is_known_by_name_and_groups_and_goes_where_they_wanted(stage: OidcStage):
    assert await stage.sign_in("/queues/a?b=c") == Arrival(ada(stage), "/queues/a?b=c")


@asynchronous
async def test_any_replica_takes_in_who_left_from_another(stage: OidcStage):
    answer, luggage = await stage.leave()
    assert (await stage.replica().arrival(answer, luggage)).person == ada(stage)


@asynchronous
async def test_nothing_is_asked_twice_within_an_hour(stage: OidcStage):
    await stage.sign_in()
    await stage.sign_in()
    asked = [call.partition("?")[0] for call in stage.provider.faults.calls]
    assert (asked.count(f"GET {DISCOVERY}"), asked.count("GET /keys"), asked.count("POST /token")) == (1, 1, 2)
    stage.time_passes(HOUR)
    await stage.sign_in()
    asked = [call.partition("?")[0] for call in stage.provider.faults.calls]
    assert (asked.count(f"GET {DISCOVERY}"), asked.count("GET /keys")) == (2, 2)


@asynchronous
async def test_the_secret_may_have_to_be_sent_in_the_form(stage: OidcStage):
    stage.provider.says_of_itself = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    assert (await stage.sign_in()).person == ada(stage)


# What they carry


@asynchronous
async def test_what_is_carried_shows_nothing(stage: OidcStage):
    luggage = (await stage.adapter.departure("/pulls/secret")).luggage
    assert "secret" not in luggage
    assert luggage != (await stage.adapter.departure("/pulls/secret")).luggage


@pytest.mark.parametrize("luggage", ["", "x", "====", "ü", "A" * 200])
@asynchronous
async def test_who_carries_nothing_of_ours_begins_again(stage: OidcStage, luggage: str):
    answer, _ = await stage.leave()
    with pytest.raises(NotVouchedFor, match="Begin again"):
        await stage.adapter.arrival(answer, luggage)


@asynchronous
async def test_the_answer_to_another_sign_in_is_refused(stage: OidcStage):
    answer, _ = await stage.leave()
    _, luggage = await stage.leave()
    with pytest.raises(NotVouchedFor, match="begun in another window"):
        await stage.adapter.arrival(answer, luggage)
    assert "POST /token" not in stage.provider.faults.calls


@asynchronous
async def test_a_stolen_code_is_worth_nothing_in_another_sign_in(stage: OidcStage):
    stolen, _ = await stage.leave()
    own, luggage = await stage.leave()
    with pytest.raises(NotVouchedFor):
        await stage.adapter.arrival(own | {"code": stolen["code"]}, luggage)


@asynchronous
async def test_luggage_of_an_installation_with_another_secret_is_not_opened(stage: OidcStage):
    answer, luggage = await stage.leave()
    with pytest.raises(NotVouchedFor):
        await stage.replica(secret="another").arrival(answer, luggage)


@asynchronous
async def test_who_takes_too_long_begins_again(stage: OidcStage):
    answer, luggage = await stage.leave()
    stage.time_passes(LASTING)
    with pytest.raises(NotVouchedFor, match="took too long"):
        await stage.adapter.arrival(answer, luggage)
    assert "POST /token" not in stage.provider.faults.calls


@asynchronous
async def test_a_code_that_was_used_before_or_is_too_old_is_worth_nothing(stage: OidcStage):
    answer, luggage = await stage.leave()
    await stage.adapter.arrival(answer, luggage)
    with pytest.raises(NotVouchedFor, match="Begin again"):
        await stage.adapter.arrival(answer, luggage)
    answer, luggage = await stage.leave()
    stage.time_passes(2 * MINUTE)
    with pytest.raises(NotVouchedFor, match="Begin again"):
        await stage.adapter.arrival(answer, luggage)


# What the provider may answer


@asynchronous
async def test_who_is_denied_is_told_so(stage: OidcStage):
    stage.provider.refuses_with = "access_denied"
    with pytest.raises(NotVouchedFor, match="did not let you in"):
        await stage.sign_in()


@asynchronous
async def test_another_refusal_is_told_to_the_operator(stage: OidcStage):
    stage.provider.refuses_with = "invalid_scope"
    assert "invalid_scope" in (await stage.trouble()).detail


@asynchronous
async def test_an_answer_in_the_name_of_another_provider_is_refused(stage: OidcStage):
    answer, luggage = await stage.leave()
    with pytest.raises(IdentityTrouble, match="not to be believed"):
        await stage.adapter.arrival(answer | {"iss": "https://evil.example"}, luggage)


@asynchronous
async def test_a_provider_that_signs_its_answers_must_have_signed_this_one(stage: OidcStage):
    stage.provider.says_of_itself = {"authorization_response_iss_parameter_supported": True}
    answer, luggage = await stage.leave()
    with pytest.raises(IdentityTrouble):
        await stage.adapter.arrival(answer, luggage)
    answer, luggage = await stage.leave()
    assert (await stage.adapter.arrival(answer | {"iss": stage.provider.issuer}, luggage)).person == ada(stage)


@pytest.mark.parametrize("place", [DISCOVERY, "/keys", "/token"])
@pytest.mark.parametrize("fault", [Answers(503), Answers(307, {"location": "?"}), LosesReply()])
@asynchronous
async def test_whatever_fails_is_told_and_works_again_afterwards(
    stage: OidcStage, place: str, fault: Answers | LosesReply
):
    stage.provider.faults.plan(fault, place)
    assert f"{stage.provider.issuer}{place}" in (await stage.trouble()).detail
    assert (await stage.sign_in()).person == ada(stage)


@asynchronous
async def test_a_provider_that_is_not_there_is_told(stage: OidcStage):
    stage.adapter = stage.replica(issuer="http://127.0.0.1:9")
    assert str(await stage.trouble()).startswith("The identity provider does not answer.")


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"issuer": 1}', b"[" * 100_000, b'{"x": "%s"}' % (b"x" * 2_000_000)]
)
@asynchronous
async def test_nonsense_is_told(stage: OidcStage, body: bytes):
    stage.provider.faults.plan(Answers(200, body=body), DISCOVERY)
    assert str(await stage.trouble()).startswith("The identity provider answered something unexpected.")


@asynchronous
async def test_a_secret_that_the_provider_does_not_know_is_told_to_the_operator(stage: OidcStage):
    stage.adapter = stage.replica(secret="mistyped")
    trouble = await stage.trouble()
    assert "401" in trouble.detail
    assert "invalid_client" in trouble.detail
    assert "mistyped" not in trouble.detail


@asynchronous
async def test_a_provider_must_call_itself_what_we_call_it(stage: OidcStage):
    stage.provider.says_of_itself = {"issuer": "https://evil.example"}
    assert "configure it like that" in (await stage.trouble()).detail


@asynchronous
async def test_nobody_is_led_to_an_address_that_is_no_web_page(stage: OidcStage):
    stage.provider.says_of_itself = {"authorization_endpoint": "javascript:alert(1)"}
    assert "not https" in (await stage.trouble()).detail
