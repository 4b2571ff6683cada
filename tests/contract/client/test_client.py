"""The client with the whole service, without a socket."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from mergeyard import __version__
from mergeyard.client import AsyncClient, MergeyardError, QueueName
from tests.contract.api.harness import ApiHarness, api_with_queue, api_without_queue
from tests.support.asynchronous import asynchronous

QUEUE = QueueName.of("git.local/acme/app", "main")


@asynccontextmanager
async def a_client(api: ApiHarness, secret: str | None = None) -> AsyncGenerator[AsyncClient]:
    transport = httpx2.ASGITransport(app=api.application)
    async with AsyncClient("http://queue", secret or api.secret, transport=transport) as client:
        yield client


@asynchronous
async def test_a_pull_request_is_submitted_tested_and_waited_for(tmp_path: Path):
    async with api_with_queue(tmp_path) as api, a_client(api) as client:
        api.world.open(1)
        submitted = await client.submit(QUEUE, 1, priority="high")
        assert (submitted.state, submitted.priority_name) == ("not_ready", "high")
        await api.world.wait_until_idle()
        waiting = asyncio.ensure_future(client.wait(QUEUE, 1))
        testing = await client.get_pull_request(QUEUE, 1, include_timeline=True)
        assert [moment.to for moment in testing.timeline or ()] == ["testing", "pending", "not_ready"]
        run = await client.get_run(QUEUE, testing.test_run_id or "")
        assert [pull_request.pr_number for pull_request in run.tested_pull_requests] == [1]
        await client.report_status(QUEUE.repo, run.test_branch_sha, "unit", "success")
        await api.world.wait_until_idle()
        assert (await waiting).state == "merged"
        (result,) = (await client.list_results(QUEUE, since=submitted.submitted_at)).testing_results
        assert (result.pr_number, result.status) == (1, "succeeded")


@asynchronous
async def test_a_queue_is_created_updated_read_and_deleted(tmp_path: Path):
    async with api_without_queue(tmp_path) as api, a_client(api) as client:
        made = await client.create_queue(QUEUE, mode="parallel", required_statuses=["unit"])
        assert (made.mode, made.required_statuses, made.enqueued_pull_requests) == ("parallel", ("unit",), ())
        changed = await client.update_queue(QUEUE, state="PAUSED", required_statuses=None, batch=True)
        assert (changed.state, changed.required_statuses, changed.batch) == ("PAUSED", None, True)
        assert [queue.queue_name for queue in (await client.list_queues()).queues] == [QUEUE]
        assert "mq_depth_current" in await client.get_metrics(QUEUE.repo)
        assert (await client.delete_queue(QUEUE)).deleted
        with pytest.raises(MergeyardError) as refused:
            await client.get_queue(QUEUE)
        assert refused.value.code == "queue_not_found"


@asynchronous
async def test_events_are_followed_while_they_happen(tmp_path: Path):
    async with api_with_queue(tmp_path) as api, a_client(api) as client:
        api.world.open(1)
        events = client.events(QUEUE)
        assert (await anext(events)).type == "queue.created"
        coming = asyncio.ensure_future(anext(events))
        await client.submit(QUEUE, 1)
        event = await coming
        assert (event.type, event.pr_number, event.state) == ("pull_request.submitted", 1, "not_ready")


@asynchronous
async def test_webhooks_are_created_tested_and_deleted(tmp_path: Path):
    async with api_with_queue(tmp_path) as api, a_client(api) as client:
        made = await client.create_webhook("https://there.example", queues=[QUEUE, QUEUE.repo])
        assert (made.secret or "").startswith("whsec_")
        assert [topic.target_branch for topic in made.queues] == ["main", None]
        api.world.sender.secrets = {made.id: made.secret or ""}
        delivery = await client.test_webhook(made.id)
        assert delivery.type == "webhook.test"
        assert (await client.list_deliveries(made.id)).deliveries == (delivery,)
        assert not (await client.update_webhook(made.id, enabled=False)).enabled
        assert (await client.delete_webhook(made.id)).id == made.id
        assert (await client.list_webhooks()).webhooks == ()


@asynchronous
async def test_tokens_are_created_read_and_revoked(tmp_path: Path):
    async with api_with_queue(tmp_path) as api, a_client(api) as client:
        expires_at = datetime(2024, 1, 1, tzinfo=UTC)
        made = await client.create_token("ci", scopes=["submit"], repositories=[QUEUE.repo], expires_at=expires_at)
        async with a_client(api, made.secret) as ci:
            current = await ci.get_current_token()
            preview = await ci.preview_action(QUEUE, 1, "submit", priority="urgent")
        assert (current.id, current.scopes, current.repositories) == (made.id, ("submit",), (QUEUE.repo,))
        assert (current.expires_at, current.server_version) == (expires_at, __version__)
        assert (preview.stopped_test_runs, preview.lost_ci_seconds) == ((), 0)
        assert {token.name for token in (await client.list_tokens()).tokens} == {"ci", "tests"}
        assert (await client.revoke_token(made.id)).revoked_at is not None


@asynchronous
async def test_targets_are_uploaded_and_several_are_read_at_once(tmp_path: Path):
    async with api_with_queue(tmp_path) as api, a_client(api) as client:
        api.world.open(1, 2)
        assert (await client.set_impacted_targets(QUEUE, 1, ["a", "b"])).impacted_targets == 2
        assert (await client.set_impacted_targets(QUEUE, 1, "ALL")).impacted_targets == "ALL"
        await client.submit(QUEUE, 1)
        found = await client.get_pull_requests(QUEUE, [1, 2])
        assert ([pull_request.pr_number for pull_request in found.pull_requests], found.not_found) == ([1], (2,))
        await api.world.wait_until_idle()
        assert [
            pull_request.state for pull_request in (await client.list_pull_requests(QUEUE, take=1)).pull_requests
        ] == ["testing"]
        assert (await client.cancel(QUEUE, 1)).state == "cancelled"
