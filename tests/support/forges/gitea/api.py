"""The API of the fake Gitea: authenticates, finds the handler, and checks requests and responses."""

import asyncio
import base64
import json
from typing import Any
from urllib.parse import parse_qsl, unquote

from tests.support.forges.gitea.actions import Actions
from tests.support.forges.gitea.api_routes import (
    ROUTES,
    Call,
    Response,
    Route,
    find_route,
    get_version,
    list_comments,
    list_dependencies,
    list_pull_requests,
)
from tests.support.forges.gitea.description import check_request, check_response
from tests.support.forges.gitea.payloads import Payloads
from tests.support.forges.gitea.world import Account, ApiError, Token, World
from tests.support.http_server import Receive, Scope, Send, read_body, read_headers, respond

REGISTERED = (list_dependencies, list_pull_requests, get_version, list_comments)
"""One handler per module: importing a module adds its handlers to ROUTES."""
API_ROOT = "/api/v1"
ISSUE_PATHS = ("/repos/{owner}/{repo}/issues", "/repos/{owner}/{repo}/labels")
SCOPE_BY_PATH = {"/repos": "repository", "/user": "user", "/users": "user", "/admin": "admin"}


class ApiApp:
    def __init__(self, world: World, acts: Actions, showing: Payloads) -> None:
        assert ROUTES, REGISTERED
        self._world = world
        self._acts = acts
        self._showing = showing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        response = await asyncio.to_thread(self._answer, scope, body)
        content = b"" if response.body is None else json.dumps(response.body).encode()
        await respond(send, response.status, {"content-type": "application/json", **response.headers}, content)

    def _answer(self, scope: Scope, body: bytes) -> Response:
        path = scope["raw_path"].decode().removeprefix(API_ROOT)
        found = find_route(scope["method"], path)
        if found is None:
            return Response(404, {"message": "not found"})
        route, parts = found
        content: dict[str, Any] = json.loads(body) if body else {}
        check_request(route, content)
        with self._world.lock:
            params = {name: unquote(value) for name, value in parts.items()}
            response = self._call(route, scope, path, params, content)
        check_response(route, response)
        return response

    def _call(self, route: Route, scope: Scope, path: str, params: dict[str, str], body: dict[str, Any]) -> Response:
        try:
            account = self._authenticate(route, read_headers(scope))
            query = dict(parse_qsl(scope["query_string"].decode()))
            return route.handler(Call(self._world, self._acts, self._showing, account, path, params, query, body))
        except ApiError as error:
            return Response(error.status, {"message": str(error), "url": f"{self._world.url}/api/swagger"})

    def _authenticate(self, route: Route, headers: dict[str, str]) -> Account:
        kind, _, credentials = headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            return self._authenticate_by_password(credentials)
        token = self._world.tokens.get(credentials)
        if token is None:
            raise ApiError(401, "invalid username, password or token")
        check_scope(route, token)
        sudo = headers.get("sudo")
        return self._world.account(sudo) if sudo and token.account.site_admin else token.account

    def _authenticate_by_password(self, credentials: str) -> Account:
        login, _, password = base64.b64decode(credentials).decode().partition(":")
        account = self._world.account(login)
        if account.password != password:
            raise ApiError(401, "invalid username, password or token")
        return account


def check_scope(route: Route, token: Token) -> None:
    kind = "issue" if route.template.startswith(ISSUE_PATHS) else SCOPE_BY_PATH.get("/" + route.template.split("/")[1])
    if kind is None or "all" in token.scopes:
        return
    needed = {f"write:{kind}"} if route.method != "GET" else {f"read:{kind}", f"write:{kind}"}
    if not needed & token.scopes:
        details = f"required=[{min(needed)}], token scope={','.join(sorted(token.scopes))}"
        raise ApiError(403, f"token does not have at least one of required scope(s), {details}")
