"""What is recorded of landings is compared with what the target shows: what differs is named, and nothing else."""

from typing import Any

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PrNumber, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Run
from mergeyard.domain.states import CheckState, PrState, RunStatus
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.ports.git import Commit, Signature
from mergeyard.service import wording
from mergeyard.service.verifying.comparing import Circumstances, compare
from mergeyard.service.verifying.recorded import Recorded
from mergeyard.service.verifying.shown import Shown
from mergeyard.service.verifying.verdicts import Report
from tests.support.builders import ROOT, a_run, a_step, a_submission, an_exam

RUN = RunId("6f1d2c3b-4a59-8e7f-a012-3456789abcde")
ADA = Signature("Ada", "ada@example.org", "0 +0000")
DECIDED = Instant(5000)


def a_commit(sha: str, upon: str, *, tree: str = "", claims: int | None = None, run: str = RUN) -> Commit:
    """Without a claim it is somebody's own."""
    words = "By hand\n" if claims is None else wording.squash_message(PrNumber(claims), "", RunId(run), Sha(upon))
    return Commit(Sha(sha), (Sha(upon),), Sha(tree or f"tree of {sha}"), ADA, "0 +0000", words)


def a_status(state: StatusState = StatusState.SUCCESS, at: int = 0) -> dict[str, Status]:
    return {"unit": Status(context="unit", state=state, at=Instant(at))}


def passed_run(*stack: int) -> Run:
    run = a_run(*stack, tests=len(stack), status=RunStatus.SUCCEEDED)
    return replace(run, checks={"unit": CheckState.PASSED}, decided_at=DECIDED)


def a_landing(number: int, run: Run, *, commit: str | None = None, **changes: Any) -> Recorded:
    """Of the run's member with this number, as the commit that it was tested as."""
    place = [member.number for member in run.stack].index(PrNumber(number))
    landed = {"merged_sha": Sha(commit or run.chain[place].commit), "reason": Reason.MERGED_BY_QUEUE}
    stay = replace(a_submission(number, state=PrState.MERGED), verified_by=run.id, **landed | changes)
    return Recorded(stay=stay, run=run, reported=a_status())


def two_landings() -> tuple[Recorded, ...]:
    run = passed_run(1, 2)
    return a_landing(1, run), a_landing(2, run)


def a_target(*line: Commit, **more: Any) -> Shown:
    return Shown(tip=line[-1].sha, bottom=ROOT, line=line, **more)


AS_LANDED = (a_commit("1", ROOT, claims=1), a_commit("1+2", "1", claims=2))


def found(report: Report) -> list[str]:
    return [f"{each.doubt} #{each.number}" for each in report.mismatches]


def differing(*landings: Recorded, shown: Shown | None = None, **beside: Any) -> list[str]:
    return found(compare(landings, shown or a_target(*AS_LANDED), Circumstances(**beside)))


# As it should be


def test_what_is_as_it_was_tested_differs_in_nothing():
    report = compare(two_landings(), a_target(*AS_LANDED), Circumstances())
    assert (report.mismatches, report.notes) == ((), ())
    assert [report.verdict(landing) for landing in report.landings] == ["as_tested"] * 2


def test_what_others_pushed_upon_it_is_nobodys_business():
    assert differing(*two_landings(), shown=a_target(*AS_LANDED, a_commit("theirs", "1+2"))) == []


def test_a_commit_with_the_same_parent_and_tree_is_as_good():
    same = a_commit("another", "1", tree="tree of 1+2", claims=2)
    landed = (two_landings()[0], a_landing(2, passed_run(1, 2), commit="another"))
    assert differing(*landed, shown=a_target(AS_LANDED[0], same)) == []


def test_a_target_that_is_not_there_accuses_nobody():
    report = compare(two_landings(), Shown(), Circumstances())
    assert (report.mismatches, len(report.notes)) == ((), 1)


# One landing


def test_other_contents_than_tested():
    wrong = a_commit("1+2", "1", tree="another", claims=2)
    report = compare(two_landings(), a_target(AS_LANDED[0], wrong), Circumstances())
    assert found(report) == ["other_tree #2"]
    assert [report.verdict(landing) for landing in report.landings] == ["as_tested", "differs"]
    assert report.mismatches[0].words == "#2 (1+2) does not hold what was tested as 1+2: compare the two."


def test_another_parent_than_tested():
    between, moved = a_commit("theirs", "1"), a_commit("1+2", "theirs", claims=2)
    assert differing(*two_landings(), shown=a_target(AS_LANDED[0], between, moved)) == ["other_parent #2"]


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.IN_PROGRESS])
def test_a_run_that_did_not_succeed_vouches_for_nobody(status: RunStatus):
    run = replace(passed_run(1), status=status)
    assert differing(a_landing(1, run), shown=a_target(AS_LANDED[0])) == ["untested #1"]


def test_a_run_that_is_not_recorded_vouches_for_nobody():
    landing = a_landing(1, passed_run(1))
    assert differing(replace(landing, run=None), shown=a_target(AS_LANDED[0])) == ["untested #1"]


def test_a_run_of_others_vouches_for_nobody():
    landing = replace(a_landing(1, passed_run(1)), run=passed_run(2))
    assert differing(landing, shown=a_target(AS_LANDED[0])) == ["untested #1"]


def test_a_run_that_nothing_was_required_of_vouches_for_nobody():
    run = replace(passed_run(1), required=())
    assert differing(a_landing(1, run), shown=a_target(AS_LANDED[0])) == ["not_passed #1"]


@pytest.mark.parametrize(
    ("reported", "checks"),
    [
        ({}, CheckState.PASSED),
        (a_status(StatusState.FAILURE), CheckState.PASSED),
        (a_status(), CheckState.PENDING),
    ],
    ids=["never reported for this commit", "reported as failed", "not seen as passed"],
)
def test_a_required_status_must_have_passed_on_that_very_commit(reported: dict[str, Status], checks: CheckState):
    run = replace(passed_run(1), checks={"unit": checks})
    landing = replace(a_landing(1, run), reported=reported)
    assert differing(landing, shown=a_target(AS_LANDED[0])) == ["not_passed #1"]


def test_what_is_reported_after_the_landing_changes_nothing():
    late = replace(a_landing(1, passed_run(1)), reported=a_status(StatusState.FAILURE, at=DECIDED + 1))
    assert differing(late, shown=a_target(AS_LANDED[0])) == []


def test_another_head_than_tested():
    landing = a_landing(1, passed_run(1))
    pushed = replace(landing.stay, pull=replace(landing.stay.pull, head=Sha("pushed")))
    assert differing(replace(landing, stay=pushed), shown=a_target(AS_LANDED[0])) == ["other_head #1"]


def test_what_was_told_when_it_landed_is_only_noted():
    landing = a_landing(1, passed_run(1), reason=Reason.TREE_MISMATCH)
    report = compare([landing], a_target(a_commit("1", ROOT, tree="another", claims=1)), Circumstances())
    assert (report.mismatches, len(report.notes)) == ((), 1)
    assert report.verdict(report.landings[0]) == "differs"


# By other ways


def test_a_rebased_pull_request_stands_on_what_lies_beneath_all_of_its_commits():
    run = replace(passed_run(1), method=MergeMethod.REBASE)
    line = (a_commit("its first", ROOT, claims=1), a_commit("1", "its first", claims=1))
    assert differing(a_landing(1, run), shown=a_target(*line)) == []
    stranger = (line[0], a_commit("theirs", "its first"), a_commit("1", "theirs", claims=1))
    assert differing(a_landing(1, run), shown=a_target(*stranger)) == ["other_parent #1", "landed_twice #1"]


def test_what_the_provider_merged_has_only_to_hold_the_same():
    run = replace(passed_run(1), landing=LandingMethod.PROVIDER_MERGE)
    landing = a_landing(1, run, commit="theirs")
    merged = a_commit("theirs", "elsewhere", tree="tree of 1")
    assert differing(landing, shown=a_target(merged)) == []
    assert differing(landing, shown=a_target(a_commit("theirs", ROOT))) == ["other_tree #1"]


def composed(*line: Commit, faithful: dict[Ticket, bool]) -> list[str]:
    run, first = passed_run(2), a_landing(1, passed_run(1))
    second = a_landing(2, run, commit="composed", composed=True)
    return differing(first, second, shown=a_target(AS_LANDED[0], *line, faithful=faithful))


def test_what_was_composed_brings_exactly_what_was_tested():
    moved = a_commit("composed", "1", claims=2)
    assert composed(moved, faithful={Ticket(2): True}) == []
    assert composed(moved, faithful={}) == []
    assert composed(moved, faithful={Ticket(2): False}) == ["other_tree #2"]


def test_what_was_composed_stands_on_nothing_but_landings():
    line = a_commit("theirs", "1"), a_commit("composed", "theirs", claims=2)
    assert composed(*line, faithful={Ticket(2): True}) == ["other_parent #2"]


def a_direct_merge(commit: str = "examined", **changes: Any) -> Recorded:
    stay = a_submission(1, state=PrState.MERGED)
    landed = {"merged_sha": Sha(commit), "reason": Reason.MERGED_DIRECTLY, "exam": an_exam()}
    return Recorded(stay=replace(stay, **landed | changes))


def test_a_direct_merge_is_the_head_that_stood_on_the_tip():
    assert differing(a_direct_merge(), shown=a_target(a_commit("examined", ROOT))) == []
    assert differing(a_direct_merge(), shown=a_target(a_commit("examined", "theirs"))) == ["other_parent #1"]
    assert differing(a_direct_merge(), shown=a_target(a_commit("examined", ROOT, tree="x"))) == ["other_tree #1"]


def test_a_head_that_merged_as_it_was_holds_the_tip():
    exam = replace(an_exam(), commit=Sha("head1"), tree=Sha("tree of head1"))
    landing, line = a_direct_merge("head1", exam=exam), a_commit("head1", "its first")
    assert differing(landing, shown=a_target(line, upon_their_tip=frozenset({Ticket(1)}))) == []
    assert differing(landing, shown=a_target(line)) == ["other_parent #1"]


def test_a_direct_merge_needs_an_exam_that_it_passed():
    line = a_target(a_commit("examined", ROOT))
    assert differing(a_direct_merge(exam=None), shown=line) == ["untested #1"]
    assert differing(a_direct_merge(exam=an_exam(contains_tip=False)), shown=line) == ["untested #1"]
    assert differing(a_direct_merge(exam=an_exam(passed=())), shown=line) == ["not_passed #1"]


# The line


def test_a_landing_that_the_target_lacks():
    shown = a_target(AS_LANDED[0])
    assert differing(*two_landings(), shown=shown) == ["missing #2"]
    report = compare(two_landings(), shown, Circumstances(removed=frozenset({Sha("1+2")})))
    assert (found(report), report.verdict(report.landings[1])) == ([], "taken_off")


def test_a_landing_that_nobody_knows_the_commit_of():
    shown = a_target(a_commit("theirs", ROOT))
    assert differing(a_landing(1, passed_run(1), merged_sha=None), shown=shown) == ["nowhere #1"]


def test_landings_in_another_order_than_recorded():
    turned = (a_commit("1+2", ROOT, claims=2), a_commit("1", "1+2", claims=1))
    assert "out_of_order #2" in differing(*two_landings(), shown=a_target(*turned))


def test_the_same_head_landed_twice_by_the_records():
    run = passed_run(1)
    again = replace(run, chain=(a_step("again", upon="1"),))
    twice = a_landing(1, run), a_landing(1, again)
    line = AS_LANDED[0], a_commit("again", "1", claims=1)
    assert differing(*twice, shown=a_target(*line)) == ["landed_twice #1"]


def test_a_copy_of_a_landing():
    copy = a_commit("copy", "1+2", claims=1)
    assert differing(*two_landings(), shown=a_target(*AS_LANDED, copy)) == ["landed_twice #1"]


def test_a_copy_in_place_of_a_landing_counts_by_its_contents():
    taken_off = frozenset({Sha("1+2")})
    altered = a_target(AS_LANDED[0], a_commit("copy", "1", claims=2))
    signed = a_target(AS_LANDED[0], a_commit("copy", "1", tree="tree of 1+2", claims=2))
    assert differing(*two_landings(), shown=altered, removed=taken_off) == ["altered #2"]
    assert differing(*two_landings(), shown=signed, removed=taken_off) == []


def test_a_commit_with_our_trailers_that_no_record_knows():
    forged = a_target(*AS_LANDED, a_commit("its first", "1+2", claims=7), a_commit("forged", "its first", claims=7))
    assert differing(*two_landings(), shown=forged) == ["unrecorded #7"]
    assert differing(*two_landings(), shown=forged, known=frozenset({Sha("forged")})) == []
    assert differing(*two_landings(), shown=forged, landing_now=frozenset({PrNumber(7)})) == []


# Twice


def test_only_what_was_found_both_times_counts():
    first = compare(two_landings(), a_target(AS_LANDED[0]), Circumstances())
    then = compare(two_landings(), a_target(*AS_LANDED, a_commit("copy", "1+2", claims=1)), Circumstances())
    assert (found(first), found(then), found(then.agreeing_with(first))) == (["missing #2"], ["landed_twice #1"], [])
    assert found(first.agreeing_with(first)) == ["missing #2"]
