"""The API of the fake GitLab: authentication, routing, pagination and ETags."""

import json
from hashlib import md5
from math import ceil
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlencode

from tests.support.forges.gitlab.api_routes import ApiError, ApiRoutes, Call, Handler
from tests.support.forges.gitlab.description import DescriptionMismatch, check_request, check_response
from tests.support.forges.gitlab.world import Token, World
from tests.support.http_server import Receive, Scope, Send, read_body, read_headers, respond

API_ROOT = "/api/v4"
MINUTE_S = 60

Response = tuple[int, dict[str, str], Any]


class ApiApp:
    def __init__(self, world: World, routes: ApiRoutes) -> None:
        self._world = world
        self.handlers = routes.handlers()
        """By route, as `GET /projects/:id`. Tests can add more: a POST answers 201, a DELETE 204, all others 200."""
        self.mismatches: list[str] = []
        """Requests and responses that GitLab does not describe. They fail the test at its end."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = dict(parse_qsl(scope["query_string"].decode()))
        body = await read_body(receive)
        status, headers, content = self._respond(scope, query, json.loads(body) if body else {})
        encoded = b"" if status in (204, 304) else json.dumps(content).encode()
        await respond(send, status, {"content-type": "application/json"} | headers, encoded)

    def _respond(self, scope: Scope, query: dict[str, Any], body: dict[str, Any]) -> Response:
        headers, path = read_headers(scope), scope["raw_path"].decode().partition("?")[0].removeprefix(API_ROOT)
        links: dict[str, str] = {}
        try:
            token = self._token(scope["method"], headers)
            route, path_params, handler = self._route(scope["method"], path)
            self._check_limits(route, token)
            self._check_project(scope, route, path_params.get("id", ""))
            check_request(route, query, body)
            content = handler(Call(token, path_params, query | body))
            if isinstance(content, list):
                content, links = self._page(path, query, cast(list[Any], content))
            check_response(route, content)
        except ApiError as error:
            return error.status, error.headers, error.body
        except DescriptionMismatch as mismatch:
            self.mismatches.append(str(mismatch))
            return 500, {}, {"message": str(mismatch)}
        if scope["method"] == "DELETE":
            return 204, {}, None
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
        for route, handler in self.handlers.items():
            wanted = route.partition(" ")[2].split("/")
            if route.startswith(f"{method} ") and len(wanted) == len(pieces):
                pairs = list(zip(wanted, pieces, strict=True))
                if all(want == piece or want.startswith(":") for want, piece in pairs):
                    return route, {want[1:]: piece for want, piece in pairs if want.startswith(":")}, handler
        raise DescriptionMismatch(f"GitLab has no {method} {path}, or the fake does not serve it")

    def _check_limits(self, route: str, token: Token) -> None:
        """Only the general limit shows how many requests are left."""
        limits, now, account = self._world.limits, int(self._world.read_clock().timestamp()), token.user.username
        minute = now // MINUTE_S
        end = (minute + 1) * MINUTE_S
        observed = limits.count("", account, minute)
        if limits.general is not None and observed > limits.general:
            headers = {
                "ratelimit-limit": str(limits.general),
                "ratelimit-name": "throttle_authenticated_api",
                "ratelimit-observed": str(observed),
                "ratelimit-remaining": "0",
                "ratelimit-reset": str(end),
                "retry-after": str(end - now),
            }
            raise ApiError(429, "Retry later", headers=headers)
        allowed = limits.by_route.get(route)
        if allowed is not None and limits.count(route, account, minute) > allowed:
            message = {"error": "This endpoint has been requested too many times. Try again later."}
            raise ApiError(429, message, headers={"retry-after": str(MINUTE_S)} if limits.has_retry_after else None)

    def _check_project(self, scope: Scope, route: str, name: str) -> None:
        """A project that was renamed or archived."""
        is_read = scope["method"] == "GET"
        moved = self._world.moved.get(name.lower())
        if moved is not None and not is_read:
            raise ApiError(405, "Non GET methods are not allowed for moved projects")
        if moved is not None:
            rest = scope["raw_path"].decode().partition("?")[0].removeprefix(f"{API_ROOT}/projects/").partition("/")
            query = scope["query_string"].decode()
            url = f"{self._world.web_url}{API_ROOT}/projects/{moved.id}{rest[1]}{rest[2]}{'?' if query else ''}{query}"
            raise ApiError(301, f"This resource has been moved permanently to {url}.", headers={"location": url})
        project = self._world.find_project(name)
        if project is not None and project.archived and not is_read and not route.endswith("/merge"):
            raise ApiError(403, "403 Forbidden")

    def _page(self, path: str, query: dict[str, Any], content: list[Any]) -> tuple[list[Any], dict[str, str]]:
        """The page, without items that the account cannot read, and GitLab's headers about it."""
        page, size = int(query.get("page", 1)), min(int(query.get("per_page", 20)), 100)
        start, last = (page - 1) * size, max(1, ceil(len(content) / size))
        numbers = {"first": 1, "last": last} | ({"prev": page - 1} if page > 1 else {})
        numbers |= {"next": page + 1} if page < last else {}
        base = f"{self._world.external_url or self._world.web_url}{API_ROOT}{path}"
        urls = {name: f"{base}?{urlencode(query | {'page': number})}" for name, number in sorted(numbers.items())}
        headers = {
            "link": ", ".join(f'<{url}>; rel="{name}"' for name, url in urls.items()),
            "x-next-page": str(numbers.get("next", "")),
            "x-page": str(page),
            "x-per-page": str(size),
            "x-prev-page": str(numbers.get("prev", "")),
            "x-total": str(len(content)),
            "x-total-pages": str(last),
        }
        return [item for item in content[start : start + size] if item is not None], headers
