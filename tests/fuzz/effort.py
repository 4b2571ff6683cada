"""How much is drawn, and what comes of it: a value, or one of the refusals that are documented."""

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings

T = TypeVar("T")
E = TypeVar("E", bound=Exception)


def drawing(count: int, *, steps: int = 50) -> settings:
    """So many, chosen by a seed alone; `steps` counts where an example is a story."""
    return settings(
        max_examples=count,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list[Any](HealthCheck),
        print_blob=False,
    )


def outcome(act: Callable[[], T], *refusals: type[E]) -> T | E:
    """Any other exception is a bug."""
    try:
        return act()
    except refusals as refusal:
        return refusal
