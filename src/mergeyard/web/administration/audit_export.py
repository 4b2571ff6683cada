"""The audit log as a file: CSV for spreadsheets, JSON lines for programs, sent while it is read."""

import csv
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from io import StringIO

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from mergeyard.domain.tokens import Scope
from mergeyard.service.auditing import AT_A_TIME, Audited, Auditing
from mergeyard.web import words
from mergeyard.web.administration.audit import PAGE
from mergeyard.web.administration.audit_filter import Filter
from mergeyard.web.administration.audit_words import Row, row_of
from mergeyard.web.hall import Hall

STARTS_A_FORMULA = frozenset("=+-@\t\r\n＝＋－＠")  # noqa: RUF001
"""Of a cell, for the spreadsheets that calculate what they were only meant to show."""
encode = msgspec.json.Encoder().encode_lines


class AuditExport:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._auditing = Auditing(hall.service.store)

    def routes(self) -> Sequence[Route]:
        return (
            Route(f"{PAGE}.csv", self.as_csv, methods=["GET"]),
            Route(f"{PAGE}.jsonl", self.as_json_lines, methods=["GET"]),
        )

    async def as_csv(self, request: Request) -> Response:
        return await self._file(request, "csv", "text/csv; charset=utf-8", csv_lines, csv_head())

    async def as_json_lines(self, request: Request) -> Response:
        return await self._file(request, "jsonl", "application/jsonl", encode, b"")

    async def _file(
        self, request: Request, ending: str, media_type: str, write: Callable[[Iterable[Row]], bytes], head: bytes
    ) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        page = Filter.in_address(request.query_params).understood(self._hall.service.sites, AT_A_TIME)
        day = words.clock(self._hall.service.clock.now())[:10]
        disposition = f'attachment; filename="mergeyard-audit-{day}.{ending}"'
        contents = _written(self._auditing.all(visitor.token, page), write, head)
        return StreamingResponse(contents, media_type=media_type, headers={"content-disposition": disposition})


async def _written(
    found: AsyncIterator[list[Audited]], write: Callable[[Iterable[Row]], bytes], head: bytes
) -> AsyncIterator[bytes]:
    yield head
    async for some in found:
        yield write([row_of(entry) for entry in some])


def csv_head() -> bytes:
    return _as_csv([Row.__struct_encode_fields__])


def csv_lines(rows: Iterable[Row]) -> bytes:
    return _as_csv([harmless(value) for value in msgspec.structs.astuple(row)] for row in rows)


def harmless(value: object) -> object:
    """Text that a spreadsheet would take for a formula is shown as text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in STARTS_A_FORMULA else value


def _as_csv(lines: Iterable[Iterable[object]]) -> bytes:
    written = StringIO()
    csv.writer(written).writerows(lines)
    return written.getvalue().encode()
