"""Names the state of pull requests: the only writer of states, and of the journal entries that go with them.

Facts come first. While a turn runs, only what leaves or enters the queue is named at once; what stands in the
line or in a bisection is named when the turn ends, from where it stands and what its runs say.
"""

from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber, RunId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import OURSELVES, Entry, PrChanged
from mergeyard.domain.line import Batch, Bisection
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Run
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.domain.transitions import check_pr
from mergeyard.engine import holding, unchanged


def tell(queue: Queue, entry: Entry) -> Queue:
    journal = queue.news.journal
    return replace(queue, news=replace(queue.news, journal=journal.put(len(journal), entry)))


def rename(
    queue: Queue,
    ticket: Ticket,
    to: PrState,
    reason: Reason,
    now: Instant,
    *,
    actor: str = OURSELVES,
    upon: tuple[PrNumber, ...] = (),
    words: str = "",
) -> Queue:
    submission = queue.submissions[ticket]
    check_pr(submission.state, to, reason)
    renamed = replace(submission, state=to, reason=reason, state_changed_at=now, upon=upon, words=words)
    entry = PrChanged(
        at=now,
        ticket=ticket,
        number=submission.number,
        source=submission.state,
        to=to,
        reason=reason,
        actor=actor,
        run=submission.run,
        upon=upon,
        words=words,
    )
    return tell(replace(queue, submissions=queue.submissions.put(ticket, renamed)), entry)


def enter(queue: Queue, submission: Submission, now: Instant, actor: str) -> Queue:
    entry = PrChanged(
        at=now,
        ticket=submission.ticket,
        number=submission.number,
        source=None,
        to=submission.state,
        reason=submission.reason,
        actor=actor,
    )
    return tell(
        replace(
            queue,
            submissions=queue.submissions.put(submission.ticket, submission),
            tickets=queue.tickets.put(submission.number, submission.ticket),
        ),
        entry,
    )


def set_back(queue: Queue, ticket: Ticket, reason: Reason, now: Instant, actor: str = OURSELVES) -> Queue:
    """It has to be tested again; one that was not tested yet has nothing to lose."""
    if queue.submissions[ticket].state in (PrState.NOT_READY, PrState.PENDING):
        return queue
    return rename(queue, ticket, PrState.PENDING, reason, now, actor=actor)


def name_all(queue: Queue, now: Instant) -> Queue:
    if unchanged.all_under_test(queue):
        return queue
    for batch in holding.free_batches(queue):
        queue = _name_batch(queue, batch, now)
    for bisection in queue.bisections:
        queue = _name_bisection(queue, bisection, now)
    return queue


def _name_batch(queue: Queue, batch: Batch, now: Instant) -> Queue:
    run = holding.current_run(queue, batch)
    if holding.passed(queue, batch):
        return _name_each(queue, batch.tickets, PrState.TESTS_PASSED, Reason.TEST_RUN_PASSED, run, now)
    if holding.cleared(queue, batch):
        return _name_each(queue, batch.tickets, PrState.TESTS_PASSED, Reason.SUCCESSOR_PASSED, run, now)
    if run is None or run.restarted or run.status is RunStatus.PREPARING:
        return queue
    if holding.failed_for_good(queue, run):
        return _name_each(queue, batch.tickets, PrState.PENDING_FAILURE, run.failure, run, now)
    if run.status is RunStatus.FAILED:
        return queue
    return _name_each(queue, batch.tickets, PrState.TESTING, Reason.TEST_RUN_STARTED, run, now)


def _name_bisection(queue: Queue, bisection: Bisection, now: Instant) -> Queue:
    under_test = dict[Ticket, Run]()
    for run in holding.active_runs(queue, bisection.runs):
        if run.status is RunStatus.IN_PROGRESS:
            under_test.update((member.ticket, run) for member in run.tested)
    for ticket in bisection.members:
        run = under_test.get(ticket)
        if run is not None:
            queue = _name_each(queue, (ticket,), PrState.TESTING, Reason.TEST_RUN_STARTED, run, now)
        elif queue.submissions[ticket].state is PrState.TESTING:
            queue = rename(queue, ticket, PrState.PENDING_FAILURE, bisection.red_run.failure, now)
    return queue


def _name_each(
    queue: Queue, tickets: tuple[Ticket, ...], to: PrState, reason: Reason, run: Run | None, now: Instant
) -> Queue:
    for ticket in tickets:
        if run is not None and run.pushed:
            queue = _show_run(queue, ticket, run.id)
        queue = _step_to(queue, ticket, to, reason, now)
    return queue


def _step_to(queue: Queue, ticket: Ticket, to: PrState, reason: Reason, now: Instant) -> Queue:
    """Walk the table's edges: much can happen between two turns, and the timeline skips nothing."""
    state = queue.submissions[ticket].state
    if state is to:
        return queue
    if to is PrState.TESTING and state is PrState.PENDING_FAILURE:
        again = Reason.BISECTION if ticket in queue.bisected else Reason.TESTS_RESTARTED
        queue = rename(queue, ticket, PrState.PENDING, again, now)
    if to is PrState.PENDING_FAILURE and state is PrState.PENDING:
        queue = rename(queue, ticket, PrState.TESTING, Reason.TEST_RUN_STARTED, now)
    return rename(queue, ticket, to, reason, now)


def _show_run(queue: Queue, ticket: Ticket, run: RunId) -> Queue:
    submission = queue.submissions[ticket]
    if submission.run == run:
        return queue
    return replace(queue, submissions=queue.submissions.put(ticket, replace(submission, run=run, was_in_run=True)))
