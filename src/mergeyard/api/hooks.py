"""Takes what forges send to `/hooks/{provider}/{host}`: signed by them, so without a token of ours."""

import re
from collections.abc import Mapping

from mergeyard.api.head import Head
from mergeyard.api.receiving import Body, Reception
from mergeyard.api.reply import Reply
from mergeyard.api.serving import Route
from mergeyard.service.errors import Code, Refused
from mergeyard.service.news import NewsRoom
from mergeyard.service.refusal_log import RefusalKind, RefusalLog

PATH = re.compile(r"/hooks/([a-z]{1,20})/([a-z0-9.:-]{1,260})")


class Hooks:
    def __init__(self, room: NewsRoom, refusals: RefusalLog, reception: Reception | None = None) -> None:
        self._room = room
        self._refusals = refusals
        self._reception = reception or Reception()

    def at(self, path: str) -> Mapping[str, Route] | None:
        found = PATH.fullmatch(path)
        return None if found is None else {"POST": self._route(found[1], found[2])}

    def _route(self, provider: str, host: str) -> Route:
        async def route(above: Head, body: Body) -> Reply:
            """What stands twice above the body is not believed."""
            headers = {
                name.decode("latin-1"): value.decode("latin-1")
                for name, value in above.values.items()
                if name not in above.doubled
            }
            listen = self._room.listener(provider, host)
            try:
                news = await self._reception.understood(body, lambda raw: listen(headers, raw))
            except Refused as refused:
                self._record(refused, above, provider, host)
                raise
            self._room.look_into(news)
            return Reply(b'{"accepted":true}', 202)

        return route

    def _record(self, refused: Refused, above: Head, provider: str, host: str) -> None:
        if refused.code is Code.INVALID_TOKEN:
            self._refusals.record(
                RefusalKind.WEBHOOK_SIGNATURE_INVALID,
                above.client,
                path=above.path,
                request_id=above.request_id,
                provider=provider,
                host=host,
                cause=str(refused.__cause__),
            )
