"""Finishes merges at the Git host: marks pull requests as merged, or closes them with a link; deletes head branches.

The journal names what landed, so a crash loses none of this, and every part can be repeated.
"""

import asyncio
from collections.abc import Sequence

import structlog

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import QueueId, QueueKey, Sha, SubmissionId
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import DAY, MINUTE, SECOND, later
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import Forge, HostError, HostRefused
from mergeyard.ports.git import GitError, Pushed, RefUpdate
from mergeyard.ports.store import Store, StoredEntry
from mergeyard.service import persistence
from mergeyard.service.comments import texts
from mergeyard.service.errors import RequestRefused
from mergeyard.service.git_names import branch_ref
from mergeyard.service.merge_audit.records import LANDED_REASONS
from mergeyard.service.pull_request_reader import CHANGED_ACCESSES
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.repositories import Repositories
from mergeyard.service.webhooks.journal_consumers import ConsumerOptions, PartiallyDelivered

log = structlog.get_logger()

GIVE_UP_AFTER_MS = DAY
"""After this time an entry that cannot be finished is skipped, so that it does not block later ones."""
SHOWN_AFTER_MS = 10 * MINUTE
"""The Git host has this long to notice by itself that a head is on the target branch."""
NOTICE_DELAYS_MS = (SECOND, 2 * SECOND, 4 * SECOND)


def has_landing_changed(before: Queue | None, after: Queue) -> bool:
    return before is None or before.landing is not after.landing


MERGE_MARKER_OPTIONS = ConsumerOptions(batch_size=500, max_retry_delay_ms=MINUTE, is_woken_by=has_landing_changed)


class MergeMarker:
    name = "marks"

    def __init__(self, store: Store, clock: Clock, repositories: Repositories, registry: QueueRegistry) -> None:
        self._store = store
        self._clock = clock
        self._repositories = repositories
        self._registry = registry
        self._finished = set[tuple[QueueId, SubmissionId]]()
        """Those in entries that are consumed again, because another one in them is not finished."""

    async def consume(self, key: QueueKey, queue: QueueId, entries: Sequence[StoredEntry]) -> None:
        """Finishes all that can be finished, also if some fail."""
        records = (persistence.decode_record(entry.body) for entry in entries)
        landed = [
            record for record in records if isinstance(record, PullRequestChanged) and record.reason in LANDED_REASONS
        ]
        waiting = [record for record in landed if (queue, record.submission_id) not in self._finished]
        results = await asyncio.gather(*(self._finish_or_give_up(key, queue, record) for record in waiting))
        self._finished |= {(queue, record.submission_id) for record, done in zip(waiting, results, strict=True) if done}
        if all(results):
            self._finished -= {(queue, record.submission_id) for record in landed}
        else:
            raise PartiallyDelivered(
                None, f"{results.count(False)} of {len(results)} merged pull requests are not marked as merged."
            )

    async def _finish_or_give_up(self, key: QueueKey, queue: QueueId, landed: PullRequestChanged) -> bool:
        """False if it should be tried again."""
        submission = await persistence.read_submission(self._store, queue, landed.submission_id)
        if submission is None or submission.merged_sha is None:
            return True
        try:
            return await self._finish(key, queue, landed, submission, submission.merged_sha)
        except (GitError, HostError, RequestRefused) as error:
            number = submission.number
            log.warning("pull_request_not_marked_merged", repo=str(key.repo), number=number, error=str(error))
            return isinstance(error, HostRefused) or self._clock.now() >= later(landed.at, GIVE_UP_AFTER_MS)

    async def _finish(
        self, key: QueueKey, queue: QueueId, landed: PullRequestChanged, submission: Submission, commit: Sha
    ) -> bool:
        forge = self._repositories.get_host(key.repo.host).forge
        has_own_commit = await self._has_own_commit(queue, submission)
        can_be_noticed = submission.moved_head is not None or not has_own_commit
        if not await self._is_shown_as_merged(key, submission, commit, wait=can_be_noticed):
            if can_be_noticed and self._clock.now() < later(landed.at, SHOWN_AFTER_MS):
                return False
            if forge is None or not has_own_commit:
                return True
            await self._close_with_link(key, forge, submission, commit)
        await self._delete_head_branch(key, queue, submission, commit)
        return True

    async def _is_shown_as_merged(self, key: QueueKey, submission: Submission, commit: Sha, *, wait: bool) -> bool:
        """Asks several times, because a Git host usually needs some seconds to notice a merge."""
        host, head = self._repositories.get_host(key.repo.host), submission.pull_request.head
        for delay_ms in NOTICE_DELAYS_MS if wait else ():
            if await host.mark_merged(key.repo, submission.number, head, commit):
                return True
            await self._clock.sleep(delay_ms)
        return await host.mark_merged(key.repo, submission.number, head, commit)

    async def _has_own_commit(self, queue: QueueId, submission: Submission) -> bool:
        """Whether we pushed a squashed or rebased commit, which the Git host cannot recognize as this pull request
        unless its head branch was moved."""
        run_id = submission.verified_by
        run = None if run_id is None else await persistence.read_run(self._store, queue, run_id)
        if run is None or run.landing_method is LandingMethod.PROVIDER_MERGE:
            return False
        return run.merge_method is not MergeMethod.MERGE_COMMIT

    async def _close_with_link(self, key: QueueKey, forge: Forge, submission: Submission, commit: Sha) -> None:
        """A pull request to which the author pushed later stays open: it has changes that are not merged."""
        host = self._repositories.get_host(key.repo.host)
        now = await host.read_pull_request(key.repo, submission.number, with_requirements=False)
        if now is None or now.merged_into is not None:
            return
        has_new_commits = now.head not in (submission.pull_request.head, commit)
        text = texts.build_closing_comment(key.branch, commit, has_new_commits=has_new_commits)
        await forge.put_comment(key.repo, submission.number, text, None)
        if now.is_open and not has_new_commits:
            await forge.close_pull_request(key.repo, submission.number)

    async def _delete_head_branch(self, key: QueueKey, queue: QueueId, submission: Submission, commit: Sha) -> None:
        """Deletes the branch only where the merge left it. Pull requests into it get the target branch as their base
        first, because a Git host closes them when their base is deleted."""
        actor, pull_request = await self._registry.find(key), submission.pull_request
        if actor is None or actor.id != queue or not actor.queue.config.delete_head_branches:
            return
        if pull_request.fork or pull_request.head_branch_access not in CHANGED_ACCESSES:
            return
        host, branch = self._repositories.get_host(key.repo.host), pull_request.head_branch
        moved = submission.moved_head
        expected = commit if moved is not None and moved.commit == commit else pull_request.head
        if any(each.key.branch == branch for each in await self._registry.load_by_repo(key.repo)):
            return
        mirror, ref = await self._repositories.open_mirror(key.repo), branch_ref(branch)
        if (await mirror.remote_refs(ref)).get(ref) != expected:
            return
        if host.forge is not None:
            await host.forge.retarget_pull_requests(key.repo, branch, key.branch)
        elif await host.open_pull_requests(key.repo, branch):
            return
        outcome = await mirror.push(RefUpdate(ref, expected, None))
        if not isinstance(outcome, Pushed):
            log.info("head_branch_not_deleted", repo=str(key.repo), number=submission.number, branch=branch)
