"""The laws of the engine, checked after every turn from the outside: what the host did, what was told, what is."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from mergeyard.domain.config import LandingMethod, Speculation
from mergeyard.domain.decision import Decision
from mergeyard.domain.events import ChecksSeen, Event, LandingRead
from mergeyard.domain.ids import RunId, Sha, Ticket
from mergeyard.domain.journal import PrChanged
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import TERMINAL, CheckState, PrState, RunStatus
from mergeyard.domain.targets import Targets
from mergeyard.domain.transitions import check_pr
from mergeyard.engine import forgetting, naming
from mergeyard.engine.decide import STEPS, decide
from mergeyard.engine.explaining import explain
from mergeyard.engine.requirements import required
from mergeyard.engine.work import work
from mergeyard.sim.place import Push
from mergeyard.sim.repository import patched
from mergeyard.sim.world import World
from tests.model.people import People

GUILT = frozenset({Reason.TEST_RUN_FAILED, Reason.TEST_RUN_TIMEOUT, Reason.FAILED_BY_OPTIMIZATION})
FAIR_WAITS = frozenset({Reason.NOT_MERGEABLE, Reason.BASE_BROKEN, Reason.WAITING_FOR_PRS_AHEAD})


class Laws:
    def __init__(self, world: World, people: People, *, flaky: bool) -> None:
        self.world = world
        self.people = people
        self.flaky = flaky
        self.runs: dict[RunId, Run] = {}
        self.states: dict[Ticket, PrState] = {}
        self.merged: set[Ticket] = set()
        self.read: set[int] = set()
        """The landings whose pull requests were read once more."""
        self.optimistic: set[int] = set()
        """The landings that were decided under optimistic merging."""
        self.landed_as_tested = set(world.queue.target.proofs)
        self.pushes_checked = 0

    # After every turn.

    def check_turn(self, before: Queue, events: Sequence[Event], decision: Decision) -> None:
        after = decision.queue
        self.read.update(event.landing for event in events if isinstance(event, LandingRead))
        self.runs.update(after.runs)
        self.runs.update((run.id, run) for run in decision.finished)
        self._check_pushes(before)
        self._settled_stays_settled(after)
        for entry in decision.journal:
            if isinstance(entry, PrChanged):
                self._states_move_along_the_table(entry)
                self._only_the_guilty_fail(entry, after)
        self._nobody_is_lost(after, decision)
        self._no_run_starts_without_a_slot(before, after)
        self._nothing_lands_in_a_paused_queue(before, after)
        self._time_alone_is_no_verdict(before, events, after)
        self._everybody_says_what_it_waits_for(after)
        self._every_stack_is_what_stands_ahead(before, after)
        if after.counters.turns % 16 == 0:
            self._work_is_a_function_of_the_facts(after)

    def _settled_stays_settled(self, queue: Queue) -> None:
        """Also for steps that leave out what is the same as before: between turns nothing is."""
        assert decide(queue, (), self.world.now).queue is queue, "deciding again without news changed the queue"
        undone = [step.__qualname__ for step in STEPS if step(queue, self.world.now) is not queue]
        assert not undone, f"these had something left to do: {undone}"
        assert naming.name_all(queue, self.world.now) is queue, "somebody is not named as it stands"
        assert forgetting.forget(queue) is queue, "something is remembered that nothing depends on"

    def _states_move_along_the_table(self, entry: PrChanged) -> None:
        known = self.states.get(entry.ticket)
        assert known == entry.source, f"{entry.number} was {known}, not {entry.source}"
        assert known not in TERMINAL, f"{entry.number} was {known}, which is final"
        check_pr(entry.source, entry.to, entry.reason)
        self.states[entry.ticket] = entry.to
        if entry.to is PrState.MERGED:
            assert entry.ticket not in self.merged, f"{entry.number} merged twice"
            assert entry.ticket not in self.people.cancelled, f"{entry.number} merged after its cancel was confirmed"
            self.merged.add(entry.ticket)

    def _only_the_guilty_fail(self, entry: PrChanged, queue: Queue) -> None:
        self._whoever_leaves_really_changed(entry)
        if entry.reason is Reason.CONTAINS_REMOVED_COMMIT:
            self._something_was_removed(entry)
        if entry.to is not PrState.FAILED or entry.reason not in GUILT:
            return
        assert not queue.paused, f"{entry.number} failed for a test in a paused queue"
        evidence = [run for run in self.runs.values() if self._convicts(run, entry.ticket)]
        assert evidence, f"{entry.number} failed without a red run upon PRs that merged"
        assert any(self._base_was_seen_green(run, entry.ticket) for run in evidence), (
            f"{entry.number} failed on a base that nobody has seen green"
        )

    def _whoever_leaves_really_changed(self, entry: PrChanged) -> None:
        pull = self.world.host.pulls[entry.number]
        if entry.reason is Reason.PR_PUSHED:
            assert pull.head != self.world.ended[entry.number].pull.head, (
                f"{entry.number} left for a push that nobody made"
            )
        if entry.reason is Reason.PR_CLOSED:
            assert not pull.is_open, f"{entry.number} left for a close that nobody made"

    def _something_was_removed(self, entry: PrChanged) -> None:
        head = self.world.ended[entry.number].pull.head
        held = self.world.repository.ancestors(head)
        assert self.people.ever_removed & held, f"{entry.number} failed for a commit that nobody removed"

    def _convicts(self, run: Run, ticket: Ticket) -> bool:
        if run.status is not RunStatus.FAILED or run.void is not None:
            return False
        accused = ticket in {member.ticket for member in run.tested}
        return accused and all(member.ticket in self.merged | {ticket} for member in run.stack)

    def _base_was_seen_green(self, run: Run, ticket: Ticket) -> bool:
        bases = {run.base, run.tested_upon}
        if bases & self.landed_as_tested or any(map(self._holds_what_passed, bases)):
            return True
        return any(
            self._green_upon(other, run, ticket) or self._pinned_by(other, run, ticket) for other in self.runs.values()
        )

    def _holds_what_passed(self, commit: Sha) -> bool:
        """Whoever made the commit: its contents are those of a run that passed, or of a head that did by itself."""
        commits, heads = self.world.repository.commits, (pull.head for pull in self.world.host.pulls.values())
        green = {run.tip for run in self.runs.values() if run.status is RunStatus.SUCCEEDED}
        green.update(filter(self.world.checks.passed, heads))
        return commits[commit].tree in {commits[each].tree for each in green}

    def _green_upon(self, other: Run, run: Run, ticket: Ticket) -> bool:
        same_base = other.base in (run.base, run.tested_upon)
        alone = ticket not in {member.ticket for member in other.stack}
        return other.status is RunStatus.SUCCEEDED and same_base and alone

    def _pinned_by(self, other: Run, run: Run, ticket: Ticket) -> bool:
        """A bisection stands on what its failed run stood on: a base seen green, and those that merged upon it."""
        beneath = {member.ticket for member in other.beneath}
        if other.started_at is None or not beneath or other.tested_upon != run.base or not beneath <= self.merged:
            return False
        return self._base_was_seen_green(other, ticket)

    def _nobody_is_lost(self, queue: Queue, decision: Decision) -> None:
        places = Counter[Ticket](ticket for _, ticket in queue.not_ready)
        places.update(ticket for bucket in queue.waiting.values() for ticket in bucket)
        places.update(queue.held)
        places.update(queue.line.tickets)
        places.update(ticket for bisection in queue.bisections for ticket in bisection.members)
        assert set(places) == set(queue.submissions), "somebody stands nowhere"
        assert all(count == 1 for count in places.values()), "somebody stands in two places"
        live = {ticket for ticket, state in self.states.items() if state not in TERMINAL}
        assert live == set(queue.submissions), "somebody was lost without a word"
        assert {each.ticket for each in decision.concluded}.isdisjoint(queue.submissions)
        for submission in queue.submissions.values():
            assert submission.state is self.states[submission.ticket]

    def _no_run_starts_without_a_slot(self, before: Queue, after: Queue) -> None:
        for kinds, limit in (
            ((RunKind.LINE, RunKind.BARE), after.config.concurrency),
            ((RunKind.BISECTION,), after.config.bisection_concurrency),
        ):
            active = [run for run in after.runs.values() if run.active and run.kind in kinds]
            started = [run for run in active if run.id not in before.runs]
            assert not started or len(active) <= limit, "a run started while all slots were taken"

    def _nothing_lands_in_a_paused_queue(self, before: Queue, after: Queue) -> None:
        intended = after.landing is not None and after.landing.intended
        was = before.landing is not None and before.landing.intended
        if intended and not was:
            assert not after.paused, "a landing was decided in a paused queue"
            assert after.counters.landings in self.read, "a landing was decided without reading its pull requests"
            self._nothing_more_is_required(after)
            if after.config.can_optimistically_merge:
                self.optimistic.add(after.counters.landings)

    def _nothing_more_is_required(self, queue: Queue) -> None:
        assert queue.landing is not None
        if queue.landing.run is not None:
            missing = set(required(queue).statuses) - set(queue.runs[queue.landing.run].required)
            assert not missing, f"a landing was decided without {missing}"

    def _time_alone_is_no_verdict(self, before: Queue, events: Sequence[Event], after: Queue) -> None:
        looks = {event.run: event.as_of for event in events if isinstance(event, ChecksSeen)}
        for run in after.runs.values():
            if run.timed_out and not before.runs[run.id].timed_out:
                overdue = before.runs[run.id].overdue_since
                assert overdue is not None, "a run timed out before its time was noticed"
                assert looks[run.id] >= overdue, "a run timed out without a fresh look"

    def _everybody_says_what_it_waits_for(self, queue: Queue) -> None:
        for submission in queue.submissions.values():
            waiting = explain(queue, submission)
            assert waiting.reason is not Reason.READY, f"{submission.number} waits for nothing that it could name"

    def _every_stack_is_what_stands_ahead(self, before: Queue, after: Queue) -> None:
        """Whoever starts stands upon all those ahead that share a target with it, however far back, or says without
        whom; and nobody goes without others unless the queue speculates."""
        for at, batch in enumerate(after.line.batches):
            for run in (after.runs[run] for run in batch.runs):
                if run.id in before.runs or run.attempt or run.kind is not RunKind.LINE:
                    continue
                reached = [batch]
                for other in reversed(after.line.batches[:at]):
                    if any(other.targets.share_with(each.targets) for each in reached):
                        reached.append(other)
                beneath = {member.ticket for member in run.beneath if member.ticket in after.submissions}
                needed = {ticket for other in reached[1:] for ticket in other.tickets}
                assert needed <= beneath | run.left_out, "a run left out somebody ahead whose target it shares"
                assert beneath.isdisjoint(run.left_out), "a run holds somebody whom it says that it leaves out"
                bets = after.config.speculation is Speculation.BEST_FIRST
                assert bets or not run.left_out, "a run left out somebody in a queue that does not speculate"

    def _work_is_a_function_of_the_facts(self, queue: Queue) -> None:
        """Kill the process anywhere: from what was saved the same work is outstanding."""
        saved = msgspec.json.encode(queue)
        assert work(msgspec.json.decode(saved, type=Queue)) == work(queue)

    # What the host did.

    def _check_pushes(self, before: Queue) -> None:
        pushes = self.world.host.pushes[self.pushes_checked :]
        self.pushes_checked = len(self.world.host.pushes)
        for push in pushes:
            self._only_what_was_tested_lands(push)
            self._everybody_passed_for_itself(push)
            self._whoever_lands_is_in_the_queue(push, before)
            self._the_target_stays_green(push)
            if not self._composed(push):
                self.landed_as_tested.add(push.after)

    def _only_what_was_tested_lands(self, push: Push) -> None:
        commits = self.world.repository.commits
        after = commits[push.after]
        assert after.parents[0] == push.before or push.task.method is LandingMethod.TESTED_COMMIT
        if push.task.run is None:
            head = push.task.members[0].head
            assert after.tree == commits[head].tree
            assert self.world.repository.contains(head, push.before)
            assert self.world.checks.passed(head), "merged directly without a status"
            return
        run = self.runs[push.task.run]
        results = self.world.checks.seen(self.world.host.tested_tips[run.id])
        assert run.status is RunStatus.SUCCEEDED, "landed from a run that did not succeed"
        assert all(results.get(name) is CheckState.PASSED for name in run.required), "landed without its statuses"
        tested = commits[self.world.host.tested_tips[run.id]]
        if push.task.method is LandingMethod.PROVIDER_MERGE:
            expected = next(step for step in push.task.steps if after.parents[1] in commits[step.commit].parents)
            assert after.tree == expected.tree, "the host merged something else than what was tested"
        elif self._composed(push):
            self._the_tested_contents_were_put_on_the_tip(push, run)
        else:
            assert (after.parents[0], after.tree) == (tested.parents[0], tested.tree), "landed something untested"
        first = push.task.steps[0]
        if push.task.method is LandingMethod.TESTED_COMMIT:
            assert commits[first.commit].parents[0] == push.before, "landed upon another commit than it stood on"

    def _everybody_passed_for_itself(self, push: Push) -> None:
        """Without optimistic merging no green run behind makes up for a red one of its own."""
        if push.task.landing in self.optimistic or push.task.run is None:
            return
        for member in push.task.members:
            green = (run for run in self.runs.values() if run.status is RunStatus.SUCCEEDED and member in run.tested)
            assert next(green, None) is not None, f"{member.number} landed without a green run of its own"

    def _composed(self, push: Push) -> bool:
        if push.task.run is None or push.task.method is LandingMethod.PROVIDER_MERGE:
            return False
        tested = self.world.repository.commits[self.world.host.tested_tips[push.task.run]]
        after = self.world.repository.commits[push.after]
        return (after.parents[0], after.tree) != (tested.parents[0], tested.tree)

    def _the_tested_contents_were_put_on_the_tip(self, push: Push, run: Run) -> None:
        repository = self.world.repository
        expected = repository.commits[push.before].files
        for member, step in zip(run.stack, run.chain, strict=True):
            if member in push.task.members:
                expected = patched(expected, repository.changes(step.parent, step.commit))
        assert repository.commits[push.after].files == expected, "composed something else than the tested contents"
        assert repository.contains(push.before, run.base), "composed upon a target that lost the tested base"
        own = {member.ticket for member in run.stack}
        theirs = [each for each in self.world.queue.target.history if each.ticket not in own and each.ticket]
        since = repository.ancestors(push.before) - repository.ancestors(run.base)
        mine = self.targets_of(run)
        for other in theirs:
            if other.commit in since:
                assert not any(other.targets.share_with(each) for each in mine), (
                    "composed with one that shares a target"
                )

    def targets_of(self, run: Run) -> list[Targets]:
        batches = [batch for batch in self.world.queue.line.batches if run.id in batch.runs]
        return [batch.targets for batch in batches]

    def _whoever_lands_is_in_the_queue(self, push: Push, before: Queue) -> None:
        for member in push.task.members:
            assert member.ticket not in self.people.cancelled, f"{member.number} landed after its cancel"
            assert member.ticket not in self.merged or push.task.method is LandingMethod.PROVIDER_MERGE
            held = self.world.repository.ancestors(member.head)
            assert not self.people.removed & held, f"{member.number} brought back what somebody had removed"
            known = before.submissions.get(member.ticket)
            if known is not None:
                assert known.pull.head == member.head, "another head landed than the one that was submitted"

    def _the_target_stays_green(self, push: Push) -> None:
        """With the whole landing: where the provider merges one by one, what lies between was never tested."""
        whole = self.world.repository.contains(push.after, push.task.members[-1].head)
        excused = self.people.touched_the_target or self.flaky or self.world.truth.repairs
        if whole and not excused:
            files = self.world.repository.commits[push.after].files
            assert self.world.truth.green(files), "the target is red"

    # In the end.

    def check_end(self) -> None:
        queue = self.world.queue
        for submission in queue.submissions.values():
            self._may_still_wait(queue, submission)

    def _may_still_wait(self, queue: Queue, submission: Submission) -> None:
        waiting = explain(queue, submission)
        story = f"{submission.number} ({submission.state}) still waits for {waiting.reason} {waiting.prs}"
        assert waiting.reason in FAIR_WAITS, story
        if waiting.reason is Reason.WAITING_FOR_PRS_AHEAD:
            assert waiting.prs, story
        if waiting.reason is Reason.BASE_BROKEN and not self.flaky:
            assert not self.world.truth.green(self.world.repository.commits[self.world.host.tip].files), story
