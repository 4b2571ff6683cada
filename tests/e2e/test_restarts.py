"""The server is killed between any two effects and started again: nothing is lost, and nothing happens twice."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.e2e.conftest import StartEnvironment
from tests.support.environment import ServerEnvironment
from tests.support.host_log import TARGET_REF, TEST_BRANCH_PREFIX, ZERO_SHA, PushOutcome, PushStage

AROUND_A_PUSH = [
    (PushStage.PREPARED, PushOutcome.FAILS),
    (PushStage.COMMITTED, PushOutcome.CONTINUES),
    (PushStage.PREPARED, PushOutcome.CONTINUES),
]
AT_EVERY_MOMENT = [
    *AROUND_A_PUSH,
    (PushStage.RECEIVED, PushOutcome.FAILS),
    (PushStage.PREPARED, PushOutcome.IS_DELAYED),
]


def by_name(value: PushStage | PushOutcome) -> str:
    return value.name.lower()


def at(moments: list[tuple[PushStage, PushOutcome]], quick: PushOutcome) -> pytest.MarkDecorator:
    """The other cases than the first with this outcome are slow and run only with `-m long`."""
    first = next(case for case in moments if case[1] is quick)
    cases = [pytest.param(*case, marks=() if case == first else pytest.mark.long) for case in moments]
    return pytest.mark.parametrize(("stage", "outcome"), cases, ids=by_name)


def kill_and_restart(env: ServerEnvironment, **trap: Any) -> None:
    env.host_log.kill_server(env.server.process.pid, **trap)
    env.eventually(lambda: env.host_log.triggered and not env.server.alive)
    env.server.start()
    env.host_log.release_push()


@at(AT_EVERY_MOMENT, PushOutcome.FAILS)
def test_killed_while_a_test_branch_is_pushed(start_env: StartEnvironment, stage: PushStage, outcome: PushOutcome):
    env = start_env()
    good, bad = env.open_pr({"a.txt": "1"}), env.open_pr({"bad": "1"})
    trap = {"stage": stage, "outcome": outcome, "ref": TEST_BRANCH_PREFIX, "old": ZERO_SHA}
    env.submit(good, bad)
    kill_and_restart(env, **trap)
    assert env.wait_for_end(good, bad) == ["merged", "failed"]


@at(AT_EVERY_MOMENT, PushOutcome.CONTINUES)
def test_killed_during_a_landing(start_env: StartEnvironment, stage: PushStage, outcome: PushOutcome):
    env = start_env(batch=True, batchingMinSize=3, mergeMethod="squash")
    numbers = [env.open_pr({f"{name}.txt": "1"}) for name in "abc"]
    env.submit(*numbers)
    kill_and_restart(env, stage=stage, outcome=outcome, ref=TARGET_REF)
    env.wait_for("merged", *numbers)
    assert [env.pull_request_meta(number)["state"] for number in numbers] == ["merged"] * 3
    env.evidence.collect()
    assert len(env.evidence.landings) == 1


@pytest.mark.long
@at(AROUND_A_PUSH, PushOutcome.FAILS)
def test_killed_while_the_test_branch_of_a_discarded_run_is_deleted(
    start_env: StartEnvironment, stage: PushStage, outcome: PushOutcome
):
    env = start_env()
    env.ci.enabled = False
    number, other = env.open_pr({"a.txt": "1"}), env.open_pr({"b.txt": "1"})
    env.submit(number)
    env.wait_for("testing", number)
    env.host_log.kill_server(env.server.process.pid, stage, outcome, ref=TEST_BRANCH_PREFIX, new=ZERO_SHA)
    assert env.cancel(number)["state"] == "cancelled"
    env.eventually(lambda: env.host_log.triggered and not env.server.alive)
    env.server.start()
    env.host_log.release_push()
    env.wait_until_clean()
    assert env.state(number) == "cancelled"
    env.ci.enabled = True
    env.submit(other)
    env.wait_for("merged", other)


@pytest.mark.long
def test_delayed_landing_push_changes_nothing_after_the_next_server_landed_it(start_env: StartEnvironment):
    env = start_env()
    number = env.open_pr({"a.txt": "1"})
    env.submit(number)
    process = env.server.process.pid
    env.host_log.kill_server(process, PushStage.RECEIVED, PushOutcome.IS_DELAYED, ref=TARGET_REF)
    env.eventually(lambda: env.host_log.triggered and not env.server.alive)
    env.server.start()
    env.wait_for("merged", number)
    tip = env.origin.tip("main")
    env.host_log.release_push()
    later = env.open_pr({"b.txt": "1"})
    env.submit(later)
    env.wait_for("merged", later)
    assert env.origin.run("rev-list", "--count", f"{tip}..main").strip() == b"2"


@pytest.mark.long
def test_delayed_test_branch_of_a_finished_run_is_deleted_at_the_next_start(start_env: StartEnvironment):
    env = start_env()
    number = env.open_pr({"a.txt": "1"})
    process = env.server.process.pid
    env.submit(number)
    env.host_log.kill_server(process, PushStage.RECEIVED, PushOutcome.IS_DELAYED, ref=TEST_BRANCH_PREFIX, old=ZERO_SHA)
    env.eventually(lambda: env.host_log.triggered and not env.server.alive)
    env.server.start()
    env.wait_for("merged", number)
    env.wait_until_clean()
    env.host_log.release_push()
    env.eventually(env.ci.test_branches)
    env.server.stop()
    env.server.start()
    env.wait_until_clean()


@pytest.mark.long
def test_repeated_pause_after_a_kill_responds_only_after_the_landing_has_its_outcome(start_env: StartEnvironment):
    env = start_env()
    number = env.open_pr({"a.txt": "1"})
    env.host_log.hold_push(PushStage.PREPARED, ref=TARGET_REF)
    env.submit(number)
    env.eventually(lambda: env.host_log.triggered)
    with ThreadPoolExecutor() as threads:
        pausing = threads.submit(env.update_queue, state="PAUSED", key="pause")
        env.eventually(lambda: env.api.post("getQueue")["state"] == "PAUSED")
        env.server.kill()
        assert isinstance(pausing.exception(), httpx2.TransportError)
        env.server.start()
        again = threads.submit(env.update_queue, state="PAUSED", key="pause")
        env.eventually(lambda: any(entry["level"] == "warning" for entry in env.server.log_entries()))
        assert not again.done()
        env.host_log.release_push()
        assert again.result()["state"] == "PAUSED"
    assert env.state(number) == "merged"


@pytest.mark.long
def test_killed_after_every_kind_of_response(start_env: StartEnvironment):
    """Everything confirmed with status 200 survives an immediate kill."""
    env = start_env.without_queue()
    env.ci.enabled = False
    first, second = env.open_pr({"a.txt": "1"}), env.open_pr({"b.txt": "1"})

    def kill_after(_: object) -> None:
        env.server.kill()
        env.server.start()

    kill_after(env.create_queue(mode="parallel"))
    kill_after(env.submit(first, second))
    env.upload_impacted_targets(second, "back")
    kill_after(env.upload_impacted_targets(first, "front"))
    env.wait_for("testing", first, second)
    tip = env.test_branch_tip(first)
    kill_after(env.update_queue(state="PAUSED"))
    for context in ("unit", "lint"):
        kill_after(env.ci.send(tip, context, "success"))
    env.wait_for("tests_passed", first)
    kill_after(env.cancel(second))
    kill_after(env.update_queue(state="RUNNING"))
    assert env.wait_for_end(first, second) == ["merged", "cancelled"]


def test_request_repeated_after_a_kill_gets_the_stored_response(start_env: StartEnvironment):
    env = start_env()
    env.ci.enabled = False
    number = env.open_pr({"a.txt": "1"})
    answer = env.submit(number, key="once")
    env.wait_for("testing", number)
    env.server.kill()
    env.server.start()
    assert env.submit(number, key="once") == answer
    env.ci.enabled = True
    env.wait_for("merged", number)


def test_ci_reports_results_again_that_failed_while_the_server_was_down(start_env: StartEnvironment):
    env = start_env()
    env.ci.enabled = False
    number = env.open_pr({"a.txt": "1"})
    env.submit(number)
    env.wait_for("testing", number)
    env.server.kill()
    env.ci.enabled = True
    env.ci.report_new_branches()
    env.server.start()
    env.wait_for("merged", number)
