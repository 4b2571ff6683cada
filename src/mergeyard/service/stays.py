"""Shows pull requests: as they are in the queue now, or as they ended."""

from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import Submission
from mergeyard.domain.reasons import Refusal
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.targets import Targets
from mergeyard.service import recalling, refusing, shelving
from mergeyard.service.errors import Code, Refused
from mergeyard.service.turn import Keeper
from mergeyard.service.views import PullView, Viewpoint, view
from mergeyard.service.yard import Yard


class Stays:
    def __init__(self, yard: Yard) -> None:
        self._yard = yard

    async def show(self, key: QueueKey, number: PrNumber) -> PullView:
        keeper = await self._yard.keeper(key)
        stay = keeper.queue.submission_of(number)
        if stay is not None:
            return view(keeper.queue, stay, self._yard.clock.now(), keeper.forecast)
        seen = await self.last_seen(keeper, number)
        if seen is None:
            raise refusing.refused(Refusal.PR_NOT_SUBMITTED, number)
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
        return replace(stay, targets=await self.targets(keeper, stay.number, stay.pull.head))

    async def last_seen(self, keeper: Keeper, number: PrNumber) -> PullView | None:
        body = await self._yard.store.last_stay(keeper.id, number)
        viewpoint = Viewpoint(keeper.queue, self._yard.clock.now(), keeper.forecast)
        return None if body is None else await self.seen_from(keeper, viewpoint, body)

    async def targets(self, keeper: Keeper, number: PrNumber, head: Sha) -> Targets | None:
        return await recalling.targets(self._yard.store, keeper.id, number, head)
