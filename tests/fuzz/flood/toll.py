"""What a flood has come to so far: which endpoint answered how often with what."""

from collections import Counter

from msgspec import Struct, field


class Toll(Struct):
    answers: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    """By endpoint and status."""
    codes: Counter[str] = field(default_factory=Counter[str])
    """Of refusals."""
    unsent: int = 0
    """Which no client would send: such as headers with a line break in them."""
    seconds: float = 0
    memory: list[float] = field(default_factory=list[float])
    """In MiB, after every round."""

    @property
    def requests(self) -> int:
        return self.answers.total()
