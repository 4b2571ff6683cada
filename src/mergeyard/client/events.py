"""What happened in a queue, as the server tells of it: with the members of a webhook's data, so in snake case."""

from datetime import datetime

from msgspec import Struct

from mergeyard.client.answer import Answer


class Event(Struct, frozen=True, kw_only=True):
    type: str
    timestamp: datetime
    repository: str | None
    target_branch: str | None
    pr_number: int | None
    author: str | None
    state: str | None
    reason: str | None
    test_run_id: str | None
    test_branch: str | None
    test_branch_sha: str | None
    batched: bool
    is_bisection: bool
    details_url: str
    cursor: str
    message: str


class Events(Answer, frozen=True, kw_only=True):
    events: tuple[Event, ...]
    next: str
