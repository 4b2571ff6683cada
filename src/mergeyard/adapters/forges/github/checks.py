"""Reads the statuses and check runs of a commit, which app a required check is bound to, and reports our status."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from mergeyard.adapters.forges.github import rules, wire
from mergeyard.adapters.forges.github.rules import RequiredCheck
from mergeyard.adapters.forges.host import ForgeHost
from mergeyard.adapters.forges.http import ForgeClient, ForgeConfig, quote_segment, to_instant
from mergeyard.domain import ids
from mergeyard.domain.ids import Repo, Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.states import SATISFIED_CHECK_STATES, CheckState
from mergeyard.domain.timestamps import MINUTE, Instant, later
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import HostUnavailable

AppsByCheck = Mapping[str, frozenset[int]]
"""Check names with the ids of the apps whose success counts. A check that is missing here counts from any source."""


def map_apps_by_check(checks: Iterable[RequiredCheck]) -> AppsByCheck:
    apps = [(check.context, check.app) for check in checks if check.app is not None]
    return {context: frozenset(app for name, app in apps if name == context) for context, _ in apps}


PER_PAGE = 100
MAX_PAGES = 30
CONCLUSIONS = {
    "success": StatusState.SUCCESS,
    "neutral": StatusState.NEUTRAL,
    "skipped": StatusState.SKIPPED,
}
"""Every other conclusion is a failure."""
SEVERITY = {CheckState.PASSED: 0, CheckState.NEUTRAL: 1, CheckState.PENDING: 2, CheckState.FAILED: 3}
APP_AVATAR_PATTERN = re.compile(r"/in/([0-9]{1,12})\b")
"""A commit status does not name its app, but its avatar URL contains the app's id."""
MAX_DESCRIPTION_CHARS = 140

Page = TypeVar("Page")
Entry = TypeVar("Entry")


class Report(Struct, frozen=True):
    status: Status
    app: int | None
    """The app that reported it, if GitHub reveals that."""

    def counts(self, apps_by_check: AppsByCheck) -> bool:
        """A success counts only from an app that the rules allow; failures and pending states count from any source."""
        is_allowed_app = self.app in apps_by_check.get(self.status.context, (self.app,))
        return self.status.context != ids.STATUS_CONTEXT and (
            is_allowed_app or self.status.check_state not in SATISFIED_CHECK_STATES
        )


async def read_statuses(client: ForgeClient, sha: Sha, clock: Clock, apps_by_check: AppsByCheck) -> tuple[Status, ...]:
    """One status per name, the worst: like GitHub, we require all reports of that name to pass."""
    commit = f"/commits/{quote_segment(sha)}"
    reported = await _read_all_pages(client, f"{commit}/status", wire.CombinedStatus, lambda page: page.statuses)
    runs = await _read_all_pages(client, f"{commit}/check-runs", wire.CheckRuns, lambda page: page.check_runs)
    reports = [*map(_from_commit_status, reported), *(_from_check_run(run, clock) for run in _select_latest(runs))]
    counting = [report.status for report in reports if report.counts(apps_by_check)]
    by_severity = sorted(counting, key=lambda status: (SEVERITY[status.check_state], status.at))
    return tuple({status.context: status for status in by_severity}.values())


async def _read_all_pages(
    client: ForgeClient, path: str, kind: type[Page], entries_of: Callable[[Page], Sequence[Entry]]
) -> list[Entry]:
    """Counts pages itself: these endpoints return an object around the list, which `get_all` cannot read."""
    found = list[Entry]()
    for number in range(1, MAX_PAGES + 1):
        page = await client.get(path, kind, {"per_page": PER_PAGE, "page": number})
        entries = entries_of(page) if page is not None else ()
        found += entries
        if len(entries) < PER_PAGE:
            return found
    raise HostUnavailable(f"{path} has more than {MAX_PAGES} pages")


def _select_latest(runs: list[wire.CheckRun]) -> list[wire.CheckRun]:
    """The latest run per check suite, app and name: a rerun replaces the earlier result."""
    by_age = sorted(runs, key=lambda run: run.id)
    return list({(run.check_suite, run.app, run.name): run for run in by_age}.values())


def _from_commit_status(commit_status: wire.CommitStatus) -> Report:
    status = Status(
        context=commit_status.context,
        state=StatusState(commit_status.state),
        at=to_instant(commit_status.updated_at),
        url=commit_status.target_url or "",
        description=commit_status.description or "",
    )
    app = APP_AVATAR_PATTERN.search(commit_status.avatar_url or "")
    return Report(status, int(app[1]) if app else None)


def _from_check_run(run: wire.CheckRun, clock: Clock) -> Report:
    changed_at = run.completed_at or run.started_at
    status = Status(
        context=run.name,
        state=_check_run_state(run),
        at=to_instant(changed_at) if changed_at else clock.now(),
        url=run.details_url or run.html_url or "",
        description=run.output.title or "",
        suite=run.app.name if run.app else "",
    )
    return Report(status, run.app.id if run.app else None)


def _check_run_state(run: wire.CheckRun) -> StatusState:
    if run.status != "completed":
        return StatusState.PENDING
    return CONCLUSIONS.get(run.conclusion or "", StatusState.FAILURE)


async def is_blocked_only_by_own_status(
    client: ForgeClient, pull_request: wire.PullRequestPayload, clock: Clock
) -> bool:
    """False when in doubt. GitHub only reports `blocked`, so checks and approvals are compared with the rules here."""
    required = await rules.read_required_checks(client, pull_request.base.ref)
    if not any(check.context == ids.STATUS_CONTEXT for check in required):
        return False
    reported = await read_statuses(client, Sha(pull_request.head.sha), clock, map_apps_by_check(required))
    passed = {status.context for status in reported if status.check_state in SATISFIED_CHECK_STATES}
    has_passed = passed.issuperset(rules.select_required_contexts(required))
    return has_passed and await rules.is_approved(client, pull_request.base.ref, pull_request.number)


class Checks(ForgeHost):
    """Caches the required checks of branches for a minute."""

    def __init__(self, config: ForgeConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self._required: dict[tuple[Repo, str], tuple[Instant, frozenset[RequiredCheck]]] = {}
        """With the time when the entry expires."""
        self._reading = defaultdict[Repo, asyncio.Lock](asyncio.Lock)

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:
        client = await self._client_for(repo)
        return rules.select_required_contexts(await self._read_required_checks(client, repo, branch))

    async def statuses(self, repo: Repo, sha: Sha, branch: str) -> Sequence[Status]:
        """Raises when the rules cannot be read: without them a success from the wrong app would count."""
        client = await self._client_for(repo)
        async with self._reading[repo]:
            expires_at, required = self._required.get((repo, branch), (Instant(0), frozenset[RequiredCheck]()))
            if self._clock.now() >= expires_at:
                required = await self._read_required_checks(client, repo, branch)
        return await read_statuses(client, sha, self._clock, map_apps_by_check(required))

    async def _read_required_checks(self, client: ForgeClient, repo: Repo, branch: str) -> frozenset[RequiredCheck]:
        expires_at = later(self._clock.now(), MINUTE)
        required = await rules.read_required_checks(client, branch)
        self._required[repo, branch] = expires_at, required
        return required

    async def set_status(self, repo: Repo, sha: Sha, status: Status) -> None:
        body = {
            "state": status.state,
            "context": status.context,
            "description": status.description[:MAX_DESCRIPTION_CHARS],
            "target_url": status.url or None,
        }
        client = await self._client_for(repo)
        (await client.send("POST", f"/statuses/{quote_segment(sha)}", body)).raise_for_status()
