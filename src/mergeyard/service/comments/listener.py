"""Handles comments and labels on pull requests, and publishes the status comment."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4
from weakref import WeakValueDictionary

import structlog

from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Repo
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.pull_requests import PullRequest, Status
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import ADMITTED_STATES, TERMINAL_STATES, CheckState, PullRequestState
from mergeyard.domain.timestamps import MINUTE, SECOND, Instant
from mergeyard.engine.admission import not_ready_reason
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import (
    OWN_COMMENT_PREFIX,
    AllowanceKept,
    Comment,
    Forge,
    HostError,
    HostRefused,
    RequestPurpose,
    requests_for,
)
from mergeyard.ports.git import GitError
from mergeyard.ports.store import LeaseLost, Store, StoredEntry, StoreUnavailable
from mergeyard.service import persistence
from mergeyard.service.background import Background, limit_delay
from mergeyard.service.comments import commands, texts
from mergeyard.service.errors import RequestRefused
from mergeyard.service.leases import Leases
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.replica_bus import PullRequestNoticeReceived, ReplicaBus
from mergeyard.service.repositories import Repositories
from mergeyard.service.views import SubmissionView, view_submission

log = structlog.get_logger()

MAX_ATTEMPTS = 1500
"""About one day, with the delays in between."""
FIRST_RETRY_MS = 2 * SECOND
MAX_CONCURRENT_PULL_REQUESTS = 4

PullRequestKey = tuple[Repo, PullRequestNumber]


@dataclass(eq=False)
class CommentListener:
    registry: QueueRegistry
    repositories: Repositories
    executor: commands.CommandExecutor
    thread_states: commands.ThreadStates
    leases: Leases
    replica_bus: ReplicaBus
    background: Background
    _slots: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT_PULL_REQUESTS), init=False
    )
    _pending: dict[PullRequestKey, str] = field(default_factory=dict[PullRequestKey, str], init=False)
    """Pull requests to process, with their fingerprint if known."""
    _running: set[PullRequestKey] = field(default_factory=set[PullRequestKey], init=False)
    _replying: WeakValueDictionary[tuple[QueueId, PullRequestNumber], asyncio.Task[None]] = field(
        default_factory=WeakValueDictionary[tuple[QueueId, PullRequestNumber], asyncio.Task[None]], init=False
    )
    """The tasks that send the replies of a thread."""

    def schedule(self, repo: Repo, number: PullRequestNumber, fingerprint: str = "") -> None:
        """Schedules processing on the replica that holds the lease of the repository."""
        key = (repo, number)
        if not self.leases.has_lease(repo):
            self.replica_bus.publish(PullRequestNoticeReceived(repo, number))
            return
        self._pending[key] = fingerprint
        if key not in self._running:
            self._running.add(key)
            self.background.start(self._process_until_idle(key))

    async def _process_until_idle(self, key: PullRequestKey) -> None:
        try:
            while key in self._pending:
                await self._retry(key, partial(self._process, *key, self._pending.pop(key)))
        finally:
            self._running.discard(key)

    async def _retry(self, key: PullRequestKey, step: Callable[[], Awaitable[None]]) -> None:
        """A webhook may arrive only once, so temporary errors are retried."""
        delay_ms = FIRST_RETRY_MS
        for _ in range(MAX_ATTEMPTS):
            try:
                return await step()
            except LeaseLost:
                return None
            except (HostError, GitError, StoreUnavailable, RequestRefused) as error:
                log.warning("pull_request_comments_unavailable", repo=str(key[0]), number=key[1], error=str(error))
                wait_ms = limit_delay(delay_ms, error)
            await self.registry.clock.sleep(wait_ms)
            delay_ms = min(2 * delay_ms, MINUTE)
        return None

    async def _process(self, repo: Repo, number: PullRequestNumber, fingerprint: str) -> None:
        async with self._slots:
            await self._process_in_slot(repo, number, fingerprint)

    async def _process_in_slot(self, repo: Repo, number: PullRequestNumber, fingerprint: str) -> None:
        if fingerprint and await self.thread_states.is_up_to_date(repo, number, fingerprint):
            return
        host = self.repositories.get_host(repo.host)
        if host.forge is None:
            return
        pull_request = await host.read_pull_request(repo, number, with_requirements=False)
        if pull_request is None or pull_request.head_branch.startswith(ids.TEST_BRANCH_PREFIX):
            return
        by_branch = {each.key.branch: each for each in await self.registry.load_by_repo(repo)}
        if not by_branch:
            return
        # Without a queue for the base branch, the first queue of the repository keeps the state of the thread.
        queue_actor = by_branch.get(pull_request.base_branch) or by_branch[min(by_branch)]
        other_branches = () if pull_request.base_branch in by_branch else sorted(by_branch)
        async with self.thread_states.lock(queue_actor, number) as stored_thread:
            if fingerprint and stored_thread.state.fingerprint == fingerprint:
                return
            prefixes = texts.command_prefix(host.provider), host.number_prefix
            handler = ThreadHandler(self.executor, queue_actor, host.forge, pull_request, stored_thread, *prefixes)
            try:
                await self._handle_new_activity(handler, other_branches)
                if not stored_thread.state.unsent_replies:
                    stored_thread.state.fingerprint = fingerprint
            finally:
                if stored_thread.state.unsent_replies:
                    self._start_replying(queue_actor, host.forge, number)

    def _start_replying(self, queue_actor: QueueActor, forge: Forge, number: PullRequestNumber) -> None:
        """The caller has the lock of the thread, so a task that is not done yet finds the new replies."""
        key, repo = (queue_actor.id, number), queue_actor.key.repo
        if key not in self._replying or self._replying[key].done():
            send = partial(self.thread_states.send_replies, queue_actor, forge, number)
            if task := self.background.start(self._retry((repo, number), send)):
                self._replying[key] = task

    async def _handle_new_activity(self, handler: "ThreadHandler", other_branches: Sequence[str]) -> None:
        """`other_branches` are those that have a queue, if the base branch has none."""
        queue_actor, thread_state = handler.queue_actor, handler.stored_thread.state
        thread_state.handled_until = thread_state.handled_until or await self._read_creation_time(queue_actor)
        number = handler.pull_request.number
        thread = await handler.forge.thread(queue_actor.key.repo, number, thread_state.handled_until)
        for comment in thread_state.list_unhandled(thread.comments):
            if other_branches:
                await handler.answer_without_queue(comment, other_branches)
            else:
                await handler.handle_comment(comment)
        if queue_actor.queue.config.label_commands_enabled and not other_branches:
            await handler.handle_labels(thread.labels)

    async def _read_creation_time(self, queue_actor: QueueActor) -> Instant:
        """Comments from before the queue was created are not commands for it. Git hosts show times in whole seconds."""
        (first, *_) = await self.registry.store.entries(queue_actor.id, 0, 1)
        return Instant(persistence.decode_record(first.body).at // SECOND * SECOND)


class CommentPublisher:
    name = "comments"

    def __init__(
        self, registry: QueueRegistry, repositories: Repositories, thread_states: commands.ThreadStates, public_url: str
    ) -> None:
        self._registry = registry
        self._store: Store = registry.store
        self._repositories = repositories
        self._thread_states = thread_states
        self._public_url = public_url

    async def consume(self, key: QueueKey, queue: QueueId, entries: Sequence[StoredEntry]) -> None:
        """Publishes the current state, not the entries: of several changes only the last matters."""
        queue_actor, forge = await self._registry.find(key), self._repositories.get_host(key.repo.host).forge
        if queue_actor is None or queue_actor.id != queue or forge is None:
            return
        records = (persistence.decode_record(entry.body) for entry in entries)
        for number in dict.fromkeys(record.number for record in records if isinstance(record, PullRequestChanged)):
            await self.publish(queue_actor, forge, number)

    async def publish(self, queue_actor: QueueActor, forge: Forge, number: PullRequestNumber) -> None:
        async with self._thread_states.lock(queue_actor, number) as stored_thread:
            thread_state, config = stored_thread.state, queue_actor.queue.config
            submission = queue_actor.queue.submission_of(number) or await persistence.read_last_submission(
                self._store, queue_actor.id, number
            )
            if submission is None:
                return
            pr_view = view_submission(queue_actor.queue, submission, self._registry.clock.now(), queue_actor.forecast)
            if config.comments_enabled:
                is_progress = bool(thread_state.comment_text) and _shows_progress(pr_view)
                with _log_refusal(queue_actor, number), _skip_progress(queue_actor, number, is_progress=is_progress):
                    await self._update_comment(queue_actor, forge, pr_view, thread_state)
            if config.status_check_enabled:
                is_progress = bool(thread_state.status_text) and _shows_progress(pr_view)
                with _log_refusal(queue_actor, number), _skip_progress(queue_actor, number, is_progress=is_progress):
                    await self._update_status(queue_actor, forge, pr_view, thread_state)
            if submission.state in TERMINAL_STATES and thread_state.label:
                with _log_refusal(queue_actor, number):
                    await forge.remove_label(queue_actor.key.repo, number, thread_state.label)

    async def _update_comment(
        self, queue_actor: QueueActor, forge: Forge, pr_view: SubmissionView, thread_state: commands.ThreadState
    ) -> None:
        """A changed estimate alone is no reason to write: forges limit writes."""
        run = await self._find_run(queue_actor, pr_view)
        repo, number = queue_actor.key.repo, pr_view.submission.number
        accepts_commands = queue_actor.queue.config.commands_enabled
        host = self._repositories.get_host(repo.host)
        render = partial(
            texts.render_comment,
            pr_view,
            batch=() if run is None else [member.number for member in run.tested_members],
            failed_checks=() if run is None else await self._read_failed_checks(queue_actor, run),
            page_url=self._page_url(queue_actor, pr_view),
            prefix=texts.command_prefix(host.provider) if accepts_commands else "",
            number_prefix=host.number_prefix,
        )
        if (text := render()) != thread_state.comment_text:
            written = render(written_at=self._registry.clock.now())
            thread_state.comment_id = await forge.put_comment(repo, number, written, thread_state.comment_id)
            thread_state.comment_text = text

    async def _update_status(
        self, queue_actor: QueueActor, forge: Forge, pr_view: SubmissionView, thread_state: commands.ThreadState
    ) -> None:
        head = pr_view.submission.pull_request.head
        status = texts.build_status(pr_view, self._page_url(queue_actor, pr_view))
        status_text = f"{head} {status.state} {status.description}"
        if status_text != thread_state.status_text:
            await forge.set_status(queue_actor.key.repo, head, status)
            thread_state.status_text = status_text

    def _page_url(self, queue_actor: QueueActor, pr_view: SubmissionView) -> str:
        return (
            f"{self._public_url}/pulls/{queue_actor.key.repo}/{pr_view.submission.number}" if self._public_url else ""
        )

    async def _read_failed_checks(self, queue_actor: QueueActor, run: Run) -> tuple[Status, ...]:
        """The required checks that failed."""
        if not run.chain:
            return ()
        statuses = await self._store.statuses(queue_actor.key.repo, run.checked_commit)
        return tuple(
            status
            for status in statuses
            if status.check_state is CheckState.FAILED and status.context in run.required_statuses
        )

    async def _find_run(self, queue_actor: QueueActor, pr_view: SubmissionView) -> Run | None:
        if pr_view.run_id is None:
            return None
        return queue_actor.queue.runs.get(pr_view.run_id) or await persistence.read_run(
            self._store, queue_actor.id, pr_view.run_id
        )


@dataclass(eq=False)
class CommentRefresher:
    """Publishes another reason for which a pull request is not ready: only a change of its state is in the journal."""

    publisher: CommentPublisher
    repositories: Repositories
    leases: Leases
    clock: Clock
    background: Background
    _pending: dict[QueueId, dict[PullRequestNumber, None]] = field(
        default_factory=dict[QueueId, dict[PullRequestNumber, None]], init=False
    )

    def on_change(self, queue_actor: QueueActor, before: Queue | None) -> None:
        host = self.repositories.hosts.get(queue_actor.key.repo.host)  # None: it is no longer configured
        forge = None if host is None else host.forge
        numbers = () if forge is None else list_not_ready_for_another_reason(before, queue_actor.queue)
        if forge is None or not numbers:
            return
        if queue_actor.id in self._pending:
            self._pending[queue_actor.id] |= dict.fromkeys(numbers)
        else:
            self._pending[queue_actor.id] = dict.fromkeys(numbers)
            self.background.start(self._publish_pending(queue_actor, forge))

    def on_lease_lost(self, queue_actor: QueueActor) -> None:
        """The replica that takes over publishes them again."""
        self._pending.get(queue_actor.id, {}).clear()

    async def _publish_pending(self, queue_actor: QueueActor, forge: Forge) -> None:
        pending, delay_ms = self._pending[queue_actor.id], FIRST_RETRY_MS
        try:
            while pending and self.leases.has_lease(queue_actor.key.repo):
                number = next(iter(pending))
                del pending[number]
                try:
                    await self.publisher.publish(queue_actor, forge, number)
                    delay_ms = FIRST_RETRY_MS
                except (HostError, StoreUnavailable) as error:
                    log.warning("pull_request_comments_unavailable", repo=str(queue_actor.key.repo), error=str(error))
                    pending[number] = None
                    await self.clock.sleep(limit_delay(delay_ms, error))
                    delay_ms = min(2 * delay_ms, MINUTE)
                except LeaseLost:
                    raise
                except Exception as error:  # a bug with one pull request must not keep the others from being shown
                    repo = str(queue_actor.key.repo)
                    log.error("comment_not_published", repo=repo, number=number, error=str(error), exc_info=error)
        except LeaseLost:
            pass
        finally:
            del self._pending[queue_actor.id]


def list_not_ready_for_another_reason(before: Queue | None, queue: Queue) -> list[PullRequestNumber]:
    """All that are not ready if the queue before is not known. Costs time in proportion to what changed."""
    if before is None:
        return [queue.submissions[submission_id].number for _, submission_id in queue.not_ready]
    changed = queue.submissions.entries_not_shared_with(before.submissions)
    return [
        submission.number
        for submission_id, submission in changed.items()
        if submission.state is PullRequestState.NOT_READY
        and (old := before.submissions.get(submission_id)) is not None
        and old.state is PullRequestState.NOT_READY
        and (
            not_ready_reason(before, old) is not not_ready_reason(queue, submission)
            or list(map(texts.describe_requirement, old.pull_request.unmet_requirements))
            != list(map(texts.describe_requirement, submission.pull_request.unmet_requirements))
        )
    ]


@contextmanager
def _log_refusal(queue_actor: QueueActor, number: PullRequestNumber) -> Generator[None]:
    """Logs a permanent refusal of the Git host and continues with the rest; temporary errors are raised, and the
    consumer loop retries."""
    try:
        yield
    except HostRefused as refused:
        log.warning("pull_request_state_not_published", queue=str(queue_actor.key), number=number, error=str(refused))


def _shows_progress(pr_view: SubmissionView) -> bool:
    """Whether the next state tells more, without an action of a person."""
    return pr_view.submission.state in ADMITTED_STATES


@contextmanager
def _skip_progress(queue_actor: QueueActor, number: PullRequestNumber, *, is_progress: bool) -> Generator[None]:
    """Progress is not written while the Git host allows only a few more requests: the first answer and the end are, and
    each shows the whole state."""
    if not is_progress:
        yield
        return
    try:
        with requests_for(RequestPurpose.DISPLAY):
            yield
    except AllowanceKept as kept:
        log.info("progress_not_published", queue=str(queue_actor.key), number=number, error=str(kept))


LABEL_ACTOR = "label"
"""The actor in the journal."""


@dataclass(eq=False)
class ThreadHandler:
    """Handles comments and labels of one pull request while the lock of its thread is held."""

    executor: commands.CommandExecutor
    queue_actor: QueueActor
    forge: Forge
    pull_request: PullRequest
    stored_thread: commands.LockedThread
    prefix: str
    number_prefix: str

    async def handle_comment(self, comment: Comment) -> None:
        """Stores that a command is executed, with the reply, before anything is sent: if the reply fails, it is sent
        later, and the command must not be executed again."""
        outcome, thread_state = None, self.stored_thread.state
        if self.queue_actor.queue.config.commands_enabled and not comment.text.startswith(OWN_COMMENT_PREFIX):
            request = self._build_request(comment.author, comment.id)
            outcome = await self.executor.execute(self.forge, request, comment)
        thread_state.mark_handled(comment)
        if outcome is not None and (not outcome.reply_once or thread_state.claim_reply(comment.author)):
            self._add_reply(comment, outcome)
            await self.stored_thread.save()

    async def answer_without_queue(self, comment: Comment, other_branches: Sequence[str]) -> None:
        """Replies once per pull request, and only to a user with write access."""
        thread_state, branch = self.stored_thread.state, self.pull_request.base_branch
        is_answered = thread_state.no_queue_answered or not self.queue_actor.queue.config.commands_enabled
        is_command = not comment.text.startswith(OWN_COMMENT_PREFIX) and commands.parse_command(comment.text)
        if is_command and not is_answered:
            with suppress(HostRefused):  # the queue cannot read who has write access
                key = QueueKey(self.queue_actor.key.repo, branch)
                thread_state.no_queue_answered = await self.executor.can_write(self.forge, key, comment.author)
        thread_state.mark_handled(comment)
        if thread_state.no_queue_answered and not is_answered:
            message = texts.render_no_queue(branch, other_branches)
            self._add_reply(comment, commands.CommandOutcome(False, message))
            await self.stored_thread.save()

    def _add_reply(self, comment: Comment, outcome: commands.CommandOutcome) -> None:
        thread_state = self.stored_thread.state
        thread_state.add_reply(commands.UnsentReply(comment_id=comment.id, succeeded=outcome.succeeded))
        if not (outcome.shown_in_comment and self.queue_actor.queue.config.comments_enabled):
            text = texts.render_reply(comment.id, comment.author, outcome.message)
            thread_state.add_reply(commands.UnsentReply(text=text))

    async def handle_labels(self, labels: Collection[str]) -> None:
        """The new label state is recorded only after the action, so a failed action is tried again at the next read."""
        thread_state, label = self.stored_thread.state, self.queue_actor.queue.config.enqueueing_label
        await self._recover_submission(thread_state)
        # GitHub ignores the case of labels. On other forges, two labels that differ only in case are unlikely.
        shown = next((each for each in sorted(labels) if each.casefold() == label.casefold()), "")
        had_label, has_label = thread_state.label.casefold() == label.casefold(), bool(shown)
        if has_label and not had_label and self.pull_request.is_open:
            await self._submit(label)
        elif had_label and not has_label:
            await self._cancel()
        thread_state.label, thread_state.label_request = shown, None

    async def _recover_submission(self, thread_state: commands.ThreadState) -> None:
        """The previous attempt may have submitted and then failed, so that even the queue actor does not know the
        submission yet."""
        label_request = thread_state.label_request
        if label_request is None:
            return
        submission_id = await self.executor.find_submission(self._build_request(LABEL_ACTOR, label_request.key))
        if submission_id is not None:
            await self.queue_actor.catch_up(self.queue_actor.version + 1)
            thread_state.label, thread_state.submitted_by_label = label_request.label, submission_id

    async def _submit(self, label: str) -> None:
        """A pull request that is already queued was submitted in another way, and the label does not take it over. A
        label does not name the reviewed head, so it cannot submit a fork."""
        if self.queue_actor.queue.submission_of(self.pull_request.number) is not None:
            return
        if self.pull_request.fork:
            self._add_refusal(texts.render_fork_label_refusal(self.pull_request.head, self.prefix))
            return
        thread_state = self.stored_thread.state
        label_request = thread_state.label_request or commands.LabelRequest(label, _new_request_key())
        thread_state.label_request = label_request
        await self.stored_thread.save()
        try:
            request = self._build_request(LABEL_ACTOR, label_request.key)
            thread_state.submitted_by_label = await self.executor.submit(request)
        except RequestRefused as refused:
            self._add_refusal(texts.escape_markdown(refused.detail))

    async def _cancel(self) -> None:
        submission = self.queue_actor.queue.submission_of(self.pull_request.number)
        if submission is not None and submission.id == self.stored_thread.state.submitted_by_label:
            with suppress(RequestRefused):  # already removed, or being merged: the state comment shows it
                await self.executor.cancel(self._build_request(LABEL_ACTOR, _new_request_key()))

    def _add_refusal(self, message: str) -> None:
        pull_request = self.pull_request
        text = texts.render_reply(f"label on {pull_request.head}", pull_request.author, message)
        self.stored_thread.state.add_reply(commands.UnsentReply(text=text))

    def _build_request(self, user: str, key: str) -> commands.CommandRequest:
        return commands.CommandRequest(
            queue_actor=self.queue_actor,
            pull_request=self.pull_request,
            user=user,
            key=key,
            prefix=self.prefix,
            number_prefix=self.number_prefix,
        )


def _new_request_key() -> str:
    """A new key each time the label is set: each is a new request."""
    return f"{LABEL_ACTOR} {uuid4()}"
