"""Pull requests in a queue, as the server tells of them."""

from datetime import datetime

from msgspec import field

from mergeyard.client.answer import Answer


class Readiness(Answer, frozen=True, kw_only=True):
    requires_impacted_targets: bool
    does_base_branch_match: bool
    has_impacted_targets: bool


class Why(Answer, frozen=True, kw_only=True):
    """Why it is in its state, or what it waits for: one word for programs, a sentence for people."""

    code: str
    message: str
    waiting_for: tuple[int, ...]


class Moment(Answer, frozen=True, kw_only=True):
    """One entry of a timeline."""

    at: datetime
    source: str | None = field(name="from")
    to: str
    reason: str
    message: str
    actor: str
    test_run_id: str | None


class EnqueuedPullRequest(Answer, frozen=True, kw_only=True):
    """As a queue shows those that are in it."""

    id: str
    state: str
    state_changed_at: datetime
    priority_value: int
    priority_name: str
    skip_the_line: bool
    no_batch: bool
    pr_number: int
    pr_title: str
    pr_sha: str
    pr_base_branch: str
    pr_author: str
    test_run_id: str | None
    position: int | None
    reason: Why


class SubmittedPullRequest(EnqueuedPullRequest, frozen=True, kw_only=True):
    """One stay of a pull request in a queue."""

    used_default_priority_name: str | None = None
    force_enqueued: bool
    is_currently_submitted_to_queue: bool
    readiness: Readiness
    mergeability: str
    verified_by_test_run: str | None
    estimated_merge_at: datetime | None
    estimated_merge_at_p90: datetime | None
    submitted_at: datetime
    merged_sha: str | None
    timeline: tuple[Moment, ...] | None = None

    @property
    def over(self) -> bool:
        """Merged, failed or cancelled: this stay will not change any more."""
        return not self.is_currently_submitted_to_queue


class PullRequests(Answer, frozen=True, kw_only=True):
    pull_requests: tuple[SubmittedPullRequest, ...]
    next_cursor: str | None = None


class FoundPullRequests(Answer, frozen=True, kw_only=True):
    pull_requests: tuple[SubmittedPullRequest, ...]
    not_found: tuple[int, ...]


class TargetsKept(Answer, frozen=True, kw_only=True):
    pr_number: int
    pr_sha: str
    impacted_targets: str | int
