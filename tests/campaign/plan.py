"""What a round is like, drawn by its seed: one repository, one queue, some pull requests, and who meddles."""

from random import Random
from typing import Any, Self

from msgspec import Struct

METHODS = ("merge_commit", "squash", "rebase")
LANES = ("fe", "be", "docs")


class Plan(Struct, frozen=True, kw_only=True):
    method: str
    parallel: bool
    batch: int
    """How many are tested together."""
    concurrency: int
    waves: tuple[int, ...]
    """How many pull requests come at a time."""
    meddling: float
    """How often something happens at the host that the queue did not do."""
    direct: bool
    optimistic: bool
    refused_names: bool
    """Whether there are names that git itself would not have: then it can judge little."""

    @classmethod
    def drawn(cls, seed: int, chance: Random) -> Self:
        return cls(
            method=METHODS[seed % len(METHODS)],
            parallel=chance.random() < 0.4,
            batch=chance.randint(1, 5),
            concurrency=chance.choice((1, 2, 5)),
            waves=tuple(chance.randint(1, 5) for _ in range(chance.randint(1, 4))),
            meddling=chance.choice((0.0, 0.0, 0.3, 0.7)),
            direct=chance.random() < 0.15,
            optimistic=chance.random() < 0.2,
            refused_names=chance.random() < 0.1,
        )

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "mergeMethod": self.method,
            "mode": "parallel" if self.parallel else "single",
            "batch": self.batch > 1,
            "batchingMinSize": self.batch,
            "batchingMaxWaitTimeMinutes": 0,
            "concurrency": self.concurrency,
            "directMergeMode": "always" if self.direct else "off",
            "canOptimisticallyMerge": self.optimistic,
        }
