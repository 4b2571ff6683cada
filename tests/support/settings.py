"""The settings that tests name by their own names."""

from typing import TypedDict

from mergeyard.domain.config import (
    DirectMergeMode,
    HeadBranchFallback,
    LandingMethod,
    MergeMethod,
    OptimizationMode,
    Speculation,
)


class Settings(TypedDict, total=False):
    concurrency: int
    bisection_concurrency: int
    batching_max_wait_time_minutes: int
    optimization_mode: OptimizationMode
    speculation: Speculation
    testing_timeout_minutes: int
    test_retries: int
    required_statuses: tuple[str, ...] | None
    merge_method: MergeMethod
    landing: LandingMethod
    move_head_branches: bool
    head_branch_fallback: HeadBranchFallback
    direct_merge_mode: DirectMergeMode
    not_ready_timeout_hours: int
