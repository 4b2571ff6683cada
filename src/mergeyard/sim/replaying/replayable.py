"""Which settings can be replayed: those that say what is tested when. What the others would change, no past tells."""

from collections.abc import Mapping
from typing import Any

from msgspec import convert, to_builtins
from msgspec.structs import replace

from mergeyard.domain.config import Config, DirectMergeMode, LandingMethod

REPLAYABLE = (
    "mode",
    "concurrency",
    "bisection_concurrency",
    "batch",
    "batching_min_size",
    "batching_max_wait_time_minutes",
    "can_optimistically_merge",
    "pending_failure_depth",
    "optimization_mode",
    "speculation",
    "testing_timeout_minutes",
    "test_retries",
)


def replayed(config: Config, wishes: Mapping[str, Any]) -> Config:
    """With other values where they are wished for. Nobody is examined or asked that is not there in a replay."""
    wished = convert(to_builtins(config) | dict(wishes), Config)
    return replace(
        wished,
        required_statuses=None,
        landing=LandingMethod.TESTED_COMMIT,
        direct_merge_mode=DirectMergeMode.OFF,
        not_ready_timeout_hours=0,
    )
