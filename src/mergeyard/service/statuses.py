"""Takes statuses in, and tells the queue whose test they belong to.

A status counts only for the very commit it names. Each run under test has a board: it shows to the engine what the
store holds for its tip, whoever put it there.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from mergeyard.domain.events import ChecksSeen
from mergeyard.domain.ids import RunId, Sha
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import CheckState
from mergeyard.domain.statuses import Status
from mergeyard.ports.clock import Clock
from mergeyard.ports.store import Relieved, Store, StoreTrouble
from mergeyard.ports.writes import KeepStatus, Write
from mergeyard.service.background import Background, insist
from mergeyard.service.duties import Duties
from mergeyard.service.errors import Code, Refused
from mergeyard.service.others import Others, StatusKept
from mergeyard.service.repeating import Repeat, kept
from mergeyard.service.turn import Keeper

MAX_CONTEXTS = 1000
"""Contexts of one commit that clients can report; what a Git host reports is not limited here."""
RETRY_AFTER_CONTEXTS_S = 3600

AS_FRESH_AS_CAN_BE = 2**63
"""A board is read and told in order, and nobody else tells of its run on duty: nothing that was recorded before the
turn that is told of it, however late that comes, can be newer."""

Place = tuple[Repo, Sha]


class Board:
    def __init__(self, keeper: Keeper, run: RunId, place: Place) -> None:
        self.keeper = keeper
        self.run = run
        self.place = place
        self.showing = asyncio.Lock()
        self.shown: dict[str, CheckState] = {}


class Statuses:
    def __init__(self, store: Store, clock: Clock, background: Background, duties: Duties, others: Others) -> None:
        self._store = store
        self._clock = clock
        self._background = background
        self._duties = duties
        self._others = others
        self._boards: dict[Place, Board] = {}

    async def report(
        self,
        repo: Repo,
        sha: Sha,
        status: Status,
        repeat: Repeat | None = None,
        answer: bytes = b"",
        token: str | None = None,
    ) -> None:
        """Kept is kept: if the engine cannot be told at once, it is told later."""
        known = await self._store.statuses(repo, sha)
        if len(known) >= MAX_CONTEXTS and all(status.context != each.context for each in known):
            words = f"{sha} has statuses of {MAX_CONTEXTS} contexts already: report one of these contexts again."
            raise Refused(Code.RATE_LIMITED, words, retry_after=RETRY_AFTER_CONTEXTS_S)
        await self._keep(repo, sha, [status], *kept(repeat, answer, status.at), token=token)

    async def report_on_duty(self, repo: Repo, sha: Sha, *statuses: Status) -> None:
        """What we found out ourselves: of what is somebody else's duty now, nobody wants to hear."""
        with suppress(Relieved):
            await self._keep(repo, sha, statuses, *self._duties.proof(repo))

    async def _keep(
        self, repo: Repo, sha: Sha, statuses: Iterable[Status], *along: Write, token: str | None = None
    ) -> None:
        await self._store.commit(*along, *(KeepStatus(repo, sha, status, token) for status in statuses))
        board = self._boards.get((repo, sha))
        if board is None:
            self._others.tell(StatusKept(repo, sha))
            return
        try:
            await self._show(board)
        except StoreTrouble:
            self._show_soon(board)
        except Relieved:
            self._others.tell(StatusKept(repo, sha))

    def hear(self, repo: Repo, sha: Sha) -> None:
        board = self._boards.get((repo, sha))
        if board is not None:
            self._show_soon(board)

    def look_again(self) -> None:
        """Words from other replicas may get lost."""
        for board in self._boards.values():
            if not board.showing.locked():
                self._show_soon(board)

    def follow(self, keeper: Keeper, before: Queue | None) -> None:
        """Puts up a board for every run that came under test, and takes down those of runs that no longer are.

        CI may have been quicker than we: what was reported before there was a board is in the store.
        """
        if not keeper.has_other_runs_than(before):
            return
        under_test = {(keeper.key.repo, run.tip): run for run in keeper.queue.runs_in_progress}
        self._take_down(keeper, except_for=under_test.keys())
        for place, run in under_test.items():
            known = self._boards.get(place)
            if known is None or known.run != run.id or known.keeper is not keeper:
                self._boards[place] = Board(keeper, run.id, place)
                self._show_soon(self._boards[place])

    def leave(self, keeper: Keeper) -> None:
        self._take_down(keeper, except_for=())

    def _take_down(self, keeper: Keeper, except_for: Iterable[Place]) -> None:
        gone = {place for place, board in self._boards.items() if board.keeper is keeper}
        for place in gone.difference(except_for):
            del self._boards[place]

    def _show_soon(self, board: Board) -> None:
        self._background.start(insist(self._clock, lambda: self._show(board)))

    async def _show(self, board: Board) -> None:
        async with board.showing:
            now = checks(await self._store.statuses(*board.place))
            if now != board.shown and self._boards.get(board.place) is board:
                seen = ChecksSeen(run=board.run, checks=now, as_of=AS_FRESH_AS_CAN_BE, told=True)
                await board.keeper.tell_on_duty(seen, proof=self._duties.proof(board.keeper.key.repo))
                board.shown = now


def checks(statuses: Iterable[Status]) -> dict[str, CheckState]:
    return {status.context: status.check for status in statuses}
