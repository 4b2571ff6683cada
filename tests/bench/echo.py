"""The least that any endpoint does: Starlette reads the JSON of a request, and writes the JSON of an answer."""

from pathlib import Path

from msgspec import json
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


def application(file: str, path: str) -> Starlette:
    """Whatever it is asked at this path, it answers with what the file holds."""
    answer = json.decode(Path(file).read_bytes())

    async def echo(request: Request) -> JSONResponse:
        await request.json()
        return JSONResponse(answer)

    return Starlette(routes=[Route(path, echo, methods=["POST"])])
