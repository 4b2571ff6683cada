"""The content of `spec/api.md` as data: endpoints, fields with their types, states and limits."""

from typing import Any

from msgspec import Struct


class Row(Struct, frozen=True):
    """One field: its name, its type, and whether it is required."""

    name: str
    kind: str
    required: bool


def rows(table: str) -> list[Row]:
    """Parses one field per line: name, type, and `yes` or `no`."""
    cells = (line.split() for line in table.strip().splitlines())
    return [Row(name, " ".join(kind), required == "yes") for name, *kind, required in cells]


# 2.3

SUBMITTED_PULL_REQUEST = rows("""
    id                           string       no
    state                        string enum  no
    stateChangedAt               string       yes
    priorityValue                number       yes
    priorityName                 string       yes
    usedDefaultPriorityName      string       no
    skipTheLine                  boolean      yes
    forceEnqueued                boolean      yes
    isCurrentlySubmittedToQueue  boolean      yes
    prNumber                     number       yes
    prTitle                      string       yes
    prSha                        string       yes
    prBaseBranch                 string       yes
    prAuthor                     string       yes
    readiness                    object       no
""")
READINESS = rows("""
    requiresImpactedTargets      boolean      yes
    doesBaseBranchMatch          boolean      yes
    hasImpactedTargets           boolean      yes
""")

# 2.4

TEST_RUN_DETAILS = rows("""
    requiredStatuses             string[]     yes
    requiredStatusesSource       string enum  no
    testBranch                   string       yes
    testBranchSha                string       yes
    checkSuites                  object[]     yes
    statusChecks                 object[]     yes
    testedPullRequests           object[]     yes
    status                       string enum  no
    createdAt                    string       no
    impactedTargets              string[]     no
    impactedTargetsForTestedPrs  string[]     no
    dependentPrs                 number[]     no
""")
CHECK_SUITE = rows("checkRuns object[] yes")
CHECK_RUN = rows("""
    name                         string       yes
    url                          string       yes
""")
STATUS_CHECK = rows("""
    context                      string       yes
    url                          string       yes
""")
TESTED_PULL_REQUEST = rows("""
    prNumber                     number       yes
    prUrl                        string       yes
    title                        string       yes
""")
REQUIRED_STATUSES_SOURCES = {"service_config", "repo_provider_branch_protection", "merge_instance"}

# 3

PR_STATES = {
    "not_ready", "pending", "testing", "tests_passed", "merged", "failed", "cancelled", "pending_failure",
}  # fmt: skip
QUEUE_STATES = {"RUNNING", "PAUSED", "DRAINING", "SWITCHING_MODES"}
RUN_STATUSES = {"in_progress", "succeeded", "failed", "cancelled"}

# 4

PULL_REQUEST_MEMBERS = {"repo", "targetBranch", "pr"}
ENDPOINTS: dict[str, tuple[str, set[str]]] = {
    "/submitPullRequest": ("POST", PULL_REQUEST_MEMBERS),
    "/cancelPullRequest": ("POST", PULL_REQUEST_MEMBERS),
    "/restartTestsOnPullRequest": ("POST", PULL_REQUEST_MEMBERS),
    "/getSubmittedPullRequest": ("POST", PULL_REQUEST_MEMBERS),
    "/setImpactedTargets": ("POST", PULL_REQUEST_MEMBERS | {"impactedTargets"}),
    "/getMergeQueueTestingDetails": ("POST", {"repo", "targetBranch", "testRunId"}),
    "/createQueue": ("POST", {"repo", "targetBranch"}),
    "/deleteQueue": ("POST", {"repo", "targetBranch"}),
    "/getQueue": ("POST", {"repo", "targetBranch"}),
    "/updateQueue": ("POST", {"repo", "targetBranch"}),
    "/getMergeQueueMetrics": ("GET", set()),
}
"""Each with its method, and the members that its request must have."""
REPO_MEMBERS = ("host", "owner", "name")
METRICS_PARAMETERS = ("repo", "repoHost")
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# 5, 8, 9

TOKEN_HEADER = "x-api-token"
MAX_BODY_BYTES = 20 * 1024 * 1024
PREFIX = "/v1"


class Setting(Struct, frozen=True):
    default: Any
    good: tuple[Any, ...]
    bad: tuple[Any, ...]


def from_to(lowest: int, highest: int, default: int) -> Setting:
    return Setting(default, (lowest, highest), (lowest - 1, highest + 1, lowest + 0.5, str(highest), True, None, []))


def boolean(*, default: bool) -> Setting:
    return Setting(default, (True, False), (0, 1, "true", None))


def one_of(*values: str) -> Setting:
    """The first is the default."""
    return Setting(values[0], values, ("", "nothing", 0, None, True))


SETTINGS: dict[str, Setting] = {
    "mode": one_of("single", "parallel"),
    "concurrency": from_to(1, 1000, 5),
    "bisectionConcurrency": from_to(1, 1000, 5),
    "batch": boolean(default=False),
    "batchingMinSize": from_to(1, 100, 4),
    "batchingMaxWaitTimeMinutes": from_to(0, 10080, 5),
    "canOptimisticallyMerge": boolean(default=False),
    "pendingFailureDepth": from_to(0, 1000, 0),
    "optimizationMode": one_of("off", "bisection_skip_redundant_tests"),
    "speculation": one_of("chain", "best_first"),
    "testingTimeoutMinutes": from_to(1, 10080, 300),
    "testRetries": from_to(0, 10, 0),
    "requiredStatuses": Setting(None, (["unit"], ["b", "a"], None), ([], [""], ["a", 1], [None], "unit", {}, True)),
    "mergeMethod": one_of("merge_commit", "squash", "rebase"),
    "landing": one_of("tested_commit", "provider_merge"),
    "moveHeadBranches": boolean(default=True),
    "headBranchFallback": one_of("provider_merge", "close"),
    "deleteHeadBranches": boolean(default=False),
    "squashTemplate": Setting(
        "",
        ("{title}\n\n{{x}} {body}", "é" * 10_000, ""),
        (0, None, ["x"], "x" * 10_001, "{titel}", "{title", "}", "\0", "{body}" * 51),
    ),
    "directMergeMode": one_of("off", "always"),
    "createPrsForTestingBranches": boolean(default=False),
    "commentsEnabled": boolean(default=True),
    "commandsEnabled": boolean(default=True),
    "statusCheckEnabled": boolean(default=True),
    "notReadyTimeoutHours": from_to(0, 720, 24),
    "labelCommandsEnabled": boolean(default=True),
    "enqueueingLabel": Setting("merge-queue", ("x", "an other", "é" * 100), (0, None, ["x"], "", "x" * 101)),
    "extensionEnabled": boolean(default=True),
    "stateLabelsEnabled": boolean(default=False),
    "allowedBotSubmitters": Setting(
        [], ([], ["é" * 100] * 70, ["a[bot]", "b"]), (None, "a", {}, [1], [None], ["a"] * 101, ["x" * 16_384])
    ),
    "batchingRules": Setting(
        [],
        ([], [{"size": at} for at in range(100)], [{"size": 4, "when": {"labels": ["é", None, 1.5, True]}}]),
        (None, "[]", {}, [1], ["a"], [[]], [{"size": at} for at in range(101)], [{"a": "x" * 16_384}]),
    ),
    "testBranchConstructionMode": Setting(
        "rename_temp_branch", ("rename_temp_branch", "another"), (0, None, ["x"], "", "x" * 101)
    ),
}
DEFAULTS: dict[str, Any] = {name: setting.default for name, setting in SETTINGS.items()}
UNKNOWN_SETTINGS = ("spekulation", "concurency", "Mode", "enqueuedPullRequests", "branch")
