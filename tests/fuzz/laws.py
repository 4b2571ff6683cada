"""Laws that hold for whatever comes from outside: written once, tried on a few examples every day and on many at will.

@holds_for(st.text())
def a_time_is_read_or_it_is_none(text: str) -> None: ...
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pkgutil import iter_modules
from time import thread_time
from typing import Any, TypeVar

import hypothesis
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import Struct

from tests.fuzz import parsers
from tests.fuzz.effort import drawing

Check = TypeVar("Check", bound=Callable[..., None])
LONGEST = 5.0
"""Seconds of our own, for one example: others who use the machine do not count."""


class Law(Struct, frozen=True):
    check: Callable[..., None]
    examples: tuple[SearchStrategy[Any], ...]

    @property
    def name(self) -> str:
        room = self.check.__module__.rpartition(".")[2]
        return f"{room}: {self.check.__name__.replace('_', ' ')}"

    def try_on(self, count: int, seed: int) -> int:
        """On so many examples, unless there are fewer; and tells how many there were."""
        tried = 0

        def checked(example: tuple[Any, ...]) -> None:
            nonlocal tried
            tried += 1
            with in_time():
                self.check(*example)

        drawing(count)(hypothesis.seed(seed)(given(st.tuples(*self.examples))(checked)))()
        return tried


@contextmanager
def in_time() -> Generator[None]:
    begun = thread_time()
    yield
    assert thread_time() - begun < LONGEST, f"it took {thread_time() - begun:.1f} s"


LAWS: list[Law] = []


def holds_for(*examples: SearchStrategy[Any]) -> Callable[[Check], Check]:
    def kept(check: Check) -> Check:
        LAWS.append(Law(check, examples))
        return check

    return kept


def all_laws() -> list[Law]:
    for room in iter_modules(parsers.__path__):
        import_module(f"{parsers.__name__}.{room.name}")
    return LAWS
