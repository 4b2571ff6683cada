"""Writes `docs/states.md` from the tables of the domain, so that the page cannot say anything else than the code."""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from mergeyard.domain.reasons import MESSAGES, Reason, Refusal
from mergeyard.domain.states import PrState, QueueState, RunStatus
from mergeyard.domain.transitions import (
    ADMITTED,
    LIVE,
    PR_TRANSITIONS,
    QUEUE_TRANSITIONS,
    RUN_TRANSITIONS,
    PrTransition,
)

E = TypeVar("E", bound=StrEnum)
Arrow = tuple[str, str]

PAGE = Path(__file__).parents[2] / "docs" / "states.md"

OPENING = """\
# States

Every state that a pull request, a queue or a run can be in, every way between two of them, and every reason for going
it. What is not on this page cannot happen: a change that the tables do not hold raises, and nothing is changed.

This page is written by `make states` from `states.py`, `transitions.py` and `reasons.py` in `src/mergeyard/domain`.
Change the tables, not the page."""

PR_STATES = {
    PrState.NOT_READY: "It was submitted, and something is missing before the queue takes it.",
    PrState.PENDING: "The queue took it. It waits for a test, or for another one.",
    PrState.TESTING: "A test branch with its changes is pushed, and the checks run.",
    PrState.PENDING_FAILURE: "Its test was red, and whose fault that is has not been settled.",
    PrState.TESTS_PASSED: "A test with its changes was green. It waits for its turn to land.",
    PrState.MERGED: "Its changes are on the target branch.",
    PrState.FAILED: "It left the queue: it cannot land as it is, and the reason says what to repair.",
    PrState.CANCELLED: "It left the queue because somebody took it out, or changed it.",
}
QUEUE_STATES = {
    QueueState.RUNNING: "Pull requests enter, are tested and land.",
    QueueState.PAUSED: "Nothing enters, starts or lands. Runs in progress finish, and everybody keeps their place.",
    QueueState.DRAINING: "Nothing new enters. What was let in before is tested and lands.",
    QueueState.SWITCHING_MODES: "The mode was changed under a busy line: nothing starts until that line has emptied.",
}
RUN_STATUSES = {
    RunStatus.PREPARING: "Its test branch is being built. Answers do not show it yet.",
    RunStatus.IN_PROGRESS: "Its test branch is pushed, and the checks run.",
    RunStatus.SUCCEEDED: "Every required status passed on its tip.",
    RunStatus.FAILED: "A required status failed on its tip, or time ran out.",
    RunStatus.CANCELLED: "It was stopped: nobody counts on its answer any more.",
}
REFUSALS = {
    Refusal.PR_NOT_SUBMITTED: "The pull request is not in this queue.",
    Refusal.PR_ALREADY_MERGED: "The target holds it already.",
    Refusal.PR_CLOSED: "It is closed at the host.",
    Refusal.MERGE_IN_PROGRESS: "Its merge is being pushed, and only the host can say how that ends.",
    Refusal.TESTS_NOT_RUNNING: "There is nothing to restart: it is neither under test nor red.",
    Refusal.MODE_SWITCH_IN_PROGRESS: "The mode is changing already: wait until that is done.",
}

CHANGING = frozenset(reason for row in PR_TRANSITIONS for reason in row.reasons)
OF_THE_QUEUE = frozenset(reason for reasons in QUEUE_TRANSITIONS.values() for reason in reasons)
CHANGING_NO_STATE = frozenset({Reason.SETTINGS_CHANGED})
WAITING = frozenset(Reason) - CHANGING - OF_THE_QUEUE - CHANGING_NO_STATE | {
    Reason.BASE_BROKEN,
    Reason.WAITING_FOR_MAINTAINER,
}
"""Whatever changes nothing is waited for; two reasons also send back, and are waited for afterwards."""

START = "[*]"
ANY: dict[tuple[PrState | None, ...], tuple[str, str]] = {
    LIVE: ("live", "any live state"),
    ADMITTED: ("admitted", "any admitted state"),
}


def page() -> str:
    return "\n\n".join([OPENING, *_pull_requests(), *_queues(), *_runs(), *_reasons(), *_refusals()]) + "\n"


def _pull_requests() -> Iterable[str]:
    yield "## Pull requests"
    yield f"Who has not left the queue is *live*: {_codes(LIVE)}.\nWho was let in is *admitted*: {_codes(ADMITTED)}."
    yield "![Every way between the states of a pull request](pictures/pull-request-states.svg)"
    yield _table(("state", "what it means"), _meanings(PrState, PR_STATES))
    yield _table(
        ("from", "to", "reasons"), ((_sources(row), _code(row.to), _codes(row.reasons)) for row in PR_TRANSITIONS)
    )


def _queues() -> Iterable[str]:
    yield "## Queues"
    yield "![Every way between the states of a queue](pictures/queue-states.svg)"
    yield _table(("state", "what it means"), _meanings(QueueState, QUEUE_STATES))
    rows = ((_code(before), _code(after), _codes(reasons)) for (before, after), reasons in QUEUE_TRANSITIONS.items())
    yield _table(("from", "to", "reasons"), rows)


def _runs() -> Iterable[str]:
    yield "## Runs"
    yield "![Every way between the states of a run](pictures/run-states.svg)"
    yield _table(("status", "what it means"), _meanings(RunStatus, RUN_STATUSES))
    yield "A run that succeeded, failed or was cancelled never changes again, whatever its checks say later."


def _reasons() -> Iterable[str]:
    yield "## Reasons"
    yield "One word for journal, answers, metrics and pages, and one sentence for people."
    yield "### Why a pull request changed"
    yield _table(("reason", "leads to", "message"), _causes(CHANGING, _pr_changes()))
    yield "### What a pull request waits for"
    yield _table(("reason", "message"), ((_code(each), MESSAGES[each]) for each in Reason if each in WAITING))
    yield "### Why a queue changed"
    yield _table(("reason", "leads to", "message"), _causes(OF_THE_QUEUE | CHANGING_NO_STATE, _queue_changes()))


def _refusals() -> Iterable[str]:
    yield "## Refusals"
    yield "A request that cannot be carried out changes nothing and is answered with one of these."
    yield _table(("refusal", "what it means"), _meanings(Refusal, REFUSALS))


def pr_arrows() -> set[Arrow]:
    """Ways that everybody can go start at one node for all of them: drawn one by one they would hide the rest."""
    return {(source, row.to) for row in PR_TRANSITIONS for source in _nodes(row)}


def queue_arrows() -> set[Arrow]:
    return {(before, after) for before, after in QUEUE_TRANSITIONS}


def run_arrows() -> set[Arrow]:
    begun = set(RUN_TRANSITIONS).difference(*RUN_TRANSITIONS.values())
    ways = {(before, after) for before, following in RUN_TRANSITIONS.items() for after in following}
    return {*ways, *((START, status) for status in begun)}


def _nodes(row: PrTransition) -> tuple[str, ...]:
    if row.sources in ANY:
        return (ANY[row.sources][0],)
    return tuple(START if source is None else source for source in row.sources)


def _sources(row: PrTransition) -> str:
    if row.sources in ANY:
        return ANY[row.sources][1]
    return ", ".join("–" if source is None else _code(source) for source in row.sources)


def _pr_changes() -> Iterable[tuple[StrEnum, Collection[Reason]]]:
    return ((row.to, row.reasons) for row in PR_TRANSITIONS)


def _queue_changes() -> Iterable[tuple[StrEnum, Collection[Reason]]]:
    return ((after, reasons) for (_, after), reasons in QUEUE_TRANSITIONS.items())


def _causes(
    reasons: Collection[Reason], changes: Iterable[tuple[StrEnum, Collection[Reason]]]
) -> Iterable[tuple[str, str, str]]:
    known = tuple(changes)
    for reason in (each for each in Reason if each in reasons):
        ends = dict.fromkeys(to for to, causes in known if reason in causes)
        yield _code(reason), _codes(ends) or "no other state", MESSAGES[reason]


def _meanings(words: type[E], meanings: Mapping[E, str]) -> Iterable[tuple[str, str]]:
    """In the order of the tables, and with none left out: a new state wants a meaning."""
    return ((_code(word), meanings[word]) for word in words)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _codes(words: Iterable[StrEnum]) -> str:
    return ", ".join(map(_code, words))


def _code(word: StrEnum) -> str:
    return f"`{word}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
