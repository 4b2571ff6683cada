"""What an operator reads in the log: conclusions of pull requests, and changes of queues."""

from pathlib import Path
from typing import Any

from mergeyard.domain.config import Config, Mode
from mergeyard.domain.states import QueueState
from mergeyard.service.audit_log import MAX_FIELD_CHARS
from mergeyard.service.views import QueueView
from tests.support.asynchronous import asynchronous
from tests.support.log_capture import capture_entries
from tests.support.scenario import KEY, a_scenario

QUEUE = "main of git.local/acme/app"


def present(_: QueueView) -> bytes:
    return b""


def entries(captured: list[Any], event: str) -> list[dict[str, Any]]:
    """The fields of the lines with this event."""
    lines = [dict(line) for line in captured if line["event"] == event]
    assert all(line.pop("log_level") == "info" for line in lines)
    return [{name: value for name, value in line.items() if name != "event"} for line in lines]


@asynchronous
async def test_each_pull_request_that_leaves_the_queue_has_one_line(tmp_path: Path):
    async with a_scenario(tmp_path, Config(mode=Mode.SINGLE)) as scenario:
        scenario.open(1, 2, 3)
        with capture_entries() as captured:
            await scenario.submit(1)
            first = scenario.run_of(1).id
            await scenario.passes(1)
            await scenario.submit(2)
            second = scenario.run_of(2).id
            await scenario.fails(2)
            await scenario.submit(3)
            await scenario.cancel(3)
        commit = (await scenario.submission(1)).merged_sha
        tip = scenario.origin.tip
        assert commit == tip("main")
        merged, failed, removed = entries(captured, "pull_request_concluded")
        by_queue = {"queue": QUEUE, "actor": "mergeyard"}
        assert merged == by_queue | {"number": 1, "state": "merged", "reason": "merged_by_queue"} | {
            "run": first,
            "head": tip("feature1"),
            "commit": commit,
        }
        assert failed == by_queue | {"number": 2, "state": "failed", "reason": "test_run_failed"} | {
            "run": second,
            "head": tip("feature2"),
            "commit": None,
        }
        assert (removed["number"], removed["state"], removed["actor"]) == (3, "cancelled", "ada")


@asynchronous
async def test_each_change_of_a_queue_has_one_line_with_its_actor(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        update = scenario.service.queues.update
        with capture_entries() as captured:
            await update(KEY, {}, QueueState.PAUSED, "ada#t1", present, None, state_reason="deploy\n" + "x" * 600)
            await update(KEY, {"concurrency": 3}, None, "ada#t1", present, None)
            await update(KEY, {"concurrency": 3}, None, "ada#t1", present, None)
            await update(KEY, {}, QueueState.RUNNING, "grace", present, None)
            await scenario.wait_until_idle()
        paused, resumed = entries(captured, "queue_state_changed")
        assert (paused["queue"], paused["actor"], paused["token_id"]) == (QUEUE, "ada", "t1")
        assert (paused["state"], paused["state_before"]) == ("PAUSED", "RUNNING")
        assert paused["detail"].startswith("deploy\nx")
        assert len(paused["detail"]) == MAX_FIELD_CHARS
        assert (resumed["state"], resumed["actor"], "token_id" in resumed) == ("RUNNING", "grace", False)
        (settings,) = entries(captured, "queue_settings_changed")
        assert (settings["actor"], settings["token_id"]) == ("ada", "t1")
        assert "concurrency" in settings["detail"]


@asynchronous
async def test_a_created_and_a_deleted_queue_have_a_line(tmp_path: Path):
    with capture_entries() as captured:
        async with a_scenario(tmp_path) as scenario:
            await scenario.service.queues.delete(KEY, "grace#t2", b"", None)
    assert entries(captured, "queue_created") == [{"queue": QUEUE, "actor": "ada"}]
    assert entries(captured, "queue_deleted") == [{"queue": QUEUE, "actor": "grace", "token_id": "t2"}]


@asynchronous
async def test_steps_on_the_way_have_no_line(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        with capture_entries() as captured:
            await scenario.submit(1)
            await scenario.restart_tests(1)
        assert [line["event"] for line in captured if line["log_level"] == "info"] == []
