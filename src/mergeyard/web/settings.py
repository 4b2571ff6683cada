"""The page of a queue's settings: each explained, checked where it is typed, and saved only if all of them are good."""

from collections.abc import Sequence

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.tokens import Scope
from mergeyard.service.errors import Code, Refused
from mergeyard.service.journaling import actor_of
from mergeyard.web import addresses, setting_fields
from mergeyard.web.forms import filled_in_by
from mergeyard.web.hall import Hall
from mergeyard.web.setting_fields import GROUPS, Field
from mergeyard.web.visiting import Visitor

BLAMED = {Code.INVALID_REQUEST: "landing", Code.MODE_SWITCH_IN_PROGRESS: "mode"}
"""Which setting a refusal of the service is about."""


class SettingsPage:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def routes(self) -> Sequence[Route]:
        return (
            Route("/settings/{queue:path}", self.show, methods=["GET"]),
            Route("/settings/{queue:path}", self.save, methods=["POST"]),
        )

    async def show(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request)
        key = self._hall.queue(visitor, request.path_params["queue"])
        queue = await self._queue(key)
        return self._page(request, visitor, key, queue, setting_fields.shown(queue.config))

    async def save(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        form = await filled_in_by(visitor, request)
        key = self._hall.queue(visitor, request.path_params["queue"])
        queue, fields = await self._queue(key), setting_fields.typed(form)
        if not any(field.trouble for field in fields):
            fields = await self._saved(visitor, key, fields)
        if any(field.trouble for field in fields):
            return self._page(request, visitor, key, queue, fields)
        count = sum(field.changed for field in fields)
        return RedirectResponse(f"{addresses.queue_page(key, 'settings')}?saved={count}", 303)

    async def _queue(self, key: QueueKey) -> Queue:
        return (await self._hall.service.yard.keeper(key)).queue

    async def _saved(self, visitor: Visitor, key: QueueKey, fields: list[Field]) -> list[Field]:
        """The fields, with what is wrong where the service refuses them."""
        changes = setting_fields.changes(fields)
        try:
            await self._hall.service.queues.update(key, changes, None, actor_of(visitor.token), lambda _: b"", None)
        except Refused as refused:
            if refused.code not in BLAMED:
                raise
            blamed = BLAMED[refused.code]
            return [replace(each, trouble=refused.detail) if each.setting.name == blamed else each for each in fields]
        return fields

    def _page(self, request: Request, visitor: Visitor, key: QueueKey, queue: Queue, fields: list[Field]) -> Response:
        named = {field.setting.name: field for field in fields}
        troubles = [field for field in fields if field.trouble]
        return self._hall.form(
            request,
            "settings.html",
            visitor,
            troubles,
            key=key,
            queue=queue,
            groups={title: [named[name] for name in names] for title, names in GROUPS.items()},
            troubles=troubles,
            saved=request.query_params.get("saved", "")[:4] if request.method == "GET" else "",
        )
