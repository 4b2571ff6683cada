"""Forms the next batch from the waiting: who goes together, and when to stop waiting for more."""

from collections.abc import Sequence
from itertools import islice

from msgspec import Struct

from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import MINUTE, Instant, earliest, later
from mergeyard.domain.line import Batch
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.targets import Targets
from mergeyard.engine import lanes, order

NEIGHBOURS = 4
"""How many batches' worth of the waiting are looked through: whoever stands further back is no neighbour."""
PASSED_BY = 100
"""How many more where a lane is asleep, to find those of other lanes behind its own."""


class Group:
    """A batch that is forming. It lives only while one decision is made."""

    def __init__(self, blocked: bool) -> None:
        self.members: list[Submission] = []
        self.blocked = blocked
        """It has to let somebody go first who waits in another group, or whose lane is asleep."""
        self.closed = False


class Forming(Struct, frozen=True):
    ready: tuple[tuple[Ticket, ...], ...]
    """The batches that are to start now, in order."""
    ripe_at: Instant | None
    """When the first of the others will have waited long enough."""


def form(queue: Queue, now: Instant, asleep: Sequence[Batch] = ()) -> Forming:
    """None of those who would stand in the line behind one that is asleep there."""
    size = queue.config.batch_size
    ready = list[tuple[Ticket, ...]]()
    ripe_at = None
    for group in _groups(queue, size, now, asleep):
        if group.blocked:
            continue
        ripe = _ripe_at(queue, group, size, now)
        if ripe <= now:
            ready.append(_together(group))
        else:
            ripe_at = earliest(ripe_at, ripe)
    return Forming(tuple(ready), ripe_at)


def _together(group: Group) -> tuple[Ticket, ...]:
    """Those that meet again keep the order that they were in."""
    tickets = [each.ticket for each in group.members]
    reunion = group.members[0].reunion
    return tuple(sorted(tickets, key=reunion.index) if reunion else tickets)


def _groups(queue: Queue, size: int, now: Instant, asleep: Sequence[Batch]) -> list[Group]:
    groups = list[Group]()
    claims = _Claims()
    for submission in islice(order.in_order(queue, now), NEIGHBOURS * size + (PASSED_BY if asleep else 0)):
        targets = lanes.targets_of(queue, submission)
        sleeps = any(batch.targets.share_with(targets) for batch in asleep)
        sharing = claims.sharing(targets)
        group = groups[next(iter(sharing))] if len(sharing) == 1 else None
        if group is None or sleeps or not _may_join(submission, group, size):
            if submission.no_batch or submission.reunion:
                for other in sharing:
                    groups[other].closed = True
            group = Group(blocked=sleeps or bool(sharing))
            groups.append(group)
        group.members.append(submission)
        group.closed = group.closed or submission.no_batch
        claims.add(targets, groups.index(group))
        if _foremost_is_complete(groups, size):
            break
    return groups


def _foremost_is_complete(groups: list[Group], size: int) -> bool:
    foremost = next((group for group in groups if not group.blocked), None)
    return foremost is not None and (len(foremost.members) == size or foremost.closed)


def _may_join(submission: Submission, group: Group, size: int) -> bool:
    if submission.no_batch or group.closed or len(group.members) == size:
        return False
    return submission.reunion == group.members[0].reunion


def _ripe_at(queue: Queue, group: Group, size: int, now: Instant) -> Instant:
    if len(group.members) == size or group.closed or any(each.was_in_run for each in group.members):
        return now
    oldest = min(each.admitted_at or now for each in group.members)
    return later(oldest, queue.config.batching_max_wait_time_minutes * MINUTE)


class _Claims:
    """Which of the forming groups share a target with somebody."""

    def __init__(self) -> None:
        self.by_name: dict[str, set[int]] = {}
        self.of_everything: set[int] = set()
        self.groups: set[int] = set()

    def sharing(self, targets: Targets) -> set[int]:
        if targets.everything:
            return self.groups
        empty = set[int]()
        return self.of_everything.union(*(self.by_name.get(name, empty) for name in targets.names))

    def add(self, targets: Targets, group: int) -> None:
        self.groups = self.groups | {group}
        if targets.everything:
            self.of_everything = self.of_everything | {group}
        for name in targets.names:
            self.by_name.setdefault(name, set()).add(group)
