"""Everything that the page of a pull request shows: its submissions, timeline, test runs and overlapping targets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from msgspec import Struct

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, RunId, SubmissionId
from mergeyard.domain.journal import PullRequestChanged, PullRequestEntry
from mergeyard.domain.pull_requests import ImpactedTargets, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import TERMINAL_STATES, PullRequestState, Reason, RunStatus
from mergeyard.domain.timestamps import Instant, later
from mergeyard.engine import views
from mergeyard.service import persistence
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.provenance import ATTESTED_REASONS
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.repositories import Repositories
from mergeyard.service.runs import Runs, RunWithStatuses
from mergeyard.service.submission_queries import SubmissionQueries
from mergeyard.service.views import SubmissionView, view_submission

MAX_SUBMISSIONS = 20
MAX_RUNS = 20
MAX_OVERLAPS = 50
MAX_COMPARED = 2000
"""Pull requests of the queue whose targets are compared: the comparison runs on the event loop."""


DECIDED_BY_RUN = frozenset(
    {
        Reason.TEST_RUN_PASSED,
        Reason.SUCCESSOR_PASSED,
        Reason.TEST_RUN_FAILED,
        Reason.TEST_RUN_TIMEOUT,
        Reason.FAILED_BY_OPTIMIZATION,
    }
)


class Overlap(Struct, frozen=True):
    """Another pull request in the queue that shares impacted targets."""

    number: PullRequestNumber
    title: str
    state: PullRequestState
    shared_targets: ImpactedTargets


class PullRequestDetails(Struct, frozen=True, kw_only=True):
    key: QueueKey
    queue: Queue
    view: SubmissionView
    submissions: tuple[Submission, ...]
    """The last `MAX_SUBMISSIONS`, newest first."""
    host_page_url: str | None
    """The URL of the pull request at the Git host."""
    can_verify: bool
    """The queue merged it, and writes provenance for this Git host."""
    timeline: tuple[PullRequestEntry, ...]
    runs: tuple[RunWithStatuses, ...]
    """The last `MAX_RUNS` that tested the submission or decided about it, newest first."""
    deciding_run: RunId | None
    """The run whose result the submission passed, merged or failed with; None before that, or without such a run."""
    older_runs: int
    """How many runs before those are left out."""
    overlaps: tuple[Overlap, ...]


@dataclass(eq=False)
class PullRequestDetailsReader:
    registry: QueueRegistry
    repositories: Repositories
    submissions: SubmissionQueries
    runs: Runs

    async def list_queue_keys(self, repo: Repo) -> list[QueueKey]:
        return sorted(
            (queue_actor.key for queue_actor in await self.registry.load_by_repo(repo)), key=lambda key: key.branch
        )

    async def find_queue_key(self, repo: Repo, number: PullRequestNumber) -> QueueKey | None:
        """The queue that the pull request is in, or else the one of its last submission."""
        latest: tuple[Instant, QueueKey] | None = None
        for queue_actor in await self.registry.load_by_repo(repo):
            if queue_actor.queue.submission_of(number) is not None:
                return queue_actor.key
            submission = await persistence.read_last_submission(self.registry.store, queue_actor.id, number)
            if submission is not None and (latest is None or submission.submitted_at > latest[0]):
                latest = (submission.submitted_at, queue_actor.key)
        return None if latest is None else latest[1]

    async def _list_runs(
        self, queue_actor: QueueActor, view: SubmissionView, timeline: Sequence[PullRequestEntry]
    ) -> list[Run]:
        """Nothing is read from the store for a submission that was never tested."""
        submission = view.submission
        changes = [entry for entry in timeline if isinstance(entry, PullRequestChanged)]
        tested_at = next((entry.at for entry in reversed(changes) if entry.to is PullRequestState.TESTING), None)
        if tested_at is None and submission.verified_by is None:
            return []
        ended = submission.state in TERMINAL_STATES
        until = later(submission.state_changed_at if ended else self.registry.clock.now(), 1)
        successors = [
            run.id
            for run in queue_actor.queue.runs.values()
            if submission.reason is Reason.SUCCESSOR_PASSED
            and run.status is RunStatus.SUCCEEDED
            and any(each.submission_id == submission.id for each in run.stack)
        ]
        named = (view.run_id, submission.verified_by, *successors, *(entry.run for entry in changes))
        run_ids = dict.fromkeys(run for run in named if run is not None)
        return await self.runs.list_of_submission(
            queue_actor, submission.id, until if tested_at is None else tested_at, until, run_ids
        )

    async def read(
        self, key: QueueKey, number: PullRequestNumber, submission_id: SubmissionId | None = None
    ) -> PullRequestDetails:
        """The details of this submission; of the latest one if the id is None or unknown."""
        queue_actor, now = await self.registry.get(key), self.registry.clock.now()
        bodies = await self.registry.store.submissions_of(queue_actor.id, number, MAX_SUBMISSIONS)
        stored = map(persistence.decode_submission, bodies)
        submissions = [queue_actor.queue.submissions.get(submission.id) or submission for submission in stored]
        if not submissions:
            detail = f"Pull request {number} was never submitted to the queue for {key}: submit it first."
            raise RequestRefused(Code.PR_NOT_SUBMITTED, detail)
        chosen = next((submission for submission in submissions if submission.id == submission_id), submissions[0])
        submission = await self.submissions.load_impacted_targets(queue_actor, chosen)
        pull_request_view = view_submission(queue_actor.queue, submission, now, queue_actor.forecast)
        timeline = await self.submissions.read_timeline(key, submission.id)
        runs = await self._list_runs(queue_actor, pull_request_view, timeline)
        return PullRequestDetails(
            key=key,
            queue=queue_actor.queue,
            view=pull_request_view,
            submissions=tuple(submissions),
            host_page_url=self.repositories.get_host(key.repo.host).pull_request_url(key.repo, number),
            can_verify=submission.reason in ATTESTED_REASONS and self.repositories.signer_of(key.repo.host) is not None,
            timeline=tuple(timeline),
            runs=await self.runs.add_statuses(key.repo, runs[:MAX_RUNS]),
            deciding_run=_find_deciding_run(submission, runs),
            older_runs=max(0, len(runs) - MAX_RUNS),
            overlaps=tuple(islice(_find_overlaps(queue_actor.queue, submission, now), MAX_OVERLAPS)),
        )


def _find_deciding_run(submission: Submission, runs: Sequence[Run]) -> RunId | None:
    """`runs` are the newest first."""
    decisive = {PullRequestState.FAILED: RunStatus.FAILED, PullRequestState.TESTS_PASSED: RunStatus.SUCCEEDED}
    if submission.state is PullRequestState.MERGED:
        return submission.verified_by
    if submission.state not in decisive or submission.reason not in DECIDED_BY_RUN:
        return None
    return next((run.id for run in runs if run.status is decisive[submission.state]), None)


def _find_overlaps(queue: Queue, submission: Submission, now: Instant) -> Iterator[Overlap]:
    """None in single mode: all pull requests are tested in one stack there, whatever they impact."""
    targets = submission.impacted_targets
    if targets is None or submission.state in TERMINAL_STATES or queue.config.mode is Mode.SINGLE:
        return
    for other in islice(views.enqueued_submissions(queue, now), MAX_COMPARED):
        if (
            other.id != submission.id
            and other.impacted_targets is not None
            and targets.overlaps(other.impacted_targets)
        ):
            yield Overlap(
                other.number, other.pull_request.title, other.state, _intersect(targets, other.impacted_targets)
            )


def _intersect(one: ImpactedTargets, other: ImpactedTargets) -> ImpactedTargets:
    if one.everything or other.everything:
        return ImpactedTargets(everything=True)
    return ImpactedTargets(one.names & other.names)
