"""Holds all people, tokens and projects of the fake, and hands out numbers and times."""

from datetime import UTC, datetime, timedelta
from itertools import count

from mergeyard.domain.instants import SECOND
from mergeyard.ports.clock import Clock
from tests.support.forges.git_rooms import GitRooms, Visit
from tests.support.forges.gitlab.nouns import DEVELOPER, MAINTAINER, Person, Project, Token

OURS = "mergeyard-bot"
TOKEN = "glpat-a-secret"
A_MOMENT = timedelta(milliseconds=1)


class World:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.people: dict[str, Person] = {}
        self.tokens: dict[str, Token] = {}
        self.projects: dict[str, Project] = {}
        self.groups: dict[int, list[str]] = {}
        """Members of each group."""
        self.pages = ""
        self._ids = count(101)
        self._last = self._told()
        self.tokens[TOKEN] = Token(self.person(OURS))

    def next_id(self) -> int:
        return next(self._ids)

    def now(self) -> datetime:
        """Never the same twice."""
        self._last = max(self._told(), self._last + A_MOMENT)
        return self._last

    def _told(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now() / SECOND, UTC)

    def person(self, username: str) -> Person:
        if username not in self.people:
            self.people[username] = Person(self.next_id(), username)
        return self.people[username]

    def add_project(self, rooms: GitRooms, path: str) -> Project:
        members = {OURS: MAINTAINER, "ada": DEVELOPER}
        project = Project(id=self.next_id(), path=path, origin=rooms.made(path), members=members)
        for username in members:
            self.person(username)
        self.projects[path] = project
        return project

    def project_named(self, name: str) -> Project | None:
        """By its id or its path; the case does not matter."""
        found = (project for project in self.projects.values() if name.lower() in (str(project.id), project.path))
        return next(found, None)

    def page_of(self, project: Project) -> str:
        return f"{self.pages}/{project.path}"

    def may(self, visit: Visit) -> bool:
        """Whether somebody may come in with git."""
        token, project = self.tokens.get(visit.password), self.projects.get(visit.repository)
        if token is None or project is None:
            return False
        level = project.members.get(token.person.username, 0)
        return level >= DEVELOPER if visit.writes else level > 0
