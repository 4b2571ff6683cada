"""People steer a queue while it works: cancel, restart, hurry, pause, drain, switch, delete."""

import pytest

from tests.e2e.conftest import Build
from tests.support.api import Refused


def test_a_cancelled_pr_never_lands_and_those_behind_it_are_tested_without_it(build: Build):
    premises = build()
    premises.ci.working = False
    first, second = premises.open_pr({"a.txt": "1"}), premises.open_pr({"b.txt": "1"})
    premises.line_up(first, second)
    premises.wait_for("testing", first, second)
    assert premises.cancel(first)["state"] == "cancelled"
    assert premises.cancel(first)["state"] == "cancelled"
    premises.ci.working = True
    premises.wait_for("merged", second)
    assert set(premises.origin.files("main")) == {"README", "b.txt"}


def test_restarted_tests_are_a_new_run_and_old_results_do_not_count_for_it(build: Build):
    premises = build()
    premises.ci.working = False
    number = premises.open_pr({"a.txt": "1"})
    premises.submit(number)
    premises.wait_for("testing", number)
    old, old_tip = premises.pull(number)["testRunId"], premises.branch_of(number)
    premises.restart_tests(number)
    premises.eventually(lambda: premises.pull(number)["testRunId"] not in {old, None})
    premises.ci.report(old_tip, "failure")
    premises.ci.working = True
    premises.wait_for("merged", number)
    assert premises.pull(number)["verifiedByTestRun"] != old


def test_an_urgent_pr_goes_first_and_those_it_passed_are_tested_behind_it(build: Build):
    premises = build()
    premises.ci.working = False
    first, urgent = premises.open_pr({"a.txt": "1"}), premises.open_pr({"b.txt": "1"})
    premises.submit(first)
    premises.wait_for("testing", first)
    assert premises.submit(urgent, priority="urgent")["skipTheLine"] is True
    premises.wait_for("testing", urgent)
    premises.eventually(lambda: "skip_the_line_interrupted" in premises.reasons(first))
    premises.ci.working = True
    premises.wait_for("merged", first, urgent)
    assert premises.origin.subjects("main")[1:] == [
        f"Merge pull request #{urgent}: Change b.txt",
        f"Merge pull request #{first}: Change a.txt",
    ]


def test_nothing_lands_in_a_paused_queue_and_what_passed_lands_when_it_runs_again(build: Build):
    premises = build()
    premises.ci.working = False
    first, second = premises.open_pr({"a.txt": "1"}), premises.open_pr({"b.txt": "1"})
    premises.submit(first)
    premises.wait_for("testing", first)
    assert premises.update_queue(state="PAUSED")["state"] == "PAUSED"
    premises.submit(second)
    premises.ci.working = True
    premises.wait_for("tests_passed", first)
    premises.eventually(lambda: premises.reason(second) == "queue_paused")
    assert premises.origin.files("main") == {"README": "1"}
    premises.update_queue(state="RUNNING")
    premises.wait_for("merged", first, second)


def test_a_draining_queue_finishes_what_it_has_and_takes_nothing_new(build: Build):
    premises = build()
    premises.ci.working = False
    inside, outside = premises.open_pr({"a.txt": "1"}), premises.open_pr({"b.txt": "1"})
    premises.submit(inside)
    premises.wait_for("testing", inside)
    premises.update_queue(state="DRAINING")
    premises.submit(outside)
    premises.ci.working = True
    premises.wait_for("merged", inside)
    premises.eventually(lambda: premises.reason(outside) == "queue_draining")
    premises.update_queue(state="RUNNING")
    premises.wait_for("merged", outside)


def test_modes_switch_when_what_is_under_test_has_merged(build: Build):
    premises = build(concurrency=1)
    premises.ci.working = False
    first, second = premises.open_pr({"a.txt": "1"}), premises.open_pr({"b.txt": "1"})
    premises.line_up(first, second)
    premises.wait_for("testing", first)
    switching = premises.update_queue(mode="parallel")
    assert (switching["state"], switching["mode"]) == ("SWITCHING_MODES", "parallel")
    with pytest.raises(Refused) as refused:
        premises.update_queue(mode="single")
    assert refused.value.code == "mode_switch_in_progress"
    premises.ci.working = True
    premises.wait_for("merged", first, second)
    assert premises.api.post("getQueue")["state"] == "RUNNING"


def test_a_deleted_queue_can_be_made_again_and_knows_nothing_of_the_old_one(build: Build):
    premises = build()
    premises.ci.working = False
    number = premises.open_pr({"a.txt": "1"})
    premises.submit(number)
    with pytest.raises(Refused) as refused:
        premises.api.post("deleteQueue")
    assert refused.value.code == "queue_not_empty"
    premises.cancel(number)
    premises.wait_for_cleanliness()
    premises.evidence.collect()
    assert premises.api.post("deleteQueue")["deleted"] is True
    premises.create_queue()
    with pytest.raises(Refused) as refused:
        premises.pull(number)
    assert refused.value.code == "pr_not_submitted"
    premises.ci.working = True
    premises.submit(number)
    premises.wait_for("merged", number)
