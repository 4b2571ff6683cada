"""One request to the fake, and the few ways in which it can be answered."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.forges.github.doors import Doors, Visitor
from tests.support.forges.github.facts import Change, Said
from tests.support.forges.github.repository import FakeRepository

MOST_PER_PAGE = 100
T = TypeVar("T")


class Refused(Exception):
    """With a status and words."""

    def __init__(self, status: int, words: str = "Not Found") -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class Call(Struct, frozen=True, kw_only=True):
    visitor: Visitor
    doors: Doors
    repositories: Mapping[str, FakeRepository]
    words: Mapping[str, str]
    """The parts of the path."""
    query: Mapping[str, str]
    body: Any

    @property
    def repository(self) -> FakeRepository:
        """In any spelling; unseen is not there."""
        name = f"{self.words['owner']}/{self.words['repo']}".lower()
        kept = self.repositories.get(name)
        if kept is None or not (self.visitor.is_app or self.visitor.sees(name)):
            raise Refused(404)
        return kept

    @property
    def change(self) -> Change:
        return self._there(self.repository.changes, int(self.words["number"]))

    @property
    def comment(self) -> Said:
        return self._there(self.repository.said, int(self.words["comment"]))

    @property
    def tip(self) -> Sha:
        found = self.repository.origin.ref(self.words["branch"])
        if found is None:
            raise Refused(404, "Branch not found")
        return found

    def page(self, whole: Sequence[T]) -> list[T]:
        size = min(int(self.query.get("per_page", "30")), MOST_PER_PAGE)
        first = (int(self.query.get("page", "1")) - 1) * size
        return list(whole[first : first + size])

    def _there(self, things: Mapping[int, T], number: int) -> T:
        if number not in things:
            raise Refused(404)
        return things[number]


class Page(Struct, frozen=True):
    """A list, of which a part is shown."""

    items: list[Any]
    of: int


class Created(Struct, frozen=True):
    answer: Any


Handler = Callable[[Call], Any]
