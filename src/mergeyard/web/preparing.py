"""Compiles all templates for the first visitor, beside the event loop: that takes a second, and others go on meanwhile.

A process that nobody visits compiles nothing.
"""

import asyncio
from threading import Event, Lock

from starlette.types import ASGIApp, Receive, Scope, Send

from mergeyard.web.drawing import templates

_compiled = Event()
_one_at_a_time = Lock()


class Prepared:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _compiled.is_set():
            await asyncio.to_thread(compile_all)
        await self._app(scope, receive, send)


def compile_all() -> None:
    with _one_at_a_time:
        for name in templates.list_templates():
            templates.get_template(name)
    _compiled.set()
