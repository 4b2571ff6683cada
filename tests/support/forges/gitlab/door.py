"""The HTTP side of the fake: who is there, which page of a list, and whether anything changed since."""

import json
from hashlib import md5
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlencode

from tests.support.forges.gitlab.description import Drift, check_answer, check_question
from tests.support.forges.gitlab.desk import Answer, Call, Desk, Refusal
from tests.support.forges.gitlab.nouns import Token
from tests.support.forges.gitlab.world import World
from tests.support.forges.serving import Receive, Scope, Send, answer, body_of, headers_of

ROOT = "/api/v4"
READING = ("api", "read_api")

Reply = tuple[int, dict[str, str], Any]


class Door:
    def __init__(self, world: World, desk: Desk) -> None:
        self._world = world
        self._answers = desk.answers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(parse_qsl(scope["query_string"].decode()))
        body = await body_of(receive)
        path = scope["raw_path"].decode().partition("?")[0].removeprefix(ROOT)
        status, headers, content = self._reply(scope, path, given | (json.loads(body) if body else {}))
        encoded = b"" if status == 304 else json.dumps(content).encode()
        await answer(send, status, {"content-type": "application/json"} | headers, encoded)

    def _reply(self, scope: Scope, path: str, given: dict[str, Any]) -> Reply:
        headers = headers_of(scope)
        try:
            token = self._token(scope["method"], headers)
            route, parts, ask = self._route(scope["method"], path)
            check_question(route, set(given))
            content = ask(Call(token, parts, given))
            check_answer(route, content)
        except Refusal as refusal:
            return refusal.status, {}, {"message": refusal.message}
        except Drift as drift:
            return 500, {}, {"message": str(drift)}
        links: dict[str, str] = {}
        if isinstance(content, list):
            content, links = self._page(path, given, cast(list[Any], content))
        tag = f'W/"{md5(json.dumps(content).encode(), usedforsecurity=False).hexdigest()}"'
        if scope["method"] == "GET" and headers.get("if-none-match") == tag:
            return 304, {"etag": tag}, None
        return (201 if scope["method"] == "POST" else 200), {"etag": tag} | links, content

    def _token(self, method: str, headers: dict[str, str]) -> Token:
        token = self._world.tokens.get(headers.get("private-token", ""))
        if token is None:
            raise Refusal(401, "401 Unauthorized")
        if "api" not in token.scopes and not (method == "GET" and "read_api" in token.scopes):
            raise Refusal(403, "403 Forbidden: insufficient_scope")
        return token

    def _route(self, method: str, path: str) -> tuple[str, dict[str, str], Answer]:
        pieces = [unquote(piece) for piece in path.split("/")]
        for route, ask in self._answers.items():
            wanted = route.partition(" ")[2].split("/")
            if route.startswith(f"{method} ") and len(wanted) == len(pieces):
                pairs = list(zip(wanted, pieces, strict=True))
                if all(want == piece or want.startswith(":") for want, piece in pairs):
                    return route, {want[1:]: piece for want, piece in pairs if want.startswith(":")}, ask
        raise Refusal(404, "404 Not Found")

    def _page(self, path: str, given: dict[str, Any], content: list[Any]) -> tuple[list[Any], dict[str, str]]:
        page, size = int(given.get("page", 1)), min(int(given.get("per_page", 20)), 100)
        start = (page - 1) * size
        if start + size >= len(content):
            return content[start:], {}
        query = urlencode(given | {"page": page + 1})
        return content[start : start + size], {"link": f'<{self._world.pages}{ROOT}{path}?{query}>; rel="next"'}
