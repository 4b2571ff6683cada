"""The states that pull requests, queues and runs can be in; every name as the API spells it."""

from enum import StrEnum


class PrState(StrEnum):
    NOT_READY = "not_ready"
    PENDING = "pending"
    TESTING = "testing"
    PENDING_FAILURE = "pending_failure"
    TESTS_PASSED = "tests_passed"
    MERGED = "merged"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({PrState.MERGED, PrState.FAILED, PrState.CANCELLED})


class QueueState(StrEnum):
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    DRAINING = "DRAINING"
    SWITCHING_MODES = "SWITCHING_MODES"


class RunStatus(StrEnum):
    PREPARING = "preparing"
    """Its test branch is still being built: the API does not show such a run yet."""
    IN_PROGRESS = "in_progress"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE = frozenset({RunStatus.PREPARING, RunStatus.IN_PROGRESS})


class CheckState(StrEnum):
    PENDING = "pending"
    PASSED = "passed"
    NEUTRAL = "neutral"
    """Skipped, or without an opinion: it satisfies the run that it belongs to, and proves nothing about others."""
    FAILED = "failed"


SATISFIED = frozenset({CheckState.PASSED, CheckState.NEUTRAL})
"""With these a required check lets its own run pass."""


class Mergeability(StrEnum):
    UNKNOWN = "unknown"
    CHECKING = "checking"
    MERGEABLE = "mergeable"
    NOT_MERGEABLE = "not_mergeable"
