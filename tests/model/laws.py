"""The laws of the engine, checked from the outside after every decision: pushes at the host, the journal, the queue."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from mergeyard.domain.config import MIN_AGED_PRIORITY, LandingMethod, Speculation
from mergeyard.domain.events import ChecksObserved, Event, LandingPullRequestsRead
from mergeyard.domain.ids import RunId, Sha, SubmissionId
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.pull_requests import ImpactedTargets, Submission
from mergeyard.domain.queue import Decision, Landing, Queue
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import (
    REQUIREMENT_REASONS,
    REVIEW_REASONS,
    TERMINAL_STATES,
    CheckState,
    PullRequestState,
    QueueState,
    Reason,
    RunStatus,
    check_pull_request_transition,
)
from mergeyard.domain.timestamps import SECOND
from mergeyard.engine import admission, entries, lanes
from mergeyard.engine.batching import priority_rank
from mergeyard.engine.decide import STEPS, decide, prune_target_branch
from mergeyard.engine.run_validity import is_locked_by_landing, required_statuses
from mergeyard.engine.tasks import pending_tasks
from mergeyard.engine.views import WaitReason, wait_reason
from tests.model.people import People
from tests.model.reasons import check_reason, check_wait_reason
from tests.support.world.host import TargetBranchPush
from tests.support.world.repository import apply_changes
from tests.support.world.world import World

TEST_FAILURES = frozenset({Reason.TEST_RUN_FAILED, Reason.TEST_RUN_TIMEOUT, Reason.FAILED_BY_OPTIMIZATION})
ALLOWED_WAIT_REASONS = frozenset({Reason.NOT_MERGEABLE, Reason.BASE_BROKEN, Reason.WAITING_FOR_PRS_AHEAD})


class Laws:
    def __init__(self, world: World, people: People, *, flaky: bool) -> None:
        self.world = world
        self.people = people
        self.flaky = flaky
        self.runs: dict[RunId, Run] = {}
        self.states: dict[SubmissionId, PullRequestState] = {}
        self.merged: set[SubmissionId] = set()
        self.read: dict[int, list[LandingPullRequestsRead]] = {}
        """How the pull requests of each landing were when they were read again."""
        self.optimistic: set[int] = set()
        """The landings that were decided under optimistic merging."""
        self.landed_as_tested = set(world.queue.target_branch.passed_bases)
        self.pushes_checked = 0

    # After every decision.

    def check_decision(self, before: Queue, events: Sequence[Event], decision: Decision) -> None:
        after = decision.queue
        for event in events:
            if isinstance(event, LandingPullRequestsRead):
                self.read.setdefault(event.landing, []).append(event)
        self.runs.update(after.runs)
        self.runs.update((run.id, run) for run in decision.finished_runs)
        self._check_pushes(before)
        self._settled_queue_does_not_change(after)
        for entry in decision.journal:
            if isinstance(entry, PullRequestChanged):
                self._states_follow_the_transition_table(entry)
                self._only_culprits_fail(entry, after)
                check_reason(before, events, entry, decision)
        self._no_submission_is_lost(after, decision)
        self._no_run_starts_without_a_slot(before, after)
        self._nothing_lands_in_a_paused_queue(before, after)
        self._no_timeout_without_a_fresh_read(before, events, after)
        self._every_submission_has_a_wait_reason(after)
        self._no_admitted_pull_request_lacks_consent(after)
        self._every_stack_contains_the_prs_ahead(before, after)
        self._no_batch_becomes_active_before_its_turn(before, after)
        if after.counters.revision % 16 == 0:
            self._pending_tasks_follow_from_stored_state(after)

    def _settled_queue_does_not_change(self, queue: Queue) -> None:
        assert decide(queue, (), self.world.now).queue is queue, "deciding again without events changed the queue"
        undone = [step.__qualname__ for step in STEPS if step(queue, self.world.now) is not queue]
        assert not undone, f"these steps still change the queue: {undone}"
        assert entries.derive_states(queue, self.world.now) is queue, "a pull request state is not derived yet"
        assert prune_target_branch(queue) is queue, "the target branch history holds more than is needed"

    def _states_follow_the_transition_table(self, entry: PullRequestChanged) -> None:
        known = self.states.get(entry.submission_id)
        assert known == entry.source, f"{entry.number} was {known}, not {entry.source}"
        assert known not in TERMINAL_STATES, f"{entry.number} was {known}, which is final"
        check_pull_request_transition(entry.source, entry.to, entry.reason)
        self.states[entry.submission_id] = entry.to
        if entry.to is PullRequestState.MERGED:
            assert entry.submission_id not in self.merged, f"{entry.number} merged twice"
            assert entry.submission_id not in self.people.cancelled, (
                f"{entry.number} merged after its cancel was confirmed"
            )
            self.merged.add(entry.submission_id)

    def _only_culprits_fail(self, entry: PullRequestChanged, queue: Queue) -> None:
        self._removed_pull_request_really_changed(entry)
        self._no_landing_contains_what_was_merged_outside(entry)
        if entry.reason is Reason.CONTAINS_REMOVED_COMMIT:
            self._contains_a_removed_commit(entry)
        if entry.to is not PullRequestState.FAILED or entry.reason not in TEST_FAILURES:
            return
        assert not queue.is_paused, f"{entry.number} failed because of a test in a paused queue"
        evidence = [run for run in self.runs.values() if self._is_evidence_against(run, entry.submission_id)]
        assert evidence, f"{entry.number} failed without a failed run on top of PRs that merged"
        assert any(self._base_is_known_to_pass(run, entry.submission_id) for run in evidence), (
            f"{entry.number} failed on a base that is not known to pass"
        )

    def _removed_pull_request_really_changed(self, entry: PullRequestChanged) -> None:
        pull_request = self.world.host.pull_requests[entry.number]
        if entry.reason is Reason.PR_PUSHED:
            assert pull_request.head != self.world.concluded_submissions[entry.number].pull_request.head, (
                f"{entry.number} left for a push that did not happen"
            )
        if entry.reason is Reason.PR_CLOSED:
            assert not pull_request.is_open, f"{entry.number} left for a close that did not happen"

    def _no_landing_contains_what_was_merged_outside(self, entry: PullRequestChanged) -> None:
        if entry.reason is not Reason.MERGED_MANUALLY:
            return
        head = self.world.host.pull_requests[entry.number].head
        for push in self.world.host.pushes:
            brought = self.world.repository.ancestors(push.after) - self.world.repository.ancestors(push.before)
            assert head not in brought, (
                f"{entry.number} was merged outside the queue, but {push.task.members} brought it"
            )

    def _contains_a_removed_commit(self, entry: PullRequestChanged) -> None:
        head = self.world.concluded_submissions[entry.number].pull_request.head
        held = self.world.repository.ancestors(head)
        assert self.people.ever_removed & held, f"{entry.number} failed for a commit that was not removed"

    def _is_evidence_against(self, run: Run, submission_id: SubmissionId) -> bool:
        if run.status is not RunStatus.FAILED or run.invalidated is not None:
            return False
        is_tested = submission_id in {member.submission_id for member in run.tested_members}
        return is_tested and all(member.submission_id in self.merged | {submission_id} for member in run.stack)

    def _base_is_known_to_pass(self, run: Run, submission_id: SubmissionId) -> bool:
        bases = {run.base, run.tested_on}
        if bases & self.landed_as_tested or any(map(self._has_contents_that_passed, bases)):
            return True
        return any(
            self._is_base_run_that_passed(other, run) or self._shares_base_with(other, run, submission_id)
            for other in self.runs.values()
        )

    def _has_contents_that_passed(self, commit: Sha) -> bool:
        """Its contents are those of a run that passed, or of a head that passed by itself, whatever made the commit."""
        commits, heads = (
            self.world.repository.commits,
            (pull_request.head for pull_request in self.world.host.pull_requests.values()),
        )
        passed = {run.tip for run in self.runs.values() if run.status is RunStatus.SUCCEEDED}
        passed.update(filter(self.world.checks.list_passed, heads))
        return commits[commit].tree in {commits[each].tree for each in passed}

    def _is_base_run_that_passed(self, other: Run, run: Run) -> bool:
        is_base_run = other.kind is RunKind.BASE and other.base in (run.base, run.tested_on)
        return is_base_run and other.status is RunStatus.SUCCEEDED

    def _shares_base_with(self, other: Run, run: Run, submission_id: SubmissionId) -> bool:
        """A bisection has the base of its failed run: a base known to pass, and the pull requests that merged on it."""
        ahead = {member.submission_id for member in other.prs_ahead}
        if other.started_at is None or not ahead or other.tested_on != run.base or not ahead <= self.merged:
            return False
        return self._base_is_known_to_pass(other, submission_id)

    def _no_submission_is_lost(self, queue: Queue, decision: Decision) -> None:
        places = Counter[SubmissionId](submission_id for _, submission_id in queue.not_ready)
        places.update(submission_id for bucket in queue.waiting.values() for submission_id in bucket)
        places.update(queue.held)
        places.update(queue.active.submission_ids)
        places.update(submission_id for bisection in queue.bisections for submission_id in bisection.members)
        assert set(places) == set(queue.submissions), "a submission is in no list"
        assert all(count == 1 for count in places.values()), "a submission is in two lists"
        live = {submission_id for submission_id, state in self.states.items() if state not in TERMINAL_STATES}
        assert live == set(queue.submissions), "a submission was lost without a journal entry"
        assert {each.id for each in decision.concluded_submissions}.isdisjoint(queue.submissions)
        for submission in queue.submissions.values():
            assert submission.state is self.states[submission.id]

    def _no_run_starts_without_a_slot(self, before: Queue, after: Queue) -> None:
        for kinds, limit in (
            ((RunKind.BATCH, RunKind.BASE), after.config.concurrency),
            ((RunKind.BISECTION,), after.config.bisection_concurrency),
        ):
            active = [run for run in after.runs.values() if run.is_active and run.kind in kinds]
            started = [run for run in active if run.id not in before.runs]
            assert not started or len(active) <= limit, "a run started while all slots were taken"

    def _nothing_lands_in_a_paused_queue(self, before: Queue, after: Queue) -> None:
        intended = after.landing is not None and after.landing.is_intended
        was = before.landing is not None and before.landing.is_intended
        if intended and not was:
            assert not after.is_paused, "a landing was decided in a paused queue"
            assert after.counters.landings in self.read, "a landing was decided without reading its pull requests"
            self._nothing_more_is_required(after)
            self._members_have_what_the_host_requires(after, after.landing)
            if after.config.can_optimistically_merge:
                self.optimistic.add(after.counters.landings)

    def _nothing_more_is_required(self, queue: Queue) -> None:
        assert queue.landing is not None
        missing = set(required_statuses(queue).statuses) - set(queue.runs[queue.landing.run].required_statuses)
        assert not missing, f"a landing was decided without {missing}"

    def _members_have_what_the_host_requires(self, queue: Queue, landing: Landing | None) -> None:
        """In a read of this landing, and as far as the queue knows."""
        assert landing is not None
        members = [queue.submissions[submission_id] for submission_id in landing.submission_ids]
        unforced = {each.number for each in members if not each.forced}
        assert not any(each.pull_request.unmet_requirements for each in members if not each.forced), (
            "a landing was decided for a pull request that lacks what the host requires"
        )
        unmet = [
            {pull_request.number for pull_request in read.pull_requests if pull_request.unmet_requirements}
            for read in self.read[landing.number]
        ]
        assert any(unforced.isdisjoint(numbers) for numbers in unmet), (
            "a landing was decided though each read showed that the host requires more"
        )

    def _no_admitted_pull_request_lacks_consent(self, queue: Queue) -> None:
        for submission in queue.submissions.values():
            if submission.state is PullRequestState.NOT_READY or submission.forced:
                continue
            missing = {each.reason for each in submission.pull_request.unmet_requirements} & {*REVIEW_REASONS}
            locked = is_locked_by_landing(queue, submission.id)
            assert locked or not missing, f"{submission.number} is {submission.state} and lacks {missing}"

    def _shown_requirements_are_missing(self, submission: Submission, waiting: WaitReason) -> None:
        if waiting.reason not in REQUIREMENT_REASONS:
            assert not waiting.requirements, f"{submission.number} shows requirements that are not its reason"
            return
        first, *_ = waiting.requirements
        assert submission.state is PullRequestState.NOT_READY
        assert not submission.forced, f"{submission.number} was forced and waits for {waiting.reason}"
        assert first.reason is waiting.reason, f"{submission.number} shows {waiting.reason} before {first.reason}"
        assert not any(each.is_met for each in waiting.requirements), f"{submission.number} shows what it has"

    def _no_timeout_without_a_fresh_read(self, before: Queue, events: Sequence[Event], after: Queue) -> None:
        reads = {event.run: event.observed_at_revision for event in events if isinstance(event, ChecksObserved)}
        for run in after.runs.values():
            if run.timed_out and not before.runs[run.id].timed_out:
                overdue = before.runs[run.id].overdue_at_revision
                assert overdue is not None, "a run timed out before its time was noticed"
                assert reads[run.id] >= overdue, "a run timed out without a fresh read of its checks"

    def _every_submission_has_a_wait_reason(self, queue: Queue) -> None:
        for submission in queue.submissions.values():
            waiting = wait_reason(queue, submission, self.world.now)
            assert waiting.reason is not Reason.READY, f"{submission.number} waits without a reason"
            self._shown_requirements_are_missing(submission, waiting)
            check_wait_reason(queue, submission, waiting)

    def _no_batch_becomes_active_before_its_turn(self, before: Queue, after: Queue) -> None:
        """Of those that share an impacted target, a bisected one that waited goes first, and one that was submitted
        earlier and has waited less than ten seconds for the first answer about its mergeability."""
        now = self.world.now
        bisected = [each for each in before.submissions.values() if each.returned_from_bisection]
        first = {each.id for each in bisected if each.id in before.waiting.get(each.waiting_priority, ())}
        unanswered = [
            submission
            for submission in after.submissions.values()
            if after.state is QueueState.RUNNING
            and submission.reason is Reason.SUBMITTED
            and submission.state is PullRequestState.NOT_READY
            and admission.not_ready_reason(after, submission) is Reason.MERGEABILITY_UNKNOWN
            and now - submission.submitted_at < 10 * SECOND
        ]
        still_waiting = [
            after.submissions[each]
            for each in first
            if each in after.submissions and each in after.waiting.get(MIN_AGED_PRIORITY, ())
        ]
        for batch in after.active.batches:
            if batch.id in before.active.by_id or batch.urgent or not first.isdisjoint(batch.submission_ids):
                continue
            if any(each in before.bisected_submission_ids for each in batch.submission_ids):
                continue
            for member in (after.submissions[each] for each in batch.submission_ids):
                targets = lanes.impacted_targets_of(after, member)
                overtaken = [
                    each.number
                    for each in (*still_waiting, *unanswered)
                    if priority_rank(each, now) < priority_rank(member, now)
                    and lanes.impacted_targets_of(after, each).overlaps(targets)
                ]
                assert not overtaken, f"{member.number} became active before {overtaken}"

    def _every_stack_contains_the_prs_ahead(self, before: Queue, after: Queue) -> None:
        """A new run contains all pull requests ahead that share an impacted target with it, also transitively, or
        records which ones it excludes; it excludes some only if the queue speculates."""
        for at, batch in enumerate(after.active.batches):
            for run in (after.runs[run] for run in batch.runs):
                if run.id in before.runs or run.attempt or run.kind is not RunKind.BATCH:
                    continue
                reached = [batch]
                for other in reversed(after.active.batches[:at]):
                    if any(other.impacted_targets.overlaps(each.impacted_targets) for each in reached):
                        reached.append(other)
                ahead = {member.submission_id for member in run.prs_ahead if member.submission_id in after.submissions}
                needed = {submission_id for other in reached[1:] for submission_id in other.submission_ids}
                assert needed <= ahead | run.excluded_submission_ids, (
                    "a run left out a pull request ahead whose impacted target it shares"
                )
                assert ahead.isdisjoint(run.excluded_submission_ids), (
                    "a run contains a pull request that it claims to exclude"
                )
                speculates = after.config.speculation is Speculation.BEST_FIRST
                assert speculates or not run.excluded_submission_ids, (
                    "a run excludes a pull request in a queue that does not speculate"
                )

    def _pending_tasks_follow_from_stored_state(self, queue: Queue) -> None:
        """If the process is killed at any point, the same tasks are pending according to the stored state."""
        saved = msgspec.json.encode(queue)
        assert pending_tasks(msgspec.json.decode(saved, type=Queue)) == pending_tasks(queue)

    # Pushes at the host.

    def _check_pushes(self, before: Queue) -> None:
        pushes = self.world.host.pushes[self.pushes_checked :]
        self.pushes_checked = len(self.world.host.pushes)
        for push in pushes:
            self._only_what_was_tested_lands(push)
            self._every_member_passed_in_its_own_run(push)
            self._landed_members_are_in_the_queue(push, before)
            self._target_branch_keeps_passing(push)
            if not self._is_rebased(push):
                self.landed_as_tested.add(push.after)

    def _only_what_was_tested_lands(self, push: TargetBranchPush) -> None:
        commits = self.world.repository.commits
        after = commits[push.after]
        assert after.parents[0] == push.before or push.task.landing_method is LandingMethod.TESTED_COMMIT
        run = self.runs[push.task.run]
        results = self.world.checks.read_checks(self._checked_commit(run))
        assert run.status is RunStatus.SUCCEEDED, "landed from a run that did not succeed"
        assert all(results.get(name) is CheckState.PASSED for name in run.required_statuses), (
            "landed without its statuses"
        )
        tested = commits[self.world.host.test_branch_tips[run.id]]
        if push.task.landing_method is LandingMethod.PROVIDER_MERGE:
            expected = next(step for step in push.task.steps if after.parents[1] in commits[step.commit].parents)
            assert after.tree == expected.tree, "the host merged something else than what was tested"
        elif self._is_rebased(push):
            self._rebased_contents_are_the_tested_contents(push, run)
        else:
            assert (after.parents[0], after.tree) == (tested.parents[0], tested.tree), "landed something untested"
        first = push.task.steps[0]
        if push.task.landing_method is LandingMethod.TESTED_COMMIT:
            assert commits[first.commit].parents[0] == push.before, "landed on another commit than its base"

    def _checked_commit(self, run: Run) -> Sha:
        """The tip of the test branch, or the head with the same tree whose checks the run used."""
        tip, commits = self.world.host.test_branch_tips[run.id], self.world.repository.commits
        if not run.used_head_checks:
            return tip
        (member,) = run.stack
        assert commits[member.head].tree == commits[tip].tree, "used the checks of other contents"
        return member.head

    def _every_member_passed_in_its_own_run(self, push: TargetBranchPush) -> None:
        """Without optimistic merging no passed run behind a pull request replaces a passed run of its own."""
        if push.task.landing in self.optimistic:
            return
        for member in push.task.members:
            passed = (
                run for run in self.runs.values() if run.status is RunStatus.SUCCEEDED and member in run.tested_members
            )
            assert next(passed, None) is not None, f"{member.number} landed without a passed run of its own"

    def _is_rebased(self, push: TargetBranchPush) -> bool:
        if push.task.landing_method is LandingMethod.PROVIDER_MERGE:
            return False
        tested = self.world.repository.commits[self.world.host.test_branch_tips[push.task.run]]
        after = self.world.repository.commits[push.after]
        return (after.parents[0], after.tree) != (tested.parents[0], tested.tree)

    def _rebased_contents_are_the_tested_contents(self, push: TargetBranchPush, run: Run) -> None:
        repository = self.world.repository
        expected = repository.commits[push.before].files
        for member, step in zip(run.stack, run.chain, strict=True):
            if member in push.task.members:
                expected = apply_changes(expected, repository.diff(step.parent, step.commit))
        assert repository.commits[push.after].files == expected, "rebased something else than the tested contents"
        assert repository.contains(push.before, run.base), "rebased onto a target branch that lost the tested base"
        own = {member.submission_id for member in run.stack}
        others = [
            each
            for each in self.world.queue.target_branch.history
            if each.submission_id not in own and each.submission_id
        ]
        since = repository.ancestors(push.before) - repository.ancestors(run.base)
        own_targets = self._impacted_targets_of(run)
        for other in others:
            if other.commit in since:
                assert not any(other.impacted_targets.overlaps(each) for each in own_targets), (
                    "rebased with a pull request that shares an impacted target"
                )

    def _impacted_targets_of(self, run: Run) -> list[ImpactedTargets]:
        batches = [batch for batch in self.world.queue.active.batches if run.id in batch.runs]
        return [batch.impacted_targets for batch in batches]

    def _landed_members_are_in_the_queue(self, push: TargetBranchPush, before: Queue) -> None:
        for member in push.task.members:
            assert member.submission_id not in self.people.cancelled, f"{member.number} landed after its cancel"
            assert member.submission_id not in self.merged or push.task.landing_method is LandingMethod.PROVIDER_MERGE
            held = self.world.repository.ancestors(member.head)
            assert not self.people.removed & held, f"{member.number} brought back commits that had been removed"
            known = before.submissions.get(member.submission_id)
            if known is not None:
                assert known.pull_request.head == member.head, "another head landed than the one that was submitted"

    def _target_branch_keeps_passing(self, push: TargetBranchPush) -> None:
        """For whole landings only: where the provider merges one by one, the commits in between were never tested."""
        whole = self.world.repository.contains(push.after, push.task.members[-1].head)
        excused = self.people.moved_target_branch or self.flaky or self.world.check_rules.repaired_by
        if whole and not excused:
            files = self.world.repository.commits[push.after].files
            assert self.world.check_rules.passes(files), "the target branch fails"

    # At the end.

    def check_end(self) -> None:
        queue = self.world.queue
        for submission in queue.submissions.values():
            self._has_allowed_wait_reason(queue, submission)

    def _has_allowed_wait_reason(self, queue: Queue, submission: Submission) -> None:
        waiting = wait_reason(queue, submission, self.world.now)
        message = f"{submission.number} ({submission.state}) still waits for {waiting.reason} {waiting.prs}"
        if waiting.reason in REQUIREMENT_REASONS:
            assert self.world.host.pull_requests[submission.number].unmet_requirements, message
            return
        assert waiting.reason in ALLOWED_WAIT_REASONS, message
        if waiting.reason is Reason.WAITING_FOR_PRS_AHEAD:
            assert waiting.prs, message
        if waiting.reason is Reason.BASE_BROKEN and not self.flaky:
            assert not self.world.check_rules.passes(self.world.repository.commits[self.world.host.tip].files), message
