"""What people do with pull requests: submit, cancel, restart, let them pass others."""

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from mergeyard.domain.decision import Decision
from mergeyard.domain.events import (
    CancelRequested,
    Event,
    PriorityRequested,
    PrSubmitted,
    PullTouched,
    RestartRequested,
)
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import PullRequest, Submission
from mergeyard.domain.reasons import Refusal
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.states import PrState
from mergeyard.service import refusing
from mergeyard.service.background import Background, insist
from mergeyard.service.errors import Code, Refused
from mergeyard.service.repeating import Repeat
from mergeyard.service.sight import Sight
from mergeyard.service.site import Sites
from mergeyard.service.stays import Stays
from mergeyard.service.turn import Keeper, Rejected
from mergeyard.service.views import PullView, view
from mergeyard.service.yard import Yard

Present = Callable[[PullView], bytes]
StayOf = Callable[[Decision, PrNumber], Submission]


class Errand(Struct, frozen=True, kw_only=True):
    """What somebody wants of one pull request, and how they want the answer."""

    key: QueueKey
    number: PrNumber
    actor: str
    present: Present
    repeat: Repeat | None = None


class Wish(Struct, frozen=True, kw_only=True):
    """How a pull request is to be submitted; what is None was not said."""

    head: Sha | None = None
    priority: int | None = None
    no_batch: bool | None = None
    forced: bool | None = None
    by_maintainer: bool = False


class HeadNotConfirmed(Refused):
    """The request named another head than the present one, or none although the pull request comes from a fork."""

    def __init__(self, pull: PullRequest, named: Sha | None) -> None:
        self.head = pull.head
        if named is None:
            code = Code.SHA_REQUIRED
            detail = (
                f"Pull request {pull.number} comes from a fork: name the head that you reviewed. Its head is now "
                f"{pull.head}. Review that commit, then send it as `pr.sha`."
            )
        else:
            code = Code.SHA_MISMATCH
            detail = (
                f"The head of pull request {pull.number} is now {pull.head}, not {named}. Review the new head, then "
                "send it as `pr.sha`."
            )
        super().__init__(code, detail)


class Submissions:
    def __init__(self, yard: Yard, sites: Sites, sight: Sight, stays: Stays, background: Background) -> None:
        self._yard = yard
        self._sites = sites
        self._sight = sight
        self._stays = stays
        self._background = background

    async def submit(self, errand: Errand, wish: Wish) -> bytes:
        keeper = await self._yard.keeper(errand.key)
        with keeper.arrivals.of(errand.number) as arrival:
            answer = await self._submit(keeper, errand, wish)
        if arrival.touched:
            self._background.start(insist(self._yard.clock, partial(_touch, keeper, errand.number)))
        return answer

    async def _submit(self, keeper: Keeper, errand: Errand, wish: Wish) -> bytes:
        as_of = keeper.queue.counters.turns
        pull, complete = await self._see(keeper, errand.number, wish)
        if pull is None:
            raise refusing.not_found(errand.key, errand.number)
        if wish.head != pull.head and (wish.head is not None or pull.fork):
            raise HeadNotConfirmed(pull, wish.head)
        submitted = PrSubmitted(
            pull=pull,
            as_of=as_of,
            complete=complete,
            priority=wish.priority,
            no_batch=wish.no_batch,
            forced=wish.forced,
            pinned=wish.head is not None,
            by_maintainer=wish.by_maintainer,
            targets=await self._stays.targets(keeper, pull.number, pull.head),
            actor=errand.actor,
        )
        return await self._carry_out(keeper, errand, submitted, _present_stay)

    async def _see(self, keeper: Keeper, number: PrNumber, wish: Wish) -> tuple[PullRequest | None, bool]:
        """A glance will do, unless it is admitted at once, would replace what is known already, or comes from a fork:
        then the answer says whether it needs a maintainer."""
        site = await self._sites.of(keeper)
        pull, complete = await self._sight.glance(site, number)
        fork = pull is not None and pull.fork
        if complete or not (wish.forced or fork or keeper.queue.submission_of(number)):
            return pull, complete
        return await self._sight.look(site, number), True

    async def cancel(self, errand: Errand) -> bytes:
        """Cancelled before is cancelled: asking twice is no error."""
        keeper, number = await self._yard.keeper(errand.key), errand.number
        try:
            event = CancelRequested(number=number, actor=errand.actor)
            return await self._carry_out(keeper, errand, event, _ended_stay)
        except Refused as refused:
            seen = await self._stays.last_seen(keeper, number) if refused.code is Code.PR_NOT_SUBMITTED else None
            if seen is None:
                raise
            if seen.stay.state is not PrState.CANCELLED:
                words = f"Pull request {number} is {seen.stay.state}: it is in the queue no more."
                raise Refused(Code.PR_NOT_IN_QUEUE, words) from None
            return await self._answer(errand, seen)

    async def restart(self, errand: Errand) -> bytes:
        keeper, number = await self._yard.keeper(errand.key), errand.number
        try:
            event = RestartRequested(number=number, actor=errand.actor)
            return await self._carry_out(keeper, errand, event, _present_stay)
        except Refused as refused:
            if refused.code is Code.PR_NOT_SUBMITTED and await self._yard.store.last_stay(keeper.id, number):
                raise refusing.refused(Refusal.TESTS_NOT_RUNNING, number) from None
            raise

    async def prioritise(self, errand: Errand, priority: int) -> bytes:
        """Only one that is in the queue: asking for it submits nobody."""
        keeper, number = await self._yard.keeper(errand.key), errand.number
        try:
            event = PriorityRequested(number=number, priority=priority)
            return await self._carry_out(keeper, errand, event, _present_stay)
        except Refused as refused:
            if refused.code is Code.PR_NOT_SUBMITTED:
                words = f"Pull request {number} is not in the queue: submit it first."
                raise Refused(Code.PR_NOT_IN_QUEUE, words) from None
            raise

    async def _carry_out(self, keeper: Keeper, errand: Errand, event: Event, stay_of: StayOf) -> bytes:
        def render(decision: Decision) -> bytes:
            stay, now = stay_of(decision, errand.number), self._yard.clock.now()
            return errand.present(view(decision.queue, stay, now, keeper.forecast))

        try:
            return await keeper.tell(event, render=render, repeat=errand.repeat)
        except Rejected as rejected:
            raise refusing.refused(rejected.refusal, errand.number) from None

    async def _answer(self, errand: Errand, seen: PullView) -> bytes:
        body = errand.present(seen)
        if errand.repeat is not None:
            await self._yard.store.commit(errand.repeat.kept(body, self._yard.clock.now()))
        return body


async def _touch(keeper: Keeper, number: PrNumber) -> None:
    await keeper.tell(PullTouched(number=number))


def _present_stay(decision: Decision, number: PrNumber) -> Submission:
    return decision.queue.submission_of(number) or _ended_stay(decision, number)


def _ended_stay(decision: Decision, number: PrNumber) -> Submission:
    """The last that ended in this turn: somebody may have submitted it again in the same one."""
    return [stay for stay in decision.concluded if stay.number == number][-1]
