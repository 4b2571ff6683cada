"""Reads the statuses, check runs and deployments of a commit, which app a required check is bound to, and reports our
status."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.adapters.forges.github import rules, wire
from mergeyard.adapters.forges.github.wire import RequiredCheck
from mergeyard.adapters.forges.host import ForgeHost, build_requirement, judge_head_checks
from mergeyard.adapters.forges.http import ForgeClient, ForgeConfig, quote_segment, to_instant
from mergeyard.domain import ids
from mergeyard.domain.ids import Repo, Sha
from mergeyard.domain.pull_requests import Requirement, Status, StatusState
from mergeyard.domain.states import SATISFIED_CHECK_STATES, CheckState, Reason
from mergeyard.domain.timestamps import HOUR, MINUTE, Instant, later
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import HostRefused, HostUnavailable

AppsByCheck = Mapping[str, frozenset[int]]
"""Check names in lower case, with the ids of the apps whose success counts. Other checks count from any source."""


def map_apps_by_check(checks: Iterable[RequiredCheck]) -> AppsByCheck:
    apps = [(check.context.lower(), check.app) for check in checks if check.app is not None]
    return {context: frozenset(app for name, app in apps if name == context) for context, _ in apps}


PER_PAGE = 100
MAX_PAGES = 30
MAX_CREATOR_PAGES = 10
"""Of all reports, newest first. A status whose creator is not on these pages does not count."""
MAX_CACHED_APPS = 500
START_DELAY_MS = 5 * MINUTE
"""So long after a workflow could not start, the other workflows of its app have a check suite."""
UNBOUND_START_DELAY_MS = 30 * MINUTE
"""So long after it, another CI that must report a check has reported something."""
ACTIONS_SLUG = "github-actions"
START_FAILURE = "GitHub could not start a workflow. Look at its error under Actions, and correct its file."
CONCLUSIONS = {
    "success": StatusState.SUCCESS,
    "neutral": StatusState.NEUTRAL,
    "skipped": StatusState.SKIPPED,
}
"""Every other conclusion is a failure."""
SEVERITY = {CheckState.PASSED: 0, CheckState.NEUTRAL: 1, CheckState.PENDING: 2, CheckState.FAILED: 3}
APP_AVATAR_PATTERN = re.compile(r"/in/([0-9]{1,12})\b")
"""The avatar URL of a commit status contains the id of the app that reported it, if the app has a logo."""
MAX_DESCRIPTION_CHARS = 140
READ_CHECKS = "Checks: Read-only and Commit statuses: Read-only"
READ_DEPLOYMENTS = "Deployments: Read-only"

Page = TypeVar("Page")
Entry = TypeVar("Entry")


class Report(Struct, frozen=True):
    status: Status
    app: int | None
    """The app that reported it, if GitHub reveals that."""

    def counts(self, apps_by_check: AppsByCheck) -> bool:
        """A success counts only from an app that the rules allow; failures and pending states count from any source."""
        is_allowed_app = self.app in apps_by_check.get(self.status.context.lower(), (self.app,))
        return is_allowed_app or self.status.check_state not in SATISFIED_CHECK_STATES


def select_worst(reports: Iterable[Report], required: Collection[RequiredCheck]) -> tuple[Status, ...]:
    """One status per name, the worst: like GitHub, we require all reports of that name to pass. GitHub ignores the case
    of names and the queue does not, so a required check has this status as its rule spells it and as it is reported."""
    apps_by_check = map_apps_by_check(required)
    counting = [report.status for report in reports if report.counts(apps_by_check)]
    by_severity = sorted(counting, key=lambda status: (SEVERITY[status.check_state], status.at))
    spellings = {name.lower(): name for name in rules.select_required_contexts(required)}
    names = [spellings.get(status.context.lower(), status.context) for status in by_severity]
    worst = dict(zip(names, by_severity, strict=True))
    shown = worst | {status.context: worst[name] for name, status in zip(names, by_severity, strict=True)}
    return tuple(replace(status, context=name) for name, status in shown.items())


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


def _find_app_in_avatar(commit_status: wire.CommitStatus) -> int | None:
    found = APP_AVATAR_PATTERN.search(commit_status.avatar_url or "")
    return int(found[1]) if found else None


def _to_status(commit_status: wire.CommitStatus) -> Status:
    return Status(
        context=commit_status.context,
        state=StatusState(commit_status.state),
        at=to_instant(commit_status.updated_at),
        url=commit_status.target_url or "",
        description=commit_status.description or "",
    )


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


def _to_start_failure(suite: wire.CheckSuite, url: str) -> Report | None:
    """Without a name: a suite does not name its jobs."""
    if not suite.failed_to_start or suite.app is None or suite.updated_at is None:
        return None
    at, name = to_instant(suite.updated_at), suite.app.name
    status = Status(context="", state=StatusState.FAILURE, at=at, url=url, description=START_FAILURE, suite=name)
    return Report(status, suite.app.id)


def _has_only_actions(suites: Collection[wire.CheckSuite], reports: Collection[Report]) -> bool:
    """Whether GitHub Actions is the only CI that the commit shows, and nothing is pending. A status whose app GitHub
    does not reveal is one of another CI."""
    apps = {suite.app for suite in suites}
    is_alone = {app and app.slug for app in apps} == {ACTIONS_SLUG}
    is_idle = all(report.status.check_state is not CheckState.PENDING for report in reports)
    return is_alone and is_idle and {report.app for report in reports} <= {app and app.id for app in apps}


class Checks(ForgeHost):
    """Caches the required checks of branches for a minute, and the ids of apps for an hour."""

    def __init__(self, config: ForgeConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self._required: dict[tuple[Repo, str], tuple[Instant, frozenset[RequiredCheck]]] = {}
        """With the time when the entry expires."""
        self._reading = defaultdict[Repo, asyncio.Lock](asyncio.Lock)
        self._app_ids: dict[str, tuple[Instant, int | None]] = {}
        """By the slug of the app; with the time when the entry expires."""

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:
        client = await self._client_for(repo)
        return rules.select_required_contexts(await self._read_required_checks(client, repo, branch))

    async def statuses(
        self,
        repo: Repo,
        sha: Sha,
        branch: str,
        test_branch: str = "",  # noqa: ARG002
    ) -> Sequence[Status]:
        """Raises when the rules cannot be read: without them a success from the wrong app would count."""
        client = await self._client_for(repo)
        async with self._reading[repo]:
            expires_at, required = self._required.get((repo, branch), (Instant(0), frozenset[RequiredCheck]()))
            if self._clock.now() >= expires_at:
                required = await self._read_required_checks(client, repo, branch)
        reports = await self._read_reports(client, sha, required)
        start_failures = await self._read_start_failures(client, repo, sha, required, reports)
        return (*select_worst(reports, required), *start_failures)

    async def _read_required_checks(self, client: ForgeClient, repo: Repo, branch: str) -> frozenset[RequiredCheck]:
        expires_at = later(self._clock.now(), MINUTE)
        required = await rules.read_required_checks(client, branch)
        self._required[repo, branch] = expires_at, required
        return required

    async def _read_reports(self, client: ForgeClient, sha: Sha, required: Iterable[RequiredCheck]) -> list[Report]:
        """All except our own status, also those that do not count."""
        commit = f"/commits/{quote_segment(sha)}"
        reported, runs = await asyncio.gather(
            _read_all_pages(client, f"{commit}/status", wire.CombinedStatus, lambda page: page.statuses),
            _read_all_pages(client, f"{commit}/check-runs", wire.CheckRuns, lambda page: page.check_runs),
        )
        apps = await self._find_apps(client, commit, reported, map_apps_by_check(required))
        reports = [
            *(Report(_to_status(one), app) for one, app in zip(reported, apps, strict=True)),
            *(_from_check_run(run, self._clock) for run in _select_latest(runs)),
        ]
        return [report for report in reports if report.status.context.lower() != ids.STATUS_CONTEXT]

    async def _find_apps(
        self,
        client: ForgeClient,
        commit: str,
        reported: Sequence[wire.CommitStatus],
        apps_by_check: AppsByCheck,
    ) -> list[int | None]:
        """The app of each status. Where the avatar does not reveal it, the creator is read, but only for a success that
        counts from certain apps only."""
        apps, found = [_find_app_in_avatar(status) for status in reported], dict[int, int | None]()
        unknown = {
            status.id
            for status, app in zip(reported, apps, strict=True)
            if app is None and status.state == StatusState.SUCCESS and status.context.lower() in apps_by_check
        }
        for page in range(1, MAX_CREATOR_PAGES + 1):
            if unknown <= found.keys():
                break
            query = {"per_page": PER_PAGE, "page": page}
            listed = await client.get(f"{commit}/statuses", list[wire.CreatedStatus], query) or []
            for status in listed:
                if status.id in unknown:
                    found[status.id] = await self._read_app_id(client, status.creator)
            if len(listed) < PER_PAGE:
                break
        return [app or found.get(status.id) for status, app in zip(reported, apps, strict=True)]

    async def _read_app_id(self, client: ForgeClient, creator: wire.Creator | None) -> int | None:
        slug, now = creator and creator.app_slug, self._clock.now()
        if slug is None:
            return None
        expires_at, app_id = self._app_ids.pop(slug, (Instant(0), None))
        if now >= expires_at:
            try:
                path = f"/apps/{quote_segment(slug)}"
                app = await client.without_repository().get(path, wire.AppDetails)
            except HostRefused:
                return None
            expires_at, app_id = later(now, HOUR), app and app.id
        self._app_ids[slug] = expires_at, app_id
        while len(self._app_ids) > MAX_CACHED_APPS:
            del self._app_ids[next(iter(self._app_ids))]
        return app_id

    async def _read_start_failures(
        self,
        client: ForgeClient,
        repo: Repo,
        sha: Sha,
        required: Collection[RequiredCheck],
        reports: Collection[Report],
    ) -> list[Status]:
        """Failures of required checks that never start, because their workflow file has an error: GitHub then makes a
        check suite without check runs. While a required check has no report, this costs one request per read, which
        does not count against the rate limit if nothing changed.

        A suite does not name its jobs, so it counts for every required check without a report that is bound to its app.
        But only 5 minutes after it ended, and only if the app has no suite in progress: until then, another workflow
        can report the check. A check that is bound to no app can also be that of another CI, and the workflow can be an
        optional one. So the suite counts for such a check only after 30 minutes, and only if nothing is pending and the
        commit shows no CI other than GitHub Actions."""
        apps_by_check, now = map_apps_by_check(required), self._clock.now()
        reported = {report.status.context.lower() for report in reports if report.counts(apps_by_check)}
        missing = [name for name in rules.select_required_contexts(required) if name.lower() not in reported]
        suites = await self._list_suites(client, sha) if missing else ()
        busy = {suite.app for suite in suites if not suite.has_ended}
        has_only_actions = _has_only_actions(suites, reports)
        url = f"{self._config.web_url}/{self._full_name(repo)}/commit/{sha}/checks"
        failures = [_to_start_failure(suite, url) for suite in suites if suite.app not in busy]
        found = dict[str, Status]()
        for name in missing:
            apps = apps_by_check.get(name.lower())
            delay_ms = UNBOUND_START_DELAY_MS if apps is None else START_DELAY_MS
            for failure in failures:
                if failure is None or failure.status.at > now - delay_ms:
                    continue
                if has_only_actions if apps is None else failure.app in apps:
                    found[name] = replace(failure.status, context=name)
        return list(found.values())

    async def _list_suites(self, client: ForgeClient, sha: Sha) -> Sequence[wire.CheckSuite]:
        """None of them if there are more than fit on a page: those on other pages can be in progress."""
        path, query = f"/commits/{quote_segment(sha)}/check-suites", {"per_page": PER_PAGE}
        found = await client.get(path, wire.CheckSuites, query)
        return found.check_suites if found is not None and len(found.check_suites) < PER_PAGE else ()

    async def _judge_head_checks(
        self, client: ForgeClient, branch_rules: rules.BranchRules, payload: wire.PullRequestPayload
    ) -> list[Requirement]:
        required = rules.select_required_contexts(branch_rules.checks)
        if not required:
            return []
        try:
            reports = await self._read_reports(client, Sha(payload.head.sha), branch_rules.checks)
        except HostRefused:
            return [self._require_permission(READ_CHECKS)]
        worst = select_worst(reports, branch_rules.checks)
        return list(judge_head_checks(required, {status.context: status.check_state for status in worst}))

    async def _judge_deployments(
        self, client: ForgeClient, branch_rules: rules.BranchRules, payload: wire.PullRequestPayload
    ) -> list[Requirement]:
        environments = sorted(
            {name for rule in branch_rules.rules for name in rule.parameters.required_deployment_environments}
        )
        if not environments:
            return []
        try:
            missing = [name for name in environments if not await _is_deployed(client, payload.head.sha, name)]
        except HostRefused:
            return [self._require_permission(READ_DEPLOYMENTS)]
        given = len(environments) - len(missing)
        return [build_requirement(Reason.WAITING_FOR_DEPLOYMENTS, missing, needed=len(environments), given=given)]

    async def set_status(self, repo: Repo, sha: Sha, status: Status, *, urgent: bool = False) -> None:
        body = {
            "state": status.state,
            "context": status.context,
            "description": status.description[:MAX_DESCRIPTION_CHARS],
            "target_url": status.url or None,
        }
        client = await self._client_for(repo)
        (await client.send("POST", f"/statuses/{quote_segment(sha)}", body, urgent=urgent)).raise_for_status()


async def _is_deployed(client: ForgeClient, sha: str, environment: str) -> bool:
    query = {"sha": sha, "environment": environment, "per_page": 1}
    latest = await client.get("/deployments", list[wire.Deployment], query)
    if not latest:
        return False
    path = f"/deployments/{latest[0].id}/statuses"
    statuses = await client.get(path, list[wire.DeploymentStatus], {"per_page": 1})
    return bool(statuses) and statuses[0].state == "success"
