"""A run knows what it tests, which pull requests are ahead, and how it failed."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.states import Reason, RunStatus
from tests.support.builders import ROOT, a_member, a_run, a_step


def test_a_run_tests_the_last_of_its_stack():
    assert a_run(1, 2, 3, tests=2).tested_members == (a_member(2), a_member(3))


def test_the_other_prs_of_the_stack_are_ahead():
    assert a_run(1, 2, 3, tests=2).prs_ahead == (a_member(1),)


def test_a_base_run_tests_no_pr():
    base_run = a_run(tests=0)
    assert (base_run.tested_members, base_run.prs_ahead) == ((), ())


def test_a_run_is_tested_on_the_commit_of_the_last_pr_ahead():
    assert a_run(1, 2, 3).tested_on == "1+2"


def test_a_run_without_prs_ahead_is_tested_on_its_base():
    assert a_run(1, 2, tests=2).tested_on == ROOT


def test_the_tip_of_a_run_is_its_last_commit():
    assert a_run(1, 2).tip == "1+2"


@pytest.mark.parametrize("status", [RunStatus.PREPARING, RunStatus.IN_PROGRESS])
def test_an_undecided_run_is_active(status: RunStatus):
    assert a_run(1, status=status).is_active


@pytest.mark.parametrize("status", [RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED])
def test_a_decided_run_is_not_active(status: RunStatus):
    assert not a_run(1, status=status).is_active


def test_a_failed_run_failed_because_of_its_tests():
    assert a_run(1).failure_reason is Reason.TEST_RUN_FAILED


def test_an_overdue_run_failed_because_of_its_timeout():
    assert replace(a_run(1), timed_out=True).failure_reason is Reason.TEST_RUN_TIMEOUT


def test_commits_with_the_same_parent_and_tree_are_interchangeable():
    assert a_step("1", tree="t").is_interchangeable_with(a_step("2", tree="t"))


def test_commits_with_another_tree_are_not_interchangeable():
    assert not a_step("1", tree="t").is_interchangeable_with(a_step("2", tree="u"))


def test_commits_with_another_parent_are_not_interchangeable():
    assert not a_step("1", tree="t").is_interchangeable_with(a_step("2", tree="t", parent="elsewhere"))


def test_checks_of_a_run_are_reported_on_its_tip():
    run = a_run(1, 2)
    assert run.checked_commit == run.tip


def test_checks_that_a_run_took_over_were_reported_on_the_head_of_its_pull_request():
    run = replace(a_run(1), used_head_checks=True)
    assert run.checked_commit == a_member(1).head


@pytest.mark.parametrize(
    ("attempt", "status", "expected"),
    [(0, RunStatus.PREPARING, True), (0, RunStatus.SUCCEEDED, False), (1, RunStatus.PREPARING, False)],
)
def test_a_restarted_run_counts_as_one_until_it_is_decided(attempt: int, status: RunStatus, expected: bool):
    assert replace(a_run(1), is_repetition=True, attempt=attempt, status=status).is_restarted is expected
