"""Recorded merges are compared with the target branch, and every difference is named."""

from typing import Any

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.runs import Run
from mergeyard.domain.states import CheckState, PullRequestState, Reason, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.git import Commit, Signature
from mergeyard.service import git_names
from mergeyard.service.merge_audit.compare import AuditContext, AuditReport, compare_merges
from mergeyard.service.merge_audit.records import BranchHistory, RecordedMerge
from tests.support.builders import ROOT, a_run, a_step, a_submission

RUN = RunId("6f1d2c3b-4a59-8e7f-a012-3456789abcde")
ADA = Signature("Ada", "ada@example.org", "0 +0000")
DECIDED = Instant(5000)


OURS = Signature("Mergeyard", "mergeyard@example.org", "0 +0000")


def a_commit(
    sha: str, parent: str, *, tree: str = "", claims: int | None = None, run: str = RUN, by: Signature = OURS
) -> Commit:
    """Without `claims` it is a commit that Mergeyard did not make."""
    message = "By hand\n"
    if claims is not None:
        message = f"Greet\n\n{git_names.format_trailers(PullRequestNumber(claims), RunId(run), Sha(parent))}"
    committer = ADA if claims is None else by
    return Commit(Sha(sha), (Sha(parent),), Sha(tree or f"tree of {sha}"), ADA, committer, message)


def a_status(state: StatusState = StatusState.SUCCESS, at: int = 0) -> dict[str, Status]:
    return {"unit": Status(context="unit", state=state, at=Instant(at))}


def passed_run(*stack: int) -> Run:
    run = a_run(*stack, tests=len(stack), status=RunStatus.SUCCEEDED)
    return replace(run, checks={"unit": CheckState.PASSED}, decided_at=DECIDED)


def a_merge(number: int, run: Run, *, commit: str | None = None, **changes: Any) -> RecordedMerge:
    """A merge of this member of the run, as the tested commit unless `commit` is given."""
    index = [member.number for member in run.stack].index(PullRequestNumber(number))
    merged = {"merged_sha": Sha(commit or run.chain[index].commit), "reason": Reason.MERGED_BY_QUEUE}
    submission = replace(a_submission(number, state=PullRequestState.MERGED), verified_by=run.id, **merged | changes)
    return RecordedMerge(submission=submission, run=run, statuses=a_status())


def two_merges() -> tuple[RecordedMerge, ...]:
    run = passed_run(1, 2)
    return a_merge(1, run), a_merge(2, run)


def a_snapshot(*commits: Commit, **more: Any) -> BranchHistory:
    return BranchHistory(tip=commits[-1].sha, base=ROOT, first_parent_commits=commits, own_committer=OURS, **more)


AS_MERGED = (a_commit("1", ROOT, claims=1), a_commit("1+2", "1", claims=2))


def describe(report: AuditReport) -> list[str]:
    return [f"{each.kind} #{each.number}" for each in report.mismatches]


def mismatches(*merges: RecordedMerge, snapshot: BranchHistory | None = None, **context: Any) -> list[str]:
    return describe(compare_merges(merges, snapshot or a_snapshot(*AS_MERGED), AuditContext(**context)))


# Without differences


def test_merges_as_tested_have_no_mismatches():
    report = compare_merges(two_merges(), a_snapshot(*AS_MERGED), AuditContext())
    assert (report.mismatches, report.notes) == ((), ())
    assert [report.verdict_of(merge) for merge in report.landings] == ["as_tested"] * 2


def test_commits_pushed_on_top_of_merges_are_ignored():
    assert mismatches(*two_merges(), snapshot=a_snapshot(*AS_MERGED, a_commit("theirs", "1+2"))) == []


def test_another_commit_with_the_same_parent_and_tree_is_accepted():
    same = a_commit("another", "1", tree="tree of 1+2", claims=2)
    merged = (two_merges()[0], a_merge(2, passed_run(1, 2), commit="another"))
    assert mismatches(*merged, snapshot=a_snapshot(AS_MERGED[0], same)) == []


def test_a_missing_target_branch_is_only_noted():
    report = compare_merges(two_merges(), BranchHistory(), AuditContext())
    assert (report.mismatches, len(report.notes)) == ((), 1)


# One merge


def test_other_contents_than_tested_are_a_mismatch():
    wrong = a_commit("1+2", "1", tree="another", claims=2)
    report = compare_merges(two_merges(), a_snapshot(AS_MERGED[0], wrong), AuditContext())
    assert describe(report) == ["other_tree #2"]
    assert [report.verdict_of(merge) for merge in report.landings] == ["as_tested", "differs"]
    assert report.mismatches[0].message == "#2 (1+2) has other contents than the tested commit 1+2. Compare the two."


def test_another_parent_than_tested_is_a_mismatch():
    between, moved = a_commit("theirs", "1"), a_commit("1+2", "theirs", claims=2)
    assert mismatches(*two_merges(), snapshot=a_snapshot(AS_MERGED[0], between, moved)) == ["other_parent #2"]


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.IN_PROGRESS])
def test_a_merge_whose_run_did_not_pass_is_untested(status: RunStatus):
    run = replace(passed_run(1), status=status)
    assert mismatches(a_merge(1, run), snapshot=a_snapshot(AS_MERGED[0])) == ["untested #1"]


def test_a_merge_without_a_recorded_run_is_untested():
    merge = a_merge(1, passed_run(1))
    assert mismatches(replace(merge, run=None), snapshot=a_snapshot(AS_MERGED[0])) == ["untested #1"]


def test_a_merge_whose_run_tested_others_is_untested():
    merge = replace(a_merge(1, passed_run(1)), run=passed_run(2))
    assert mismatches(merge, snapshot=a_snapshot(AS_MERGED[0])) == ["untested #1"]


def test_a_merge_whose_run_required_no_checks_is_not_passed():
    run = replace(passed_run(1), required_statuses=())
    assert mismatches(a_merge(1, run), snapshot=a_snapshot(AS_MERGED[0])) == ["not_passed #1"]


@pytest.mark.parametrize(
    ("reported", "checks"),
    [
        ({}, CheckState.PASSED),
        (a_status(StatusState.FAILURE), CheckState.PASSED),
        (a_status(), CheckState.PENDING),
    ],
    ids=["never reported for this commit", "reported as failed", "not seen as passed"],
)
def test_a_required_check_must_have_passed_on_the_merged_commit(reported: dict[str, Status], checks: CheckState):
    run = replace(passed_run(1), checks={"unit": checks})
    merge = replace(a_merge(1, run), statuses=reported)
    assert mismatches(merge, snapshot=a_snapshot(AS_MERGED[0])) == ["not_passed #1"]


def test_statuses_reported_after_the_merge_are_ignored():
    late = replace(a_merge(1, passed_run(1)), statuses=a_status(StatusState.FAILURE, at=DECIDED + 1))
    assert mismatches(late, snapshot=a_snapshot(AS_MERGED[0])) == []


def test_another_head_than_tested_is_a_mismatch():
    merge = a_merge(1, passed_run(1))
    pushed = replace(merge.submission, pull_request=replace(merge.submission.pull_request, head=Sha("pushed")))
    assert mismatches(replace(merge, submission=pushed), snapshot=a_snapshot(AS_MERGED[0])) == ["other_head #1"]


def test_a_mismatch_recorded_at_the_merge_is_only_noted():
    merge = a_merge(1, passed_run(1), reason=Reason.TREE_MISMATCH)
    report = compare_merges([merge], a_snapshot(a_commit("1", ROOT, tree="another", claims=1)), AuditContext())
    assert (report.mismatches, len(report.notes)) == ((), 1)
    assert report.verdict_of(report.landings[0]) == "differs"


# Other merge methods


def test_a_rebased_pull_request_is_compared_at_the_parent_of_its_first_commit():
    run = replace(passed_run(1), merge_method=MergeMethod.REBASE)
    commits = (a_commit("its first", ROOT, claims=1), a_commit("1", "its first", claims=1))
    assert mismatches(a_merge(1, run), snapshot=a_snapshot(*commits)) == []
    with_other = (commits[0], a_commit("theirs", "its first"), a_commit("1", "theirs", claims=1))
    assert mismatches(a_merge(1, run), snapshot=a_snapshot(*with_other)) == ["other_parent #1", "landed_twice #1"]


def test_a_merge_by_the_git_host_needs_only_the_same_contents():
    run = replace(passed_run(1), landing_method=LandingMethod.PROVIDER_MERGE)
    merge = a_merge(1, run, commit="theirs")
    by_host = a_commit("theirs", "elsewhere", tree="tree of 1")
    assert mismatches(merge, snapshot=a_snapshot(by_host)) == []
    assert mismatches(merge, snapshot=a_snapshot(a_commit("theirs", ROOT))) == ["other_tree #1"]


def mismatches_of_rebased(*commits: Commit, as_tested: dict[SubmissionId, bool]) -> list[str]:
    run, first = passed_run(2), a_merge(1, passed_run(1))
    second = a_merge(2, run, commit="rebased", rebased=True)
    return mismatches(first, second, snapshot=a_snapshot(AS_MERGED[0], *commits, rebased_as_tested=as_tested))


def test_a_rebased_landing_changes_exactly_what_was_tested():
    moved = a_commit("rebased", "1", claims=2)
    assert mismatches_of_rebased(moved, as_tested={SubmissionId(2): True}) == []
    assert mismatches_of_rebased(moved, as_tested={}) == []
    assert mismatches_of_rebased(moved, as_tested={SubmissionId(2): False}) == ["other_tree #2"]


def test_a_rebased_landing_is_on_top_of_merges_only():
    commits = a_commit("theirs", "1"), a_commit("rebased", "theirs", claims=2)
    assert mismatches_of_rebased(*commits, as_tested={SubmissionId(2): True}) == ["other_parent #2"]


DIRECT_RUN = replace(passed_run(1), used_head_checks=True)
"""It passed with the checks of the head."""


def test_a_direct_merge_is_compared_like_any_other():
    merge = a_merge(1, DIRECT_RUN, reason=Reason.MERGED_DIRECTLY)
    assert mismatches(merge, snapshot=a_snapshot(AS_MERGED[0])) == []
    assert mismatches(merge, snapshot=a_snapshot(a_commit("1", "theirs", claims=1))) == ["other_parent #1"]
    assert mismatches(merge, snapshot=a_snapshot(a_commit("1", ROOT, tree="x", claims=1))) == ["other_tree #1"]


def test_a_direct_merge_needs_the_checks_that_its_run_used():
    """The store can have forgotten the statuses of the head, or the Git host alone has them."""
    merge = a_merge(1, DIRECT_RUN, reason=Reason.MERGED_DIRECTLY)
    failed = replace(merge, statuses=a_status(StatusState.FAILURE))
    unchecked = replace(merge, run=replace(DIRECT_RUN, checks={}))
    snapshot = a_snapshot(AS_MERGED[0])
    assert mismatches(replace(merge, statuses={}), snapshot=snapshot) == []
    assert mismatches(failed, snapshot=snapshot) == ["not_passed #1"]
    assert mismatches(unchecked, snapshot=snapshot) == ["not_passed #1"]


# The history


def test_a_merge_that_the_target_branch_lacks_is_missing_unless_it_was_removed():
    snapshot = a_snapshot(AS_MERGED[0])
    assert mismatches(*two_merges(), snapshot=snapshot) == ["missing #2"]
    report = compare_merges(two_merges(), snapshot, AuditContext(removed_commits=frozenset({Sha("1+2")})))
    assert (describe(report), report.verdict_of(report.landings[1])) == ([], "removed")


def test_a_merge_without_a_known_commit_is_nowhere():
    snapshot = a_snapshot(a_commit("theirs", ROOT))
    assert mismatches(a_merge(1, passed_run(1), merged_sha=None), snapshot=snapshot) == ["nowhere #1"]


def test_merges_in_another_order_than_recorded_are_a_mismatch():
    swapped = (a_commit("1+2", ROOT, claims=2), a_commit("1", "1+2", claims=1))
    assert "out_of_order #2" in mismatches(*two_merges(), snapshot=a_snapshot(*swapped))


def test_a_head_that_is_recorded_as_merged_twice_is_a_mismatch():
    run = passed_run(1)
    again = replace(run, chain=(a_step("again", parent="1"),))
    twice = a_merge(1, run), a_merge(1, again)
    commits = AS_MERGED[0], a_commit("again", "1", claims=1)
    assert mismatches(*twice, snapshot=a_snapshot(*commits)) == ["landed_twice #1"]


def test_a_copy_of_a_merge_is_a_mismatch():
    copy = a_commit("copy", "1+2", claims=1)
    assert mismatches(*two_merges(), snapshot=a_snapshot(*AS_MERGED, copy)) == ["landed_twice #1"]


def test_a_copy_in_place_of_a_removed_merge_is_compared_by_its_contents():
    removed = frozenset({Sha("1+2")})
    altered = a_snapshot(AS_MERGED[0], a_commit("copy", "1", claims=2))
    signed = a_snapshot(AS_MERGED[0], a_commit("copy", "1", tree="tree of 1+2", claims=2))
    assert mismatches(*two_merges(), snapshot=altered, removed_commits=removed) == ["altered #2"]
    assert mismatches(*two_merges(), snapshot=signed, removed_commits=removed) == []


def test_a_commit_with_trailers_but_without_a_record_is_unrecorded():
    forged = a_snapshot(*AS_MERGED, a_commit("its first", "1+2", claims=7), a_commit("forged", "its first", claims=7))
    assert mismatches(*two_merges(), snapshot=forged) == ["unrecorded #7"]
    assert mismatches(*two_merges(), snapshot=forged, known_commits=frozenset({Sha("forged")})) == []
    assert mismatches(*two_merges(), snapshot=forged, landing_pull_requests=frozenset({PullRequestNumber(7)})) == []


@pytest.mark.parametrize("claims", [1, 7])
def test_trailers_in_a_commit_of_another_author_are_no_claim(claims: int):
    picked = a_commit("picked", "1+2", claims=claims, by=ADA)
    assert mismatches(*two_merges(), snapshot=a_snapshot(*AS_MERGED, picked)) == []


def test_a_merge_that_did_not_bring_the_whole_change_is_incomplete():
    merges = two_merges()
    assert mismatches(*merges, incomplete_merges=frozenset({merges[1].submission.id})) == ["incomplete #2"]


# Confirmation


def test_only_mismatches_found_twice_are_confirmed():
    first = compare_merges(two_merges(), a_snapshot(AS_MERGED[0]), AuditContext())
    then = compare_merges(two_merges(), a_snapshot(*AS_MERGED, a_commit("copy", "1+2", claims=1)), AuditContext())
    assert (describe(first), describe(then), describe(then.keep_confirmed_by(first))) == (
        ["missing #2"],
        ["landed_twice #1"],
        [],
    )
    assert describe(first.keep_confirmed_by(first)) == ["missing #2"]
