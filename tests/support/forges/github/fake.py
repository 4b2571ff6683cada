"""The fake as a whole: an API that keeps to its description, repositories behind git, and webhooks.

with FakeGithub(tmp_path, clock) as github:
    app = github.repository("acme/app")
    github.token("a token", "ada")
    github.faults.plan(Answers(503), "/merge")
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from threading import RLock
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode

from mergeyard.ports.clock import Clock
from tests.support.forges.deliveries import Deliveries
from tests.support.forges.faults import Faults
from tests.support.forges.git_rooms import GitRooms, Moves, Visit
from tests.support.forges.github import answers
from tests.support.forges.github.calls import Call, Created, Page, Refused
from tests.support.forges.github.description import Undescribed, checked, models
from tests.support.forges.github.doors import Doors, Visitor
from tests.support.forges.github.facts import AppFacts
from tests.support.forges.github.repository import FakeRepository
from tests.support.forges.github.table import TABLE, Row
from tests.support.forges.serving import Receive, Scope, Send, Serving, answer, body_of, headers_of

EVERYTHING = dict.fromkeys(
    ["administration", "checks", "contents", "issues", "metadata", "pull_requests", "repository_hooks", "statuses",
     "workflows"],
    "write",
)  # fmt: skip
API = "/api/v3"


class FakeGithub:
    def __init__(self, root: Path, clock: Clock) -> None:
        self.clock = clock
        self.doors = Doors(clock)
        self.deliveries = Deliveries()
        self.repositories: dict[str, FakeRepository] = {}
        self.undescribed: list[str] = []
        """What GitHub would not have said, or not have understood: should stay empty."""
        self.rooms = GitRooms(root, self._may_come_in, self._pushed)
        self.rooms.untouchable.append("refs/pull")
        self.faults = Faults(self._answer)
        self._turn = RLock()
        self._serving = Serving(self.faults)
        self.pages = self._serving.url
        self.api = self.pages + API

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._serving.stop()
        self.deliveries.close()
        self.check()

    def check(self) -> None:
        assert not self.undescribed, "; ".join(self.undescribed)

    def repository(self, name: str) -> FakeRepository:
        """With one commit on main. Where an app is registered, its webhooks are those of the repository."""
        hooks = self.doors.app.hooks if self.doors.app else []
        made = FakeRepository(name, self.rooms.made(name.lower()), self.clock, hooks, self.deliveries)
        made.origin.commit("main", {"a.txt": "1"})
        self.repositories[name.lower()] = made
        return made

    def token(self, token: str, login: str, permissions: Mapping[str, str] = EVERYTHING) -> None:
        self.doors.tokens[token] = Visitor(login, permissions)

    def register(self, app: AppFacts) -> None:
        self.doors.app = app

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].startswith(API):
            return await self.rooms(scope, receive, send)
        body = await body_of(receive)
        with self._turn:
            status, headers, content = self._respond(scope, body)
        return await answer(send, status, {"content-type": "application/json; charset=utf-8"} | headers, content)

    def _respond(self, scope: Scope, body: bytes) -> tuple[int, dict[str, str], bytes]:
        try:
            row, call = self._understood(scope, body)
            return self._told(scope, row, row.handler(call))
        except Undescribed as wrong:
            self.undescribed.append(f"{scope['method']} {scope['path']}: {wrong}")
            return 500, {}, json.dumps(answers.words(str(wrong))).encode()
        except Refused as refused:
            words = json.dumps(checked(models.BasicError, answers.words(refused.words))).encode()
            return refused.status, {}, words

    def _understood(self, scope: Scope, body: bytes) -> tuple[Row, Call]:
        raw_path = scope["raw_path"].decode().removeprefix(API)
        found = [(row, words) for row in TABLE if (words := row.words(scope["method"], raw_path)) is not None]
        if not found:
            raise Undescribed("the fake knows no such request")
        row, words = found[0]
        visitor = self._visitor(headers_of(scope))
        permission, _, level = row.permission.partition(":")
        if permission and not visitor.may(permission, level):
            raise Refused(403, "Resource not accessible by integration")
        content: Any = json.loads(body) if body else {}
        if row.takes is not None:
            checked(row.takes, content)
        query = dict(parse_qsl(scope["query_string"].decode()))
        call = Call(
            visitor=visitor, doors=self.doors, repositories=self.repositories, words=words, query=query, body=content
        )
        return row, call

    def _visitor(self, headers: Mapping[str, str]) -> Visitor:
        kind, _, token = headers.get("authorization", "").partition(" ")
        visitor = self.doors.visitor(token) if kind == "Bearer" else None
        if visitor is None:
            raise Refused(401, "Bad credentials")
        return visitor

    def _told(self, scope: Scope, row: Row, told: Any) -> tuple[int, dict[str, str], bytes]:
        """What has the tag that the caller knows is not sent again."""
        headers = dict[str, str]()
        status = 201 if isinstance(told, Created) else 200
        if isinstance(told, Page):
            headers |= self._link(scope, told)
            told = told.items
        content = json.dumps(checked(row.says, told.answer if isinstance(told, Created) else told)).encode()
        if scope["method"] == "GET":
            token = headers_of(scope)["authorization"].encode()
            headers["etag"] = f'W/"{hashlib.sha256(token + content).hexdigest()}"'
            if headers_of(scope).get("if-none-match") == headers["etag"]:
                return 304, headers, b""
        return status, headers, content

    def _link(self, scope: Scope, page: Page) -> dict[str, str]:
        query = dict(parse_qsl(scope["query_string"].decode()))
        number, size = int(query.get("page", "1")), int(query.get("per_page", "30"))
        if number * size >= page.of:
            return {}
        further = urlencode(query | {"page": str(number + 1)})
        return {"link": f'<{self.pages}{scope["path"]}?{further}>; rel="next"'}

    def _may_come_in(self, visit: Visit) -> bool:
        visitor = self.doors.visitor(visit.password)
        if visitor is None or not visitor.sees(visit.repository.lower()):
            return False
        return visitor.may("contents", "write" if visit.writes else "read")

    def _pushed(self, visit: Visit, moves: Moves) -> None:
        with self._turn:
            self.repositories[visit.repository].after_push(moves)
