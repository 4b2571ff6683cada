"""Reads a history out of stays and runs as they were stored."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.pulls import Submission
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import PrState
from mergeyard.sim.replaying.history import Arrival, End, History, Order, Place, Setting, Tried

TESTS_SAID_SO = {Reason.TEST_RUN_FAILED, Reason.TEST_RUN_TIMEOUT, Reason.FAILED_BY_OPTIMIZATION}
MERGED_BY_US = {Reason.MERGED_BY_QUEUE, Reason.TREE_MISMATCH}


class Period(Struct, frozen=True, kw_only=True):
    """What is known of a time beside stays and runs."""

    since: Instant
    until: Instant
    settings: tuple[Setting, ...]
    orders: tuple[Order, ...] = ()
    cut: bool = False
    unread: int = 0


def read(stays: Sequence[Submission], runs: Sequence[Run], period: Period) -> History:
    admitted = [stay for stay in stays if stay.admitted_at is not None and stay.state is not PrState.NOT_READY]
    came = sorted(admitted, key=lambda stay: (stay.admitted_at, stay.ticket))
    places = {stay.ticket: place for place, stay in enumerate(came)}
    started = sorted(runs, key=lambda run: (run.started_at or 0, run.decided_at or 0))
    return History(
        since=period.since,
        until=period.until,
        arrivals=tuple(_arrivals(came, period)),
        runs=tuple(_tried(run, places) for run in started if _is_ours(run, places)),
        settings=period.settings,
        orders=period.orders,
        pushes=tuple(_pushes(came, started, period.since)),
        cut=period.cut,
        unread=period.unread,
    )


def _arrivals(came: Sequence[Submission], period: Period) -> Iterator[Arrival]:
    last = dict[PrNumber, Place]()
    for place, stay in enumerate(came):
        end, at = _end(stay), stay.admitted_at or period.since
        yield Arrival(
            number=stay.number,
            head=stay.pull.head,
            at=at,
            author=stay.pull.author,
            priority=stay.priority,
            no_batch=stay.no_batch,
            targets=stay.targets,
            stands_upon=tuple(sorted(last[other] for other in stay.pull.contains if other in last)),
            after=last.get(stay.number),
            end=end,
            ended_at=period.until if end is End.STAYED else stay.state_changed_at,
            counted=at >= period.since and end is not End.STAYED,
        )
        last[stay.number] = place


def _end(stay: Submission) -> End:
    match stay.state:
        case PrState.MERGED if stay.reason in MERGED_BY_US:
            return End.MERGED
        case PrState.FAILED if stay.reason in TESTS_SAID_SO:
            return End.FAILED
        case PrState.FAILED:
            return End.BESIDE
        case PrState.MERGED if stay.reason is Reason.MERGED_DIRECTLY:
            return End.BESIDE
        case PrState.MERGED | PrState.CANCELLED:
            return End.LEFT
        case _:
            return End.STAYED


def _is_ours(run: Run, places: Mapping[Ticket, Place]) -> bool:
    """Somebody whom it tested is known, or it tested the target itself."""
    return not run.tests or any(member.ticket in places for member in run.tested)


def _tried(run: Run, places: Mapping[Ticket, Place]) -> Tried:
    stack = tuple(places[member.ticket] for member in run.stack if member.ticket in places)
    return Tried(
        stack=stack,
        tests=sum(member.ticket in places for member in run.tested),
        base=run.base,
        started_at=run.started_at or Instant(0),
        decided_at=run.decided_at or Instant(0),
        status=run.status,
        whole=len(stack) == len(run.stack),
    )


def _pushes(came: Sequence[Submission], started: Sequence[Run], since: Instant) -> Iterator[Instant]:
    """The first run of the line upon a base that is no landing of ours tells of it. What all began with was no push."""
    known = {stay.merged_sha for stay in came}
    in_line = (run for run in started if run.kind is RunKind.LINE and run.started_at is not None)
    for first, run in enumerate(in_line):
        if first and run.base not in known and run.started_at is not None and run.started_at >= since:
            yield run.started_at
        known.add(run.base)
