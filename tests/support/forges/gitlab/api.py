"""The API of the fake GitLab: authentication, routing, pagination and ETags."""

import json
from hashlib import md5
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlencode

from tests.support.forges.gitlab.api_routes import ApiError, ApiRoutes, Call, Handler
from tests.support.forges.gitlab.description import DescriptionMismatch, check_request, check_response
from tests.support.forges.gitlab.world import Token, World
from tests.support.http_server import Receive, Scope, Send, read_body, read_headers, respond

API_ROOT = "/api/v4"

Response = tuple[int, dict[str, str], Any]


class ApiApp:
    def __init__(self, world: World, routes: ApiRoutes) -> None:
        self._world = world
        self._handlers = routes.handlers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        params = dict(parse_qsl(scope["query_string"].decode()))
        body = await read_body(receive)
        path = scope["raw_path"].decode().partition("?")[0].removeprefix(API_ROOT)
        status, headers, content = self._respond(scope, path, params | (json.loads(body) if body else {}))
        encoded = b"" if status == 304 else json.dumps(content).encode()
        await respond(send, status, {"content-type": "application/json"} | headers, encoded)

    def _respond(self, scope: Scope, path: str, params: dict[str, Any]) -> Response:
        headers = read_headers(scope)
        try:
            token = self._token(scope["method"], headers)
            route, path_params, handler = self._route(scope["method"], path)
            check_request(route, set(params))
            content = handler(Call(token, path_params, params))
            check_response(route, content)
        except ApiError as error:
            return error.status, {}, {"message": error.message}
        except DescriptionMismatch as mismatch:
            return 500, {}, {"message": str(mismatch)}
        links: dict[str, str] = {}
        if isinstance(content, list):
            content, links = self._page(path, params, cast(list[Any], content))
        tag = f'W/"{md5(json.dumps(content).encode(), usedforsecurity=False).hexdigest()}"'
        if scope["method"] == "GET" and headers.get("if-none-match") == tag:
            return 304, {"etag": tag}, None
        return (201 if scope["method"] == "POST" else 200), {"etag": tag} | links, content

    def _token(self, method: str, headers: dict[str, str]) -> Token:
        token = self._world.tokens.get(headers.get("private-token", ""))
        if token is None:
            raise ApiError(401, "401 Unauthorized")
        if "api" not in token.scopes and not (method == "GET" and "read_api" in token.scopes):
            raise ApiError(403, "403 Forbidden: insufficient_scope")
        return token

    def _route(self, method: str, path: str) -> tuple[str, dict[str, str], Handler]:
        pieces = [unquote(piece) for piece in path.split("/")]
        for route, handler in self._handlers.items():
            wanted = route.partition(" ")[2].split("/")
            if route.startswith(f"{method} ") and len(wanted) == len(pieces):
                pairs = list(zip(wanted, pieces, strict=True))
                if all(want == piece or want.startswith(":") for want, piece in pairs):
                    return route, {want[1:]: piece for want, piece in pairs if want.startswith(":")}, handler
        raise ApiError(404, "404 Not Found")

    def _page(self, path: str, params: dict[str, Any], content: list[Any]) -> tuple[list[Any], dict[str, str]]:
        page, size = int(params.get("page", 1)), min(int(params.get("per_page", 20)), 100)
        start = (page - 1) * size
        if start + size >= len(content):
            return content[start:], {}
        query = urlencode(params | {"page": page + 1})
        return content[start : start + size], {"link": f'<{self._world.web_url}{API_ROOT}{path}?{query}>; rel="next"'}
