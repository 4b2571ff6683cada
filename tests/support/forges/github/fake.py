"""The whole fake GitHub: an API that conforms to its description, git over HTTP, and webhooks.

with FakeGithub(tmp_path, clock) as github:
    app = github.create_repository("acme/app")
    github.add_token("a token", "ada")
    github.faults.plan(RespondsWith(503), "/merge")
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from threading import RLock
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode

from mergeyard.ports.external import Clock
from tests.support.forges.deliveries import Deliveries
from tests.support.forges.faults import Faults
from tests.support.forges.git_server import GitRequest, GitServer, RefUpdates
from tests.support.forges.github import payloads
from tests.support.forges.github.actions import FakeRepository
from tests.support.forges.github.api_routes import ROUTES, ApiError, Call, Created, Page, Route
from tests.support.forges.github.description import DescriptionMismatch, check_described, models
from tests.support.forges.github.world import Authentication, Caller, RegisteredApp
from tests.support.http_server import Receive, Scope, Send, ThreadedServer, read_body, read_headers, respond

ALL_PERMISSIONS = dict.fromkeys(
    ["administration", "checks", "contents", "issues", "metadata", "pull_requests", "repository_hooks", "statuses",
     "workflows"],
    "write",
)  # fmt: skip
API_ROOT = "/api/v3"


class FakeGithub:
    def __init__(self, root: Path, clock: Clock) -> None:
        self.clock = clock
        self.auth = Authentication(clock)
        self.deliveries = Deliveries()
        self.repositories: dict[str, FakeRepository] = {}
        self.mismatches: list[str] = []
        """Requests and responses that GitHub does not describe; must stay empty."""
        self.git_server = GitServer(root, self._is_git_request_allowed, self._on_push)
        self.git_server.read_only_refs.append("refs/pull")
        self.faults = Faults(self._route)
        self._lock = RLock()
        self._server = ThreadedServer(self.faults)
        self.web_url = self._server.url
        self.api_url = self.web_url + API_ROOT

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
        self.deliveries.close()
        self.check_mismatches()

    def check_mismatches(self) -> None:
        assert not self.mismatches, "; ".join(self.mismatches)

    def create_repository(self, name: str) -> FakeRepository:
        """Creates a repository with one commit on main. It uses the webhooks of the app, if one is registered."""
        hooks = self.auth.app.hooks if self.auth.app else []
        repository = FakeRepository(name, self.git_server.create(name.lower()), self.clock, hooks, self.deliveries)
        repository.origin.commit("main", {"a.txt": "1"})
        self.repositories[name.lower()] = repository
        return repository

    def add_token(self, token: str, login: str, permissions: Mapping[str, str] = ALL_PERMISSIONS) -> None:
        self.auth.tokens[token] = Caller(login, permissions)

    def register_app(self, app: RegisteredApp) -> None:
        self.auth.app = app

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].startswith(API_ROOT):
            return await self.git_server(scope, receive, send)
        body = await read_body(receive)
        with self._lock:
            status, headers, content = self._respond(scope, body)
        return await respond(send, status, {"content-type": "application/json; charset=utf-8"} | headers, content)

    def _respond(self, scope: Scope, body: bytes) -> tuple[int, dict[str, str], bytes]:
        try:
            route, call = self._parse(scope, body)
            return self._encode(scope, route, route.handler(call))
        except DescriptionMismatch as mismatch:
            self.mismatches.append(f"{scope['method']} {scope['path']}: {mismatch}")
            return 500, {}, json.dumps(payloads.error(str(mismatch))).encode()
        except ApiError as error:
            content = json.dumps(check_described(models.BasicError, payloads.error(error.message))).encode()
            return error.status, {}, content

    def _parse(self, scope: Scope, body: bytes) -> tuple[Route, Call]:
        raw_path = scope["raw_path"].decode().removeprefix(API_ROOT)
        found = [(route, params) for route in ROUTES if (params := route.match(scope["method"], raw_path)) is not None]
        if not found:
            raise DescriptionMismatch("the fake has no such request")
        route, params = found[0]
        caller = self._authenticate(read_headers(scope))
        permission, _, level = route.permission.partition(":")
        if permission and not caller.has_permission(permission, level):
            raise ApiError(403, "Resource not accessible by integration")
        content: Any = json.loads(body) if body else {}
        if route.request_model is not None:
            check_described(route.request_model, content)
        query = dict(parse_qsl(scope["query_string"].decode()))
        call = Call(
            caller=caller, auth=self.auth, repositories=self.repositories, path_params=params, query=query, body=content
        )
        return route, call

    def _authenticate(self, headers: Mapping[str, str]) -> Caller:
        kind, _, token = headers.get("authorization", "").partition(" ")
        caller = self.auth.find_caller(token) if kind == "Bearer" else None
        if caller is None:
            raise ApiError(401, "Bad credentials")
        return caller

    def _encode(self, scope: Scope, route: Route, result: Any) -> tuple[int, dict[str, str], bytes]:
        """Responds with 304 if the caller has the current ETag."""
        headers = dict[str, str]()
        status = 201 if isinstance(result, Created) else 200
        if isinstance(result, Page):
            headers |= self._link(scope, result)
            result = result.items
        content = json.dumps(
            check_described(route.response_model, result.content if isinstance(result, Created) else result)
        ).encode()
        if scope["method"] == "GET":
            token = read_headers(scope)["authorization"].encode()
            headers["etag"] = f'W/"{hashlib.sha256(token + content).hexdigest()}"'
            if read_headers(scope).get("if-none-match") == headers["etag"]:
                return 304, headers, b""
        return status, headers, content

    def _link(self, scope: Scope, page: Page) -> dict[str, str]:
        query = dict(parse_qsl(scope["query_string"].decode()))
        number, size = int(query.get("page", "1")), int(query.get("per_page", "30"))
        if number * size >= page.total:
            return {}
        next_query = urlencode(query | {"page": str(number + 1)})
        return {"link": f'<{self.web_url}{scope["path"]}?{next_query}>; rel="next"'}

    def _is_git_request_allowed(self, request: GitRequest) -> bool:
        caller = self.auth.find_caller(request.password)
        if caller is None or not caller.can_see(request.repository.lower()):
            return False
        return caller.has_permission("contents", "write" if request.is_write else "read")

    def _on_push(self, request: GitRequest, updates: RefUpdates) -> None:
        with self._lock:
            self.repositories[request.repository].on_push(updates)
