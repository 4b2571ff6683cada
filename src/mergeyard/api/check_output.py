"""Gives what a check wrote, where the service ran it, to whoever follows the link of its status.

Programs get the text; a browser, which carries no API token, is led to the page that shows it.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote

from mergeyard.api import door
from mergeyard.api.docs_page import GUARDED
from mergeyard.api.endpoint import Doorkeeper
from mergeyard.api.head import Head
from mergeyard.api.receiving import Body
from mergeyard.api.reply import Reply
from mergeyard.api.serving import Route
from mergeyard.domain.ids import RunId
from mergeyard.domain.tokens import Scope, Token
from mergeyard.service.errors import Code, Refused
from mergeyard.service.service import Service

PATH = re.compile(r"/runs/([0-9a-f-]{36})/checks/(.+)", re.DOTALL)
TEXT = b"text/plain; charset=utf-8"


class CheckOutput:
    def __init__(self, service: Service, doorkeeper: Doorkeeper) -> None:
        self._service = service
        self._doorkeeper = doorkeeper

    def at(self, path: str) -> Mapping[str, Route] | None:
        found = PATH.fullmatch(path)
        return None if found is None else {"GET": self._route(RunId(found[1]), found[2])}

    def _route(self, run: RunId, check: str) -> Route:
        async def route(above: Head, _: Body) -> Reply:
            if _is_a_browser(above):
                page = f"/runs/{run}/output/{quote(check, safe='')}"
                return Reply(b"", status=303, content_type=TEXT, headers=((b"location", page.encode()),))
            token = await door.admitted(self._doorkeeper, above)
            with door.scope_checked(self._doorkeeper, token, above):
                door.refuse_without(token, Scope.READ)
            return Reply(await self._output(token, run, check), content_type=TEXT, headers=GUARDED)

        return route

    async def _output(self, token: Token, run: RunId, check: str) -> bytes:
        found = await self._service.runs.find_by_id(run, token)
        output = None if found is None else await self._service.runner.output(run, check)
        if output is None:
            raise Refused(Code.TEST_RUN_NOT_FOUND, "No output is kept for this check: see the run's `statusChecks`.")
        return output


def _is_a_browser(above: Head) -> bool:
    return not above.get(door.HEADER) and b"text/html" in above.accept.lower()
