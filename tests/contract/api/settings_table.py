"""The settings of a queue as the contract lists them: their defaults, what is taken, and what is not."""

from typing import Any

from msgspec import Struct


class Setting(Struct, frozen=True):
    default: Any
    good: tuple[Any, ...]
    bad: tuple[Any, ...]


def from_to(lowest: int, highest: int, default: int) -> Setting:
    return Setting(default, (lowest, highest), (lowest - 1, highest + 1, lowest + 0.5, str(highest), True, None, []))


def yes_or_no(*, default: bool) -> Setting:
    return Setting(default, (True, False), (0, 1, "true", None))


def one_of(*words: str) -> Setting:
    """The first is the default."""
    return Setting(words[0], words, ("", "nothing", 0, None, True))


SETTINGS: dict[str, Setting] = {
    "mode": one_of("single", "parallel"),
    "concurrency": from_to(1, 1000, 5),
    "bisectionConcurrency": from_to(1, 1000, 5),
    "batch": yes_or_no(default=False),
    "batchingMinSize": from_to(1, 100, 4),
    "batchingMaxWaitTimeMinutes": from_to(0, 10080, 5),
    "canOptimisticallyMerge": yes_or_no(default=False),
    "pendingFailureDepth": from_to(0, 1000, 0),
    "optimizationMode": one_of("off", "bisection_skip_redundant_tests"),
    "speculation": one_of("chain", "best_first"),
    "testingTimeoutMinutes": from_to(1, 10080, 300),
    "testRetries": from_to(0, 10, 0),
    "requiredStatuses": Setting(None, (["unit"], ["b", "a"], None), ([], [""], ["a", 1], [None], "unit", {}, True)),
    "mergeMethod": one_of("merge_commit", "squash", "rebase"),
    "landing": one_of("tested_commit", "provider_merge"),
    "directMergeMode": one_of("off", "always"),
    "createPrsForTestingBranches": yes_or_no(default=False),
    "commentsEnabled": yes_or_no(default=True),
    "commandsEnabled": yes_or_no(default=True),
    "statusCheckEnabled": yes_or_no(default=True),
    "notReadyTimeoutHours": from_to(0, 720, 24),
    "labelCommandsEnabled": yes_or_no(default=True),
    "enqueueingLabel": Setting("merge-queue", ("x", "an other", "é" * 100), (0, None, ["x"], "", "x" * 101)),
}
DEFAULTS: dict[str, Any] = {name: setting.default for name, setting in SETTINGS.items()}
NO_SETTINGS = ("spekulation", "concurency", "Mode", "pr", "enqueuedPullRequests", "branch")
