"""Queues and their settings, as the server tells of them and as it takes them."""

from typing import TypedDict

from mergeyard.client.answer import Answer
from mergeyard.client.naming import QueueName, RepoName
from mergeyard.client.pulls import EnqueuedPullRequest


class Settings(TypedDict, total=False):
    """What `create_queue` and `update_queue` take; docs/settings.md tells what each does."""

    mode: str
    concurrency: int
    bisection_concurrency: int
    batch: bool
    batching_min_size: int
    batching_max_wait_time_minutes: int
    can_optimistically_merge: bool
    pending_failure_depth: int
    optimization_mode: str
    speculation: str
    testing_timeout_minutes: int
    test_retries: int
    required_statuses: list[str] | None
    merge_method: str
    landing: str
    direct_merge_mode: str
    create_prs_for_testing_branches: bool
    comments_enabled: bool
    commands_enabled: bool
    status_check_enabled: bool
    not_ready_timeout_hours: int
    label_commands_enabled: bool
    enqueueing_label: str


class Queue(Answer, frozen=True, kw_only=True):
    state: str
    branch: str
    repo: RepoName
    mode: str
    concurrency: int
    bisection_concurrency: int
    batch: bool
    batching_min_size: int
    batching_max_wait_time_minutes: int
    can_optimistically_merge: bool
    pending_failure_depth: int
    optimization_mode: str
    speculation: str
    testing_timeout_minutes: int
    test_retries: int
    required_statuses: tuple[str, ...] | None
    merge_method: str
    landing: str
    direct_merge_mode: str
    create_prs_for_testing_branches: bool
    comments_enabled: bool
    commands_enabled: bool
    status_check_enabled: bool
    not_ready_timeout_hours: int
    label_commands_enabled: bool
    enqueueing_label: str
    enqueued_pull_requests: tuple[EnqueuedPullRequest, ...] | None = None

    @property
    def named(self) -> QueueName:
        return QueueName(self.repo, self.branch)


class Queues(Answer, frozen=True, kw_only=True):
    queues: tuple[Queue, ...]


class QueueDeleted(Answer, frozen=True, kw_only=True):
    deleted: bool
    repo: RepoName
    target_branch: str
