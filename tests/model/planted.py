"""Wrong engines, each with one small bug that somebody could make. The laws and stories must kill all of them."""

# pyright: reportPrivateUsage=false
# A bug may sit in any function, also in one that is nobody else's business.

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.events import ChecksSeen, PullSeen, TargetSeen
from mergeyard.domain.ids import BatchId, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.landing import Landed, Landing
from mergeyard.domain.line import Batch, Bisection, Line
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Run
from mergeyard.domain.states import RunStatus
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.engine import (
    accusing,
    batching,
    clock,
    decide,
    directing,
    dissolving,
    holding,
    judging,
    lanes,
    looking,
    merging,
    operating,
    order,
    places,
    proving,
    retaining,
    running,
    stacking,
    suspecting,
    unchanged,
    urgency,
)
from mergeyard.engine.accusing import Accusation
from mergeyard.engine.proving import BY_ITSELF, BaseVerdict
from mergeyard.engine.stacking import Stack


class Planted(Struct, frozen=True):
    bug: str
    right: Callable[..., Any]
    wrong: Callable[..., Any]


@contextmanager
def planted(bug: Planted) -> Generator[None]:
    """Put the wrong function wherever the right one is known."""
    rooms = [module for name, module in sys.modules.items() if name.startswith("mergeyard.engine.")]
    known = [(room, name) for room in rooms for name, value in list(vars(room).items()) if value is bug.right]
    steps = decide.STEPS
    decide.STEPS = tuple(bug.wrong if step is bug.right else step for step in steps)
    for room, name in known:
        setattr(room, name, bug.wrong)
    try:
        yield
    finally:
        decide.STEPS = steps
        for room, name in known:
            setattr(room, name, bug.right)


_misfit = holding.misfit
_record_pull = looking.record_pull
_next_stack = stacking.next_stack
_repeat = running.repeat
_see_checks = looking.see_checks


def blame_without_waiting(queue: Queue, batch: Batch) -> Accusation | None:
    run = holding.red_run(queue, batch)
    return None if run is None else Accusation(run, batch.tickets)


def trust_stale_runs(_queue: Queue, _batch: Batch, run: Run) -> Reason | None:
    return run.void


def forget_batchmates(queue: Queue, batch: Batch, run: Run) -> Reason | None:
    reason = _misfit(queue, batch, run)
    return None if reason is Reason.BATCHMATE_REMOVED else reason


def overlook_the_urgent(queue: Queue, batch: Batch, run: Run) -> Reason | None:
    reason = _misfit(queue, batch, run)
    return None if reason is Reason.SKIP_THE_LINE_INTERRUPTED else reason


def overlook_new_requirements(queue: Queue, batch: Batch, run: Run) -> Reason | None:
    reason = _misfit(queue, batch, run)
    return None if reason is Reason.REQUIRED_STATUSES_CHANGED else reason


def always_free(_queue: Queue) -> int:
    return 3


def only_direct_predecessors(line: Line, batch: Batch) -> tuple[BatchId, ...]:
    direct = lanes.direct_predecessors(line, batch)
    return tuple(other for other in line.ahead if other in direct)


def nobody_ahead(_line: Line, _batch: Batch) -> tuple[BatchId, ...]:
    return ()


def every_base_is_fine(_queue: Queue, _run: Run, _accused: object) -> BaseVerdict:
    return BaseVerdict.PROVEN


def green_is_green(queue: Queue, run: Run) -> Queue:
    return proving.prove(queue, run.base, BY_ITSELF)


def foreign_commits_do_not_matter(target: TargetBranch, base: Sha) -> tuple[Landed, ...]:
    commits = [landed.commit for landed in target.history]
    return target.history[commits.index(base) + 1 :] if base in commits else ()


def any_news_of_the_target(queue: Queue, event: TargetSeen) -> Queue:
    return _see_target(queue, replace(event, as_of=queue.counters.turns))


_see_target = looking.see_target


def any_news_of_pulls(queue: Queue, event: PullSeen, now: Instant) -> Queue:
    return _record_pull(queue, event.pull, event.as_of, now, event.targets)


def what_was_chosen_lands(_queue: Queue, _landing: Landing) -> bool:
    return True


def land_unread(queue: Queue, now: Instant) -> Queue:
    chosen = _choose(queue, now)
    if chosen.landing is None or chosen.landing.read or not chosen.landing.steps:
        return chosen
    return replace(chosen, landing=replace(chosen.landing, read=True))


_choose = merging.choose_landing


def open_while_paused(queue: Queue) -> bool:
    return not queue.target.look


def land_whatever_is_beneath(queue: Queue, batch: Batch) -> bool:
    return holding.passed(queue, batch)


def judge_while_paused(queue: Queue, now: Instant) -> Queue:
    for batch in holding.free_batches(queue):
        accusation = accusing.against(queue, batch)
        if accusation is not None and len(batch.tickets) == 1:
            return judging._judge_batch(queue, batch, accusation, now)
    return _judge(queue, now)


_judge = judging.judge


def every_tip_will_do(_target: TargetBranch, _run: Run) -> bool:
    return True


def retry_for_ever(_queue: Queue, run: Run) -> bool:
    return run.restarted or run.status is RunStatus.FAILED


def suspect_the_one_before(queue: Queue, bisection: Bisection, reason: Reason, now: Instant) -> Queue:
    wrong = bisection.tickets[bisection.red - 2]
    if wrong not in queue.submissions:
        return _fail_suspect(queue, bisection, reason, now)
    return _fail_suspect(queue, replace(bisection, red=bisection.red - 1), reason, now)


_fail_suspect = suspecting._fail


def convict_at_once(queue: Queue, bisection: Bisection, now: Instant) -> Queue:
    return _try_suspect(queue, replace(bisection, merged=frozenset(bisection.tickets)), now)


_try_suspect = suspecting.try_suspect


def keep_evidence(queue: Queue, ticket: Ticket, merged: bool, now: Instant) -> Queue:
    return _lose(queue, ticket, merged or ticket not in queue.submissions, now) if merged else queue


_lose = dissolving.lose


def never_release(queue: Queue, _now: Instant) -> Queue:
    return queue


def lose_those_sent_back(queue: Queue, _ticket: Ticket) -> Queue:
    return queue


def youngest_first(submission: Submission, _now: Instant) -> tuple[int, int]:
    return submission.priority, -submission.ticket


def nobody_ages(submission: Submission, _now: Instant) -> int:
    return submission.priority


def interrupt_without_end(batch: Batch) -> Batch:
    return batch


def overdue_is_failed(queue: Queue, event: ChecksSeen, now: Instant) -> Queue:
    run = queue.runs.get(event.run)
    if run is not None and run.overdue_since is not None:
        event = replace(event, as_of=max(event.as_of, run.overdue_since))
    return _see_checks(queue, event, now)


def leave_out_those_ahead(queue: Queue, batch: Batch, tip: Any, left_out: Any = frozenset()) -> Stack:
    stack = _next_stack(queue, batch, tip, left_out)
    own = len(batch.tickets)
    return Stack(stack.base, stack.members[len(stack.members) - own :])


def leave_out_in_silence(queue: Queue, batch: Batch, tip: Any, left_out: Any = frozenset()) -> Stack:
    return replace(_next_stack(queue, batch, tip, left_out), left_out=frozenset())


def count_every_bet(*_: object) -> bool:
    return True


def forget_whom_it_left_out(queue: Queue, run: Run) -> tuple[Queue, Any]:
    queue, again = _repeat(queue, run)
    return running.put(queue, replace(queue.runs[again], left_out=frozenset())), again


def believe_what_fitted_once(queue: Queue, _: Batch) -> Mapping[RunId, Run]:
    return queue.news.settled.runs if queue.news.settled is not None else {}


def clear_without_leave(queue: Queue, batch: Batch) -> bool:
    return any(holding.passed(queue, other) for other in holding.batches_behind(queue, batch))


def forget_the_removed(queue: Queue, event: TargetSeen) -> Queue:
    return _see_target(queue, replace(event, removed=frozenset()))


def clock_never_stops(queue: Queue, now: Instant) -> Queue:
    return queue if queue.running_since is not None else replace(queue, running_since=now)


def anybody_may_merge_directly(queue: Queue, submission: Submission) -> bool:
    return submission.exam is not None and submission.exam.tip == queue.target.tip


def join_any_batch(_submission: Submission, group: Any, size: int) -> bool:
    return not group.closed and len(group.members) < size


def never_full(_queue: Queue, _group: Any, _size: int, now: Instant) -> Instant:
    return Instant(now + 1)


def forgive_what_went_red(queue: Queue) -> Queue:
    return queue


def always_something_to_do(queue: Queue, _now: Instant) -> Queue:
    return replace(queue)


def a_skipped_check_clears(_queue: Queue, _run: Run, _ahead: BatchId) -> bool:
    return True


BUGS = (
    Planted("a step that is never done", retaining.release, always_something_to_do),
    Planted("blame without waiting for those ahead", accusing.against, blame_without_waiting),
    Planted("stale run trusted", holding.misfit, trust_stale_runs),
    Planted("cancel forgets batchmates", holding.misfit, forget_batchmates),
    Planted("the urgent one does not count as ahead", holding.misfit, overlook_the_urgent),
    Planted("a status required since does not count", holding.misfit, overlook_new_requirements),
    Planted("slots ignored", running.free_slots, always_free),
    Planted("bisection budget ignored", running.bisection_room, always_free),
    Planted("parallel dependencies not transitive", lanes._all_ahead, only_direct_predecessors),
    Planted("lanes never depend on each other", lanes._all_ahead, nobody_ahead),
    Planted("the base is never in doubt", proving.base_verdict, every_base_is_fine),
    Planted("a repair proves the base it repaired", proving.record_green, green_is_green),
    Planted("foreign commits do not matter", holding.landed_since, foreign_commits_do_not_matter),
    Planted("old news of the target believed", looking.see_target, any_news_of_the_target),
    Planted("old news of pull requests believed", looking.see_pull, any_news_of_pulls),
    Planted("timeout without a fresh look", looking.see_checks, overdue_is_failed),
    Planted("a chosen landing is never dropped", merging._still_right, what_was_chosen_lands),
    Planted("landing without reading once more", merging.choose_landing, land_unread),
    Planted("landing while paused", merging._open_to_landings, open_while_paused),
    Planted("landing over one that did not pass", merging.may_land, land_whatever_is_beneath),
    Planted("judging while paused", judging.judge, judge_while_paused),
    Planted("any tip counts as the tested one", holding.stands_on_tip, every_tip_will_do),
    Planted("retries without end", holding.to_be_repeated, retry_for_ever),
    Planted("bisection off by one", suspecting._fail, suspect_the_one_before),
    Planted("the suspect does not wait for its prefix", suspecting.try_suspect, convict_at_once),
    Planted("evidence survives the one who left", dissolving.lose, keep_evidence),
    Planted("held back for ever", retaining.release, never_release),
    Planted("whoever goes back is lost", places.to_waiting, lose_those_sent_back),
    Planted("the youngest goes first", order.rank, youngest_first),
    Planted("nobody ages", order.aged_priority, nobody_ages),
    Planted("interrupted without end", urgency._interrupted, interrupt_without_end),
    Planted("tested without those ahead", stacking.next_stack, leave_out_those_ahead),
    Planted("others left out in silence", stacking.next_stack, leave_out_in_silence),
    Planted("a bet counts before it has come true", holding.holds, count_every_bet),
    Planted("a repeated bet forgets whom it left out", running.repeat, forget_whom_it_left_out),
    Planted("what fitted once fits for ever", unchanged._fitted, believe_what_fitted_once),
    Planted("cleared without optimistic merging", holding.cleared, clear_without_leave),
    Planted("what was removed comes back", looking.see_target, forget_the_removed),
    Planted("the not-ready clock never stops", clock.start_or_stop, clock_never_stops),
    Planted("merged directly without statuses", directing.qualifies, anybody_may_merge_directly),
    Planted("noBatch ignored", batching._may_join, join_any_batch),
    Planted("no batch is ever ripe", batching._ripe_at, never_full),
    Planted("red while paused is held against it", operating._forget_what_went_red, forgive_what_went_red),
    Planted("a skipped check clears those ahead", holding._clears, a_skipped_check_clears),
)
