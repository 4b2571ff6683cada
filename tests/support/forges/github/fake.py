"""The whole fake GitHub: an API that conforms to its description, git over HTTP, and webhooks.

with FakeGithub(tmp_path, clock) as github:
    app = github.create_repository("acme/app")
    github.add_token("a token", "ada")
    github.faults.plan(RespondsWith(503), "/merge")
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode

from mergeyard.ports.external import Clock
from tests.support.forges.deliveries import Deliveries
from tests.support.forges.faults import Faults
from tests.support.forges.git_server import GitRequest, GitServer, PushRefusal, RefUpdates
from tests.support.forges.github import payloads
from tests.support.forges.github.actions import BRANCH_PREFIX, FakeRepository
from tests.support.forges.github.api_routes import ROUTES, Route
from tests.support.forges.github.calls import ApiError, Call, Created, NoContent, Page
from tests.support.forges.github.description import DescriptionMismatch, check_described
from tests.support.forges.github.graphql import run_query
from tests.support.forges.github.limits import Limits
from tests.support.forges.github.pushes import refuse_push
from tests.support.forges.github.rules import WRITERS
from tests.support.forges.github.rulesets import EXTRA_APPROVAL, Organization
from tests.support.forges.github.world import Authentication, Caller, RegisteredApp
from tests.support.http_server import Receive, Scope, Send, ThreadedServer, read_body, read_headers, respond

ALL_PERMISSIONS = dict.fromkeys(
    ["administration", "checks", "contents", "deployments", "issues", "members", "metadata", "pull_requests",
     "repository_hooks", "statuses", "workflows"],
    "write",
)  # fmt: skip
HIDDEN_FROM_USERS = {"administration", "repository_hooks"}
"""For what needs these permissions, a user's token without them gets 404."""
API_ROOT = "/api/v3"
GRAPHQL_PATH = "/api/graphql"
TOKENS_PATH = "/access_tokens"
PATH_BY_ID = re.compile(r"/repositories/([0-9]{1,12})(/.*)?")
PATH_BY_NAME = re.compile(r"/repos/([^/]+/[^/]+)(/.*)?")
RATE_LIMITED_ANSWER = {"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded."}]}
Response = tuple[int, Mapping[str, str], bytes]


class FakeGithub:
    def __init__(self, root: Path, clock: Clock) -> None:
        self.clock = clock
        self.auth = Authentication(clock)
        self.limits = Limits(clock)
        self.deliveries = Deliveries()
        self.repositories: dict[str, FakeRepository] = {}
        """By name in lower case."""
        self.mismatches: list[str] = []
        """Requests and responses that GitHub does not describe; must stay empty."""
        self.future_words = {EXTRA_APPROVAL}
        """Kinds of rules and parameters that are newer than our description of the API, or that GitHub may have later:
        the fake sends them without a check."""
        self.organizations: dict[str, Organization] = {}
        """Owners of repositories, by name in lower case."""
        self.routes = list(ROUTES)
        """A test can add requests that the product does not send."""
        self.git_server = GitServer(root, self._is_git_request_allowed, self._on_push)
        self.git_server.ignores_case = True
        self.git_server.read_only_refs.append("refs/pull")
        self.git_server.refuse_push = self._refuse_push
        self.faults = Faults(self._route)
        self._lock = RLock()
        self._repository_ids = count(70_001)
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
        owner = name.partition("/")[0]
        organization = self.organizations.setdefault(owner.lower(), Organization(owner, self.auth))
        origin = self.git_server.create(name.lower())
        repository = FakeRepository(name, origin, self.clock, hooks, self.deliveries, organization)
        repository.id = next(self._repository_ids)
        repository.origin.commit("main", {"a.txt": "1"})
        self.repositories[name.lower()] = repository
        return repository

    def fork(self, repository: FakeRepository, name: str) -> FakeRepository:
        """A fork with the branches of the repository."""
        fork = self.create_repository(name)
        fork.upstream = repository
        fork.origin.run("fetch", "--quiet", repository.origin.url, f"+{BRANCH_PREFIX}*:{BRANCH_PREFIX}*")
        return fork

    def rename_repository(self, old: str, new: str) -> None:
        """Requests with the old name are redirected, of the API and of git, until it is used again."""
        repository = self.repositories.pop(old.lower())
        repository.rename(new, self.git_server.rename(old.lower(), new.lower()))
        self.repositories[new.lower()] = repository
        self.auth.rename_repository(old.lower(), new.lower())

    def add_token(self, token: str, login: str, permissions: Mapping[str, str] = ALL_PERMISSIONS) -> None:
        self.auth.tokens[token] = Caller(login, permissions)

    def register_app(self, app: RegisteredApp) -> None:
        self.auth.app = app

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_graphql = scope["path"] == GRAPHQL_PATH
        if not is_graphql and not scope["path"].startswith(API_ROOT):
            return await self.git_server(scope, receive, send)
        body = await read_body(receive)
        with self._lock:
            status, headers, content = self._respond(scope, body, is_graphql=is_graphql)
        content_type = {"content-type": "application/json; charset=utf-8"}
        return await respond(send, status, {**content_type, **headers}, content)

    def _respond(self, scope: Scope, body: bytes, *, is_graphql: bool) -> Response:
        """The headers of the rate limit are in every response, except where the credentials are wrong."""
        try:
            caller = self._authenticate(read_headers(scope))
        except ApiError as error:
            return encode_error(error)
        resource, handle = ("graphql", self._query) if is_graphql else ("core", self._handle)
        try:
            if not is_graphql:
                self.limits.raise_if_exhausted(caller.account, resource)
            self.limits.charge_points(caller.account, resource, scope["method"])
            status, headers, content = handle(scope, body, caller)
        except ApiError as error:
            status, headers, content = encode_error(error)
        return status, {**headers, **self.limits.charge(caller.account, resource, status)}, content

    def _query(self, scope: Scope, body: bytes, caller: Caller) -> Response:  # noqa: ARG002
        """A query that the schema of the fake does not allow is a mismatch. Queries follow former names. One that
        exceeds the budget is answered with 200 and an error, as documented."""
        if self.limits.is_exhausted(caller.account, "graphql"):
            return 200, {}, json.dumps(RATE_LIMITED_ANSWER).encode()
        moved = {old: self.repositories[new] for old, new in self.git_server.moved.items()}
        result = run_query(json.loads(body), caller, moved | self.repositories)
        self.mismatches += [f"POST {GRAPHQL_PATH}: {mismatch}" for mismatch in result.mismatches]
        return 200, {}, json.dumps(result.content).encode()

    def _handle(self, scope: Scope, body: bytes, caller: Caller) -> Response:
        announced = self.limits.check_version(read_headers(scope).get("x-github-api-version"))
        try:
            route, call = self._parse(scope, body, caller)
            if route.method != "GET" and not route.path.endswith(TOKENS_PATH):
                self.limits.record_content(caller.account, is_comment=route.path.endswith("/comments"))
            status, headers, content = self._encode(scope, route, route.handler(call))
        except DescriptionMismatch as mismatch:
            self.mismatches.append(f"{scope['method']} {scope['path']}: {mismatch}")
            status, headers, content = encode_error(ApiError(500, str(mismatch)))
        except ApiError as error:
            status, headers, content = encode_error(error)
        return status, {**headers, **announced}, content

    def _parse(self, scope: Scope, body: bytes, caller: Caller) -> tuple[Route, Call]:
        raw_path = self._resolve_name(scope, caller)
        found = [
            (route, params) for route in self.routes if (params := route.match(scope["method"], raw_path)) is not None
        ]
        if not found:
            raise DescriptionMismatch("the fake has no such request")
        route, params = found[0]
        permission, _, level = route.permission.partition(":")
        if permission and not caller.has_permission(permission, level):
            is_hidden = permission in HIDDEN_FROM_USERS and caller.app_id is None
            raise ApiError(404) if is_hidden else ApiError(403, "Resource not accessible by integration")
        content: Any = json.loads(body) if body else {}
        if route.request_model is not None:
            check_described(route.request_model, content)
        query = dict(parse_qsl(scope["query_string"].decode()))
        call = Call(
            caller=caller, auth=self.auth, repositories=self.repositories, path_params=params, query=query, body=content
        )
        return route, call

    def _resolve_name(self, scope: Scope, caller: Caller) -> str:
        """The path with the name of the repository. A former name is redirected to the path with the ID."""
        path = scope["raw_path"].decode().removeprefix(API_ROOT)
        if by_id := PATH_BY_ID.fullmatch(path):
            named = next((one for one in self.repositories.values() if str(one.id) == by_id[1]), None)
            return f"/repos/{named.name}{by_id[2] or ''}" if named else path
        by_name = PATH_BY_NAME.fullmatch(path)
        present = self.git_server.moved.get(by_name[1].lower()) if by_name else None
        if by_name is None or present is None or not caller.can_see(present):
            return path
        query = scope["query_string"].decode()
        location = f"{self.api_url}{self._path_by_id(path, present)}" + (f"?{query}" if query else "")
        status = 301 if scope["method"] == "GET" else 307
        raise ApiError(status, "Moved Permanently", headers={"location": location})

    def _path_by_id(self, path: str, name: str) -> str:
        by_name = PATH_BY_NAME.fullmatch(path)
        assert by_name is not None
        return f"/repositories/{self.repositories[name].id}{by_name[2] or ''}"

    def _authenticate(self, headers: Mapping[str, str]) -> Caller:
        self.limits.raise_if_locked_out()
        kind, _, token = headers.get("authorization", "").partition(" ")
        caller = self.auth.find_caller(token) if kind.lower() == "bearer" else None
        if caller is None:
            self.limits.record_failed_login()
            raise ApiError(401, "Bad credentials")
        if self.auth.is_suspended(caller):
            raise ApiError(403, "This installation has been suspended")
        return caller

    def _encode(self, scope: Scope, route: Route, result: Any) -> Response:
        """Responds with 304 if the caller has the current ETag."""
        headers = dict[str, str]()
        if isinstance(result, NoContent):
            return 204, headers, b""
        status = 201 if isinstance(result, Created) else 200
        if isinstance(result, Page):
            headers |= self._link(scope, result)
            result = result.items
        content = json.dumps(
            check_described(
                route.response_model, result.content if isinstance(result, Created) else result, self.future_words
            )
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
        next_query, path = urlencode(query | {"page": str(number + 1)}), scope["raw_path"].decode()
        below = path.removeprefix(API_ROOT)
        if by_name := PATH_BY_NAME.fullmatch(below):
            below = self._path_by_id(below, by_name[1].lower())
        return {"link": f'<{self.api_url}{below}?{next_query}>; rel="next"'}

    def _is_git_request_allowed(self, request: GitRequest) -> bool:
        caller = self.auth.find_caller(request.password)
        if caller is None or not caller.can_see(request.repository.lower()) or self.auth.is_suspended(caller):
            return False
        if not caller.has_permission("contents", "write" if request.is_write else "read"):
            return False
        return not request.is_write or self._list_writable(request, caller) != set()

    def _list_writable(self, request: GitRequest, caller: Caller) -> set[str] | None:
        """The branches of a fork that the caller can push to; None: all. A fine-grained token is for one owner."""
        fork = self.repositories[request.repository]
        if fork.upstream is None or caller.login in (fork.owner, *fork.roles):
            return None
        if fork.upstream.roles.get(caller.login) not in WRITERS or request.password.startswith("github_pat_"):
            return set()
        changes = [each for each in fork.upstream.pull_requests.values() if each.open and each.home == fork.name]
        return {each.branch for each in changes if each.maintainer_can_modify}

    def _on_push(self, request: GitRequest, updates: RefUpdates) -> None:
        caller = self.auth.find_caller(request.password)
        with self._lock:
            self.repositories[request.repository].on_push(updates, caller.login if caller else "")

    def _refuse_push(
        self, request: GitRequest, updates: RefUpdates, unpack: Callable[[], None]
    ) -> Mapping[str, PushRefusal]:
        caller, repository = self.auth.find_caller(request.password), self.repositories[request.repository]
        assert caller is not None
        writable = self._list_writable(request, caller)
        with self._lock:
            found = {
                ref: refuse_push(repository, ref, before, after, caller, unpack)
                for ref, (before, after) in updates.items()
            }
            if writable is not None:
                others = [ref for ref in updates if ref.removeprefix(BRANCH_PREFIX) not in writable]
                found |= {ref: PushRefusal("permission denied", []) for ref in others}
        return {ref: refusal for ref, refusal in found.items() if refusal}


def encode_error(error: ApiError) -> Response:
    payload = payloads.error(error.status, error.message, error.errors, error.headers)
    return error.status, error.headers, json.dumps(payload).encode()
