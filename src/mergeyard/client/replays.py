"""What a replay of a queue's past gives, as the server tells of it."""

from datetime import datetime

from mergeyard.client.answer import Answer


class ReplayFigures(Answer, frozen=True, kw_only=True):
    merged: int
    failed: int
    left: int
    p50_seconds: float | None
    p95_seconds: float | None
    runs: int
    runs_per_merge: float | None
    ci_minutes: float


class ReplayChange(Answer, frozen=True, kw_only=True):
    setting: str
    now: bool | int | str
    wished: bool | int | str


class ReplayGuess(Answer, frozen=True, kw_only=True):
    about: str
    count: int
    of: int
    message: str


class QueueReplay(Answer, frozen=True, kw_only=True):
    since: datetime
    until: datetime
    pull_requests: int
    most: int | None
    changes: tuple[ReplayChange, ...]
    as_it_was: ReplayFigures
    replayed_as_it_was: ReplayFigures | None
    with_the_change: ReplayFigures | None
    with_the_change_at_least: ReplayFigures | None
    with_the_change_at_most: ReplayFigures | None
    sureness: str
    reasons: tuple[str, ...]
    guesses: tuple[ReplayGuess, ...]
