"""Commands on pull requests: submit, cancel, restart tests and set the priority."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from msgspec import Struct

from mergeyard.domain import events as e
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Sha
from mergeyard.domain.pull_requests import ImpactedTargets, PullRequest, Submission
from mergeyard.domain.queue import Decision, Queue
from mergeyard.domain.states import PullRequestState
from mergeyard.ports.git import GitError
from mergeyard.ports.writes import SaveImpactedTargets
from mergeyard.service import errors
from mergeyard.service.background import Background, retry_until_stored
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.idempotency import IdempotentRequest
from mergeyard.service.impacted_targets import EncodedTargets, free_targets_in_thread
from mergeyard.service.pull_request_reader import PullRequestReader
from mergeyard.service.queue_actor import EventRefused, QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.repositories import Repositories, RepositoryContext
from mergeyard.service.submission_queries import SubmissionQueries
from mergeyard.service.views import SubmissionView, view_submission

RenderSubmission = Callable[[SubmissionView], bytes]
FindSubmission = Callable[[Decision, PullRequestNumber], Submission]


class PullRequestCommand(Struct, frozen=True, kw_only=True):
    """A command on one pull request: who gives it, and how its response is rendered."""

    key: QueueKey
    number: PullRequestNumber
    actor: str
    render: RenderSubmission
    idempotent_request: IdempotentRequest | None = None


class SubmitOptions(Struct, frozen=True, kw_only=True):
    """The options of a submission; None: not given."""

    head: Sha | None = None
    priority: int | None = None
    no_batch: bool | None = None
    forced: bool | None = None
    by_maintainer: bool = False
    force_needs_head: bool = True
    """False only for the API, whose clients can force without naming the head: see decision 59."""


class HeadNotConfirmed(RequestRefused):
    """The request named another head than the current one, or none although it has to: the pull request comes from a
    fork, or is forced."""

    def __init__(self, pull_request: PullRequest, named: Sha | None) -> None:
        self.head = pull_request.head
        self.is_fork = pull_request.fork
        name = f"pull request {pull_request.number}"
        if named is not None:
            detail = f"The head of {name} is now {self.head}, not {named}."
            super().__init__(Code.SHA_MISMATCH, f"{detail} Review the new head, then submit it with its SHA.")
            return
        why = f"{name.capitalize()} comes from a fork" if self.is_fork else f"Force skips the reviews of {name}"
        detail = f"{why}: name the head that you reviewed. Its head is now {self.head}."
        super().__init__(Code.SHA_REQUIRED, f"{detail} Review that commit, then submit it with its SHA.")


@dataclass(eq=False)
class Submissions:
    registry: QueueRegistry
    repositories: Repositories
    reader: PullRequestReader
    queries: SubmissionQueries
    background: Background

    async def submit(self, command: PullRequestCommand, options: SubmitOptions) -> bytes:
        """A change of the pull request that is reported after it was read and before the queue holds it would be lost:
        the in-flight submission records it, and the pull request is read again."""
        queue_actor = await self.registry.get(command.key)
        with queue_actor.track_submission(command.number) as in_flight:
            response = await self._submit(queue_actor, command, options)
        if in_flight.is_dirty:
            dirty = e.PullRequestDirty(number=command.number)
            self.background.start(retry_until_stored(self.registry.clock, partial(queue_actor.submit, dirty)))
        return response

    async def _submit(self, queue_actor: QueueActor, command: PullRequestCommand, options: SubmitOptions) -> bytes:
        observed_at_revision = queue_actor.queue.counters.revision
        pull_request, complete = await self._read(queue_actor, command.number, options)
        if pull_request is None:
            raise errors.pull_request_not_found(command.key, command.number)
        if not _confirms_head(options, pull_request):
            raise HeadNotConfirmed(pull_request, options.head)
        submitted = e.PullRequestSubmitted(
            pull_request=pull_request,
            observed_at_revision=observed_at_revision,
            merge_checked=complete,
            priority=options.priority,
            no_batch=options.no_batch,
            forced=options.forced,
            head_pinned=options.head is not None,
            by_maintainer=options.by_maintainer,
            impacted_targets=await self.queries.read_impacted_targets(
                queue_actor, pull_request.number, pull_request.head
            ),
            actor=command.actor,
        )
        return await self._execute(queue_actor, command, submitted, _find_current)

    async def _read(
        self, queue_actor: QueueActor, number: PullRequestNumber, options: SubmitOptions
    ) -> tuple[PullRequest | None, bool]:
        """Tries a merge, which is slow, only for three kinds of pull request: one that is force-enqueued, because it is
        admitted at once; one that the queue holds, because an incomplete reading would replace a complete one; and one
        from a fork, because the response tells whether a maintainer must submit it."""
        context = await self.repositories.open_context(queue_actor)
        pull_request, complete = await self.reader.read_from_host(context, number)
        is_fork = pull_request is not None and pull_request.fork
        if complete or not (options.forced or is_fork or queue_actor.queue.submission_of(number)):
            return pull_request, complete
        return await self.reader.read_with_merge_check(context, number), True

    async def cancel(self, command: PullRequestCommand) -> bytes:
        """Idempotent: cancelling a cancelled pull request returns its last submission."""
        queue_actor, number = await self.registry.get(command.key), command.number
        try:
            event = e.CancelRequested(number=number, actor=command.actor)
            return await self._execute(queue_actor, command, event, _find_concluded)
        except RequestRefused as refused:
            is_absent = refused.code is Code.PR_NOT_SUBMITTED
            ended = await self.queries.view_last_ended(queue_actor, number) if is_absent else None
            if ended is None:
                raise
            if ended.submission.state is not PullRequestState.CANCELLED:
                state = ended.submission.state
                message = f"Pull request {number} is {state} and no longer in the queue: there is nothing to remove."
                raise RequestRefused(Code.PR_NOT_IN_QUEUE, message) from None
            now, body = self.registry.clock.now(), command.render(ended)
            if command.idempotent_request is not None:
                await self.registry.store.commit(command.idempotent_request.to_save_response(body, now))
            return body

    async def restart(self, command: PullRequestCommand) -> bytes:
        queue_actor, number = await self.registry.get(command.key), command.number
        try:
            event = e.RestartRequested(number=number, actor=command.actor)
            return await self._execute(queue_actor, command, event, _find_current)
        except RequestRefused as refused:
            if refused.code is Code.PR_NOT_SUBMITTED and await self.registry.store.last_submission(
                queue_actor.id, number
            ):
                message = f"Pull request {number} is no longer in the queue: submit it again to test it."
                raise RequestRefused(Code.PR_NOT_IN_QUEUE, message) from None
            raise

    async def set_priority(self, command: PullRequestCommand, priority: int) -> bytes:
        """Only for a pull request in the queue; does not submit one."""
        queue_actor, number = await self.registry.get(command.key), command.number
        try:
            event = e.PriorityRequested(number=number, priority=priority, actor=command.actor)
            return await self._execute(queue_actor, command, event, _find_current)
        except RequestRefused as refused:
            if refused.code is Code.PR_NOT_SUBMITTED:
                message = f"Pull request {number} is not in the queue: submit it first."
                raise RequestRefused(Code.PR_NOT_IN_QUEUE, message) from None
            raise

    async def _execute(
        self, queue_actor: QueueActor, command: PullRequestCommand, event: e.Event, find: FindSubmission
    ) -> bytes:
        def render(decision: Decision) -> bytes:
            submission, now = find(decision, command.number), self.registry.clock.now()
            return command.render(view_submission(decision.queue, submission, now, queue_actor.forecast))

        try:
            return await queue_actor.submit(event, render=render, idempotent_request=command.idempotent_request)
        except EventRefused as error:
            raise errors.pull_request_refused(error.refusal, command.number) from None


def _confirms_head(options: SubmitOptions, pull_request: PullRequest) -> bool:
    if options.head is not None:
        return options.head == pull_request.head
    if pull_request.fork:
        return False
    return not (options.forced and options.force_needs_head)


def _find_current(decision: Decision, number: PullRequestNumber) -> Submission:
    return decision.queue.submission_of(number) or _find_concluded(decision, number)


def _find_concluded(decision: Decision, number: PullRequestNumber) -> Submission:
    """The last one: within one decision a pull request can be cancelled, submitted again and cancelled again."""
    return [submission for submission in decision.concluded_submissions if submission.number == number][-1]


DEFAULT_TARGETS_QUOTA_BYTES = 5 * 1024**3
RETRY_AFTER_QUOTA_S = 3600
"""An early retry is useless: space is freed only when uploads for new heads replace old ones, or uploads expire."""


@dataclass(eq=False)
class ImpactedTargetsUploads:
    registry: QueueRegistry
    repositories: Repositories
    quota_bytes: int = DEFAULT_TARGETS_QUOTA_BYTES
    """The limit for what one token has stored; 0 is no limit."""

    async def save(
        self,
        key: QueueKey,
        number: PullRequestNumber,
        head: Sha | None,
        uploaded: EncodedTargets,
        render: Callable[[Sha], bytes],
        idempotent_request: IdempotentRequest | None,
        token: str | None = None,
    ) -> bytes:
        """Also accepts a head that is not the current one, and a pull request that is not submitted."""
        queue_actor = await self.registry.get(key)
        if head is None or not _has_head(queue_actor.queue, number, head):
            head = await self._resolve_head(queue_actor, number, head)
        await self._refuse_over_quota(token, len(uploaded.body))
        response = render(head)
        saved = SaveImpactedTargets(queue_actor.id, number, head, uploaded.body, self.registry.clock.now(), token)
        replaced = _current_targets(queue_actor, number)
        event = e.ImpactedTargetsUploaded(number=number, head=head, impacted_targets=uploaded.impacted_targets)
        was_applied = False

        def render_decision(decision: Decision) -> bytes:
            nonlocal was_applied
            was_applied = _has_head(decision.queue, number, head)
            return response

        await queue_actor.submit(
            event,
            writes=(saved,),
            render=render_decision,
            idempotent_request=idempotent_request,
            encoded_targets=uploaded,
        )
        queue_actor.mark_in_flight_dirty(number)
        await free_targets_in_thread(replaced)
        queue_actor = await self.registry.get(key)
        if not was_applied and _has_head(queue_actor.queue, number, head):
            # The pull request was submitted meanwhile, and its submission read the store before this upload was stored.
            await queue_actor.submit(event, encoded_targets=uploaded)
        return response

    async def _resolve_head(self, queue_actor: QueueActor, number: PullRequestNumber, head: Sha | None) -> Sha:
        """The current head, or another commit that the Git host has. Raises `RequestRefused` for an unknown commit."""
        context = await self.repositories.open_context(queue_actor)
        pull_request = await context.host.read_pull_request(context.repo, number, with_requirements=False)
        if pull_request is None:
            raise errors.pull_request_not_found(queue_actor.key, number)
        if head is None or head == pull_request.head:
            return pull_request.head
        if len(head) == len(pull_request.head) and await _is_known(context, number, head):
            return head
        message = f"{context.repo} has no commit {head}: push it, or name the head of pull request {number}."
        raise RequestRefused(Code.COMMIT_NOT_FOUND, message)

    async def _refuse_over_quota(self, token: str | None, size: int) -> None:
        """Concurrent uploads can exceed the quota together, each by its own size."""
        if not token or not self.quota_bytes:
            return
        if await self.registry.store.impacted_targets_size(token) + size > self.quota_bytes:
            message = (
                f"This token has stored {self.quota_bytes >> 20} MiB of impacted targets, its quota: "
                "wait until old uploads expire, or ask the operator to raise `targets_quota_mib`."
            )
            raise RequestRefused(Code.RATE_LIMITED, message, retry_after=RETRY_AFTER_QUOTA_S)


async def _is_known(context: RepositoryContext, number: PullRequestNumber, commit: Sha) -> bool:
    """Fetches the commit if the mirror lacks it. Raises `GitError` if the Git host cannot be read."""
    if await context.has_commit(commit):
        return True
    try:
        await context.mirror.fetch_commit(commit)
    except GitError:
        # The Git host lacks the commit, refuses to serve commits by SHA, or cannot be read. Only in the last case this
        # fetch fails too.
        await context.mirror.fetch([context.host.head_ref(number)])
    return await context.has_commit(commit)


def _has_head(queue: Queue, number: PullRequestNumber, head: Sha) -> bool:
    submission = queue.submission_of(number)
    return submission is not None and submission.pull_request.head == head


def _current_targets(queue_actor: QueueActor, number: PullRequestNumber) -> list[ImpactedTargets]:
    submission = queue_actor.queue.submission_of(number)
    return [] if submission is None or submission.impacted_targets is None else [submission.impacted_targets]
