"""Operations on a working queue: cancel, restart, urgent submission, pause, drain, mode switch, deletion."""

import pytest

from tests.e2e.conftest import StartEnvironment
from tests.support.api_client import ApiRefused


def test_a_cancelled_pr_never_lands_and_those_behind_it_are_tested_without_it(start_env: StartEnvironment):
    env = start_env()
    env.ci.enabled = False
    first, second = env.open_pr({"a.txt": "1"}), env.open_pr({"b.txt": "1"})
    env.submit_in_order(first, second)
    env.wait_for("testing", first, second)
    assert env.cancel(first)["state"] == "cancelled"
    assert env.cancel(first)["state"] == "cancelled"
    env.ci.enabled = True
    env.wait_for("merged", second)
    assert set(env.origin.files("main")) == {"README", "b.txt"}


@pytest.mark.long
def test_restarted_tests_are_a_new_run_and_old_results_do_not_count_for_it(start_env: StartEnvironment):
    env = start_env()
    env.ci.enabled = False
    number = env.open_pr({"a.txt": "1"})
    env.submit(number)
    env.wait_for("testing", number)
    old, old_tip = env.submission(number)["testRunId"], env.test_branch_tip(number)
    env.restart_tests(number)
    env.eventually(lambda: env.submission(number)["testRunId"] not in {old, None})
    env.ci.report(old_tip, "failure")
    env.ci.enabled = True
    env.wait_for("merged", number)
    assert env.submission(number)["verifiedByTestRun"] != old


@pytest.mark.long
def test_an_urgent_pr_goes_first_and_those_it_passed_are_tested_behind_it(start_env: StartEnvironment):
    env = start_env()
    env.ci.enabled = False
    first, urgent = env.open_pr({"a.txt": "1"}), env.open_pr({"b.txt": "1"})
    env.submit(first)
    env.wait_for("testing", first)
    assert env.submit(urgent, priority="urgent")["skipTheLine"] is True
    env.wait_for("testing", urgent)
    env.eventually(lambda: "skip_the_line_interrupted" in env.reasons(first))
    env.ci.enabled = True
    env.wait_for("merged", first, urgent)
    assert env.origin.subjects("main")[1:] == [
        f"Merge pull request #{urgent}: Change b.txt",
        f"Merge pull request #{first}: Change a.txt",
    ]


def test_nothing_lands_in_a_paused_queue_and_passed_prs_land_after_resuming(start_env: StartEnvironment):
    env = start_env()
    env.ci.enabled = False
    first, second = env.open_pr({"a.txt": "1"}), env.open_pr({"b.txt": "1"})
    env.submit(first)
    env.wait_for("testing", first)
    assert env.update_queue(state="PAUSED")["state"] == "PAUSED"
    env.submit(second)
    env.ci.enabled = True
    env.wait_for("tests_passed", first)
    env.eventually(lambda: env.reason(second) == "queue_paused")
    assert env.origin.files("main") == {"README": "1"}
    env.update_queue(state="RUNNING")
    env.wait_for("merged", first, second)


@pytest.mark.long
def test_draining_queue_merges_its_prs_and_admits_no_new_ones(start_env: StartEnvironment):
    env = start_env()
    env.ci.enabled = False
    inside, outside = env.open_pr({"a.txt": "1"}), env.open_pr({"b.txt": "1"})
    env.submit(inside)
    env.wait_for("testing", inside)
    env.update_queue(state="DRAINING")
    env.submit(outside)
    env.ci.enabled = True
    env.wait_for("merged", inside)
    env.eventually(lambda: env.reason(outside) == "queue_draining")
    env.update_queue(state="RUNNING")
    env.wait_for("merged", outside)


@pytest.mark.long
def test_modes_switch_after_the_tested_prs_have_merged(start_env: StartEnvironment):
    env = start_env(concurrency=1)
    env.ci.enabled = False
    first, second = env.open_pr({"a.txt": "1"}), env.open_pr({"b.txt": "1"})
    env.submit_in_order(first, second)
    env.wait_for("testing", first)
    switching = env.update_queue(mode="parallel")
    assert (switching["state"], switching["mode"]) == ("SWITCHING_MODES", "parallel")
    with pytest.raises(ApiRefused) as refused:
        env.update_queue(mode="single")
    assert refused.value.code == "mode_switch_in_progress"
    env.ci.enabled = True
    env.wait_for("merged", first, second)
    assert env.api.post("getQueue")["state"] == "RUNNING"


@pytest.mark.long
def test_deleted_queue_can_be_created_again_without_its_old_data(start_env: StartEnvironment):
    env = start_env()
    env.ci.enabled = False
    number = env.open_pr({"a.txt": "1"})
    env.submit(number)
    with pytest.raises(ApiRefused) as refused:
        env.api.post("deleteQueue")
    assert refused.value.code == "queue_not_empty"
    env.cancel(number)
    env.wait_until_clean()
    env.evidence.collect()
    assert env.api.post("deleteQueue")["deleted"] is True
    env.create_queue()
    with pytest.raises(ApiRefused) as refused:
        env.submission(number)
    assert refused.value.code == "pr_not_submitted"
    env.ci.enabled = True
    env.submit(number)
    env.wait_for("merged", number)
