"""Commands in comments: parsing, permission, execution, and the stored state of each thread."""

import asyncio
import re
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from typing import assert_never
from weakref import WeakValueDictionary

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain import config
from mergeyard.domain.config import URGENT
from mergeyard.domain.ids import SHA_PATTERN, PullRequestNumber, QueueId, QueueKey, Repo, Sha, SubmissionId
from mergeyard.domain.pull_requests import PullRequest
from mergeyard.domain.timestamps import MINUTE, Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import Comment, Forge, HostRefused
from mergeyard.ports.store import DuplicateRequest, Store
from mergeyard.ports.writes import SaveThreadState
from mergeyard.service.comments import texts
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.idempotency import Idempotency, IdempotentRequest
from mergeyard.service.leases import Leases
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.submission_queries import SubmissionQueries
from mergeyard.service.submissions import HeadNotConfirmed, PullRequestCommand, Submissions, SubmitOptions
from mergeyard.service.views import SubmissionView

log = structlog.get_logger()

MAX_DENIED_USERS_ANSWERED = 50
"""Per pull request: many users without write access must not use up our API rate limit."""
MAX_UNSENT_REPLIES = 2 * MAX_DENIED_USERS_ANSWERED
"""Per pull request. A command has at most two: a reaction and a text."""
MAX_REPLY_CHARS = 4000


class LabelRequest(Struct, frozen=True):
    """A label that requests a submission. Each time the label is set, it has a new key."""

    label: str
    key: str


class UnsentReply(Struct, frozen=True, omit_defaults=True):
    """A text, or a reaction to a comment."""

    text: str = ""
    """Empty for a reaction."""
    comment_id: str = ""
    succeeded: bool = False


class ThreadState(Struct, kw_only=True, omit_defaults=True):
    comment_id: str | None = None
    """The id of our comment with the state."""
    comment_text: str = ""
    """Its text."""
    status_text: str = ""
    """The last published status: commit, state and description."""
    handled_until: Instant = Instant(0)
    """The time of the last comment that was handled."""
    handled_ids: tuple[str, ...] = ()
    """The ids of the handled comments with that same time."""
    label: str = ""
    """The queue's label, if the pull request had it at the last read."""
    label_request: LabelRequest | None = None
    """Set until the outcome of the submission is known."""
    submitted_by_label: SubmissionId | None = None
    denied_users: tuple[str, ...] = ()
    """Users without write access who already got their one reply here."""
    no_queue_answered: bool = False
    """A command got the one reply that the base branch has no queue."""
    fingerprint: str = ""
    """A fingerprint of the pull request, as the Git host listed it at the last read. Empty while replies are unsent, so
    that the first poll after a restart continues with them."""
    unsent_replies: tuple[UnsentReply, ...] = ()
    """Oldest first."""

    def list_unhandled(self, comments: Sequence[Comment]) -> list[Comment]:
        unhandled = [
            comment for comment in comments if comment.at >= self.handled_until and comment.id not in self.handled_ids
        ]
        return sorted(unhandled, key=lambda comment: (comment.at, len(comment.id), comment.id))

    def mark_handled(self, comment: Comment) -> None:
        same_moment = self.handled_ids if comment.at == self.handled_until else ()
        self.handled_until, self.handled_ids = comment.at, (*same_moment, comment.id)

    def claim_reply(self, user: str) -> bool:
        """True the first time for each user; records that the user got a reply."""
        if user in self.denied_users or len(self.denied_users) >= MAX_DENIED_USERS_ANSWERED:
            return False
        self.denied_users = (*self.denied_users, user)
        return True

    def add_reply(self, reply: UnsentReply) -> None:
        """Drops the oldest one if there are too many."""
        bounded = replace(reply, text=reply.text[:MAX_REPLY_CHARS])
        self.unsent_replies, self.fingerprint = (*self.unsent_replies, bounded)[-MAX_UNSENT_REPLIES:], ""

    def copy_handled_from(self, other: "ThreadState") -> None:
        """Copies what is handled from a newer state for another queue, after the base of the pull request changed:
        those commands were not meant for this queue."""
        if other.handled_until <= self.handled_until:
            return
        self.handled_until, self.handled_ids = other.handled_until, other.handled_ids
        self.label, self.denied_users, self.fingerprint = other.label, other.denied_users, ""
        self.no_queue_answered = other.no_queue_answered


class LockedThread:
    """A thread state while its lock is held."""

    def __init__(
        self, store: Store, leases: Leases, queue_actor: QueueActor, number: PullRequestNumber, state: ThreadState
    ) -> None:
        self.state = state
        self._store = store
        self._leases = leases
        self._queue_actor = queue_actor
        self._number = number
        self._stored_body = msgspec.json.encode(state)

    async def save(self) -> None:
        """Stores the state now, so that a crash after this does not repeat what was done."""
        body = msgspec.json.encode(self.state)
        if body != self._stored_body:
            write = SaveThreadState(self._queue_actor.id, self._number, body)
            await self._store.commit(*self._leases.lease_assertion(self._queue_actor.key.repo), write)
            self._stored_body = body

    async def send_reply(self, forge: Forge) -> bool:
        """Sends the oldest unsent reply; False if there is none. Idempotent if the response was lost: a reaction is set
        once, and a text replaces our comment with the same first line."""
        if not self.state.unsent_replies:
            return False
        reply, *later_replies = self.state.unsent_replies
        repo, number = self._queue_actor.key.repo, self._number
        try:
            if reply.text:
                await forge.put_comment(repo, number, reply.text, None)
            else:
                await forge.react(repo, number, reply.comment_id, success=reply.succeeded)
        except HostRefused as refused:
            log.warning("command_reply_refused", repo=str(repo), number=number, error=str(refused))
        self.state.unsent_replies = tuple(later_replies)
        return True


class ThreadStates:
    def __init__(self, registry: QueueRegistry, leases: Leases) -> None:
        self._registry = registry
        self._leases = leases
        self._locks = WeakValueDictionary[tuple[QueueId, PullRequestNumber], asyncio.Lock]()

    @asynccontextmanager
    async def lock(self, queue_actor: QueueActor, number: PullRequestNumber) -> AsyncGenerator[LockedThread]:
        """Locks and loads the state of a pull request. Saves changes at the end, also after an error."""
        lock = self._locks.setdefault((queue_actor.id, number), asyncio.Lock())
        async with lock:
            state = await self._read(queue_actor, number)
            stored_thread = LockedThread(self._registry.store, self._leases, queue_actor, number, state)
            for other in await self._registry.load_by_repo(queue_actor.key.repo):
                if other is not queue_actor:
                    state.copy_handled_from(await self._read(other, number))
            try:
                yield stored_thread
            finally:
                await stored_thread.save()

    async def send_replies(self, queue_actor: QueueActor, forge: Forge, number: PullRequestNumber) -> None:
        """Raises `HostError` with the rest still stored: limits of writes can delay a reply for an hour. New
        commands do not wait that long, because the lock is released after each reply."""
        has_sent = True
        while has_sent and self._leases.has_lease(queue_actor.key.repo):
            async with self.lock(queue_actor, number) as stored_thread:
                has_sent = await stored_thread.send_reply(forge)

    async def is_up_to_date(self, repo: Repo, number: PullRequestNumber, fingerprint: str) -> bool:
        """Whether the comments were read since the Git host listed the pull request with this fingerprint."""
        states = [await self._read(queue_actor, number) for queue_actor in self._registry.cached_by_repo(repo)]
        return any(state.fingerprint == fingerprint for state in states)

    async def _read(self, queue_actor: QueueActor, number: PullRequestNumber) -> ThreadState:
        body = await self._registry.store.thread_state(queue_actor.id, number)
        return ThreadState() if body is None else msgspec.json.decode(body, type=ThreadState)


COMMAND_PREFIXES = (texts.USUAL_COMMAND_PREFIX, *texts.COMMAND_PREFIXES.values())
FULL_SHA = re.compile(SHA_PATTERN)
"""Abbreviated SHAs are refused: a commit with the same prefix is easy to create."""


class Verb(StrEnum):
    SUBMIT = "submit"
    CANCEL = "cancel"
    RESTART = "restart"
    STATUS = "status"
    HELP = "help"


class Command(SubmitOptions, frozen=True, kw_only=True):
    """`by_maintainer` is set only after the Git host was asked about the author."""

    verb: Verb


class UnknownArgument(Struct, frozen=True):
    """The command has an argument that does not exist."""

    argument: str


OTHER_VERBS = (Verb.CANCEL, Verb.RESTART, Verb.STATUS, Verb.HELP)

FLAGS = {"--no-batch": "no_batch", "--force": "forced"}
"""Each with the field that it sets."""
SUBMIT_OPTIONS = ("--priority", *FLAGS)


def parse_command(text: str) -> Command | UnknownArgument | None:
    """Parses the first line. None if it is not a command.

    Phones begin a line with a capital letter, and people end one with a full stop: `/Merge cancel.` is a command too.
    Unicode has line separators that `split` takes for blanks. A comment that shows two lines must not be one order.
    """
    first_line = next(iter(text.strip().splitlines()), "")
    parts = first_line.rstrip().removesuffix(".").split()
    if not parts or parts[0].lower() not in COMMAND_PREFIXES:
        return None
    verb = parts[1].lower() if len(parts) > 1 else ""
    if verb in OTHER_VERBS:
        return Command(verb=Verb(verb)) if len(parts) == 2 else UnknownArgument(parts[2])
    return _parse_submit(parts[1:])


def _parse_submit(parts: Sequence[str]) -> Command | UnknownArgument:
    command, remaining = Command(verb=Verb.SUBMIT), iter(parts)
    for argument in remaining:
        name, equals, value = argument.partition("=")
        lowered = argument.lower()
        if FULL_SHA.fullmatch(lowered):
            command = replace(command, head=Sha(lowered))
        elif lowered in FLAGS:
            command = replace(command, **{FLAGS[lowered]: True})
        elif name.lower() == "--priority":
            text = value if equals else next(remaining, "")
            priority = config.parse_priority(text.lower())
            if priority is None:
                return UnknownArgument(text or name)
            command = replace(command, priority=priority)
        else:
            return UnknownArgument(argument)
    return command


def _is_cancel(command: Command | UnknownArgument) -> bool:
    """Authors can take their own pull request out of the queue, also those of forks, who cannot write here."""
    return isinstance(command, Command) and command.verb is Verb.CANCEL


DENIED_USER_TTL_MS = 5 * MINUTE
MAX_DENIED_USERS = 1000


class CommandOutcome(Struct, frozen=True):
    succeeded: bool
    message: str
    shown_in_comment: bool = False
    """The state comment shows the result, so no reply is needed."""
    reply_once: bool = False
    """Reply only once per user on a pull request."""


class CommandRequest(Struct, frozen=True, kw_only=True):
    """One command: for which pull request, by which user, and the id of the comment or label change that it comes
    from."""

    queue_actor: QueueActor
    pull_request: PullRequest
    user: str
    key: str
    prefix: str
    """What commands start with at this Git host, for the replies."""
    number_prefix: str = "#"

    @property
    def idempotent_request(self) -> IdempotentRequest:
        """The idempotency key, so that one comment is executed once. Cut at the front: the distinguishing part is at
        the end."""
        return IdempotentRequest(
            token_id="forge",
            key=f"{self.queue_actor.key.repo}#{self.pull_request.number}:{self.key}"[-255:],
            digest=b"",
        )

    def to_command(self) -> PullRequestCommand:
        return PullRequestCommand(
            key=self.queue_actor.key,
            number=self.pull_request.number,
            actor=f"{self.user}@{self.queue_actor.key.repo.host}",
            render=lambda view: str(view.submission.id).encode(),
            idempotent_request=self.idempotent_request,
        )


class CommandExecutor:
    def __init__(
        self,
        submissions: Submissions,
        submission_queries: SubmissionQueries,
        idempotency: Idempotency,
        clock: Clock,
        hosts_with_urgent_writers: Collection[str],
    ) -> None:
        self._hosts_with_urgent_writers = hosts_with_urgent_writers
        self._submissions = submissions
        self._submission_queries = submission_queries
        self._idempotency = idempotency
        self._clock = clock
        self._denied_users: dict[tuple[QueueKey, str], Instant] = {}
        """Users without write access, and until when the Git host is not asked about them again."""

    async def execute(self, forge: Forge, request: CommandRequest, comment: Comment) -> CommandOutcome | None:
        """None if the comment is not a command."""
        command = parse_command(comment.text)
        if command is None:
            return None
        key = request.queue_actor.key
        try:
            is_own_cancel = _is_cancel(command) and comment.author == request.pull_request.author != ""
            if not is_own_cancel and not await self.can_write(forge, key, comment.author):
                return CommandOutcome(False, texts.WRITE_ACCESS_REQUIRED, reply_once=True)
            if await forge.is_edited(key.repo, request.pull_request.number, comment):
                # At some Git hosts, every user with write access can edit the comments of a maintainer.
                return CommandOutcome(False, texts.COMMENT_EDITED)
            if isinstance(command, UnknownArgument):
                return CommandOutcome(False, texts.render_unknown_argument(command.argument, request.prefix))
            if command.verb is Verb.HELP:
                return CommandOutcome(True, texts.render_help(request.prefix))
            writers_can_use_urgent = key.repo.host in self._hosts_with_urgent_writers
            needs_maintainer = command.forced or (command.priority == URGENT and not writers_can_use_urgent)
            # Only a maintainer can let a fork change guarded paths.
            submits_fork = command.verb is Verb.SUBMIT and request.pull_request.fork
            if needs_maintainer or submits_fork:
                command = replace(command, by_maintainer=await forge.can_maintain(key.repo, comment.author))
            if needs_maintainer and not command.by_maintainer:
                message = texts.FORCE_REFUSED if writers_can_use_urgent else texts.FORCE_AND_URGENT_REFUSED
                return CommandOutcome(False, message)
        except HostRefused:
            return CommandOutcome(False, texts.PERMISSIONS_UNREADABLE, reply_once=True)
        try:
            view = await self._run_command(request, command)
        except HeadNotConfirmed as refused:
            has_mismatch = refused.code is Code.SHA_MISMATCH
            line = f"{request.prefix} --force {refused.head}" if command.forced else f"{request.prefix} {refused.head}"
            message = texts.render_head_required(line, has_mismatch=has_mismatch, is_fork=refused.is_fork)
            return CommandOutcome(False, message)
        except RequestRefused as refused:
            return CommandOutcome(False, texts.escape_markdown(refused.detail))
        return CommandOutcome(
            True, texts.render_state(view, request.number_prefix), shown_in_comment=command.verb is not Verb.STATUS
        )

    async def can_write(self, forge: Forge, key: QueueKey, user: str) -> bool:
        """Whether the user can merge into the branch. Caches missing write access, so that repeated commands of such a
        user cost no API calls."""
        now = self._clock.now()
        for denied, until in list(self._denied_users.items()):
            if until <= now:
                del self._denied_users[denied]
        if not user or (key, user) in self._denied_users:
            return False
        if await forge.can_write(key.repo, user, key.branch):
            return True
        if len(self._denied_users) < MAX_DENIED_USERS:
            self._denied_users[key, user] = Instant(now + DENIED_USER_TTL_MS)
        return False

    async def _run_command(self, request: CommandRequest, command: Command) -> SubmissionView:
        pr_command = request.to_command()
        with suppress(DuplicateRequest):  # executed before a crash; the result was not recorded
            match command.verb:
                case Verb.SUBMIT:
                    await self._submissions.submit(pr_command, command)
                case Verb.CANCEL:
                    await self._submissions.cancel(pr_command)
                case Verb.RESTART:
                    await self._submissions.restart(pr_command)
                case Verb.STATUS | Verb.HELP:
                    pass
                case _:
                    assert_never(command.verb)
        return await self._submission_queries.view_by_number(pr_command.key, pr_command.number)

    async def submit(self, request: CommandRequest) -> SubmissionId | None:
        with suppress(DuplicateRequest):
            return SubmissionId(int(await self._submissions.submit(request.to_command(), SubmitOptions())))
        return await self.find_submission(request)

    async def find_submission(self, request: CommandRequest) -> SubmissionId | None:
        """The submission that this request created, also if the response was lost."""
        response = await self._idempotency.find_response(request.idempotent_request)
        return None if response is None else SubmissionId(int(response))

    async def cancel(self, request: CommandRequest) -> None:
        await self._submissions.cancel(request.to_command())
