"""The server is killed between any two effects and started again: nothing is lost, and nothing happens twice."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Build
from tests.support.host_log import NOTHING, TARGET, TEST_BRANCHES, Fate, Moment
from tests.support.premises import Premises

AROUND_A_PUSH = [
    (Moment.PREPARED, Fate.DIES),
    (Moment.PREPARED, Fate.GOES_ON),
    (Moment.COMMITTED, Fate.GOES_ON),
]
QUICKLY = [(Moment.PREPARED, Fate.DIES), (Moment.COMMITTED, Fate.GOES_ON)]
"""Enough for every day; the others take their time."""
AT_EVERY_MOMENT = [*AROUND_A_PUSH, (Moment.RECEIVED, Fate.DIES), (Moment.PREPARED, Fate.IS_LATE)]


def by_name(value: Moment | Fate) -> str:
    return value.name.lower()


def at(moments: list[tuple[Moment, Fate]]) -> pytest.MarkDecorator:
    cases = [pytest.param(*case, marks=() if case in QUICKLY else pytest.mark.long) for case in moments]
    return pytest.mark.parametrize(("moment", "fate"), cases, ids=by_name)


def die_and_rise(premises: Premises, **trap: Any) -> None:
    premises.host_log.kill_server(premises.server.process.pid, **trap)
    premises.eventually(lambda: premises.host_log.sprung and not premises.server.alive)
    premises.server.start()
    premises.host_log.release()


@at(AT_EVERY_MOMENT)
def test_killed_while_a_test_branch_is_pushed(build: Build, moment: Moment, fate: Fate):
    premises = build()
    good, bad = premises.open_pr({"a.txt": "1"}), premises.open_pr({"bad": "1"})
    trapped = {"moment": moment, "fate": fate, "ref": TEST_BRANCHES, "old": NOTHING}
    premises.submit(good, bad)
    die_and_rise(premises, **trapped)
    assert premises.wait_for_end(good, bad) == ["merged", "failed"]


@at(AT_EVERY_MOMENT)
def test_killed_while_the_target_is_moved(build: Build, moment: Moment, fate: Fate):
    premises = build(batch=True, batchingMinSize=3, mergeMethod="squash")
    numbers = [premises.open_pr({f"{name}.txt": "1"}) for name in "abc"]
    premises.submit(*numbers)
    die_and_rise(premises, moment=moment, fate=fate, ref=TARGET)
    premises.wait_for("merged", *numbers)
    assert [premises.meta(number)["state"] for number in numbers] == ["merged"] * 3
    premises.evidence.collect()
    assert len(premises.evidence.landings) == 1


@at(AROUND_A_PUSH)
def test_killed_while_the_branch_of_a_run_that_was_given_up_is_deleted(build: Build, moment: Moment, fate: Fate):
    premises = build()
    premises.ci.working = False
    number, other = premises.open_pr({"a.txt": "1"}), premises.open_pr({"b.txt": "1"})
    premises.submit(number)
    premises.wait_for("testing", number)
    premises.host_log.kill_server(premises.server.process.pid, moment, fate, ref=TEST_BRANCHES, new=NOTHING)
    assert premises.cancel(number)["state"] == "cancelled"
    premises.eventually(lambda: premises.host_log.sprung and not premises.server.alive)
    premises.server.start()
    premises.host_log.release()
    premises.wait_for_cleanliness()
    assert premises.state(number) == "cancelled"
    premises.ci.working = True
    premises.submit(other)
    premises.wait_for("merged", other)


def test_a_landing_that_arrives_when_the_next_server_has_landed_it_lands_nothing(build: Build):
    premises = build()
    number = premises.open_pr({"a.txt": "1"})
    premises.submit(number)
    process = premises.server.process.pid
    premises.host_log.kill_server(process, Moment.RECEIVED, Fate.IS_LATE, ref=TARGET)
    premises.eventually(lambda: premises.host_log.sprung and not premises.server.alive)
    premises.server.start()
    premises.wait_for("merged", number)
    tip = premises.origin.tip("main")
    premises.host_log.release()
    later = premises.open_pr({"b.txt": "1"})
    premises.submit(later)
    premises.wait_for("merged", later)
    assert premises.origin.run("rev-list", "--count", f"{tip}..main").strip() == b"2"


def test_a_test_branch_that_arrives_when_its_run_is_over_is_swept_up_at_the_next_start(build: Build):
    premises = build()
    number = premises.open_pr({"a.txt": "1"})
    process = premises.server.process.pid
    premises.submit(number)
    premises.host_log.kill_server(process, Moment.RECEIVED, Fate.IS_LATE, ref=TEST_BRANCHES, old=NOTHING)
    premises.eventually(lambda: premises.host_log.sprung and not premises.server.alive)
    premises.server.start()
    premises.wait_for("merged", number)
    premises.wait_for_cleanliness()
    premises.host_log.release()
    premises.eventually(premises.ci.branches)
    premises.server.stop()
    premises.server.start()
    premises.wait_for_cleanliness()


def test_a_pause_that_is_repeated_after_a_kill_is_answered_only_when_the_landing_has_its_outcome(build: Build):
    premises = build()
    number = premises.open_pr({"a.txt": "1"})
    premises.host_log.hold(Moment.PREPARED, ref=TARGET)
    premises.submit(number)
    premises.eventually(lambda: premises.host_log.sprung)
    with ThreadPoolExecutor() as threads:
        pausing = threads.submit(premises.update_queue, state="PAUSED", key="pause")
        premises.eventually(lambda: premises.api.post("getQueue")["state"] == "PAUSED")
        premises.server.kill()
        assert isinstance(pausing.exception(), httpx.TransportError)
        premises.server.start()
        again = threads.submit(premises.update_queue, state="PAUSED", key="pause")
        premises.eventually(lambda: any(entry["level"] == "warning" for entry in premises.server.told()))
        assert not again.done()
        premises.host_log.release()
        assert again.result()["state"] == "PAUSED"
    assert premises.state(number) == "merged"


@pytest.mark.long
def test_killed_after_every_kind_of_answer(build: Build):
    """Whatever was answered with 200 is there after a kill that comes at once."""
    premises = build.without_queue()
    premises.ci.working = False
    first, second = premises.open_pr({"a.txt": "1"}), premises.open_pr({"b.txt": "1"})

    def kill_after(_: object) -> None:
        premises.server.kill()
        premises.server.start()

    kill_after(premises.create_queue(mode="parallel"))
    kill_after(premises.submit(first, second))
    premises.upload_targets(second, "back")
    kill_after(premises.upload_targets(first, "front"))
    premises.wait_for("testing", first, second)
    tip = premises.branch_of(first)
    kill_after(premises.update_queue(state="PAUSED"))
    for context in ("unit", "lint"):
        kill_after(premises.ci.send(tip, context, "success"))
    premises.wait_for("tests_passed", first)
    kill_after(premises.cancel(second))
    kill_after(premises.update_queue(state="RUNNING"))
    assert premises.wait_for_end(first, second) == ["merged", "cancelled"]


def test_a_request_repeated_after_a_kill_gets_the_answer_that_was_given_before(build: Build):
    premises = build()
    premises.ci.working = False
    number = premises.open_pr({"a.txt": "1"})
    answer = premises.submit(number, key="once")
    premises.wait_for("testing", number)
    premises.server.kill()
    premises.server.start()
    assert premises.submit(number, key="once") == answer
    premises.ci.working = True
    premises.wait_for("merged", number)


def test_results_that_arrive_while_the_server_is_gone_are_asked_for_again_by_the_ci(build: Build):
    premises = build()
    premises.ci.working = False
    number = premises.open_pr({"a.txt": "1"})
    premises.submit(number)
    premises.wait_for("testing", number)
    premises.server.kill()
    premises.ci.working = True
    premises.ci.work()
    premises.server.start()
    premises.wait_for("merged", number)
