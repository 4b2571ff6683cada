"""Views of submissions: live ones from the queue, ended ones from the store."""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from mergeyard.domain.ids import PullRequestNumber, QueueKey, Sha, SubmissionId
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.pull_requests import ImpactedTargets, Submission
from mergeyard.domain.states import Refusal
from mergeyard.ports.store import SubmissionsQuery
from mergeyard.service import errors, persistence
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.views import SubmissionView, SubmissionViewBuilder, view_submission

MAX_TIMELINE_ENTRIES = 1000
"""Of one submission, the newest: a client can restart its tests any number of times."""

decode_entry = msgspec.json.Decoder(PullRequestChanged).decode


class SubmissionQueries:
    def __init__(self, registry: QueueRegistry) -> None:
        self._registry = registry

    async def view_by_number(self, key: QueueKey, number: PullRequestNumber) -> SubmissionView:
        queue_actor = await self._registry.get(key)
        submission = queue_actor.queue.submission_of(number)
        if submission is not None:
            return view_submission(queue_actor.queue, submission, self._registry.clock.now(), queue_actor.forecast)
        ended = await self.view_last_ended(queue_actor, number)
        if ended is None:
            raise errors.pull_request_refused(Refusal.PR_NOT_SUBMITTED, number)
        return ended

    async def view_by_branch(self, key: QueueKey, branch: str) -> SubmissionView:
        queue_actor = await self._registry.get(key)
        body = await self._registry.store.last_submission_of_branch(queue_actor.id, branch)
        if body is None:
            message = f"No pull request from the branch {branch[:100]} was submitted to the queue: submit it first."
            raise RequestRefused(Code.PR_NOT_SUBMITTED, message)
        return await self.view_by_number(key, persistence.decode_submission(body).number)

    async def view_stored(self, queue_actor: QueueActor, builder: SubmissionViewBuilder, body: bytes) -> SubmissionView:
        """The live submission if the queue still holds it, else the stored one. The impacted targets of a stored one
        are not loaded, because the list can be long."""
        submission = persistence.decode_submission(body)
        live = queue_actor.queue.submissions.get(submission.id)
        if live is not None:
            return builder.build(live)
        has_targets = await self._registry.store.has_impacted_targets(
            queue_actor.id, submission.number, submission.pull_request.head
        )
        return replace(builder.build(submission), has_impacted_targets=has_targets)

    async def load_impacted_targets(self, queue_actor: QueueActor, submission: Submission) -> Submission:
        """Loads the impacted targets of an ended submission; a live one has them."""
        if submission.id in queue_actor.queue.submissions:
            return submission
        impacted_targets = await self.read_impacted_targets(
            queue_actor, submission.number, submission.pull_request.head
        )
        return replace(submission, impacted_targets=impacted_targets)

    async def view_last_ended(self, queue_actor: QueueActor, number: PullRequestNumber) -> SubmissionView | None:
        body = await self._registry.store.last_submission(queue_actor.id, number)
        builder = SubmissionViewBuilder(queue_actor.queue, self._registry.clock.now(), queue_actor.forecast)
        return None if body is None else await self.view_stored(queue_actor, builder, body)

    async def read_impacted_targets(
        self, queue_actor: QueueActor, number: PullRequestNumber, head: Sha
    ) -> ImpactedTargets | None:
        return await persistence.read_impacted_targets(self._registry.store, queue_actor.id, number, head)

    async def read_page(
        self, key: QueueKey, page: SubmissionsQuery
    ) -> tuple[list[SubmissionView], SubmissionId | None]:
        """Newest submission first, and the `before` of the next page if there is one."""
        queue_actor, now = await self._registry.get(key), self._registry.clock.now()
        one_more = replace(page, take=page.take + 1)
        bodies = await self._registry.store.submissions(queue_actor.id, one_more)
        builder = SubmissionViewBuilder(queue_actor.queue, now, queue_actor.forecast)
        views = [await self.view_stored(queue_actor, builder, body) for body in bodies]
        more = len(views) > page.take
        return views[: page.take], views[page.take - 1].submission.id if more else None

    async def read_by_number(
        self, key: QueueKey, numbers: Iterable[PullRequestNumber]
    ) -> tuple[list[SubmissionView], list[PullRequestNumber]]:
        """The pull requests that were submitted, and the numbers of those that never were."""
        found, missing = list[SubmissionView](), list[PullRequestNumber]()
        for number in dict.fromkeys(numbers):
            try:
                found.append(await self.view_by_number(key, number))
            except RequestRefused as refused:
                if refused.code is not Code.PR_NOT_SUBMITTED:
                    raise
                missing.append(number)
        return found, missing

    async def read_timeline(self, key: QueueKey, submission_id: SubmissionId) -> list[PullRequestChanged]:
        queue_actor = await self._registry.get(key)
        entries = await self._registry.store.timeline(queue_actor.id, submission_id, MAX_TIMELINE_ENTRIES)
        return [decode_entry(entry.body) for entry in entries]
