"""Generates `docs/reference/states.md` from the tables of the domain, so that the page always agrees with the code."""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from mergeyard.domain.states import (
    ADMITTED_STATES,
    LIVE_STATES,
    PULL_REQUEST_TRANSITIONS,
    QUEUE_TRANSITIONS,
    REASON_MESSAGES,
    REQUIREMENT_REASONS,
    RUN_TRANSITIONS,
    UPDATE_REASONS,
    PullRequestState,
    PullRequestTransition,
    QueueState,
    Reason,
    RunStatus,
)
from mergeyard.web.formats import PULL_REQUEST_STATE_LABELS, QUEUE_STATE_LABELS, RUN_STATE_LABELS

E = TypeVar("E", bound=StrEnum)
Arrow = tuple[str, str]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "states.md"

OPENING = """\
# States and reasons

Every state, transition and reason of pull requests, queues and runs. Nothing else can happen.
`make states` generates this page from `src/mergeyard/domain/states.py`."""

PR_STATES = {
    PullRequestState.NOT_READY: "Submitted, but something is missing: the reason names it.",
    PullRequestState.PENDING: "Ready. Waits for a test run, or for another one.",
    PullRequestState.TESTING: "A test branch with its changes was pushed, and the checks run.",
    PullRequestState.PENDING_FAILURE: "Its test run failed. Another change can be the cause.",
    PullRequestState.TESTS_PASSED: "A test run with its changes passed. Waits to be merged.",
    PullRequestState.MERGED: "Its changes are on the target branch.",
    PullRequestState.FAILED: "Left the queue: the reason names what to fix.",
    PullRequestState.CANCELLED: "Left the queue because a user removed or changed it.",
}
QUEUE_STATES = {
    QueueState.RUNNING: "Pull requests are admitted, tested and merged.",
    QueueState.PAUSED: "Nothing is admitted, started or merged. Runs in progress finish, and positions are kept.",
    QueueState.DRAINING: "Nothing new is admitted. Admitted pull requests are tested and merged.",
    QueueState.SWITCHING_MODES: "The mode was changed while batches were active. Nothing starts until they are done.",
}
RUN_STATUSES = {
    RunStatus.PREPARING: "Its test branch is being built. API responses do not show it yet.",
    RunStatus.IN_PROGRESS: "Its test branch was pushed, and the checks run.",
    RunStatus.SUCCEEDED: "Every required check passed.",
    RunStatus.FAILED: "A required check failed, or the run timed out.",
    RunStatus.CANCELLED: "Stopped, because its result is no longer needed.",
}

PR_CHANGE_REASONS = frozenset(reason for row in PULL_REQUEST_TRANSITIONS for reason in row.reasons)
QUEUE_CHANGE_REASONS = frozenset(reason for reasons in QUEUE_TRANSITIONS.values() for reason in reasons)
STATELESS_REASONS = frozenset({Reason.SETTINGS_CHANGED, *UPDATE_REASONS})
WAIT_REASONS = frozenset(Reason) - PR_CHANGE_REASONS - QUEUE_CHANGE_REASONS - STATELESS_REASONS | {
    Reason.BASE_BROKEN,
    Reason.CONFLICTS_WITH_PR_AHEAD,
    Reason.TARGET_BRANCH_MISSING,
    Reason.NO_REQUIRED_STATUSES,
    Reason.WAITING_FOR_MAINTAINER,
    *REQUIREMENT_REASONS,
}
"""A reason that changes no state is one that pull requests wait for. Some reasons do both: they send a pull request
back, which then waits for them."""

START = "[*]"
STATE_GROUPS: dict[tuple[PullRequestState | None, ...], tuple[str, str]] = {
    LIVE_STATES: ("live", "any live state"),
    ADMITTED_STATES: ("admitted", "any admitted state"),
}


def render_page() -> str:
    return "\n\n".join([OPENING, *_pull_requests(), *_queues(), *_runs(), *_reasons()]) + "\n"


def _pull_requests() -> Iterable[str]:
    yield "## Pull requests"
    yield f"A pull request in the queue is *live*: {_codes(LIVE_STATES)}."
    yield f"One that is ready is *admitted*: {_codes(ADMITTED_STATES)}."
    yield "![Every transition between the states of a pull request](../pictures/pull-request-states.svg)"
    yield _table(("state", "label", "meaning"), _meanings(PullRequestState, PULL_REQUEST_STATE_LABELS, PR_STATES))
    yield _table(
        ("from", "to", "reasons"),
        ((_sources(row), _code(row.to), _codes(row.reasons)) for row in PULL_REQUEST_TRANSITIONS),
    )


def _queues() -> Iterable[str]:
    yield "## Queues"
    yield "![Every transition between the states of a queue](../pictures/queue-states.svg)"
    yield _table(("state", "label", "meaning"), _meanings(QueueState, QUEUE_STATE_LABELS, QUEUE_STATES))
    changes = [(before, after, reasons) for (before, after), reasons in QUEUE_TRANSITIONS.items()]
    targets = dict.fromkeys((after, reasons) for _, after, reasons in changes)
    rows = (
        (_codes(before for before, *change in changes if tuple(change) == target), _code(target[0]), _codes(target[1]))
        for target in targets
    )
    yield _table(("from", "to", "reasons"), rows)


def _runs() -> Iterable[str]:
    yield "## Runs"
    yield "![Every transition between the states of a run](../pictures/run-states.svg)"
    yield _table(("status", "label", "meaning"), _meanings(RunStatus, RUN_STATE_LABELS, RUN_STATUSES))
    yield "A run that has ended never changes again."


def _reasons() -> Iterable[str]:
    yield "## Reasons"
    yield "A code is the same in the API, events and the audit log. Pages, comments and commands show the message."
    yield "### Why a pull request changed"
    yield _messages(PR_CHANGE_REASONS)
    yield "### What a pull request waits for"
    also = _codes(each for each in Reason if each in WAIT_REASONS & PR_CHANGE_REASONS)
    yield f"A pull request can also wait for {also}."
    yield _messages(WAIT_REASONS - PR_CHANGE_REASONS)
    yield "### What a user changed in a queued pull request"
    yield _messages(UPDATE_REASONS)
    yield "### Why a queue changed"
    also = _codes(each for each in Reason if each in QUEUE_CHANGE_REASONS & PR_CHANGE_REASONS)
    yield f"A queue also changes for {also}."
    yield _messages((QUEUE_CHANGE_REASONS | {Reason.SETTINGS_CHANGED}) - PR_CHANGE_REASONS)


def _messages(reasons: Collection[Reason]) -> str:
    return _table(("reason", "message"), ((_code(each), REASON_MESSAGES[each]) for each in Reason if each in reasons))


def pr_arrows() -> set[Arrow]:
    """Transitions from any live or admitted state start at one shared node: drawn singly they would hide the rest."""
    return {(source, row.to) for row in PULL_REQUEST_TRANSITIONS for source in _nodes(row)}


def queue_arrows() -> set[Arrow]:
    return {(before, after) for before, after in QUEUE_TRANSITIONS}


def run_arrows() -> set[Arrow]:
    initial = set(RUN_TRANSITIONS).difference(*RUN_TRANSITIONS.values())
    transitions = {(before, after) for before, following in RUN_TRANSITIONS.items() for after in following}
    return {*transitions, *((START, status) for status in initial)}


def _nodes(row: PullRequestTransition) -> tuple[str, ...]:
    if row.sources in STATE_GROUPS:
        return (STATE_GROUPS[row.sources][0],)
    return tuple(START if source is None else source for source in row.sources)


def _sources(row: PullRequestTransition) -> str:
    if row.sources in STATE_GROUPS:
        return STATE_GROUPS[row.sources][1]
    return ", ".join("–" if source is None else _code(source) for source in row.sources)


def _meanings(states: type[E], labels: Mapping[str, str], meanings: Mapping[E, str]) -> Iterable[tuple[str, str, str]]:
    """In the order of the enumeration. A new state without a label or a meaning raises `KeyError`."""
    return ((_code(state), labels[state], meanings[state]) for state in states)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _codes(values: Iterable[StrEnum]) -> str:
    return ", ".join(map(_code, values))


def _code(value: StrEnum) -> str:
    return f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
