"""Takes statuses in, and tells the queue whose test they belong to.

Each run under test has a board with all statuses of its tip. A status counts only for the very commit it names.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager

from msgspec import Struct

from mergeyard.domain.events import ChecksSeen
from mergeyard.domain.ids import RunId, Sha
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import Repo
from mergeyard.domain.runs import Run
from mergeyard.domain.states import CheckState, RunStatus
from mergeyard.domain.statuses import Status
from mergeyard.ports.clock import Clock
from mergeyard.ports.store import KeepStatus, Store
from mergeyard.service.background import Background, insist
from mergeyard.service.repeating import Repeat
from mergeyard.service.turn import Keeper

AS_FRESH_AS_CAN_BE = 2**63
"""A board is complete at every moment, and what it shows is told in order: nothing that was recorded before the turn
that is told of it, however late that comes, can be newer."""


class Board(Struct, eq=False):
    keeper: Keeper
    run: RunId
    statuses: dict[str, Status]

    @contextmanager
    def showing(self, status: Status) -> Generator[None]:
        """Those who report at the same time see it; what could not be stored is taken off again."""
        before = self.statuses.get(status.context)
        self.statuses[status.context] = status
        try:
            yield
        except Exception:
            if self.statuses.get(status.context) is status:
                self._put_back(status.context, before)
            raise

    def _put_back(self, context: str, before: Status | None) -> None:
        if before is None:
            del self.statuses[context]
        else:
            self.statuses[context] = before

    async def tell(self) -> None:
        await self.keeper.tell(self.news())

    def news(self) -> ChecksSeen:
        return ChecksSeen(run=self.run, checks=checks(self.statuses.values()), as_of=AS_FRESH_AS_CAN_BE)


class Statuses:
    def __init__(self, store: Store, clock: Clock, background: Background) -> None:
        self._store = store
        self._clock = clock
        self._background = background
        self._boards: dict[tuple[Repo, Sha], Board] = {}

    async def report(
        self, repo: Repo, sha: Sha, status: Status, repeat: Repeat | None = None, answer: bytes = b""
    ) -> None:
        write = KeepStatus(repo, sha, status)
        board = self._boards.get((repo, sha))
        if board is not None:
            with board.showing(status):
                await board.keeper.tell(board.news(), writes=(write,), render=lambda _: answer, repeat=repeat)
            return
        kept = () if repeat is None else (repeat.kept(answer, status.at),)
        await self._store.commit(write, *kept)
        await self._tell_late_board(repo, sha, status)

    async def _tell_late_board(self, repo: Repo, sha: Sha, status: Status) -> None:
        """One that was put up, and had read the store, while the status was on its way there."""
        board = self._boards.get((repo, sha))
        if board is None:
            return
        known = board.statuses.get(status.context, status)
        if known.at <= status.at:
            board.statuses[status.context] = status
            await insist(self._clock, board.tell)

    def follow(self, keeper: Keeper, before: Queue | None) -> None:
        """Puts up a board for every run that came under test, and takes down those of runs that no longer are."""
        if before is not None and before.runs is keeper.queue.runs:
            return
        under_test = {(keeper.key.repo, run.tip): run for run in _in_progress(keeper)}
        gone = [place for place, board in self._boards.items() if board.keeper is keeper and place not in under_test]
        for place in gone:
            del self._boards[place]
        for place, run in under_test.items():
            if place not in self._boards:
                board = self._boards[place] = Board(keeper, run.id, {})
                self._background.start(self._catch_up(board, place))

    async def _catch_up(self, board: Board, place: tuple[Repo, Sha]) -> None:
        """CI may have been quicker than we: what was reported before there was a board is in the store."""
        for status in await self._store.statuses(*place):
            board.statuses.setdefault(status.context, status)
        if board.statuses:
            await insist(self._clock, board.tell)


def checks(statuses: Iterable[Status]) -> dict[str, CheckState]:
    return {status.context: status.check for status in statuses}


def _in_progress(keeper: Keeper) -> list[Run]:
    return [run for run in keeper.queue.runs.values() if run.status is RunStatus.IN_PROGRESS]
