"""One request as a desk sees it, and the table that tells which desk answers which."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from tests.support.forges.gitea.acts import Acts
from tests.support.forges.gitea.nouns import Account, Pull, Repository
from tests.support.forges.gitea.showing import Shape, Showing
from tests.support.forges.gitea.world import Refusal, World, pull_of

MOST = 50
"""Entries of a list at once, whatever was asked for."""


class Answer(Struct, frozen=True):
    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Call(Struct, frozen=True):
    world: World
    acts: Acts
    showing: Showing
    person: Account
    path: str
    parts: Mapping[str, str]
    query: Mapping[str, str]
    told: dict[str, Any]

    @property
    def repository(self) -> Repository:
        return self.world.repository(self.parts["owner"], self.parts["repo"])

    @property
    def pull(self) -> Pull:
        return pull_of(self.repository, self.parts["index"])

    def demand(self, role: str) -> None:
        if not self.world.may(self.repository, self.person, role):
            words = "user should be an owner or a collaborator with admin write of a repository"
            raise Refusal(403, words if role == "admin" else f"user should have {role} permission")

    def page(self, entries: Sequence[Shape]) -> Answer:
        """A part of them, and where it goes on."""
        size = min(int(self.query.get("limit", MOST)), MOST)
        number = int(self.query.get("page", 1))
        headers = {"x-total-count": str(len(entries))}
        if number * size < len(entries):
            following = f"{self.world.url}/api/v1{self.path}?limit={size}&page={number + 1}"
            others = "".join(f"&{name}={of}" for name, of in self.query.items() if name not in ("limit", "page"))
            headers["link"] = f'<{following}{others}>; rel="next"'
        return Answer(200, entries[(number - 1) * size : number * size], headers)

    def since(self) -> datetime | None:
        return datetime.fromisoformat(self.query["since"]) if "since" in self.query else None


Desk = Callable[[Call], Answer]


class Route(Struct, frozen=True):
    method: str
    template: str
    """As the description of the API writes it."""
    pattern: re.Pattern[str]
    desk: Desk


ROUTES: list[Route] = []


def at(method: str, template: str) -> Callable[[Desk], Desk]:
    """Seats a desk in the table."""
    pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template))

    def seat(desk: Desk) -> Desk:
        ROUTES.append(Route(method, template, pattern, desk))
        return desk

    return seat


def route_of(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """The path is still quoted, so that a slash in a name does not end it."""
    for route in ROUTES:
        found = route.pattern.fullmatch(path)
        if found and route.method == method:
            return route, found.groupdict()
    return None
