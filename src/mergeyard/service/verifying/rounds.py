"""Goes round the queues on duty and verifies their landings: soon after they landed, and again and again."""

import asyncio
from functools import partial

import structlog
from msgspec import Struct

from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import MINUTE, SECOND, Instant, later
from mergeyard.domain.journal import PrChanged
from mergeyard.domain.queue import Queue
from mergeyard.ports.git import GitTrouble
from mergeyard.ports.host import HostTrouble
from mergeyard.ports.store import Relieved, StoreTrouble
from mergeyard.ports.writes import BeginTelling, MoveCursor
from mergeyard.service.background import insist
from mergeyard.service.duties import Duties
from mergeyard.service.errors import Refused
from mergeyard.service.measuring import LAST_ROUND
from mergeyard.service.shelving import decode_record
from mergeyard.service.turn import Keeper
from mergeyard.service.verifying.recorded import LANDED
from mergeyard.service.verifying.verifier import Verifier
from mergeyard.service.yard import Yard

log = structlog.get_logger()

NAME = "audit"
"""Under which it is stored how far in the journal everything was verified."""
INTERVAL = MINUTE
SOON = 2 * MINUTE
"""After a start, and after a landing: several that follow each other are verified together."""
AGAIN = 10 * MINUTE
LAST = 20
"""So many landings are verified every time, and all that came since the last time."""
MOST = 500
AT_ONCE = 4
ENTRIES = 500

TROUBLE = (GitTrouble, HostTrouble, Refused, Relieved, StoreTrouble)


class Unverified(Struct, frozen=True):
    """What the journal tells of landings behind the place up to which all are verified."""

    landings: int
    seq: int


class Rounds:
    def __init__(self, yard: Yard, verifier: Verifier, duties: Duties) -> None:
        self._yard = yard
        self._verifier = verifier
        self._duties = duties
        self._due: dict[QueueId, Instant] = {}
        self._places = asyncio.Semaphore(AT_ONCE)

    async def begin(self) -> None:
        """What landed before there was an audit is not gone through, but for the last of it."""
        await insist(self._yard.clock, partial(self._yard.store.commit, BeginTelling(NAME)))

    def follow(self, keeper: Keeper, before: Queue | None) -> None:
        if before is None or before.target.tip != keeper.queue.target.tip:
            soon = later(self._yard.clock.now(), SOON)
            self._due[keeper.id] = min(soon, self._due.get(keeper.id, soon))

    def leave(self, keeper: Keeper) -> None:
        self._due.pop(keeper.id, None)

    async def look_around(self) -> None:
        now = self._yard.clock.now()
        due = [keeper for keeper in self._yard if keeper.id in self._due and self._due[keeper.id] <= now]
        await asyncio.gather(*(self._visit(keeper) for keeper in due if self._duties.covers(keeper.key.repo)))
        LAST_ROUND.set(self._yard.clock.now() / SECOND)

    async def _visit(self, keeper: Keeper) -> None:
        """What lands meanwhile is due soon again; whoever cannot be verified now is tried in the next round."""
        due = self._due.pop(keeper.id)
        try:
            async with self._places:
                await self._verify(keeper)
            due = later(self._yard.clock.now(), AGAIN)
        except TROUBLE as trouble:
            log.warning("landings cannot be verified", queue=str(keeper.key), words=str(trouble))
        if not keeper.closed:
            self._due[keeper.id] = min(due, self._due.get(keeper.id, due))

    async def _verify(self, keeper: Keeper) -> None:
        unverified = await self._unverified(keeper)
        report = await self._verifier.examine(keeper, min(max(LAST, unverified.landings), MOST))
        proof = self._duties.proof(keeper.key.repo)
        await self._verifier.tell(keeper, report, *proof)
        await self._yard.store.commit(*proof, MoveCursor(NAME, keeper.id, unverified.seq))

    async def _unverified(self, keeper: Keeper) -> Unverified:
        seq, landings = await self._yard.store.cursor(NAME, keeper.id), 0
        while entries := await self._yard.store.entries(keeper.id, seq, ENTRIES):
            records = [decode_record(entry.body) for entry in entries]
            landings += sum(isinstance(record, PrChanged) and record.reason in LANDED for record in records)
            seq = entries[-1].seq
        return Unverified(landings, seq)
