"""The settings of a queue, with their ranges and defaults, and the priorities of pull requests."""

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


class HeadBranchFallback(StrEnum):
    """How a squashed or rebased pull request merges whose head branch cannot be moved."""

    PROVIDER_MERGE = "provider_merge"
    """The Git host merges it."""
    CLOSE = "close"
    """The tested commit is pushed, and the pull request is closed with a link to it."""


class DirectMergeMode(StrEnum):
    OFF = "off"
    ALWAYS = "always"


class OptimizationMode(StrEnum):
    OFF = "off"
    BISECTION_SKIP_REDUNDANT_TESTS = "bisection_skip_redundant_tests"


class Speculation(StrEnum):
    CHAIN = "chain"
    """Every run is stacked on all pull requests ahead of it."""
    BEST_FIRST = "best_first"
    """Runs start by how likely their result is needed, also on stacks without pull requests that are
    expected to fail."""


RunCount = Annotated[int, Meta(ge=1, le=1000)]
Minutes = Annotated[int, Meta(ge=0, le=10_080)]
MAX_TEMPLATE_LENGTH = 10_000
MAX_LABEL_LENGTH = 100
"""For labels that are set from now on. A stored longer label is still accepted."""


class Config(Struct, frozen=True, kw_only=True):
    mode: Mode = Mode.SINGLE
    concurrency: RunCount = 5
    bisection_concurrency: RunCount = 5
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
    move_head_branches: bool = True
    head_branch_fallback: HeadBranchFallback = HeadBranchFallback.PROVIDER_MERGE
    delete_head_branches: bool = False
    squash_template: Annotated[str, Meta(max_length=MAX_TEMPLATE_LENGTH)] = ""
    direct_merge_mode: DirectMergeMode = DirectMergeMode.OFF
    create_prs_for_testing_branches: bool = False
    comments_enabled: bool = True
    commands_enabled: bool = True
    status_check_enabled: bool = True
    not_ready_timeout_hours: Annotated[int, Meta(ge=0, le=720)] = 24
    label_commands_enabled: bool = True
    enqueueing_label: str = "merge-queue"
    extension_enabled: bool = True
    state_labels_enabled: bool = False
    allowed_bot_submitters: str = "[]"
    """The JSON text of a list, as in `batching_rules`: a `Config` must stay hashable and cheap to compare."""
    batching_rules: str = "[]"
    test_branch_construction_mode: str = "rename_temp_branch"

    @property
    def batch_size(self) -> int:
        return self.batching_min_size if self.batch else 1


SETTINGS_WITHOUT_EFFECT = (
    "extension_enabled",
    "state_labels_enabled",
    "allowed_bot_submitters",
    "batching_rules",
    "test_branch_construction_mode",
)
"""Kept for clients of the hosted product, which send them and expect them back."""
JSON_TEXT_SETTINGS = ("allowed_bot_submitters", "batching_rules")
"""Settings that are lists in the API and their JSON text in a `Config`."""

MAX_VALUE_LENGTH = 200


def describe_changes(before: Config, after: Config) -> str:
    """The changed settings as text, such as `concurrency 5 → 4, batch no → yes`."""
    values = ((field.name, getattr(before, field.name), getattr(after, field.name)) for field in fields(Config))
    return ", ".join(f"{name} {_format_value(old)} → {_format_value(new)}" for name, old, new in values if old != new)


def _format_value(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return " + ".join(map(str, cast(tuple[str, ...], value)))[:MAX_VALUE_LENGTH]
        case _:
            return str(value)[:MAX_VALUE_LENGTH]


PRIORITIES = {"urgent": 0, "high": 10, "medium": 100, "low": 200}
URGENT = PRIORITIES["urgent"]
MIN_AGED_PRIORITY = 1
"""Waiting improves a priority up to this value, not to urgent."""
DEFAULT_PRIORITY = PRIORITIES["medium"]
LOWEST_PRIORITY = 255
_PRIORITY_NAMES = {number: name for name, number in PRIORITIES.items()}


def format_priority(priority: int) -> str:
    """The name of the priority, if it has one, otherwise the number."""
    return _PRIORITY_NAMES.get(priority, str(priority))


def parse_priority(text: str) -> int | None:
    """A priority from its name or number; None if the text is neither."""
    if text in PRIORITIES:
        return PRIORITIES[text]
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(LOWEST_PRIORITY))
    return int(text) if is_number and int(text) <= LOWEST_PRIORITY else None


SETTING_DESCRIPTIONS = {
    "mode": "`single` tests all in one sequence; `parallel` uses lanes for different impacted targets.",
    "concurrency": "How many test runs can be in progress, not counting those of bisections.",
    "bisection_concurrency": "How many test runs of bisections can be in progress, in addition to `concurrency`.",
    "batch": "Whether several pull requests are tested in one run.",
    "batching_min_size": "A batch starts as soon as this many pull requests wait; also its maximum size.",
    "batching_max_wait_time_minutes": "A smaller batch starts when its oldest pull request has waited this long.",
    "can_optimistically_merge": "A passing run also clears everything ahead that it contains; skipped checks do not.",
    "pending_failure_depth": "How many later batches can still clear a failed batch.",
    "optimization_mode": "Whether the culprit of a bisection fails without a final test run.",
    "speculation": "`chain` assumes that everything ahead passes; `best_first` tests the likeliest outcomes first.",
    "testing_timeout_minutes": "How long a test run can take.",
    "test_retries": "How often a failed run is repeated before its pull requests fail.",
    "required_statuses": "The checks that must pass; null leaves the choice to the repository.",
    "merge_method": "How a pull request becomes commits on the target branch.",
    "landing": "Push the tested commit, or ask the Git host to merge and then compare the trees.",
    "move_head_branches": "With `squash` and `rebase`, moves the head branch to the merged commit, so that the Git "
    "host shows the pull request as merged.",
    "head_branch_fallback": "If a head branch cannot be moved: the Git host merges, or the queue merges and closes "
    "the pull request with a link.",
    "delete_head_branches": "Deletes the head branches of merged pull requests, except in forks.",
    "squash_template": "The message of squashed commits; empty means the default. `.mergeyard.toml` has precedence.",
    "direct_merge_mode": "Whether testing is skipped if the head is up to date and its checks passed.",
    "create_prs_for_testing_branches": "Opens a draft pull request for every test branch.",
    "comments_enabled": "Reports the progress of a pull request in a comment on it.",
    "commands_enabled": "Accepts commands in comments.",
    "status_check_enabled": "Shows the state of a pull request in the queue as a check at the Git host.",
    "not_ready_timeout_hours": "Pull requests that are not ready are removed after this time; 0 means never.",
    "label_commands_enabled": "Submits a pull request when it gets the label, removes it when it loses the label.",
    "enqueueing_label": "The label that submits a pull request.",
    **dict.fromkeys(SETTINGS_WITHOUT_EFFECT, "No effect: stored and returned for clients of the hosted product."),
}
