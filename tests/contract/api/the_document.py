"""What the document says, word by word, as data: endpoints, fields with their types, states and limits."""

from msgspec import Struct


class Row(Struct, frozen=True):
    """One field: what it is called, what it is, and whether it must be there."""

    name: str
    kind: str
    required: bool


def rows(table: str) -> list[Row]:
    """One field in each line: name, type, and `yes` or `no`."""
    words = (line.split() for line in table.strip().splitlines())
    return [Row(name, " ".join(kind), required == "yes") for name, *kind, required in words]


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

OF_A_PULL_REQUEST = {"repo", "targetBranch", "pr"}
ENDPOINTS: dict[str, tuple[str, set[str]]] = {
    "/submitPullRequest": ("POST", OF_A_PULL_REQUEST),
    "/cancelPullRequest": ("POST", OF_A_PULL_REQUEST),
    "/restartTestsOnPullRequest": ("POST", OF_A_PULL_REQUEST),
    "/getSubmittedPullRequest": ("POST", OF_A_PULL_REQUEST),
    "/setImpactedTargets": ("POST", OF_A_PULL_REQUEST | {"impactedTargets"}),
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
MOST_BYTES = 20 * 1024 * 1024
PREFIX = "/v1"
