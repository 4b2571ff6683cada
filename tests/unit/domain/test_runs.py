"""A run knows what it tests, what lies beneath, and how it failed."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import RunStatus
from tests.support.builders import ROOT, a_member, a_run, a_step


def test_a_run_tests_the_last_of_its_stack():
    assert a_run(1, 2, 3, tests=2).tested == (a_member(2), a_member(3))


def test_the_others_lie_beneath():
    assert a_run(1, 2, 3, tests=2).beneath == (a_member(1),)


def test_a_bare_run_tests_nobody():
    bare = a_run(tests=0)
    assert (bare.tested, bare.beneath) == ((), ())


def test_it_is_tested_upon_the_commit_of_the_last_beneath():
    assert a_run(1, 2, 3).tested_upon == "1+2"


def test_with_nobody_beneath_it_is_tested_upon_its_base():
    assert a_run(1, 2, tests=2).tested_upon == ROOT


def test_its_tip_is_its_last_commit():
    assert a_run(1, 2).tip == "1+2"


@pytest.mark.parametrize("status", [RunStatus.PREPARING, RunStatus.IN_PROGRESS])
def test_an_undecided_run_is_active(status: RunStatus):
    assert a_run(1, status=status).active


@pytest.mark.parametrize("status", [RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED])
def test_a_decided_run_is_not_active(status: RunStatus):
    assert not a_run(1, status=status).active


def test_a_red_run_failed_by_its_tests():
    assert a_run(1).failure is Reason.TEST_RUN_FAILED


def test_a_late_run_failed_by_its_time():
    assert replace(a_run(1), timed_out=True).failure is Reason.TEST_RUN_TIMEOUT


def test_commits_with_the_same_parent_and_tree_are_interchangeable():
    assert a_step("1", tree="t").interchangeable_with(a_step("2", tree="t"))


def test_commits_with_another_tree_are_not_interchangeable():
    assert not a_step("1", tree="t").interchangeable_with(a_step("2", tree="u"))


def test_commits_with_another_parent_are_not_interchangeable():
    assert not a_step("1", tree="t").interchangeable_with(a_step("2", tree="t", upon="elsewhere"))
