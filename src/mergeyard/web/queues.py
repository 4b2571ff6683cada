"""The first page: all queues that the visitor may see, and how each of them does."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.ids import PrNumber, QueueId
from mergeyard.domain.instants import DAY, SECOND, later
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.store import Figure
from mergeyard.service.history.past import Past
from mergeyard.service.history.reading import Histories
from mergeyard.service.history.summing import Summary, sum_up
from mergeyard.service.turn import Keeper
from mergeyard.web.hall import Hall
from mergeyard.web.remembering import Remembered
from mergeyard.web.track import Mark, mark

SUMMED_UP_EVERY = 10 * SECOND
"""Every open page looks more often than that, and a day hardly changes meanwhile."""
MOST_WAGONS = 10
MOST_NEXT = 4


class Glance(Struct, frozen=True, kw_only=True):
    """A queue in one line: what stands in it now, and what it did within a day."""

    key: QueueKey
    queue: Queue
    depth: int
    not_ready: int
    train: tuple[Mark, ...]
    """How the first batches of the line do."""
    longer: int
    """How many more there are."""
    next: tuple[PrNumber, ...]
    day: Summary


class QueuesPage:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._histories = Histories(hall.service.store)
        self._days = Remembered[tuple[QueueId, ...], Mapping[QueueId, Summary]](hall.service.clock, SUMMED_UP_EVERY)

    def routes(self) -> Sequence[Route]:
        return (Route("/", self.show),)

    async def show(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request)
        service = self._hall.service
        keepers = sorted(
            await service.yard.seen_by(visitor.token), key=lambda keeper: (str(keeper.key.repo), keeper.key.branch)
        )
        stranded = [keeper for keeper in keepers if keeper.key.repo.host not in service.sites.hosts]
        keepers = [keeper for keeper in keepers if keeper.key.repo.host in service.sites.hosts]
        queues = tuple(keeper.id for keeper in keepers)
        days = await self._days.answer(queues, lambda: self._sum_up_a_day(queues))
        glances = [glance(keeper, days[keeper.id]) for keeper in keepers]
        return self._hall.page(request, "queues.html", visitor, glances=glances, stranded=stranded)

    async def _sum_up_a_day(self, queues: Sequence[QueueId]) -> Mapping[QueueId, Summary]:
        now = self._hall.service.clock.now()
        told = defaultdict[QueueId, list[Figure]](list)
        for figure in await self._histories.figures(queues, later(now, -DAY), later(now, 1)):
            told[figure.queue].append(figure)
        return {queue: sum_up(Past(told[queue])) for queue in queues}


def glance(keeper: Keeper, day: Summary) -> Glance:
    queue, batches = keeper.queue, keeper.queue.line.batches
    first = batches[0].tickets[:MOST_NEXT] if batches else ()
    return Glance(
        key=keeper.key,
        queue=queue,
        depth=len(queue.submissions) - len(queue.not_ready),
        not_ready=len(queue.not_ready),
        train=tuple(mark(queue, batch) for batch in batches[:MOST_WAGONS]),
        longer=max(0, len(batches) - MOST_WAGONS),
        next=tuple(queue.submissions[ticket].number for ticket in first),
        day=day,
    )
