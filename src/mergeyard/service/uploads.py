"""Keeps what people say that pull requests impact, and tells the queues that wait for it."""

from collections.abc import Callable

from mergeyard.domain.decision import Decision
from mergeyard.domain.events import TargetsUploaded
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.targets import Targets
from mergeyard.ports.writes import KeepTargets
from mergeyard.service import long_targets, refusing
from mergeyard.service.repeating import Repeat
from mergeyard.service.site import Sites
from mergeyard.service.turn import Keeper
from mergeyard.service.written_targets import WrittenTargets
from mergeyard.service.yard import Yard


class Uploads:
    def __init__(self, yard: Yard, sites: Sites) -> None:
        self._yard = yard
        self._sites = sites

    async def take(
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
                raise refusing.not_found(key, number)
            head = head or pull.head
        body, kept = answer(head), KeepTargets(keeper.id, number, head, uploaded.body, self._yard.clock.now())
        if _awaits(keeper, number, head, uploaded):
            uploaded = await uploaded.read(*_targets_known(keeper, number))
        replaced = [known for known in _targets_known(keeper, number) if known is not uploaded.targets]
        events, heard = _news(number, head, uploaded), False

        def render(decision: Decision) -> bytes:
            nonlocal heard
            heard = bool(events) and _holds(decision.queue, number, head)
            return body

        await keeper.tell(*events, writes=(kept,), render=render, repeat=repeat, at_hand=uploaded)
        keeper.arrivals.touch(number)
        await long_targets.free_aside(replaced)
        keeper = await self._yard.keeper(key)
        if not heard and _awaits(keeper, number, head, uploaded):
            # Whoever submitted it meanwhile had looked for targets before these were kept.
            uploaded = await uploaded.read(*_targets_known(keeper, number))
            await keeper.tell(*_news(number, head, uploaded), at_hand=uploaded)
        return body


def _awaits(keeper: Keeper, number: PrNumber, head: Sha, uploaded: WrittenTargets) -> bool:
    """Whether it is in the queue with other targets, or with such of which nobody knows yet whether they are others."""
    known = _targets_known(keeper, number)
    return _holds(keeper.queue, number, head) and (uploaded.targets is None or known != [uploaded.targets])


def _holds(queue: Queue, number: PrNumber, head: Sha) -> bool:
    stay = queue.submission_of(number)
    return stay is not None and stay.pull.head == head


def _news(number: PrNumber, head: Sha, uploaded: WrittenTargets) -> tuple[TargetsUploaded, ...]:
    """To a queue that does not hold it a long list is not told."""
    targets = uploaded.targets
    return () if targets is None else (TargetsUploaded(number=number, head=head, targets=targets),)


def _targets_known(keeper: Keeper, number: PrNumber) -> list[Targets]:
    stay = keeper.queue.submission_of(number)
    return [] if stay is None or stay.targets is None else [stay.targets]
