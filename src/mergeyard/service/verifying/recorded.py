"""What is recorded of the last landings of a queue: whose they were, what tested them, and what CI said."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.config import LandingMethod
from mergeyard.domain.ids import QueueId, RunId, Sha
from mergeyard.domain.pulls import Submission
from mergeyard.domain.reasons import Reason
from mergeyard.domain.repositories import Repo
from mergeyard.domain.runs import Run, Step
from mergeyard.domain.states import SATISFIED
from mergeyard.domain.statuses import Status
from mergeyard.ports.store import Store
from mergeyard.service import recalling, shelving

LANDED = frozenset({Reason.MERGED_BY_QUEUE, Reason.MERGED_DIRECTLY, Reason.TREE_MISMATCH})
"""How a pull request ends that we put on the target."""
FARTHEST_BACK = 5000
"""Of those that left the queue, however they did."""


class Form(StrEnum):
    """By which way it landed, and so in which form the promise was given."""

    AS_TESTED = "tested_commit"
    COMPOSED = "composed"
    BY_PROVIDER = "provider_merge"
    DIRECT = "direct"


class Recorded(Struct, frozen=True, kw_only=True):
    """One landing."""

    stay: Submission
    run: Run | None = None
    """The run that verified it, if there was one."""
    reported: Mapping[str, Status] = {}
    """What was reported for the tip of that run, the latest of every context."""

    @property
    def commit(self) -> Sha | None:
        return self.stay.merged_sha

    @property
    def form(self) -> Form:
        if self.stay.reason is Reason.MERGED_DIRECTLY:
            return Form.DIRECT
        if self.stay.composed:
            return Form.COMPOSED
        by_provider = self.run is not None and self.run.landing is LandingMethod.PROVIDER_MERGE
        return Form.BY_PROVIDER if by_provider else Form.AS_TESTED

    @property
    def tested(self) -> Step | None:
        """What it was tested as."""
        if self.run is None:
            return None
        steps = zip(self.run.stack, self.run.chain, strict=False)
        return next((step for member, step in steps if member.ticket == self.stay.ticket), None)

    @property
    def tested_head(self) -> Sha | None:
        members = () if self.run is None else self.run.stack
        return next((member.head for member in members if member.ticket == self.stay.ticket), None)

    @property
    def stood_upon(self) -> Sha | None:
        """What lay beneath it when it was tested."""
        if self.tested is not None:
            return self.tested.parent
        return None if self.stay.exam is None else self.stay.exam.tip

    @property
    def not_passed(self) -> tuple[str, ...]:
        """The required statuses that nobody reported as passed for that very tip before it was decided."""
        return () if self.run is None else tuple(name for name in self.run.required if not self._passed(self.run, name))

    def _passed(self, run: Run, name: str) -> bool:
        """What is reported afterwards changes nothing any more."""
        reported = self.reported.get(name)
        if reported is None or run.checks.get(name) not in SATISFIED:
            return False
        return reported.check in SATISFIED or reported.at >= (run.decided_at or 0)


async def last_landings(store: Store, queue: QueueId, repo: Repo, last: int) -> tuple[Recorded, ...]:
    """Oldest first."""
    runs = dict[RunId, Recorded]()
    landings = list[Recorded]()
    for stay in reversed(await _last_landed(store, queue, last)):
        verified_by = stay.verified_by
        if verified_by is not None and verified_by not in runs:
            runs[verified_by] = await _tested_by(store, queue, repo, stay, verified_by)
        known = Recorded(stay=stay) if verified_by is None else runs[verified_by]
        landings.append(Recorded(stay=stay, run=known.run, reported=known.reported))
    return tuple(landings)


async def _last_landed(store: Store, queue: QueueId, last: int) -> list[Submission]:
    """Latest first. Many may have left in between without landing."""
    take = last
    while True:
        ended = [shelving.decode_stay(body) for body in await store.concluded_stays(queue, take)]
        landed = [stay for stay in ended if stay.reason in LANDED]
        if len(landed) >= last or len(ended) < take or take >= FARTHEST_BACK:
            return landed[:last]
        take = min(4 * take, FARTHEST_BACK)


async def _tested_by(store: Store, queue: QueueId, repo: Repo, stay: Submission, run_id: RunId) -> Recorded:
    run = await recalling.run(store, queue, run_id)
    if run is None:
        return Recorded(stay=stay)
    statuses = await store.statuses(repo, run.tip) if run.chain else ()
    return Recorded(stay=stay, run=run, reported={status.context: status for status in statuses})
