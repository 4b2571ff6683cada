"""Test runs, and what they found, as the server tells of them."""

from datetime import datetime

from mergeyard.client.answer import Answer


class CheckRun(Answer, frozen=True, kw_only=True):
    name: str
    url: str
    status: str
    conclusion: str | None


class CheckSuite(Answer, frozen=True, kw_only=True):
    check_runs: tuple[CheckRun, ...]


class StatusCheck(Answer, frozen=True, kw_only=True):
    context: str
    url: str
    state: str


class TestedPullRequest(Answer, frozen=True, kw_only=True):
    __test__ = False
    pr_number: int
    pr_url: str
    title: str


class Run(Answer, frozen=True, kw_only=True):
    """One test of one batch upon one stack."""

    id: str
    required_statuses: tuple[str, ...]
    required_statuses_source: str
    test_branch: str
    test_branch_sha: str
    check_suites: tuple[CheckSuite, ...]
    status_checks: tuple[StatusCheck, ...]
    tested_pull_requests: tuple[TestedPullRequest, ...]
    status: str
    created_at: datetime
    impacted_targets: tuple[str, ...] | None = None
    impacted_targets_for_tested_prs: tuple[str, ...] | None = None
    dependent_prs: tuple[int, ...]
    is_bisection: bool
    base_sha: str

    @property
    def checks(self) -> dict[str, str]:
        """What each check says so far, by its name."""
        reported = {check.context: check.state for check in self.status_checks}
        suites = {run.name: run.conclusion or "pending" for suite in self.check_suites for run in suite.check_runs}
        return suites | reported


class TestingResult(Answer, frozen=True, kw_only=True):
    __test__ = False
    pr_number: int
    test_run_id: str
    status: str
    is_bisection: bool
    started_at: datetime
    finished_at: datetime
    duration_seconds: float


class TestingResults(Answer, frozen=True, kw_only=True):
    __test__ = False
    testing_results: tuple[TestingResult, ...]
    total_items: int


class StatusAccepted(Answer, frozen=True, kw_only=True):
    accepted: bool
