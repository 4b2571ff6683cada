"""The settings of a queue, with their ranges and defaults."""

from enum import StrEnum
from typing import Annotated, cast

from msgspec import Meta, Struct
from msgspec.structs import fields


class Mode(StrEnum):
    SINGLE = "single"
    PARALLEL = "parallel"


class MergeMethod(StrEnum):
    MERGE_COMMIT = "merge_commit"
    SQUASH = "squash"
    REBASE = "rebase"


class LandingMethod(StrEnum):
    TESTED_COMMIT = "tested_commit"
    PROVIDER_MERGE = "provider_merge"


class DirectMergeMode(StrEnum):
    OFF = "off"
    ALWAYS = "always"


class OptimizationMode(StrEnum):
    OFF = "off"
    BISECTION_SKIP_REDUNDANT_TESTS = "bisection_skip_redundant_tests"


class Speculation(StrEnum):
    CHAIN = "chain"
    """Every run counts on all those ahead."""
    BEST_FIRST = "best_first"
    """Runs start in the order in which they are likely to be needed, also without those expected to fail."""


Runs = Annotated[int, Meta(ge=1, le=1000)]
Minutes = Annotated[int, Meta(ge=0, le=10_080)]
LONGEST_LABEL = 100
"""Of those that are given from now on: a queue that keeps a longer one is still read."""


class Config(Struct, frozen=True, kw_only=True):
    mode: Mode = Mode.SINGLE
    concurrency: Runs = 5
    bisection_concurrency: Runs = 5
    batch: bool = False
    batching_min_size: Annotated[int, Meta(ge=1, le=100)] = 4
    batching_max_wait_time_minutes: Minutes = 5
    can_optimistically_merge: bool = False
    pending_failure_depth: Annotated[int, Meta(ge=0, le=1000)] = 0
    optimization_mode: OptimizationMode = OptimizationMode.OFF
    speculation: Speculation = Speculation.CHAIN
    testing_timeout_minutes: Annotated[int, Meta(ge=1, le=10_080)] = 300
    test_retries: Annotated[int, Meta(ge=0, le=10)] = 0
    required_statuses: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    merge_method: MergeMethod = MergeMethod.MERGE_COMMIT
    landing: LandingMethod = LandingMethod.TESTED_COMMIT
    direct_merge_mode: DirectMergeMode = DirectMergeMode.OFF
    create_prs_for_testing_branches: bool = False
    comments_enabled: bool = True
    commands_enabled: bool = True
    status_check_enabled: bool = True
    not_ready_timeout_hours: Annotated[int, Meta(ge=0, le=720)] = 24
    label_commands_enabled: bool = True
    enqueueing_label: str = "merge-queue"

    @property
    def batch_size(self) -> int:
        return self.batching_min_size if self.batch else 1


LONGEST_VALUE = 200


def differences(before: Config, after: Config) -> str:
    """Which settings are others, from what to what: `concurrency 5 → 4, batch no → yes`."""
    named = ((field.name, getattr(before, field.name), getattr(after, field.name)) for field in fields(Config))
    return ", ".join(f"{name} {_shown(old)} → {_shown(new)}" for name, old, new in named if old != new)


def _shown(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return " + ".join(map(str, cast(tuple[str, ...], value)))[:LONGEST_VALUE]
        case _:
            return str(value)[:LONGEST_VALUE]
