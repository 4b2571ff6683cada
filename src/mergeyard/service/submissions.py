"""What people do with pull requests: submit, cancel, restart, ask, say what they impact."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.decision import Decision
from mergeyard.domain.events import (
    CancelRequested,
    Event,
    PriorityRequested,
    PrSubmitted,
    PullTouched,
    RestartRequested,
    TargetsUploaded,
)
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import PullRequest, Submission
from mergeyard.domain.reasons import Refusal
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.states import PrState
from mergeyard.domain.targets import Targets
from mergeyard.ports.writes import KeepTargets
from mergeyard.service import long_targets, shelving
from mergeyard.service.errors import Code, Refused
from mergeyard.service.repeating import Repeat
from mergeyard.service.sight import Sight
from mergeyard.service.site import Sites
from mergeyard.service.turn import Keeper, Rejected
from mergeyard.service.views import PullView, Viewpoint, view
from mergeyard.service.written_targets import WrittenTargets
from mergeyard.service.yard import Yard

Present = Callable[[PullView], bytes]
StayOf = Callable[[Decision, PrNumber], Submission]

REFUSALS: dict[Refusal, tuple[Code, str]] = {
    Refusal.PR_NOT_SUBMITTED: (Code.PR_NOT_SUBMITTED, "was never submitted to the queue: submit it first."),
    Refusal.PR_ALREADY_MERGED: (Code.PR_ALREADY_MERGED, "is merged already: nothing is left to do."),
    Refusal.PR_CLOSED: (Code.PR_CLOSED, "is closed: open it again and submit it then."),
    Refusal.MERGE_IN_PROGRESS: (Code.MERGE_IN_PROGRESS, "is being merged right now: it is too late for that."),
    Refusal.TESTS_NOT_RUNNING: (Code.TESTS_NOT_RUNNING, "is not being tested: there is nothing to restart."),
}


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


class Submissions:
    def __init__(self, yard: Yard, sites: Sites, sight: Sight) -> None:
        self._yard = yard
        self._sites = sites
        self._sight = sight

    async def submit(self, errand: Errand, wish: Wish) -> bytes:
        keeper = await self._yard.keeper(errand.key)
        with keeper.arrivals.of(errand.number) as arrival:
            answer = await self._submit(keeper, errand, wish)
        if arrival.touched:
            await keeper.tell(PullTouched(number=errand.number))
        return answer

    async def _submit(self, keeper: Keeper, errand: Errand, wish: Wish) -> bytes:
        as_of = keeper.queue.counters.turns
        pull, complete = await self._see(keeper, errand.number, wish)
        if pull is None:
            raise _pr_not_found(errand.key, errand.number)
        if wish.head is not None and wish.head != pull.head:
            words = f"The head of pull request {pull.number} is {pull.head}: submit the head that you mean."
            raise Refused(Code.SHA_MISMATCH, words)
        submitted = PrSubmitted(
            pull=pull,
            as_of=as_of,
            complete=complete,
            priority=wish.priority,
            no_batch=wish.no_batch,
            forced=wish.forced,
            pinned=wish.head is not None,
            targets=await self._targets(keeper, pull.number, pull.head),
            actor=errand.actor,
        )
        return await self._carry_out(keeper, errand, (submitted,), _present_stay)

    async def _see(self, keeper: Keeper, number: PrNumber, wish: Wish) -> tuple[PullRequest | None, bool]:
        """A glance will do, unless it is admitted at once or would replace what is known already."""
        site = await self._sites.of(keeper)
        pull, complete = await self._sight.glance(site, number)
        if complete or not (wish.forced or keeper.queue.submission_of(number)):
            return pull, complete
        return await self._sight.look(site, number), True

    async def cancel(self, errand: Errand) -> bytes:
        """Cancelled before is cancelled: asking twice is no error."""
        keeper, number = await self._yard.keeper(errand.key), errand.number
        try:
            events = (CancelRequested(number=number, actor=errand.actor),)
            return await self._carry_out(keeper, errand, events, _ended_stay)
        except Refused as refused:
            seen = await self._last_seen(keeper, number) if refused.code is Code.PR_NOT_SUBMITTED else None
            if seen is None:
                raise
            if seen.stay.state is not PrState.CANCELLED:
                words = f"Pull request {number} is {seen.stay.state}: it is in the queue no more."
                raise Refused(Code.PR_NOT_IN_QUEUE, words) from None
            return await self._answer(errand, seen)

    async def restart(self, errand: Errand) -> bytes:
        keeper, number = await self._yard.keeper(errand.key), errand.number
        try:
            events = (RestartRequested(number=number, actor=errand.actor),)
            return await self._carry_out(keeper, errand, events, _present_stay)
        except Refused as refused:
            if refused.code is Code.PR_NOT_SUBMITTED and await self._yard.store.last_stay(keeper.id, number):
                raise _refused(Refusal.TESTS_NOT_RUNNING, number) from None
            raise

    async def prioritise(self, errand: Errand, priority: int) -> bytes:
        """Only one that is in the queue: asking for it submits nobody."""
        keeper, number = await self._yard.keeper(errand.key), errand.number
        try:
            return await self._carry_out(
                keeper, errand, (PriorityRequested(number=number, priority=priority),), _present_stay
            )
        except Refused as refused:
            if refused.code is Code.PR_NOT_SUBMITTED:
                words = f"Pull request {number} is not in the queue: submit it first."
                raise Refused(Code.PR_NOT_IN_QUEUE, words) from None
            raise

    async def show(self, key: QueueKey, number: PrNumber) -> PullView:
        keeper = await self._yard.keeper(key)
        stay = keeper.queue.submission_of(number)
        if stay is not None:
            return view(keeper.queue, stay, self._yard.clock.now(), keeper.forecast)
        seen = await self._last_seen(keeper, number)
        if seen is None:
            raise _refused(Refusal.PR_NOT_SUBMITTED, number)
        return seen

    async def show_branch(self, key: QueueKey, branch: str) -> PullView:
        keeper = await self._yard.keeper(key)
        body = await self._yard.store.last_stay_of_branch(keeper.id, branch)
        if body is None:
            words = f"No pull request from the branch {branch[:100]} was ever submitted to the queue: submit it first."
            raise Refused(Code.PR_NOT_SUBMITTED, words)
        return await self.show(key, shelving.decode_stay(body).number)

    async def seen_from(self, keeper: Keeper, viewpoint: Viewpoint, body: bytes) -> PullView:
        """As it is now, if it is still here; else as it ended, without its targets, which may be long."""
        stay = shelving.decode_stay(body)
        live = keeper.queue.submissions.get(stay.ticket)
        if live is not None:
            return viewpoint.of(live)
        has_targets = await self._yard.store.has_targets(keeper.id, stay.number, stay.pull.head)
        return replace(viewpoint.of(stay), has_targets=has_targets)

    async def with_targets(self, keeper: Keeper, stay: Submission) -> Submission:
        """Those of one that ended are stored apart."""
        if stay.ticket in keeper.queue.submissions:
            return stay
        return replace(stay, targets=await self._targets(keeper, stay.number, stay.pull.head))

    async def set_targets(
        self,
        key: QueueKey,
        number: PrNumber,
        head: Sha | None,
        uploaded: WrittenTargets,
        answer: Callable[[Sha], bytes],
        repeat: Repeat | None,
    ) -> bytes:
        """Also for a head that is not there yet, and for a pull request that nobody has submitted."""
        keeper = await self._yard.keeper(key)
        if head is None or keeper.queue.submission_of(number) is None:
            site = await self._sites.of(keeper)
            pull = await site.host.pull(site.repo, number)
            if pull is None:
                raise _pr_not_found(key, number)
            head = head or pull.head
        body, kept = answer(head), KeepTargets(keeper.id, number, head, uploaded.body, self._yard.clock.now())
        if _awaits(keeper, number, head, uploaded):
            uploaded = await uploaded.read(*_targets_known(keeper, number))
        replaced = [known for known in _targets_known(keeper, number) if known is not uploaded.targets]
        events = _news(number, head, uploaded)
        await keeper.tell(*events, writes=(kept,), render=lambda _: body, repeat=repeat, at_hand=uploaded)
        await long_targets.free_aside(replaced)
        keeper = await self._yard.keeper(key)
        if _awaits(keeper, number, head, uploaded):
            # Whoever submitted it meanwhile had looked for targets before they were kept.
            uploaded = await uploaded.read(*_targets_known(keeper, number))
            await keeper.tell(*_news(number, head, uploaded), at_hand=uploaded)
        return body

    async def _carry_out(self, keeper: Keeper, errand: Errand, events: tuple[Event, ...], stay_of: StayOf) -> bytes:
        def render(decision: Decision) -> bytes:
            stay, now = stay_of(decision, errand.number), self._yard.clock.now()
            return errand.present(view(decision.queue, stay, now, keeper.forecast))

        try:
            return await keeper.tell(*events, render=render, repeat=errand.repeat)
        except Rejected as rejected:
            raise _refused(rejected.refusal, errand.number) from None

    async def _answer(self, errand: Errand, seen: PullView) -> bytes:
        body = errand.present(seen)
        if errand.repeat is not None:
            await self._yard.store.commit(errand.repeat.kept(body, self._yard.clock.now()))
        return body

    async def _last_seen(self, keeper: Keeper, number: PrNumber) -> PullView | None:
        body = await self._yard.store.last_stay(keeper.id, number)
        viewpoint = Viewpoint(keeper.queue, self._yard.clock.now(), keeper.forecast)
        return None if body is None else await self.seen_from(keeper, viewpoint, body)

    async def _targets(self, keeper: Keeper, number: PrNumber, head: Sha) -> Targets | None:
        body = await self._yard.store.targets(keeper.id, number, head)
        return None if body is None else await long_targets.decoded_aside(body)


def _awaits(keeper: Keeper, number: PrNumber, head: Sha, uploaded: WrittenTargets) -> bool:
    """Whether it is in the queue with other targets, or with such of which nobody knows yet whether they are others."""
    stay = keeper.queue.submission_of(number)
    if stay is None or stay.pull.head != head:
        return False
    return uploaded.targets is None or stay.targets != uploaded.targets


def _news(number: PrNumber, head: Sha, uploaded: WrittenTargets) -> tuple[TargetsUploaded, ...]:
    """To a queue that does not hold it a long list is not told."""
    targets = uploaded.targets
    return () if targets is None else (TargetsUploaded(number=number, head=head, targets=targets),)


def _targets_known(keeper: Keeper, number: PrNumber) -> list[Targets]:
    stay = keeper.queue.submission_of(number)
    return [] if stay is None or stay.targets is None else [stay.targets]


def _present_stay(decision: Decision, number: PrNumber) -> Submission:
    return decision.queue.submission_of(number) or _ended_stay(decision, number)


def _ended_stay(decision: Decision, number: PrNumber) -> Submission:
    """The last that ended in this turn: somebody may have submitted it again in the same one."""
    return [stay for stay in decision.concluded if stay.number == number][-1]


def _refused(refusal: Refusal, number: PrNumber) -> Refused:
    code, words = REFUSALS[refusal]
    return Refused(code, f"Pull request {number} {words}")


def _pr_not_found(key: QueueKey, number: PrNumber) -> Refused:
    return Refused(Code.PR_NOT_FOUND, f"{key.repo} has no pull request {number}: check the number.")
