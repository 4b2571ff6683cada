"""Server-sent events that tell an open page that its queue changed; the page then fetches itself again."""

from collections import Counter
from collections.abc import AsyncIterator
from secrets import randbelow

from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mergeyard.domain.access import Token
from mergeyard.domain.timestamps import SECOND, later
from mergeyard.service.queue_actor import QueueActor
from mergeyard.web.rendering import PageRequest
from mergeyard.web.user_sessions import Forbidden, SignInNeeded

ALIVE_INTERVAL_MS = 1500
"""An event is sent at least this often: page.js takes a longer silence for a lost connection, and no proxy closes the
idle connection. With `MAX_STREAMS` these are 333 small events per second."""
SESSION_CHECK_INTERVAL_MS = 15 * SECOND
"""Without a change, the session is read from the store only this often."""
MIN_INTERVAL_MS = 300
"""Between two change events of one stream."""
MAX_STREAMS_PER_TOKEN = 50
MAX_STREAMS = 500
"""For all tokens together; well below the usual limit of open files per process (1,024)."""
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
RETRY_HEADERS = {"retry-after": "5"}


class StreamLimit:
    """Counts the open streams by token. Each stream occupies a socket of the server."""

    def __init__(self) -> None:
        self._counts = Counter[str]()

    def has_room_for(self, token: Token) -> bool:
        return self._counts[token.id] < MAX_STREAMS_PER_TOKEN and self._counts.total() < MAX_STREAMS

    def add(self, token: Token) -> None:
        self._counts[token.id] += 1

    def remove(self, token: Token) -> None:
        self._counts[token.id] -= 1
        self._counts = +self._counts


class CountedStream(StreamingResponse):
    """Counts itself when it is created, not when it starts to send: of several requests at the limit, exactly as many
    as fit are accepted."""

    media_type = "text/event-stream"

    def __init__(self, content: AsyncIterator[str], streams: StreamLimit, token: Token) -> None:
        super().__init__(content, headers=HEADERS)
        self._streams = streams
        self._token = token
        streams.add(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.remove(self._token)


class LivePages:
    def __init__(self) -> None:
        self._streams = StreamLimit()

    async def follow(self, page: PageRequest) -> Response:
        queue_actor = await page.service.registry.get(page.resolve_queue())
        if not self._streams.has_room_for(page.user.token):
            return PlainTextResponse(
                "Too many pages are open. This page updates every few seconds.", 503, RETRY_HEADERS
            )
        return CountedStream(_stream_changes(page, queue_actor), self._streams, page.user.token)


async def _stream_changes(page: PageRequest, queue_actor: QueueActor) -> AsyncIterator[str]:
    """Remembers the queue's value before it sends an event: a change that happens while the page fetches itself
    leads to another event. A new forecast alone is reported only when the check of the session is due."""
    live, clock = page.service.change_waiter, page.service.clock
    queue, forecast = queue_actor.queue, queue_actor.forecast
    check_at = later(clock.now(), SESSION_CHECK_INTERVAL_MS)
    yield _encode_event("follow")
    while not live.is_stopping and not queue_actor.is_closed:
        changed = await live.wait_for_change(queue_actor, queue, later(clock.now(), ALIVE_INTERVAL_MS))
        is_check_due = changed or clock.now() >= check_at
        if changed or (is_check_due and queue_actor.forecast is not forecast):
            queue, forecast = queue_actor.queue, queue_actor.forecast
            yield _encode_event("change")
            await clock.sleep(MIN_INTERVAL_MS)
        else:
            yield _encode_event("alive")
        if is_check_due:
            check_at = later(clock.now(), SESSION_CHECK_INTERVAL_MS)
            if not await _is_signed_in(page):
                return
    if queue_actor.is_closed:
        yield _encode_event("gone")


async def _is_signed_in(page: PageRequest) -> bool:
    try:
        await page.context.authenticate(page.request)
    except (SignInNeeded, Forbidden):
        return False
    return True


def _encode_event(event: str) -> str:
    """`retry` differs by stream, so that not all pages connect at the same time after a restart."""
    return f"retry: {1500 + randbelow(2000)}\nevent: {event}\ndata: \n\n"
