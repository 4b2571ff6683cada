"""The page of what a check wrote, where the service ran it: its end first, the whole of it as plain text."""

import re
from collections.abc import Sequence

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from mergeyard.domain.runs import Run
from mergeyard.domain.states import CheckState
from mergeyard.domain.statuses import Status
from mergeyard.service.turn import Keeper
from mergeyard.web.hall import Hall
from mergeyard.web.runs.page import find

MOST_BYTES = 256 * 1024
COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""And whatever else terminals are told by escapes."""
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Tail(Struct, frozen=True):
    text: str
    left_out: int
    """Bytes before it."""


class CheckOutputPage:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def routes(self) -> Sequence[Route]:
        return (Route("/runs/{run}/output/{check:path}", self.show),)

    async def show(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request)
        keeper, run = await find(self._hall, visitor, request.path_params["run"])
        check: str = request.path_params["check"]
        output = await self._hall.service.runner.output(run.id, check)
        if output is not None and "raw" in request.query_params:
            return PlainTextResponse(output)
        reported = await self._reported(keeper, run, check)
        return self._hall.answer(
            request,
            "check_output.html",
            404 if output is None else 200,
            visitor=visitor,
            key=keeper.key,
            run=run,
            check=check,
            reported=reported,
            growing=run.active and (reported is None or reported.check is CheckState.PENDING),
            tail=None if output is None else tail(output),
        )

    async def _reported(self, keeper: Keeper, run: Run, check: str) -> Status | None:
        statuses = await self._hall.service.store.statuses(keeper.key.repo, run.tip)
        return next((status for status in statuses if status.context == check), None)


def tail(output: bytes, most: int = MOST_BYTES) -> Tail:
    """Whole lines, unless a single one is longer than all that is shown."""
    if len(output) <= most:
        return Tail(readable(output), 0)
    kept = output[-most:]
    kept = kept.partition(b"\n")[2] or kept
    return Tail(readable(kept), len(output) - len(kept))


def readable(output: bytes) -> str:
    text = COLOURS.sub("", output.decode(errors="replace").replace("\r\n", "\n"))
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r", "\n"))
