"""The web API of a Gitea: lets in who may come in, leads to the desk that answers, and checks what goes in and out."""

import asyncio
import base64
import json
from typing import Any
from urllib.parse import parse_qsl, unquote

from tests.support.forges.gitea import desk_dependencies, desk_pulls, desk_repositories, desk_talk
from tests.support.forges.gitea.acts import Acts
from tests.support.forges.gitea.calls import ROUTES, Answer, Call, Route, route_of
from tests.support.forges.gitea.description import check_answer, check_request
from tests.support.forges.gitea.nouns import Account, Token
from tests.support.forges.gitea.showing import Showing
from tests.support.forges.gitea.world import Refusal, World
from tests.support.forges.serving import Receive, Scope, Send, answer, body_of, headers_of

DESKS = (desk_dependencies, desk_pulls, desk_repositories, desk_talk)
"""Each has seated itself in the table."""
ROOT = "/api/v1"
OF_ISSUES = ("/repos/{owner}/{repo}/issues", "/repos/{owner}/{repo}/labels")
KINDS = {"/repos": "repository", "/user": "user", "/users": "user", "/admin": "admin"}


class Door:
    def __init__(self, world: World, acts: Acts, showing: Showing) -> None:
        assert ROUTES, DESKS
        self._world = world
        self._acts = acts
        self._showing = showing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await body_of(receive)
        given = await asyncio.to_thread(self._answer, scope, body)
        content = b"" if given.body is None else json.dumps(given.body).encode()
        await answer(send, given.status, {"content-type": "application/json", **given.headers}, content)

    def _answer(self, scope: Scope, body: bytes) -> Answer:
        path = scope["raw_path"].decode().removeprefix(ROOT)
        found = route_of(scope["method"], path)
        if found is None:
            return Answer(404, {"message": "not found"})
        route, parts = found
        told: dict[str, Any] = json.loads(body) if body else {}
        check_request(route, told)
        with self._world.lock:
            given = self._tried(route, scope, path, {name: unquote(of) for name, of in parts.items()}, told)
        check_answer(route, given)
        return given

    def _tried(self, route: Route, scope: Scope, path: str, parts: dict[str, str], told: dict[str, Any]) -> Answer:
        try:
            person = self._comes_in(route, headers_of(scope))
            query = dict(parse_qsl(scope["query_string"].decode()))
            return route.desk(Call(self._world, self._acts, self._showing, person, path, parts, query, told))
        except Refusal as refusal:
            return Answer(refusal.status, {"message": str(refusal), "url": f"{self._world.url}/api/swagger"})

    def _comes_in(self, route: Route, headers: dict[str, str]) -> Account:
        kind, _, proof = headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            return self._by_password(proof)
        token = self._world.tokens.get(proof)
        if token is None:
            raise Refusal(401, "invalid username, password or token")
        check_scope(route, token)
        sudo = headers.get("sudo")
        return self._world.account(sudo) if sudo and token.account.site_admin else token.account

    def _by_password(self, proof: str) -> Account:
        login, _, password = base64.b64decode(proof).decode().partition(":")
        account = self._world.account(login)
        if account.password != password:
            raise Refusal(401, "invalid username, password or token")
        return account


def check_scope(route: Route, token: Token) -> None:
    kind = "issue" if route.template.startswith(OF_ISSUES) else KINDS.get("/" + route.template.split("/")[1])
    if kind is None or "all" in token.scopes:
        return
    needed = {f"write:{kind}"} if route.method != "GET" else {f"read:{kind}", f"write:{kind}"}
    if not needed & token.scopes:
        words = f"required=[{min(needed)}], token scope={','.join(sorted(token.scopes))}"
        raise Refusal(403, f"token does not have at least one of required scope(s), {words}")
