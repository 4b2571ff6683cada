"""Pull requests that fail, alone or in combination, do not merge, and others are not affected."""

import pytest

from tests.e2e.conftest import StartEnvironment


@pytest.mark.long
def test_failing_pr_fails_and_prs_behind_it_merge_without_it(start_env: StartEnvironment):
    env = start_env()
    good, bad, later = (env.open_pr({name: "1"}) for name in ("a.txt", "bad", "c.txt"))
    env.submit_in_order(good, bad, later)
    assert env.wait_for_end(good, bad, later) == ["merged", "failed", "merged"]
    assert env.reason(bad) == "test_run_failed"
    assert set(env.origin.files("main")) == {"README", "a.txt", "c.txt"}


@pytest.mark.long
def test_no_pr_fails_on_a_broken_base_and_the_repair_merges(start_env: StartEnvironment):
    env = start_env.without_queue()
    env.origin.commit("main", {"bad": "1"})
    env.create_queue()
    good, repair = env.open_pr({"a.txt": "1"}), env.open_pr({"bad": None})
    env.submit(good)
    env.eventually(lambda: env.reason(good) == "base_broken")
    env.submit(repair)
    assert env.wait_for_end(good, repair) == ["merged", "merged"]


@pytest.mark.long
def test_of_two_incompatible_prs_the_first_merges_and_the_second_fails_naming_it(start_env: StartEnvironment):
    env = start_env()
    left, right = env.open_pr({"left": "1"}), env.open_pr({"right": "1"})
    env.submit_in_order(left, right)
    assert env.wait_for_end(left, right) == ["merged", "failed"]
    assert f"#{left}" in env.submission(right)["reason"]["message"]


@pytest.mark.long
def test_pr_with_a_conflict_waits_and_merges_after_it_was_resolved(start_env: StartEnvironment):
    env = start_env.without_queue()
    number = env.open_pr({"README": "theirs"})
    env.origin.commit("main", {"README": "ours"})
    env.create_queue()
    env.submit(number)
    env.eventually(lambda: env.reason(number) == "not_mergeable")
    env.origin.branch("topic-1", base="main", files={"README": "both"})
    env.pr_command("update", number)
    env.wait_for("merged", number)
    assert env.origin.files("main") == {"README": "both"}


@pytest.mark.long
def test_queued_pr_fails_when_the_target_branch_comes_to_conflict_with_it(start_env: StartEnvironment):
    env = start_env(concurrency=1)
    env.ci.enabled = False
    ahead, number = env.open_pr({"a.txt": "1"}), env.open_pr({"README": "theirs"})
    env.submit_in_order(ahead, number)
    env.wait_for("testing", ahead)
    env.wait_for("pending", number)
    env.origin.commit("main", {"README": "ours"})
    env.ci.enabled = True
    assert env.wait_for_end(ahead, number) == ["merged", "failed"]
    assert env.reason(number) == "merge_conflict"


@pytest.mark.long
def test_pr_that_conflicts_with_a_pr_ahead_waits_until_that_pr_leaves(start_env: StartEnvironment):
    env = start_env()
    env.ci.enabled = False
    ahead, behind = env.open_pr({"README": "one"}), env.open_pr({"README": "two"})
    env.submit_in_order(ahead, behind)
    env.wait_for("testing", ahead)
    env.eventually(lambda: env.reason(behind) == "conflicts_with_pr_ahead")
    assert env.submission(behind)["reason"]["waitingFor"] == [ahead]
    env.cancel(ahead)
    env.ci.enabled = True
    env.wait_for("merged", behind)
    assert env.origin.files("main") == {"README": "two"}


def test_bisection_finds_the_culprit_of_a_batch_and_the_others_merge(start_env: StartEnvironment):
    env = start_env(batch=True, batchingMinSize=4)
    names = ("a.txt", "b.txt", "bad", "d.txt")
    numbers = [env.open_pr({name: "1"}) for name in names]
    env.submit(*numbers)
    assert env.wait_for_end(*numbers) == ["merged", "merged", "failed", "merged"]
    assert set(env.origin.files("main")) == {"README", "a.txt", "b.txt", "d.txt"}
    env.evidence.collect()
    assert any(run["isBisection"] for run in env.evidence.runs.values())


@pytest.mark.long
def test_failed_run_is_retried_before_the_pr_fails(start_env: StartEnvironment):
    env = start_env(testRetries=1)
    env.ci.enabled = False
    number = env.open_pr({"a.txt": "1"})
    env.submit(number)
    env.wait_for("testing", number)
    flaky = env.test_branch_tip(number)
    env.ci.report(flaky, "failure")
    env.ci.enabled = True
    env.wait_for("merged", number)
    env.evidence.collect()
    assert [run["status"] for run in env.evidence.runs.values() if run["testBranchSha"] == flaky] == ["failed"]


@pytest.mark.long
def test_without_any_required_status_nothing_merges(start_env: StartEnvironment):
    env = start_env()
    env.update_queue(deleteRequiredStatuses=True)
    number = env.open_pr({"a.txt": "1"})
    env.submit(number)
    env.wait_for("not_ready", number)
    assert env.reason(number) == "no_required_statuses"
    env.update_queue(requiredStatuses=["unit"])
    env.wait_for("merged", number)
