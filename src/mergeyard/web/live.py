"""Tells an open page that its queue has changed; the page then fetches itself anew."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from mergeyard.domain.instants import SECOND, later
from mergeyard.domain.tokens import Token
from mergeyard.service.turn import Keeper
from mergeyard.web.hall import Hall
from mergeyard.web.visiting import Forbidden, SignInNeeded

SILENCE = 15 * SECOND
"""After so long something is said in any case, so that everybody on the way keeps the line open."""
BETWEEN_CHANGES = 300
"""Milliseconds: a page need not move more often."""
MOST_FOR_A_TOKEN = 50
MOST = 500
"""Altogether, well below the files that a process may usually open."""
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
FULL = {"retry-after": "5"}


class Seats:
    """How many follow queues right now, each with a socket of ours."""

    def __init__(self) -> None:
        self._taken = Counter[str]()

    def free_for(self, token: Token) -> bool:
        return self._taken[token.id] < MOST_FOR_A_TOKEN and self._taken.total() < MOST

    def take(self, token: Token) -> None:
        self._taken[token.id] += 1

    def leave(self, token: Token) -> None:
        self._taken[token.id] -= 1
        self._taken = +self._taken


class SeatedStream(StreamingResponse):
    """Has its seat from the beginning on, so that of many at once none is let in too many, and until it ends."""

    media_type = "text/event-stream"

    def __init__(self, content: AsyncIterator[str], seats: Seats, token: Token) -> None:
        super().__init__(content, headers=HEADERS)
        self._seats = seats
        self._token = token
        seats.take(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._seats.leave(self._token)


class LivePages:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._seats = Seats()

    def routes(self) -> Sequence[Route]:
        return (Route("/live/{queue:path}", self.follow),)

    async def follow(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request)
        keeper = await self._hall.service.yard.keeper(self._hall.queue(visitor, request.path_params["queue"]))
        if not self._seats.free_for(visitor.token):
            return PlainTextResponse("Too many pages are open: this one looks for itself, now and then.", 503, FULL)
        return SeatedStream(self._changes(request, keeper), self._seats, visitor.token)

    async def _changes(self, request: Request, keeper: Keeper) -> AsyncIterator[str]:
        """What is seen is noted before it is told, so that whoever then looks misses nothing. A new forecast alone can
        wait until it is quiet."""
        live, clock = self._hall.service.live, self._hall.service.clock
        seen, forecast = keeper.queue, keeper.forecast
        yield told("follow")
        while not live.ending and not keeper.closed and await self._is_signed_in(request):
            moved = await live.something_happens(keeper, seen, later(clock.now(), SILENCE))
            if moved or keeper.forecast is not forecast:
                seen, forecast = keeper.queue, keeper.forecast
                yield told("change")
                await clock.sleep(BETWEEN_CHANGES)
            else:
                yield ": still here\n\n"
        if keeper.closed:
            yield told("gone")

    async def _is_signed_in(self, request: Request) -> bool:
        try:
            await self._hall.visitor(request)
        except (SignInNeeded, Forbidden):
            return False
        return True


def told(event: str) -> str:
    return f"retry: 2000\nevent: {event}\ndata: \n\n"
