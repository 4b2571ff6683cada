"""The page of a pull request: its progress, why it waits, its checklist and its timeline."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PullRequestNumber, SubmissionId
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.pull_requests import Requirement, impacted_targets_from_names
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import (
    REQUIREMENT_REASONS,
    Mergeability,
    PullRequestState,
    QueueState,
    Reason,
    RunStatus,
)
from mergeyard.domain.timestamps import Instant
from mergeyard.service.views import SubmissionView, describe_bisection, view_submission
from mergeyard.web.pull_request_page import (
    ChecklistItem,
    ItemStatus,
    RunSummary,
    build_checklist,
    build_progress_steps,
    build_timeline,
    describe_situation,
    find_earlier_failure,
    find_failed_run,
    name_tab,
)
from mergeyard.web.run_progress import RunChecks, RunDuration
from tests.support.builders import QueueWorld, a_config, a_parallel_world, a_plain_queue, a_run, a_world


def steps(state: PullRequestState, *, previous: PullRequestState | None = None) -> str:
    entry = PullRequestChanged(
        at=Instant(0),
        submission_id=SubmissionId(1),
        number=PullRequestNumber(1),
        source=previous,
        to=state,
        reason=Reason.SUBMITTED,
    )
    return " ".join(f"{step.name}={step.stage}" for step in build_progress_steps(state, [entry]))


def test_a_queued_pull_request_has_passed_the_first_step():
    assert steps(PullRequestState.PENDING) == "Submitted=passed Queued=here Testing=ahead Passed=ahead Merged=ahead"


def test_a_merged_pull_request_has_passed_all_steps():
    assert steps(PullRequestState.MERGED) == "Submitted=passed Queued=passed Testing=passed Passed=passed Merged=passed"


def test_a_failed_pull_request_ends_after_testing():
    failed = steps(PullRequestState.FAILED, previous=PullRequestState.TESTING)
    assert failed == "Submitted=passed Queued=passed Testing=passed Failed=off"


def test_a_pull_request_removed_before_it_was_ready_ends_after_submission():
    assert steps(PullRequestState.CANCELLED, previous=PullRequestState.NOT_READY) == "Submitted=passed Removed=off"


@pytest.mark.parametrize("state", PullRequestState)
def test_every_state_has_steps(state: PullRequestState):
    assert steps(state, previous=PullRequestState.PENDING).startswith("Submitted=")


def not_ready(*, mode: Mode = Mode.SINGLE, **changes: object) -> SubmissionView:
    """A submitted pull request that lacks only what `changes` says."""
    submission = a_world(prs=1).submission(1)
    submission = replace(
        submission, **{name: value for name, value in changes.items() if name in submission.__struct_fields__}
    )
    pull_request_changes = {
        name: value for name, value in changes.items() if name in submission.pull_request.__struct_fields__
    }
    submission = replace(
        submission,
        state=PullRequestState.NOT_READY,
        pull_request=replace(submission.pull_request, **pull_request_changes),
    )
    return view_submission(a_plain_queue(config=a_config(mode=mode)), submission, submission.submitted_at)


def a_queue(state: QueueState = QueueState.RUNNING, *, checks: tuple[str, ...] = ("unit",), reason: str = "") -> Queue:
    queue = replace(a_plain_queue(config=a_config(required_statuses=checks)), state_reason=reason)
    if state is QueueState.SWITCHING_MODES:
        return replace(queue, mode=Mode.PARALLEL)
    return replace(queue, requested_state=state)


def missing(view: SubmissionView, queue: Queue | None = None) -> list[ChecklistItem]:
    return [item for item in build_checklist(view, queue or a_queue()) if item.status is not ItemStatus.MET]


def test_a_complete_checklist_has_no_open_items():
    assert [item.label for item in build_checklist(not_ready(), a_queue())] == [
        "Targets main",
        "Not a draft",
        "No conflicts",
        "Queue has required checks",
        "Queue is running",
    ]
    assert missing(not_ready()) == []


def test_every_missing_item_says_what_to_do():
    (base, draft, merge, queue) = missing(
        not_ready(base_branch="next", draft=True, mergeability=Mergeability.NOT_MERGEABLE),
        a_queue(QueueState.PAUSED),
    )
    assert "Change its base branch to main" in base.advice
    assert draft.advice == "Mark it as ready for review."
    assert "conflicts" in merge.advice
    assert "resume" in queue.advice


def test_an_unknown_mergeability_is_awaited_without_advice_to_act():
    (unknown,) = missing(not_ready(mergeability=Mergeability.UNKNOWN))
    assert unknown.status is ItemStatus.AWAITED
    assert "nothing to do" in unknown.advice


def requirement(reason: Reason, given: int | None, **members: Any) -> Requirement:
    return Requirement(reason=reason, given=given, **members)


def test_the_checklist_shows_each_requirement_of_the_git_host_in_a_fixed_order():
    grant = ("Members: Read-only",)
    unread = "The queue cannot read a rule of the Git host, and goes on without it. An administrator can grant: "
    required = (
        requirement(Reason.HOST_RULE_UNREADABLE, None, names=grant, blocks_if_unknown=False),
        requirement(Reason.WAITING_FOR_CONVERSATIONS, 0, needed=3),
        requirement(Reason.WAITING_FOR_REVIEW, 2, needed=2),
    )
    items = build_checklist(not_ready(requirements=required), a_queue())[2:-2]
    assert [(item.status, item.label, item.advice) for item in items] == [
        ("met", "No conflicts", ""),
        ("met", "Approvals", "2 of 2 approvals."),
        ("missing", "Review conversations", "Unresolved review conversations: 3. Resolve them."),
        ("unknown", "A rule that cannot be read", f"{unread}Members: Read-only."),
    ]
    (unreadable,) = missing(not_ready(requirements=(replace(required[0], blocks_if_unknown=True),)))
    assert unreadable.status is ItemStatus.MISSING
    assert unreadable.advice.endswith("An administrator has to grant: Members: Read-only.")


def test_a_rule_that_the_queue_cannot_check_is_named():
    signed = requirement(Reason.BLOCKED_BY_HOST_RULE, None, names=("signatures of the ruleset main",))
    (item,) = missing(not_ready(requirements=(signed,)))
    assert (item.status, item.label) == (ItemStatus.MISSING, "Another rule of the Git host")
    assert item.advice == (
        "The queue cannot check a rule of the Git host: signatures of the ruleset main. "
        "An administrator has to change it, or set unreadable_rules to unknown."
    )
    (ignored,) = missing(not_ready(requirements=(replace(signed, blocks_if_unknown=False),)))
    assert ignored.status is ItemStatus.UNKNOWN
    assert ignored.advice == (
        "The queue cannot check a rule of the Git host, and goes on without it: signatures of the ruleset main."
    )


@pytest.mark.parametrize("reason", REQUIREMENT_REASONS)
def test_every_requirement_has_a_label_and_other_sentences_when_it_is_met_or_missing(reason: Reason):
    unmet = not_ready(requirements=(requirement(reason, 0),))
    (lacking,) = missing(unmet)
    assert lacking.label
    assert lacking.advice == unmet.reason.message
    met = build_checklist(not_ready(requirements=(requirement(reason, 1),)), a_queue())[3]
    assert met.status is ItemStatus.MET
    assert met.advice != lacking.advice
    more = build_checklist(not_ready(requirements=(requirement(reason, 3),)), a_queue())[3]
    assert more.advice in (met.advice, "3 approvals, 1 required.")


def test_a_long_list_of_requirements_is_shortened_in_the_message_and_complete_in_the_checklist():
    names = tuple(f"@acme/team-{number}" for number in range(20))
    view = not_ready(requirements=(requirement(Reason.WAITING_FOR_REVIEW, 0, names=names),) * 12)
    assert len(view.requirements) == len(missing(view)) == 12
    assert view.requirements[0].names == names
    assert view.reason.message.count("@acme/team-4 and others (0 of 1 approvals).") == 10
    assert view.reason.message.endswith(" Further rules that are not met: 2.")


def test_a_forced_pull_request_need_not_be_mergeable():
    assert missing(not_ready(mergeability=Mergeability.NOT_MERGEABLE, forced=True)) == []
    unreviewed = (requirement(Reason.WAITING_FOR_REVIEW, 0),)
    forced = build_checklist(not_ready(requirements=unreviewed, forced=True), a_queue())
    assert [item.label for item in forced[2:-2]] == ["Conflicts and rules of the Git host ignored"]
    assert missing(not_ready(requirements=unreviewed, forced=True)) == []


def test_a_fork_that_changes_guarded_paths_needs_a_maintainer():
    (guarded,) = missing(not_ready(fork=True, guarded_paths=("ci.yml",)))
    assert guarded.label == "Changes guarded paths"
    assert "ci.yml" in guarded.advice
    assert missing(not_ready(fork=True, guarded_paths=("ci.yml",), by_maintainer=True)) == []
    assert missing(not_ready(fork=True, guarded_paths=())) == []


def test_impacted_targets_are_needed_only_in_parallel_mode():
    (item,) = missing(not_ready(mode=Mode.PARALLEL, impacted_targets=None))
    assert "Upload them" in item.advice
    assert missing(not_ready(mode=Mode.PARALLEL, impacted_targets=impacted_targets_from_names("x"))) == []
    assert missing(not_ready(impacted_targets=None)) == []


def test_a_pull_request_admitted_before_parallel_mode_needs_no_impacted_targets():
    admitted = not_ready(mode=Mode.PARALLEL, impacted_targets=None)
    assert missing(replace(admitted, submission=replace(admitted.submission, state=PullRequestState.TESTING))) == []


@pytest.mark.parametrize("state", QueueState)
def test_every_state_of_the_queue_is_explained(state: QueueState):
    assert build_checklist(not_ready(), a_queue(state))[-1].label.startswith("Queue is ")


@pytest.mark.parametrize("state", [QueueState.PAUSED, QueueState.DRAINING])
def test_the_reason_that_an_administrator_gave_is_shown(state: QueueState):
    (queue,) = missing(not_ready(), a_queue(state, reason="release day"))
    assert queue.advice.endswith("Reason: release day")


def test_a_queue_without_required_checks_says_what_an_administrator_has_to_do():
    (checks,) = missing(not_ready(), a_queue(checks=()))
    assert checks.label == "Queue has no required checks"
    assert "An administrator has to configure at least one" in checks.advice


def situation(world: QueueWorld, number: int) -> str:
    return describe_situation(world.queue, view_submission(world.queue, world.submission(number), world.now))


def test_a_waiting_pull_request_is_told_its_position_and_how_many_are_ahead():
    world = a_world(prs=4, concurrency=1)
    assert situation(world, 2) == "Waiting for a free test slot (position 2, 1 pull request ahead)."
    assert situation(world, 4) == "Waiting for a free test slot (position 4, 3 pull requests ahead)."


def test_lanes_do_not_wait_for_everything_ahead():
    world = a_parallel_world("x", "y", concurrency=1)
    assert situation(world, 2) == "Waiting for a free test slot (position 2)."


def test_a_pull_request_that_passed_is_told_what_it_waits_for():
    world = a_world(prs=2)
    world.passes(2)
    assert situation(world, 2) == "The tests passed. Waiting for #1 ahead."


def test_many_pull_requests_ahead_are_counted():
    world = a_world(prs=9, concurrency=9)
    world.passes(9)
    assert situation(world, 9) == "The tests passed. Waiting for 8 pull requests ahead."


def test_a_pull_request_that_waits_for_its_batch_is_told_when_it_starts():
    world = a_world(prs=1, batch=4)
    assert situation(world, 1) == "Waiting for more pull requests: a batch starts with 4, or after 5 min."


FIX_IT = re.compile(r"\b(fix|resubmit|submit again|push)\b", re.IGNORECASE)


@pytest.mark.parametrize("base_passed", [True, False])
def test_a_failure_without_a_confirmed_cause_asks_for_no_action(*, base_passed: bool):
    world = a_world(prs=2, base_passed=base_passed)
    world.fails(2)
    assert world.state(2) is PullRequestState.PENDING_FAILURE
    assert situation(world, 2).startswith("The tests failed, and the cause is not confirmed.")
    assert situation(world, 2).endswith("No action is needed yet.")
    assert not FIX_IT.search(situation(world, 2))


def bisection_message(world: QueueWorld, number: int) -> str:
    note = describe_bisection(world.queue, world.submission(number))
    return "" if note is None else note.message


def test_members_of_a_bisection_are_possible_culprits_and_then_one_is_the_likely_one():
    world = a_world(prs=3, batch=3)
    world.fails(1, 2, 3)
    for number in (1, 2, 3):
        assert bisection_message(world, number) == (
            "Bisecting the failed batch: this pull request is a possible culprit. No action is needed yet."
        )
    world.build()
    world.passes(1, 2)
    assert bisection_message(world, 1) == ""
    assert bisection_message(world, 3) == (
        "Bisecting the failed batch: this pull request is the likely culprit. The queue tests it again after #1 and #2 "
        "merge. "
        "No action is needed yet."
    )


@pytest.mark.parametrize(
    ("state", "mark"),
    [
        (PullRequestState.MERGED, "✓ #1 · "),
        (PullRequestState.FAILED, "✗ #1 · "),
        (PullRequestState.CANCELLED, "– #1 · "),
        (PullRequestState.TESTING, "● #1 · position 1 · "),
    ],
)
def test_the_tab_shows_the_state_and_the_position(state: PullRequestState, mark: str):
    world = a_world(prs=1)
    submission = replace(world.submission(1), state=state)
    assert name_tab(view_submission(world.queue, submission, world.now)).startswith(mark)


def test_the_earlier_failure_is_that_of_the_submission_before():
    world = a_world(prs=1)
    first = replace(world.submission(1), id=SubmissionId(1), state=PullRequestState.FAILED)
    second, third = (
        replace(first, id=SubmissionId(2), state=PullRequestState.CANCELLED),
        replace(first, id=SubmissionId(3)),
    )
    assert find_earlier_failure([second, first], second) == first
    assert find_earlier_failure([third, second, first], third) is None
    assert find_earlier_failure([third, second], second) is None
    assert find_earlier_failure([first], first) is None


def summarize(run: Run) -> RunSummary:
    return RunSummary(run, "", "", RunChecks((), ()), RunDuration(0, None))


def test_only_a_test_failure_is_explained_by_a_failed_run():
    failed, deciding = (summarize(a_run(*stack, status=RunStatus.FAILED)) for stack in ((1,), (2, 1)))
    passed = summarize(a_run(3, 1, status=RunStatus.SUCCEEDED))
    submission = replace(a_world(prs=1).submission(1), state=PullRequestState.FAILED, reason=Reason.TEST_RUN_FAILED)
    runs = [passed, failed, deciding]
    assert find_failed_run(submission, runs, deciding.run.id) == deciding
    assert find_failed_run(submission, runs, None) == failed
    assert find_failed_run(submission, [passed], None) is None
    assert find_failed_run(replace(submission, reason=Reason.MERGE_CONFLICT), runs, deciding.run.id) is None
    assert find_failed_run(replace(submission, state=PullRequestState.MERGED), runs, deciding.run.id) is None


def test_the_timeline_shows_the_time_between_two_entries():
    submitted = PullRequestChanged(
        at=Instant(1000),
        submission_id=SubmissionId(1),
        number=PullRequestNumber(1),
        source=None,
        to=PullRequestState.NOT_READY,
        reason=Reason.SUBMITTED,
    )
    queued = replace(submitted, at=Instant(42_000), source=PullRequestState.NOT_READY, to=PullRequestState.PENDING)
    newest, oldest = build_timeline([queued, submitted])
    assert (newest.after_ms, newest.is_first) == (41_000, False)
    assert (oldest.after_ms, oldest.is_first) == (None, True)
