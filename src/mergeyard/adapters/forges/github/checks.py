"""Reads what is reported about a commit, statuses and check runs alike, and reports our own word."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.names import place, segment
from mergeyard.adapters.forges.github.repositories import must_be_there
from mergeyard.adapters.forges.github.ties import Tied
from mergeyard.adapters.forges.times import instant
from mergeyard.domain import ours
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import SATISFIED, CheckState
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.ports.clock import Clock
from mergeyard.ports.host import HostTrouble

PER_PAGE = 100
MOST_PAGES = 30
CONCLUSIONS = {
    "success": StatusState.SUCCESS,
    "neutral": StatusState.NEUTRAL,
    "skipped": StatusState.SKIPPED,
}
"""Every other conclusion is a failure."""
WEIGHT = {CheckState.PASSED: 0, CheckState.NEUTRAL: 1, CheckState.PENDING: 2, CheckState.FAILED: 3}
FACE_OF_AN_APP = re.compile(r"/in/([0-9]{1,12})\b")
"""Of a commit status GitHub shows the picture of whoever reported it, and not the name."""
LONGEST_DESCRIPTION = 140

Page = TypeVar("Page")
Entry = TypeVar("Entry")


class Report(Struct, frozen=True):
    status: Status
    app: int | None
    """By whom it came, as far as that is told."""

    def counts(self, tied: Tied) -> bool:
        """That it passed is believed only of those who may say so."""
        by_right = self.app in tied.get(self.status.context, (self.app,))
        return self.status.context != ours.STATUS and (by_right or self.status.check not in SATISFIED)


async def statuses(caller: Caller, repo: Repo, sha: Sha, clock: Clock, tied: Tied) -> tuple[Status, ...]:
    """The worst of each name: like GitHub itself we want all of them to pass, wherever they come from."""
    commit = f"{place(repo)}/commits/{segment(sha)}"
    said = await _every(caller, repo, f"{commit}/status", wire.CombinedStatus, lambda page: page.statuses)
    runs = await _every(caller, repo, f"{commit}/check-runs", wire.CheckRuns, lambda page: page.check_runs)
    reports = [*map(_status, said), *(_check(run, clock) for run in _latest(runs))]
    counting = [report.status for report in reports if report.counts(tied)]
    by_weight = sorted(counting, key=lambda status: (WEIGHT[status.check], status.at))
    return tuple({status.context: status for status in by_weight}.values())


async def show(caller: Caller, repo: Repo, sha: Sha, status: Status) -> None:
    body = {
        "state": status.state,
        "context": status.context,
        "description": status.description[:LONGEST_DESCRIPTION],
        "target_url": status.url or None,
    }
    reply = await caller.send("POST", f"{place(repo)}/statuses/{segment(sha)}", body)
    reply.well_received()


async def _every(
    caller: Caller, repo: Repo, path: str, kind: type[Page], entries_of: Callable[[Page], Sequence[Entry]]
) -> list[Entry]:
    found = list[Entry]()
    for number in range(1, MOST_PAGES + 1):
        page = await caller.get(path, kind, {"per_page": PER_PAGE, "page": number})
        if page is None:
            await must_be_there(caller, repo)
            return found
        entries = entries_of(page)
        found += entries
        if len(entries) < PER_PAGE:
            return found
    raise HostTrouble(f"{path} goes on for more than {MOST_PAGES} pages")


def _latest(runs: list[wire.CheckRun]) -> list[wire.CheckRun]:
    """Of each suite: what runs again there is no longer what it was."""
    by_age = sorted(runs, key=lambda run: run.id)
    return list({(run.check_suite, run.app, run.name): run for run in by_age}.values())


def _status(status: wire.CommitStatus) -> Report:
    told = Status(
        context=status.context,
        state=StatusState(status.state),
        at=instant(status.updated_at),
        url=status.target_url or "",
        description=status.description or "",
    )
    app = FACE_OF_AN_APP.search(status.avatar_url or "")
    return Report(told, int(app[1]) if app else None)


def _check(run: wire.CheckRun, clock: Clock) -> Report:
    began_or_ended = run.completed_at or run.started_at
    told = Status(
        context=run.name,
        state=_state(run),
        at=instant(began_or_ended) if began_or_ended else clock.now(),
        url=run.details_url or run.html_url or "",
        description=run.output.title or "",
        suite=run.app.name if run.app else "",
    )
    return Report(told, run.app.id if run.app else None)


def _state(run: wire.CheckRun) -> StatusState:
    if run.status != "completed":
        return StatusState.PENDING
    return CONCLUSIONS.get(run.conclusion or "", StatusState.FAILURE)
