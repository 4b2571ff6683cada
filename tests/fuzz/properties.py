"""Hypothesis settings, and the outcome of a call: a value or one of the documented exceptions."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pkgutil import iter_modules
from time import thread_time
from typing import Any, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import Struct

from tests.fuzz import parsers

T = TypeVar("T")
E = TypeVar("E", bound=Exception)


def fuzz_settings(count: int, *, steps: int = 50) -> settings:
    """This many examples, determined by the seed alone; `steps` is the length of a stateful example."""
    return settings(
        max_examples=count,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list[Any](HealthCheck),
        print_blob=False,
    )


def outcome(act: Callable[[], T], *expected: type[E]) -> T | E:
    """The result or an expected exception; any other exception is a bug."""
    try:
        return act()
    except expected as error:
        return error


Check = TypeVar("Check", bound=Callable[..., None])
MAX_SECONDS = 5.0
"""Processor time of this thread for one example."""


class ParserProperty(Struct, frozen=True):
    check: Callable[..., None]
    examples: tuple[SearchStrategy[Any], ...]

    @property
    def name(self) -> str:
        module = self.check.__module__.rpartition(".")[2]
        return f"{module}: {self.check.__name__.replace('_', ' ')}"

    def check_examples(self, count: int, seed: int) -> int:
        """Checks at most this many examples, and returns their number."""
        tried = 0

        def checked(example: tuple[Any, ...]) -> None:
            nonlocal tried
            tried += 1
            with time_limit():
                self.check(*example)

        fuzz_settings(count)(hypothesis.seed(seed)(given(st.tuples(*self.examples))(checked)))()
        return tried


@contextmanager
def time_limit() -> Generator[None]:
    started_at = thread_time()
    yield
    assert thread_time() - started_at < MAX_SECONDS, f"it took {thread_time() - started_at:.1f} s"


PROPERTIES: list[ParserProperty] = []


def holds_for(*examples: SearchStrategy[Any]) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        PROPERTIES.append(ParserProperty(check, examples))
        return check

    return register


def all_properties() -> list[ParserProperty]:
    for module in iter_modules(parsers.__path__):
        import_module(f"{parsers.__name__}.{module.name}")
    return PROPERTIES
