"""Queries about test runs: one in detail, those of a submission, and the decided ones of a period."""

from collections.abc import Iterable

from msgspec import Struct

from mergeyard.domain.access import Token
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, RunId, SubmissionId
from mergeyard.domain.pull_requests import ImpactedTargets, Status, Submission, union_impacted_targets
from mergeyard.domain.runs import Member, Run
from mergeyard.domain.states import CheckState, PullRequestState, Reason, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import Store
from mergeyard.service import persistence
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.git_names import BISECTION_SUFFIX, name_test_branch
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.repositories import Repositories

MAX_RUNS_SCANNED = 300


class TestedPullRequest(Struct, frozen=True):
    number: PullRequestNumber
    title: str
    page_url: str | None


class RunImpactedTargets(Struct, frozen=True):
    """The impacted targets of all pull requests in the test branch, and of only those that the run tests."""

    all: ImpactedTargets
    tested: ImpactedTargets


class RunView(Struct, frozen=True, kw_only=True):
    run: Run
    branch: str
    pull_requests: tuple[TestedPullRequest, ...]
    statuses: tuple[Status, ...]
    impacted_targets: RunImpactedTargets | None
    """None until impacted targets were uploaded for any pull request of the repository."""


class RunWithStatuses(Struct, frozen=True):
    run: Run
    statuses: tuple[Status, ...]


class TestingResult(Struct, frozen=True):
    number: PullRequestNumber
    run: Run


TEST_FAILURES = frozenset({Reason.TEST_RUN_FAILED, Reason.TEST_RUN_TIMEOUT, Reason.FAILED_BY_OPTIMIZATION})
"""Reasons of a failure that checks explain."""


class Runs:
    def __init__(self, registry: QueueRegistry, repositories: Repositories) -> None:
        self._registry = registry
        self._repositories = repositories

    @property
    def _store(self) -> Store:
        return self._registry.store

    async def view_run(self, key: QueueKey, name: str) -> RunView:
        queue_actor = await self._registry.get(key)
        run = await self._find(queue_actor, RunId(name.removesuffix(BISECTION_SUFFIX)))
        if run is None or run.started_at is None:
            message = f"The queue for {key} has no test run {name[:100]}: check its id."
            raise RequestRefused(Code.TEST_RUN_NOT_FOUND, message)
        return RunView(
            run=run,
            branch=name_test_branch(run),
            pull_requests=tuple([await self._describe_member(queue_actor, member) for member in run.tested_members]),
            statuses=tuple(await self._store.statuses(key.repo, run.checked_commit)),
            impacted_targets=await self._load_impact(queue_actor, run),
        )

    async def list_testing_results(
        self, key: QueueKey, since: Instant, until: Instant, offset: int, take: int
    ) -> tuple[list[TestingResult], int]:
        """A page of results, one per decided run and pull request that it tested, latest first; and the total count."""
        queue_actor = await self._registry.get(key)
        page = await self._store.results(queue_actor.id, since, until, offset, take)
        runs = map(persistence.decode_run, page.runs)
        found = [TestingResult(member.number, run) for run in runs for member in run.tested_members]
        return found[page.skipped : page.skipped + take], page.total

    async def list_of_submission(
        self,
        queue_actor: QueueActor,
        submission_id: SubmissionId,
        since: Instant,
        until: Instant,
        named: Iterable[RunId],
    ) -> list[Run]:
        """The started runs that tested the submission in this time, and those that are named; the latest first. Of the
        queue's runs in this time, the last `MAX_RUNS_SCANNED` are read."""
        stored = await self._store.decided_runs(queue_actor.id, since, until, MAX_RUNS_SCANNED)
        decided = [persistence.decode_run(each.body) for each in stored]
        runs = {**{run.id: run for run in decided}, **queue_actor.queue.runs}
        tested = {
            run.id: run
            for run in runs.values()
            if any(member.submission_id == submission_id for member in run.tested_members)
        }
        for run_id in named:
            run = runs.get(run_id) or await persistence.read_run(self._store, queue_actor.id, run_id)
            tested |= {} if run is None else {run_id: run}
        started = [(run.started_at, run) for run in tested.values() if run.started_at is not None]
        return [run for _, run in sorted(started, key=lambda each: each[0], reverse=True)]

    async def add_statuses(self, repo: Repo, runs: Iterable[Run]) -> tuple[RunWithStatuses, ...]:
        return tuple(
            [RunWithStatuses(run, tuple(await self._store.statuses(repo, run.checked_commit))) for run in runs]
        )

    async def read_failing_checks(self, key: QueueKey, submission: Submission) -> tuple[str, ...]:
        """The required checks because of which the submission failed; none if it did not fail in a test."""
        if submission.state is not PullRequestState.FAILED or submission.reason not in TEST_FAILURES:
            return ()
        if submission.run is None:
            return ()
        run = await self._find(await self._registry.get(key), submission.run)
        return () if run is None else list_failing_checks(run)

    async def find_by_id(self, run_id: RunId, token: Token) -> tuple[QueueActor, Run] | None:
        """None also for a run in a repository that the token cannot see."""
        stored = await self._store.queue_of_run(run_id)
        if stored is None or not token.can_access(stored.key.repo):
            return None
        queue_actor = await self._registry.load(stored)
        run = await self._find(queue_actor, run_id)
        return None if run is None else (queue_actor, run)

    async def _find(self, queue_actor: QueueActor, run_id: RunId) -> Run | None:
        """None also for a run whose test branch is not pushed yet."""
        live = queue_actor.queue.runs.get(run_id)
        if live is not None:
            return None if live.status is RunStatus.PREPARING else live
        return await persistence.read_run(self._store, queue_actor.id, run_id)

    async def _describe_member(self, queue_actor: QueueActor, member: Member) -> TestedPullRequest:
        live = queue_actor.queue.submissions.get(member.submission_id)
        submission = live or await persistence.read_submission(self._store, queue_actor.id, member.submission_id)
        repo = queue_actor.key.repo
        page_url = self._repositories.get_host(repo.host).pull_request_url(repo, member.number)
        return TestedPullRequest(member.number, "" if submission is None else submission.pull_request.title, page_url)

    async def _load_impact(self, queue_actor: QueueActor, run: Run) -> RunImpactedTargets | None:
        if not await self._store.has_any_impacted_targets(queue_actor.key.repo):
            return None
        return RunImpactedTargets(
            await self._load_union(queue_actor, run.stack), await self._load_union(queue_actor, run.tested_members)
        )

    async def _load_union(self, queue_actor: QueueActor, members: Iterable[Member]) -> ImpactedTargets:
        """Skips pull requests without impacted targets."""
        uploads = [
            await persistence.read_impacted_targets(self._store, queue_actor.id, member.number, member.head)
            for member in members
        ]
        return union_impacted_targets(
            [impacted_targets for impacted_targets in uploads if impacted_targets is not None]
        )


def list_failing_checks(run: Run) -> tuple[str, ...]:
    """Those that failed; of a failed run without one, which ran out of time, those that did not report."""
    if run.status is not RunStatus.FAILED:
        return ()
    results = {name: run.checks.get(name, CheckState.PENDING) for name in run.required_statuses}
    failed = tuple(name for name, result in results.items() if result is CheckState.FAILED)
    return failed or tuple(name for name, result in results.items() if result is CheckState.PENDING)
