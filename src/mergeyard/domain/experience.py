"""What a queue learned from those that have left it: enough for a guess, and never a verdict."""

from collections.abc import Mapping

from msgspec import Struct, field


class Experience(Struct, frozen=True):
    """Every trait of a pull request speaks for it or against it, with a weight in log-odds."""

    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    """By trait, the latest learned from last; one that is not here weighs what it does beforehand."""
    failed: tuple[int, ...] = ()
    """The numbers of those that failed a test not long ago."""
