"""The endpoints about pull requests."""

from typing import TypeVar

from msgspec import UNSET, UnsetType

from mergeyard.api import answers, presenting
from mergeyard.api import requests as r
from mergeyard.api.addressing import Addressing
from mergeyard.api.door import refuse_without
from mergeyard.api.endpoint import Call
from mergeyard.api.errors import misfit
from mergeyard.api.presenting import encode
from mergeyard.api.remembering import Remembered
from mergeyard.domain.ids import PrNumber, Sha, Ticket
from mergeyard.domain.priorities import URGENT
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.tokens import Scope
from mergeyard.ports.store import Page
from mergeyard.service.journaling import actor_of
from mergeyard.service.service import Service
from mergeyard.service.submissions import Errand, Wish
from mergeyard.service.views import PullView

T = TypeVar("T")


class PullRequests:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._addressing = Addressing(service.sites)
        self._remembered = Remembered()

    async def submit(self, call: Call) -> bytes:
        asked: r.SubmitPullRequest = call.request
        wish = Wish(
            head=_sha(asked.pr.sha),
            priority=_given(asked.priority),
            no_batch=_given(asked.no_batch),
            forced=_given(asked.force),
            by_maintainer=call.token.may(Scope.ADMIN),
        )
        if wish.priority == URGENT or wish.forced:
            refuse_without(call.token, Scope.PRIORITY)
        return await self._service.submissions.submit(self._errand(call), wish)

    async def cancel(self, call: Call) -> bytes:
        return await self._service.submissions.cancel(self._errand(call))

    async def restart(self, call: Call) -> bytes:
        return await self._service.submissions.restart(self._errand(call))

    async def get(self, call: Call) -> bytes:
        asked: r.GetSubmittedPullRequest = call.request
        key = self._addressing.queue(call)
        if isinstance(asked.pr.number, int) and not asked.include_timeline:
            return await self._shown_by_number(key, PrNumber(asked.pr.number))
        view = await self._view(key, asked.pr)
        if not asked.include_timeline:
            return _shown(view)
        entries = await self._service.listing.timeline(key, view.stay.ticket)
        return encode(presenting.pull(view, tuple(map(presenting.moment, entries))))

    async def _shown_by_number(self, key: QueueKey, number: PrNumber) -> bytes:
        keeper = await self._service.yard.keeper(key)
        known = self._remembered.answers(keeper, self._service.clock.now())
        if number in known:
            return known[number]
        answer = _shown(await self._service.stays.show(key, number))
        if keeper.queue.submission_of(number) is not None:
            known[number] = answer
        return answer

    async def _view(self, key: QueueKey, meant: r.NumberOrBranch) -> PullView:
        if not isinstance(meant.number, UnsetType):
            return await self._service.stays.show(key, PrNumber(meant.number))
        if not isinstance(meant.branch, UnsetType):
            return await self._service.stays.show_branch(key, meant.branch)
        raise misfit("/pr/number", "expected an integer")

    async def set_targets(self, call: Call) -> bytes:
        asked: r.SetImpactedTargets = call.request
        key, number = self._addressing.queue(call), PrNumber(asked.pr.number)
        uploaded = asked.impacted_targets
        extent = "ALL" if uploaded.count is None else uploaded.count

        def answer(head: Sha) -> bytes:
            return encode(answers.TargetsKept(pr_number=number, pr_sha=head, impacted_targets=extent))

        head, uploads = _sha(asked.pr.sha), self._service.uploads
        return await uploads.take(key, number, head, uploaded, answer, call.repeat, call.token.id)

    async def list(self, call: Call) -> bytes:
        asked: r.ListPullRequests = call.request
        page = Page(
            take=asked.take,
            before=_ticket(_given(asked.cursor)),
            state=_given(asked.state),
            since=_given(asked.since),
            until=_given(asked.until),
        )
        views, next_ticket = await self._service.listing.page(self._addressing.queue(call), page)
        answer = answers.PullRequests(
            pull_requests=tuple(map(presenting.pull, views)),
            next_cursor=UNSET if next_ticket is None else str(next_ticket),
        )
        return encode(answer)

    async def get_several(self, call: Call) -> bytes:
        asked: r.GetSubmittedPullRequests = call.request
        numbers = [PrNumber(pr.number) for pr in asked.prs]
        found, missing = await self._service.listing.several(self._addressing.queue(call), numbers)
        answer = answers.FoundPullRequests(
            pull_requests=tuple(map(presenting.pull, found)),
            not_found=tuple(missing),
        )
        return encode(answer)

    def _errand(self, call: Call) -> Errand:
        return Errand(
            key=self._addressing.queue(call),
            number=PrNumber(call.request.pr.number),
            actor=actor_of(call.token),
            present=_shown,
            repeat=call.repeat,
        )


def _shown(view: PullView) -> bytes:
    return encode(presenting.pull(view))


def _given(value: T | UnsetType) -> T | None:
    return None if isinstance(value, UnsetType) else value


def _sha(value: str | UnsetType) -> Sha | None:
    return None if isinstance(value, UnsetType) else Sha(value)


def _ticket(cursor: str | None) -> Ticket | None:
    if cursor is None:
        return None
    if not cursor.isdecimal() or len(cursor) > 18:
        raise misfit("/cursor", "expected the `nextCursor` of the page before")
    return Ticket(int(cursor))
