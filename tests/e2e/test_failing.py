"""Pull requests that are wrong, alone or together, do not merge, and nobody else suffers for them."""

from tests.e2e.conftest import Build


def test_the_bad_one_fails_and_those_behind_it_merge_without_it(build: Build):
    premises = build()
    good, bad, later = (premises.open_pr({name: "1"}) for name in ("a.txt", "bad", "c.txt"))
    premises.line_up(good, bad, later)
    assert premises.wait_for_end(good, bad, later) == ["merged", "failed", "merged"]
    assert premises.reason(bad) == "test_run_failed"
    assert set(premises.origin.files("main")) == {"README", "a.txt", "c.txt"}


def test_nobody_fails_on_a_target_that_is_red_itself_and_the_repair_merges(build: Build):
    premises = build.without_queue()
    premises.origin.commit("main", {"bad": "1"})
    premises.create_queue()
    innocent, repair = premises.open_pr({"a.txt": "1"}), premises.open_pr({"bad": None})
    premises.submit(innocent)
    premises.eventually(lambda: premises.reason(innocent) == "base_broken")
    premises.submit(repair)
    assert premises.wait_for_end(innocent, repair) == ["merged", "merged"]


def test_of_two_that_break_each_other_the_first_merges_and_the_second_fails_naming_it(build: Build):
    premises = build()
    left, right = premises.open_pr({"left": "1"}), premises.open_pr({"right": "1"})
    premises.line_up(left, right)
    assert premises.wait_for_end(left, right) == ["merged", "failed"]
    assert f"#{left}" in premises.pull(right)["reason"]["message"]


def test_one_that_conflicts_with_the_target_waits_and_merges_when_it_was_repaired(build: Build):
    premises = build.without_queue()
    number = premises.open_pr({"README": "theirs"})
    premises.origin.commit("main", {"README": "ours"})
    premises.create_queue()
    premises.submit(number)
    premises.eventually(lambda: premises.reason(number) == "not_mergeable")
    premises.origin.branch("topic-1", upon="main", files={"README": "both"})
    premises.pr_command("update", number)
    premises.wait_for("merged", number)
    assert premises.origin.files("main") == {"README": "both"}


def test_one_that_came_to_conflict_with_the_target_fails(build: Build):
    premises = build(concurrency=1)
    premises.ci.working = False
    ahead, number = premises.open_pr({"a.txt": "1"}), premises.open_pr({"README": "theirs"})
    premises.line_up(ahead, number)
    premises.wait_for("testing", ahead)
    premises.wait_for("pending", number)
    premises.origin.commit("main", {"README": "ours"})
    premises.ci.working = True
    assert premises.wait_for_end(ahead, number) == ["merged", "failed"]
    assert premises.reason(number) == "merge_conflict"


def test_one_that_conflicts_only_with_the_line_stays_waiting_until_that_is_gone(build: Build):
    premises = build()
    premises.ci.working = False
    ahead, behind = premises.open_pr({"README": "one"}), premises.open_pr({"README": "two"})
    premises.line_up(ahead, behind)
    premises.wait_for("testing", ahead)
    premises.eventually(lambda: premises.reason(behind) == "conflicts_with_pr_ahead")
    assert premises.pull(behind)["reason"]["waitingFor"] == [ahead]
    premises.cancel(ahead)
    premises.ci.working = True
    premises.wait_for("merged", behind)
    assert premises.origin.files("main") == {"README": "two"}


def test_a_bisection_finds_the_bad_one_of_a_batch_and_the_others_merge(build: Build):
    premises = build(batch=True, batchingMinSize=4)
    names = ("a.txt", "b.txt", "bad", "d.txt")
    numbers = [premises.open_pr({name: "1"}) for name in names]
    premises.submit(*numbers)
    assert premises.wait_for_end(*numbers) == ["merged", "merged", "failed", "merged"]
    assert set(premises.origin.files("main")) == {"README", "a.txt", "b.txt", "d.txt"}
    premises.evidence.collect()
    assert any(run["isBisection"] for run in premises.evidence.runs.values())


def test_a_red_run_is_repeated_before_anyone_is_blamed(build: Build):
    premises = build(testRetries=1)
    premises.ci.working = False
    number = premises.open_pr({"a.txt": "1"})
    premises.submit(number)
    premises.wait_for("testing", number)
    flaky = premises.branch_of(number)
    premises.ci.report(flaky, "failure")
    premises.ci.working = True
    premises.wait_for("merged", number)
    premises.evidence.collect()
    assert [run["status"] for run in premises.evidence.runs.values() if run["testBranchSha"] == flaky] == ["failed"]


def test_without_any_required_status_nothing_merges(build: Build):
    premises = build()
    premises.update_queue(deleteRequiredStatuses=True)
    number = premises.open_pr({"a.txt": "1"})
    premises.submit(number)
    assert premises.wait_for_end(number) == ["failed"]
    assert premises.reason(number) == "no_required_statuses"
