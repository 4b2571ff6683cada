"""News of a forge is only a reason to look: with it everything is known at once, without it within a minute."""

import httpx

from tests.scenario.forges.conftest import Stories
from tests.support.asynchronous import asynchronous
from tests.support.forge_scenario import USUAL
from tests.support.meeting_places.place import FINE
from tests.support.quiet import captured_warnings
from tests.support.scenario import MINUTE, SECOND, Stage


@asynchronous
async def test_with_webhooks_a_whole_life_passes_without_a_single_lap_of_the_watch(story: Stories):
    async with story() as scenario:
        await scenario.a_moment_passes()
        laps = scenario.laps()
        scenario.open(1, 2)
        await scenario.say(1, "/merge")
        await scenario.label(2)
        await scenario.passes(1)
        scenario.push(2, {"more": "m"})
        await scenario.a_moment_passes()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert await scenario.state(2) == "cancelled: pr_pushed"
        assert scenario.laps() == laps


@asynchronous
async def test_one_whose_own_checks_pass_while_it_waits_for_them_is_tested_at_once(github_story: Stories):
    async with github_story(stage=Stage(rules="version = 1\n")) as scenario:
        scenario.place.protect_main()
        scenario.open(1)
        scenario.place.push_to_main({"news": "n"})
        await scenario.a_moment_passes()
        await scenario.submit(1)
        await scenario.a_moment_passes()
        assert await scenario.state(1) == "not_ready: not_mergeable"
        laps = scenario.laps()
        scenario.place.satisfy(scenario.place.head(1))
        await scenario.a_moment_passes()
        assert scenario.picture == "main ← 1…"
        assert scenario.laps() == laps


@asynchronous
async def test_without_webhooks_everything_is_found_within_a_minute(story: Stories):
    async with story(poll_seconds=USUAL) as scenario:
        scenario.place.deliveries.losing = True
        scenario.open(1, 2)
        scenario.place.label(1, "merge-queue")
        await scenario.say(2, "/merge")
        await scenario.a_minute_passes()
        assert scenario.picture in ("main ← 1… ← 2…", "main ← 2… ← 1…")
        await scenario.hear(scenario.run_with(1).tip)
        await scenario.hear(scenario.run_with(2).tip)
        await scenario.a_minute_passes()
        assert scenario.place.is_merged(1)
        assert scenario.place.is_merged(2)


@asynchronous
async def test_without_webhooks_what_people_do_is_found_within_a_minute(story: Stories):
    async with story(poll_seconds=USUAL) as scenario:
        scenario.place.deliveries.losing = True
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        await scenario.a_moment_passes()
        scenario.push(1, {"more": "m"})
        scenario.place.close_pull(2)
        scenario.place.make_draft(3)
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert await scenario.state(2) == "cancelled: pr_closed"
        assert await scenario.state(3) == "cancelled: pr_converted_to_draft"


@asynchronous
async def test_without_webhooks_a_push_to_the_target_is_found_within_a_minute(story: Stories):
    async with story(poll_seconds=USUAL) as scenario:
        scenario.place.deliveries.losing = True
        scenario.open(1)
        await scenario.submit(1)
        foreign = scenario.place.push_to_main({"foreign": "f"})
        await scenario.a_minute_passes()
        assert scenario.run_of(1).base == foreign


@asynchronous
async def test_what_happens_in_the_same_second_as_the_last_look_is_found_without_webhooks(story: Stories):
    """Some forges tell the time in whole seconds: after the second word they show the same as after the first."""
    async with story(poll_seconds=USUAL) as scenario:
        scenario.place.deliveries.losing = True
        scenario.open(1)
        await scenario.time_passes(SECOND // 2)
        await scenario.starts_again()
        await scenario.time_passes(MINUTE - SECOND // 2)
        await scenario.say(1, "/merge")
        await scenario.time_passes(SECOND // 2)
        assert scenario.picture == "main ← 1…"
        await scenario.say(1, "/merge cancel")
        await scenario.a_minute_passes()
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_news_that_comes_twice_is_obeyed_once(story: Stories):
    async with story() as scenario:
        scenario.place.deliveries.doubling = True
        scenario.open(1)
        await scenario.say(1, "/merge")
        run = scenario.run_of(1).id
        await scenario.say(1, "/merge status")
        assert len(scenario.answers(1)) == 1
        assert scenario.signs(1) == [(FINE,), (FINE,)]
        assert scenario.run_of(1).id == run
        await scenario.passes(1)
        assert scenario.place.is_merged(1)


@asynchronous
async def test_news_in_the_wrong_order_is_obeyed_in_the_right_one(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.rest()
        scenario.place.deliveries.holding = True
        await scenario.say(1, "/merge", "/merge cancel", "/merge --priority high")
        scenario.place.deliveries.release()
        await scenario.rest()
        assert (await scenario.stay(1)).priority == 10
        await scenario.a_moment_passes()
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_old_news_of_a_run_that_is_over_changes_nothing(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.place.deliveries.holding = True
        await scenario.fails(1)
        await scenario.restart_tests(1)
        scenario.place.deliveries.holding = False
        scenario.place.deliveries.release()
        await scenario.rest()
        assert scenario.picture == "main ← 1…"


@asynchronous
async def test_a_forged_message_is_refused_and_nothing_is_done(story: Stories):
    async with story() as scenario:
        scenario.open(1)
        await scenario.rest()
        genuine = scenario.place.deliveries.log[0].letter
        calls = len(scenario.place.faults.calls)
        for headers in forgeries(dict(genuine.headers)):
            async with httpx.AsyncClient(trust_env=False) as client:
                answer = await client.post(genuine.address, content=genuine.body, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "invalid_token")
        await scenario.rest()
        assert len(scenario.place.faults.calls) == calls


@asynchronous
async def test_a_webhook_for_an_unknown_host_is_answered_like_one_with_a_wrong_signature(story: Stories):
    known_id = {"x-request-id": "the-same"}
    async with story() as scenario:
        addresses = (scenario.hook, f"{scenario.hook}.example", scenario.hook.replace("/hooks/", "/hooks/x"))
        with captured_warnings() as lines:
            async with httpx.AsyncClient(trust_env=False) as client:
                answers = [await client.post(address, content=b"{}", headers=known_id) for address in addresses]
        assert {(answer.status_code, answer.content) for answer in answers} == {(401, answers[0].content)}
        told = [line for line in lines if line["event"] == "webhook_signature_invalid"]
        assert [(line["client"], f"{scenario.doorway.url}{line['path']}") for line in told] == [
            ("127.0.0.1", address) for address in addresses
        ]
        assert [line["cause"] == "no such host is configured" for line in told] == [False, True, True]


def forgeries(headers: dict[str, str]) -> list[dict[str, str]]:
    """Without what proves the sender, and with something else in its place."""
    proofs = {name for name in headers if "signature" in name or "token" in name}
    bare = {name: value for name, value in headers.items() if name not in proofs}
    return [bare, bare | dict.fromkeys(proofs, "sha256=00"), bare | dict.fromkeys(proofs, "")]
