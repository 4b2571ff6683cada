"""Keeps what people say that pull requests impact, and tells the queues that wait for it."""

from collections.abc import Callable

from mergeyard.domain.decision import Decision
from mergeyard.domain.events import TargetsUploaded
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.targets import Targets
from mergeyard.ports.git import GitTrouble
from mergeyard.ports.writes import KeepTargets
from mergeyard.service import long_targets, refusing
from mergeyard.service.errors import Code, Refused
from mergeyard.service.repeating import Repeat
from mergeyard.service.site import Site, Sites
from mergeyard.service.turn import Keeper
from mergeyard.service.written_targets import WrittenTargets
from mergeyard.service.yard import Yard

DEFAULT_QUOTA_BYTES = 5 * 1024**3
RETRY_AFTER_QUOTA_S = 3600
"""Room returns when newer heads replace old ones or when uploads expire, so soon is never."""


class Uploads:
    def __init__(self, yard: Yard, sites: Sites, quota_bytes: int = DEFAULT_QUOTA_BYTES) -> None:
        """`quota_bytes`: what one token may have stored; 0 is without limit."""
        self._yard = yard
        self._sites = sites
        self._quota_bytes = quota_bytes

    async def take(
        self,
        key: QueueKey,
        number: PrNumber,
        head: Sha | None,
        uploaded: WrittenTargets,
        answer: Callable[[Sha], bytes],
        repeat: Repeat | None,
        token: str | None = None,
    ) -> bytes:
        """Also for a head that is not there yet, and for a pull request that nobody has submitted."""
        keeper = await self._yard.keeper(key)
        if head is None or not _holds(keeper.queue, number, head):
            head = await self._known_head(keeper, number, head)
        await self._refuse_over_quota(token, len(uploaded.body))
        now = self._yard.clock.now()
        body, kept = answer(head), KeepTargets(keeper.id, number, head, uploaded.body, now, token)
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

    async def _known_head(self, keeper: Keeper, number: PrNumber, head: Sha | None) -> Sha:
        """The present head, or another commit that the host has. Raises `Refused` for one that it does not have."""
        site = await self._sites.of(keeper)
        pull = await site.host.pull(site.repo, number)
        if pull is None:
            raise refusing.not_found(keeper.key, number)
        if head is None or head == pull.head:
            return pull.head
        if len(head) == len(pull.head) and await _is_known(site, number, head):
            return head
        words = f"{site.repo} has no commit {head}: push it, or name the head of pull request {number}."
        raise Refused(Code.COMMIT_NOT_FOUND, words)

    async def _refuse_over_quota(self, token: str | None, size: int) -> None:
        """Uploads at the same time may exceed the quota together, each by its own size."""
        if not token or not self._quota_bytes:
            return
        if await self._yard.store.targets_size(token) + size > self._quota_bytes:
            words = (
                f"This token has stored {self._quota_bytes >> 20} MiB of impacted targets, its quota: "
                "wait until old uploads expire, or ask the operator to raise `targets_quota_mib`."
            )
            raise Refused(Code.RATE_LIMITED, words, retry_after=RETRY_AFTER_QUOTA_S)


async def _is_known(site: Site, number: PrNumber, commit: Sha) -> bool:
    """Fetches the commit if the mirror lacks it. A host that cannot be read raises `GitTrouble`."""
    if await site.has(commit):
        return True
    try:
        await site.mirror.fetch_commit(commit)
    except GitTrouble:
        # The host lacks the commit, refuses to serve commits by name, or cannot be read: this fetch tells.
        await site.mirror.fetch([site.host.head_ref(number)])
    return await site.has(commit)


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
