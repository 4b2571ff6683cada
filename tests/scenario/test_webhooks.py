"""Webhooks hear of everything that happens, in order, whatever happens to them or to us meanwhile."""

from pathlib import Path

from standardwebhooks.webhooks import Webhook as Verifier

from mergeyard.domain.instants import later
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.webhooks import EventType, Topic, WebhookKind, WhyDisabled
from mergeyard.service.telling.reporting import PATIENCE
from mergeyard.service.telling.webhooks import OPERATOR, Wishes
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, MINUTE, REPO, Scenario, Stage, a_scenario

URL = "https://there.example/hook"
HOUR = 60 * MINUTE


async def listen(scenario: Scenario, url: str = URL, kind: WebhookKind = WebhookKind.WEBHOOK, **wishes: object) -> str:
    """Gives the name of the webhook, and keeps its secret."""
    webhooks = scenario.service.office.webhooks
    webhook, secret = await webhooks.create(OPERATOR, kind, url, Wishes(**wishes), lambda _: b"")  # pyright: ignore[reportArgumentType]
    scenario.sender.secrets[webhook.id] = secret or ""
    await scenario.service.subscriptions.refresh()
    await scenario.rest()
    return webhook.id


async def hours_pass(scenario: Scenario, hours: int) -> None:
    """In large steps, and not alarm by alarm."""
    for _ in range(2 * hours):
        scenario.clock.move_to(later(scenario.clock.now(), HOUR // 2))
        await scenario.rest()


@asynchronous
async def test_a_webhook_hears_of_every_step_of_a_pull_request(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await listen(scenario)
        scenario.open(1)
        await scenario.submit(1)
        run = scenario.run_of(1)
        await scenario.passes(1)
        assert scenario.sender.types() == [
            "pull_request.submitted",
            "pull_request.queued",
            "pull_request.testing",
            "pull_request.tests_passed",
            "pull_request.merged",
        ]
        last = scenario.sender.received[-1].payload
        assert last == {"type": "pull_request.merged", "timestamp": last["timestamp"], "data": last["data"]}
        assert last["data"] == {
            "type": "pull_request.merged",
            "timestamp": "2023-11-14T22:13:20.000Z",
            "repository": "git.local/acme/app",
            "target_branch": "main",
            "pr_number": 1,
            "author": "Ada",
            "state": "merged",
            "reason": "merged_by_queue",
            "test_run_id": run.id,
            "test_branch": f"mergeyard/pr-1/{run.id}",
            "test_branch_sha": run.tip,
            "batched": False,
            "is_bisection": False,
            "details_url": "http://yard.example/pulls/git.local/acme/app/1",
        }


@asynchronous
async def test_what_it_hears_is_signed_as_the_standard_has_it(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        name = await listen(scenario)
        scenario.open(1)
        await scenario.submit(1)
        for heard in scenario.sender.received:
            verifier = Verifier(scenario.sender.secrets[name])
            now = int(heard.headers["webhook-timestamp"])
            assert now == scenario.clock.now() // 1000
            assert heard.headers["webhook-signature"] == verifier.sign(
                heard.id, scenario.sender.time_of(heard), heard.body.decode()
            )


@asynchronous
async def test_a_webhook_hears_what_becomes_of_the_queue_even_its_end(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await listen(scenario)
        other = QueueKey(REPO, "next")
        scenario.origin.branch("next", upon="main", files={"a": "1"})
        await scenario.create_queue(key=other)
        await scenario.update(concurrency=7)
        await scenario.service.queues.delete(other, "ada", b"", None)
        await scenario.rest()
        told = [(each.payload["type"], each.payload["data"]["target_branch"]) for each in scenario.sender.received]
        assert told == [("queue.created", "next"), ("queue.updated", "main"), ("queue.deleted", "next")]


@asynchronous
async def test_only_what_is_wanted_is_sent(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await listen(scenario, "https://failures.example", events=(EventType.PR_FAILED,))
        await listen(scenario, "https://elsewhere.example", topics=(Topic(Repo("git.local", "acme", "other")),))
        await listen(scenario, "https://next.example", topics=(Topic(REPO, "next"),))
        await listen(scenario, "https://main.example", topics=(Topic(REPO, "main"),), events=(EventType.PR_TESTING,))
        scenario.open(1)
        await scenario.submit(1)
        await scenario.judges(1)
        told = [(each.url, each.payload["type"]) for each in scenario.sender.received]
        assert sorted(told) == [
            ("https://failures.example", "pull_request.failed"),
            ("https://main.example", "pull_request.testing"),
        ]


@asynchronous
async def test_a_receiver_that_is_down_gets_everything_in_order_when_it_is_back(tmp_path: Path):
    async with a_scenario(tmp_path, stage=Stage(look_every=MINUTE)) as scenario:
        name = await listen(scenario)
        scenario.sender.answers["there.example"] = 503
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await hours_pass(scenario, 3)
        assert scenario.sender.received == []
        tried = {each.id for each in scenario.sender.attempts}
        assert (len(tried), len(scenario.sender.attempts) > 5) == (1, True)
        scenario.sender.answers.clear()
        await hours_pass(scenario, 1)
        told = [(each.payload["data"]["pr_number"], each.payload["type"]) for each in scenario.sender.received]
        for number in (1, 2):
            assert [kind for pull, kind in told if pull == number] == [
                "pull_request.submitted",
                "pull_request.queued",
                "pull_request.testing",
            ]
        (*_, first) = await scenario.service.office.webhooks.deliveries(OPERATOR, name, 200)
        assert (first.delivered, first.status, first.attempt) == (False, 503, 1)


@asynchronous
async def test_one_event_that_is_not_taken_holds_up_those_behind_it_and_repeats_none_before_it(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await listen(scenario)
        scenario.sender.answers["there.example"] = 0
        scenario.sender.disliked = "pull_request.testing"
        scenario.open(1)
        await scenario.submit(1)
        scenario.sender.answers.clear()
        await scenario.passes(1)
        await scenario.time_passes(MINUTE)
        assert scenario.sender.types() == ["pull_request.submitted", "pull_request.queued"]
        scenario.sender.disliked = ""
        await scenario.time_passes(2 * MINUTE)
        assert scenario.sender.types()[2:] == [
            "pull_request.testing",
            "pull_request.tests_passed",
            "pull_request.merged",
        ]


@asynchronous
async def test_after_a_restart_it_goes_on_where_it_stopped(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await listen(scenario)
        scenario.sender.answers["there.example"] = 0
        scenario.open(1)
        await scenario.submit(1)
        await scenario.starts_again()
        scenario.sender.answers.clear()
        await scenario.time_passes(MINUTE)
        assert scenario.sender.types() == ["pull_request.submitted", "pull_request.queued", "pull_request.testing"]
        assert len({each.id for each in scenario.sender.received}) == 3


@asynchronous
async def test_who_has_not_listened_for_three_days_is_disabled_and_shown_so(tmp_path: Path):
    async with a_scenario(tmp_path, stage=Stage(look_every=6 * HOUR)) as scenario:
        name = await listen(scenario)
        scenario.sender.answers["there.example"] = 500
        await scenario.update(concurrency=7)
        await hours_pass(scenario, PATIENCE // HOUR - 2)
        webhooks = scenario.service.office.webhooks
        assert (await webhooks.find(OPERATOR, name)).webhook.disabled is None
        await hours_pass(scenario, 4)
        disabled = (await webhooks.find(OPERATOR, name)).webhook.disabled
        assert disabled is not None
        assert (disabled.why, disabled.words) == (WhyDisabled.FAILING, "no")
        attempts = len(scenario.sender.attempts)
        await hours_pass(scenario, 12)
        assert len(scenario.sender.attempts) == attempts
        scenario.sender.answers.clear()
        await webhooks.update(OPERATOR, name, Wishes(enabled=True), lambda _: b"")
        await scenario.service.subscriptions.refresh()
        await scenario.rest()
        assert scenario.sender.types() == ["queue.updated"]


@asynchronous
async def test_who_says_that_it_is_gone_is_disabled_at_once(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        name = await listen(scenario)
        scenario.sender.answers["there.example"] = 410
        await scenario.update(concurrency=7)
        disabled = (await scenario.service.office.webhooks.find(OPERATOR, name)).webhook.disabled
        assert disabled is not None
        assert disabled.why is WhyDisabled.GONE


@asynchronous
async def test_slack_is_told_in_words(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await listen(scenario, kind=WebhookKind.SLACK, events=(EventType.PR_FAILED, EventType.QUEUE_STATE_CHANGED))
        scenario.open(1)
        scenario.set_pull(1, title="Count <sheep> & goats")
        await scenario.submit(1)
        await scenario.judges(1)
        (heard,) = scenario.sender.received
        assert heard.payload["text"] == "❌ #1 Count &lt;sheep&gt; &amp; goats by Ada failed"
        assert "webhook-signature" not in heard.headers
        section, context = heard.payload["blocks"]
        assert "repair it and submit it again. <http://yard.example/pulls/" in section["text"]["text"]
        assert context["elements"][0]["text"] == "main of git.local/acme/app · test_run_failed"


@asynchronous
async def test_nothing_secret_is_in_the_database(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        name = await listen(scenario, "https://there.example/hook/T0PSECRET?key=s3cret")
        await scenario.update(concurrency=7)
        secret = scenario.sender.secrets[name].encode()
        await scenario.service.stop()
        kept = b"".join(file.read_bytes() for file in (tmp_path / "data").iterdir())
        assert b"s3cret" not in kept
        assert secret not in kept
        await scenario.starts()


@asynchronous
async def test_what_is_changed_beside_the_server_takes_effect(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        name = await listen(scenario)
        await scenario.service.office.webhooks.delete(OPERATOR, name, b"")
        await scenario.time_passes(MINUTE)
        await scenario.update(concurrency=7)
        assert scenario.sender.attempts == []
        assert await scenario.store.behind(f"webhook:{name}") != ()
        assert KEY in [keeper.key for keeper in scenario.service.yard]
