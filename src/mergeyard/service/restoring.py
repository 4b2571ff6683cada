"""Puts a queue together from what is stored: the whole of it, or only what another replica changed meanwhile."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import MsgspecError
from msgspec.structs import replace

from mergeyard.domain.ids import QueueId, Ticket
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.states import PrState
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.engine import lanes
from mergeyard.ports.store import Changed, Changes, LoadedQueue, StoreTrouble
from mergeyard.ports.writes import Fact
from mergeyard.service.shelving import SHELVES, Order, decode_run, decode_stay, decoders, order_of, stored_alone

Shelf = dict[str, Any]
"""What changed on it; None where nothing stands any more."""

NOTHING = Queue(id=QueueId(""), target=TargetBranch(name=""))


def restore(loaded: LoadedQueue) -> Queue:
    return _understood(
        NOTHING,
        Changes(
            version=loaded.version,
            facts=loaded.facts,
            stays=tuple(Changed(True, body) for body in loaded.stays),
            runs=tuple(Changed(True, body) for body in loaded.runs),
        ),
    )


def catch_up(queue: Queue, changes: Changes) -> Queue:
    """At the cost of what changed. Who is to be looked at is not stored: whoever knows of somebody keeps that, and
    looks at everybody who came through another, since news of one who was not here yet reached nobody."""
    caught = _understood(queue, changes)
    return _to_look_at(caught, map(Ticket, range(queue.counters.tickets + 1, caught.counters.tickets + 1)))


def begin_anew(loaded: LoadedQueue) -> Queue:
    """For one that was too far behind to catch up: of whom it had news is forgotten, so everybody is looked at."""
    queue = restore(loaded)
    return _to_look_at(queue, queue.submissions)


def _to_look_at(queue: Queue, tickets: Iterable[Ticket]) -> Queue:
    for ticket in tickets:
        if ticket in queue.submissions:
            queue = replace(queue, looks=queue.looks.put(ticket, queue.counters.turns))
    return queue


def _understood(queue: Queue, changes: Changes) -> Queue:
    try:
        return _caught_up(queue, changes)
    except (MsgspecError, LookupError) as error:
        words = f"What is stored about a queue cannot be understood any more ({error!r})"
        raise StoreTrouble(f"{words}. Stop Mergeyard, keep a copy of the database and restore a backup.") from error


def _caught_up(queue: Queue, changes: Changes) -> Queue:
    shelves = _read(changes.facts)
    caught = _with_facts(queue, shelves, changes.runs)
    changed = {stay.ticket: stay if live else None for stay, live in _read_stays(queue, shelves["targets"], changes)}
    placed = set(caught.placed)
    for ticket in sorted(placed.symmetric_difference(queue.placed) | changed.keys()):
        known = queue.submissions.get(ticket)
        if known is not None:
            caught = _take_away(caught, known)
        stay = changed.get(ticket, known)
        if stay is None:
            caught = replace(caught, looks=caught.looks.drop(ticket))
        else:
            caught = _put_stay(caught, stay, in_its_place=ticket in placed)
    return caught


def _with_facts(queue: Queue, shelves: Mapping[str, Shelf], runs: Iterable[Changed]) -> Queue:
    order: Order = shelves["order"].get("") or order_of(queue)
    batches = {str(batch.id): batch for batch in queue.line.batches} | shelves["batch"]
    bisections = {str(bisection.id): bisection for bisection in queue.bisections} | shelves["bisection"]
    known = {**queue.runs, **{run.id: run for run in (decode_run(run.body) for run in runs if run.live)}}
    return replace(
        shelves["queue"].get("") or stored_alone(queue),
        target=shelves["target"].get("", queue.target),
        landing=shelves["landing"].get("", queue.landing),
        experience=shelves["experience"].get("", queue.experience),
        line=lanes.arrange(batches[str(batch)] for batch in order.batches),
        bisections=tuple(bisections[str(bisection)] for bisection in order.bisections),
        runs={run: known[run] for run in order.runs},
        submissions=queue.submissions,
        tickets=queue.tickets,
        not_ready=queue.not_ready,
        waiting=queue.waiting,
        held=queue.held,
        looks=queue.looks,
    )


def _read(facts: Iterable[Fact]) -> dict[str, dict[str, Any]]:
    shelves: dict[str, dict[str, Any]] = {shelf: {} for shelf in SHELVES}
    for fact in facts:
        shelves[fact.shelf][fact.key] = None if fact.body is None else decoders[fact.shelf].decode(fact.body)
    return shelves


def _read_stays(queue: Queue, targets: Shelf, changes: Changes) -> Iterator[tuple[Submission, bool]]:
    """A list of targets stands apart from the stay that it belongs to."""
    for changed in changes.stays:
        stay = decode_stay(changed.body)
        known = queue.submissions.get(stay.ticket)
        yield replace(stay, targets=targets.get(str(stay.ticket), known and known.targets)), changed.live


def _take_away(queue: Queue, stay: Submission) -> Queue:
    """Out of every list that says where it stands."""
    waiting = dict(queue.waiting)
    bucket = waiting.pop(stay.priority, SortedMap[Ticket, None]()).drop(stay.ticket)
    return replace(
        queue,
        submissions=queue.submissions.drop(stay.ticket),
        tickets=queue.tickets.drop(stay.number),
        not_ready=queue.not_ready.drop((stay.not_ready_mark, stay.ticket)),
        waiting=waiting | {stay.priority: bucket} if bucket else waiting,
        held=queue.held.drop(stay.ticket),
    )


def _put_stay(queue: Queue, stay: Submission, *, in_its_place: bool) -> Queue:
    queue = replace(
        queue,
        submissions=queue.submissions.put(stay.ticket, stay),
        tickets=queue.tickets.put(stay.number, stay.ticket),
    )
    if stay.state is PrState.NOT_READY:
        return replace(queue, not_ready=queue.not_ready.put((stay.not_ready_mark, stay.ticket), None))
    if stay.hold is not None:
        return replace(queue, held=queue.held.put(stay.ticket, None))
    if in_its_place:
        return queue
    bucket = queue.waiting.get(stay.priority, SortedMap[Ticket, None]())
    return replace(queue, waiting={**queue.waiting, stay.priority: bucket.put(stay.ticket, None)})
