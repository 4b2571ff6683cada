"""All who tell of the journal: woken by turns, and reminded now and then of what nobody woke them for.

A queue that is deleted has no keeper any more, but its last entries are told all the same, by whoever is on duty for
its repository.
"""

from functools import partial

from mergeyard.domain.instants import MINUTE
from mergeyard.domain.queue import Queue
from mergeyard.ports.clock import Clock
from mergeyard.ports.store import Store
from mergeyard.ports.writes import BeginTelling
from mergeyard.service.background import Background, insist
from mergeyard.service.duties import Duties
from mergeyard.service.telling.following import USUAL, Following, Pace, Teller
from mergeyard.service.turn import Keeper

REMIND_EVERY = MINUTE


class Tellers:
    def __init__(self, store: Store, clock: Clock, background: Background, duties: Duties) -> None:
        self._store = store
        self._clock = clock
        self._background = background
        self._duties = duties
        self._followings: dict[str, Following] = {}

    async def begin(self, teller: Teller, pace: Pace = USUAL) -> None:
        """The first time, what happened until now is the past."""
        await insist(self._clock, partial(self._store.commit, BeginTelling(teller.name)))
        self.add(teller, pace)

    def add(self, teller: Teller, pace: Pace = USUAL) -> None:
        """One that began already. It takes the place of another of its name, and tells at once of what it missed."""
        self.drop(teller.name)
        following = Following(teller, self._store, self._clock, self._background, self._duties, pace)
        self._followings[teller.name] = following
        self._background.start(insist(self._clock, partial(self._remind, following)))

    def drop(self, name: str) -> None:
        following = self._followings.pop(name, None)
        if following is not None:
            following.stop()

    def follow(self, keeper: Keeper, before: Queue | None) -> None:
        for following in self._followings.values():
            if following.pace.heeds(before, keeper.queue):
                following.wake(keeper.key, keeper.id)

    def leave(self, keeper: Keeper) -> None:
        """A queue that is gone, and not somebody else's, has said its last words."""
        gone = keeper.closed and self._duties.covers(keeper.key.repo)
        for following in self._followings.values():
            if gone:
                following.wake(keeper.key, keeper.id)
            else:
                following.leave(keeper.id)

    async def remind(self) -> None:
        """Of queues that were deleted just before somebody died, say."""
        for following in tuple(self._followings.values()):
            await self._remind(following)

    async def _remind(self, following: Following) -> None:
        for queue in await self._store.behind(following.teller.name):
            if self._duties.covers(queue.key.repo):
                following.wake(queue.key, queue.id)
