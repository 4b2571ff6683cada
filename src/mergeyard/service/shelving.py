"""Takes a queue apart into what is stored.

Only what changed between two turns is written. Values never change in place, so a part that is the same object
as before is the same part; where each pull request stands is not stored at all, but read off the rest. Nor is who
is to be looked at: after a start everybody is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.experience import Experience
from mergeyard.domain.ids import BatchId, RunId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import Record
from mergeyard.domain.landing import Landing
from mergeyard.domain.line import Batch, Bisection, Line
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.domain.targets import Targets
from mergeyard.ports.writes import Fact, RunRow, SaveTurn, StayRow
from mergeyard.service import long_targets
from mergeyard.service.written_targets import WrittenTargets

Stays = Mapping[Ticket, Submission]

encode = msgspec.json.Encoder().encode
EMPTY: SortedMap[Any, Any] = SortedMap()


class Order(Struct, frozen=True):
    """In which order the parts stand that are stored one by one."""

    batches: tuple[BatchId, ...] = ()
    bisections: tuple[BatchId, ...] = ()
    runs: tuple[RunId, ...] = ()


SHELVES: Mapping[str, Any] = {
    "queue": Queue,
    "order": Order,
    "target": TargetBranch,
    "landing": Landing,
    "experience": Experience,
    "batch": Batch,
    "bisection": Bisection,
    "targets": Targets,
}
"""What kind of fact stands where; of the queue itself only what is on no other shelf."""

decoders = {shelf: msgspec.json.Decoder(kind) for shelf, kind in SHELVES.items()}
decode_stay = msgspec.json.Decoder(Submission).decode
decode_run = msgspec.json.Decoder(Run).decode
decode_record = msgspec.json.Decoder[Record](Record).decode


def changes(
    before: Queue,
    after: Queue,
    version: int,
    ended: Iterable[Submission],
    let_go: Iterable[Run],
    now: Instant,
    at_hand: Sequence[WrittenTargets] = (),
) -> SaveTurn:
    """What must be written so that `after` is stored where `before` was."""
    old = before.submissions.apart_from(after.submissions)
    new = after.submissions.apart_from(before.submissions)
    changed = {ticket: stay for ticket, stay in new.items() if old.get(ticket) is not stay}
    gone = old.keys() - new.keys()
    return SaveTurn(
        queue=after.id,
        version=version,
        facts=(*_changed_facts(before, after), *_changed_targets(old, new, (*changed, *gone), at_hand)),
        stays=(
            *(stay_row(stay) for stay in changed.values()),
            *(stay_row(stay, now) for stay in ended),
        ),
        runs=(*_changed_runs(before, after), *(run_row(run, now) for run in let_go)),
    )


def stay_row(stay: Submission, ended_at: Instant | None = None) -> StayRow:
    return StayRow(
        ticket=stay.ticket,
        number=stay.number,
        branch=stay.pull.branch,
        state=stay.state,
        submitted_at=stay.submitted_at,
        ended_at=ended_at,
        live=ended_at is None,
        body=encode(replace(stay, targets=None)),
    )


def run_row(run: Run, ended_at: Instant | None = None) -> RunRow:
    return RunRow(
        id=run.id,
        status=run.status,
        tested=run.tests,
        tip=run.tip if run.started_at is not None and run.chain else None,
        started_at=run.started_at,
        decided_at=run.decided_at,
        ended_at=ended_at,
        live=ended_at is None,
        body=encode(run),
    )


def _changed_facts(before: Queue, after: Queue) -> Iterator[Fact]:
    known = dict(_parts(before))
    for place, part in _parts(after):
        if known.pop(place, None) is not part:
            yield Fact(*place, encode(part))
    yield Fact("queue", "", encode(stored_alone(after)))
    if (order := order_of(after)) != order_of(before):
        yield Fact("order", "", encode(order))
    for shelf, key in known:
        yield Fact(shelf, key, None)


def _parts(queue: Queue) -> Iterator[tuple[tuple[str, str], Any]]:
    yield ("target", ""), queue.target
    if queue.landing is not None:
        yield ("landing", ""), queue.landing
    yield ("experience", ""), queue.experience
    for batch in queue.line.batches:
        yield ("batch", str(batch.id)), batch
    for bisection in queue.bisections:
        yield ("bisection", str(bisection.id)), bisection


def order_of(queue: Queue) -> Order:
    return Order(
        batches=tuple(batch.id for batch in queue.line.batches),
        bisections=tuple(bisection.id for bisection in queue.bisections),
        runs=tuple(queue.runs),
    )


def stored_alone(queue: Queue) -> Queue:
    return replace(
        queue,
        target=TargetBranch(name=queue.target.name),
        landing=None,
        experience=Experience(),
        line=Line(),
        bisections=(),
        runs={},
        submissions=EMPTY,
        tickets=EMPTY,
        not_ready=EMPTY,
        waiting={},
        held=EMPTY,
        looks=EMPTY,
    )


def _changed_runs(before: Queue, after: Queue) -> Iterator[RunRow]:
    for run in after.runs.values():
        if before.runs.get(run.id) is not run:
            yield run_row(run)


def _changed_targets(
    old: Stays, new: Stays, tickets: Iterable[Ticket], at_hand: Sequence[WrittenTargets]
) -> Iterator[Fact]:
    """A list of targets may be long and seldom changes, so it is stored apart from the stay that it belongs to."""
    for ticket in tickets:
        before, after = _targets_of(old.get(ticket)), _targets_of(new.get(ticket))
        if after is not before:
            yield Fact("targets", str(ticket), None if after is None else _written(after, at_hand))


def _written(targets: Targets, at_hand: Sequence[WrittenTargets]) -> bytes:
    known = next((each.body for each in at_hand if each.targets is targets), None)
    return known or long_targets.encoded(targets)


def _targets_of(stay: Submission | None) -> Targets | None:
    return None if stay is None else stay.targets
