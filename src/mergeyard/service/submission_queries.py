"""Views of submissions: live ones from the queue, ended ones from the store; and the search in both."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.access import Token
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Sha, SubmissionId
from mergeyard.domain.journal import PullRequestEntry
from mergeyard.domain.pull_requests import ImpactedTargets, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import TERMINAL_STATES, PullRequestState, Refusal
from mergeyard.domain.timestamps import Instant, later
from mergeyard.engine import views
from mergeyard.ports.store import EndedSubmissionsQuery, SubmissionsQuery
from mergeyard.service import errors, persistence
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.queue_overview import is_ready_while_not_running
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.views import SubmissionView, SubmissionViewBuilder, view_submission

MAX_TIMELINE_ENTRIES = 1000
"""Of one submission, the newest: a client can restart its tests any number of times."""

MAX_SCANNED = 10_000
"""Ended submissions that one search reads."""
SCANNED_AT_ONCE = 500
WORDS = re.compile(r"[^\W_]+")

decode_entry = msgspec.json.Decoder[PullRequestEntry](PullRequestEntry).decode


class StateFilter(StrEnum):
    """Several states at once, as users ask for them."""

    ALL = ""
    OPEN = "open"
    WAITING = "waiting"
    """Ready, but no test has started; also while the queue is not running."""
    NOT_READY = "not_ready"
    TESTING = "testing"
    """In an active batch or a bisection, whatever the result so far."""
    FINISHED = "finished"
    MERGED = "merged"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED_FILTERS = (StateFilter.MERGED, StateFilter.FAILED, StateFilter.CANCELLED)


class SubmissionSearch(Struct, frozen=True, kw_only=True):
    queue: QueueKey | None = None
    """None: all queues that the token can see."""
    text: str = ""
    """A number, or a part of the title, the author's name or the head branch. Digits must be a whole word there."""
    author: str = ""
    state: StateFilter = StateFilter.ALL
    since: Instant = Instant(0)
    """The last change of state was at this time or later."""
    until: Instant | None = None
    """With an end all are counted, however many: a link from a number shows that number."""
    offset: int = 0
    take: int = 50

    def matches(self, submission: Submission) -> bool:
        pull_request = submission.pull_request
        if self.author and pull_request.author.casefold() != self.author.casefold():
            return False
        text = self.text.strip().casefold()
        if text.removeprefix("#") == str(submission.number):
            return True
        parts = (pull_request.title, pull_request.author, pull_request.head_branch)
        if text.isdecimal():
            return any(text in WORDS.findall(part) for part in parts)
        return not text or any(text in part.casefold() for part in parts)


class FoundSubmission(Struct, frozen=True):
    key: QueueKey
    view: SubmissionView


class SubmissionPage(Struct, frozen=True):
    rows: list[FoundSubmission]
    has_more: bool
    total: int | None
    """None if there are more than were counted."""
    is_limited: bool
    """There are more ended submissions than one search reads."""


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

    async def search(self, token: Token, search: SubmissionSearch) -> SubmissionPage:
        """Live submissions in the order of their queues, then ended ones, the last end first."""
        if search.queue is None:
            queue_actors = await self._registry.list_visible(token)
        else:
            queue_actors = [await self._registry.get(search.queue)]
        now = self._registry.clock.now()
        by_id = {each.id: each for each in queue_actors}
        live = [
            (queue_actor, submission)
            for queue_actor in sorted(queue_actors, key=lambda each: (str(each.key.repo), each.key.branch))
            for submission in _find_live(queue_actor.queue, search, now)
        ]
        end = search.offset + search.take
        found = live[search.offset : end]
        count, scanned, is_counted = len(live), 0, True
        async for queue_id, submission in self._scan_ended(search, by_id, later(now, 1)):
            scanned += 1
            if submission is None:
                continue
            count += 1
            if search.offset < count <= end:
                found.append((by_id[queue_id], submission))
            if count > end and search.until is None:
                is_counted = False
                break
        builders = {
            queue_actor.id: SubmissionViewBuilder(queue_actor.queue, now, queue_actor.forecast)
            for queue_actor, _ in found
        }
        rows = [FoundSubmission(actor.key, builders[actor.id].build(submission)) for actor, submission in found]
        return SubmissionPage(rows, count > end, count if is_counted else None, scanned == MAX_SCANNED)

    async def _scan_ended(
        self, search: SubmissionSearch, queue_actors: Mapping[QueueId, QueueActor], now: Instant
    ) -> AsyncIterator[tuple[QueueId, Submission | None]]:
        """None for an ended submission that does not match, so that the caller can count how many were read."""
        if search.state not in (StateFilter.ALL, StateFilter.FINISHED, *ENDED_FILTERS):
            return
        query = EndedSubmissionsQuery(
            queues=tuple(queue_actors),
            take=SCANNED_AT_ONCE,
            since=search.since,
            until=now if search.until is None else search.until,
            state=PullRequestState(search.state) if search.state in ENDED_FILTERS else None,
        )
        for _ in range(MAX_SCANNED // SCANNED_AT_ONCE):
            stored = await self._registry.store.ended_submissions(query)
            bodies = [each.body for each in stored]
            submissions = await asyncio.to_thread(_decode_all, bodies)
            for each, submission in zip(stored, submissions, strict=True):
                yield each.queue, submission if search.matches(submission) else None
            if len(stored) < SCANNED_AT_ONCE:
                return
            query = replace(query, after=stored[-1])

    async def read_timeline(self, key: QueueKey, submission_id: SubmissionId) -> list[PullRequestEntry]:
        queue_actor = await self._registry.get(key)
        entries = await self._registry.store.timeline(queue_actor.id, submission_id, MAX_TIMELINE_ENTRIES)
        return [decode_entry(entry.body) for entry in entries]


def _decode_all(bodies: list[bytes]) -> list[Submission]:
    return [persistence.decode_submission(body) for body in bodies]


def _find_live(queue: Queue, search: SubmissionSearch, now: Instant) -> Iterator[Submission]:
    if search.state is StateFilter.FINISHED or search.state in ENDED_FILTERS:
        return
    for submission in views.enqueued_submissions(queue, now):
        in_period = search.since <= submission.state_changed_at < (search.until or later(now, 1))
        if in_period and _is_in_state(queue, submission, search.state) and search.matches(submission):
            yield submission


def _is_in_state(queue: Queue, submission: Submission, state: StateFilter) -> bool:
    match state:
        case StateFilter.WAITING:
            return submission.state is PullRequestState.PENDING or is_ready_while_not_running(queue, submission)
        case StateFilter.NOT_READY:
            return submission.state is PullRequestState.NOT_READY and not is_ready_while_not_running(queue, submission)
        case StateFilter.TESTING:
            return submission.state not in (PullRequestState.NOT_READY, PullRequestState.PENDING)
        case _:
            return submission.state not in TERMINAL_STATES
