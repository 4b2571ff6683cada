"""The plot of the demo: everybody submits to a queue that is paused, it opens, and some step in while it works."""

from pathlib import Path
from typing import assert_never

from mergeyard.adapters.host_plain.changing import Change, update_pull
from mergeyard.cli.demo.asking import Asking
from mergeyard.cli.demo.sample import PULLS, Part
from mergeyard.cli.demo.scene import Scene
from mergeyard.cli.demo.watching import Screen
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState

QUEUE = {"batch": True, "batchingMinSize": 3, "batchingMaxWaitTimeMinutes": 0, "concurrency": 4}
READY_TO_OPEN = {Reason.QUEUE_PAUSED, Reason.DRAFT}


class Plot:
    """What is still to come. Whether its time has come is read off the scene, never off a clock."""

    def __init__(self, operator: Asking, author: Asking, repository: Path, screen: Screen) -> None:
        self._operator = operator
        self._author = author
        self._repository = repository
        self._screen = screen
        self._opened = False
        self._to_come = {number: pull.part for number, pull in enumerate(PULLS, start=1) if pull.part is not Part.NONE}

    async def begin(self) -> None:
        """Everybody is there before the first test starts, so that the order of things does not depend on luck."""
        await self._operator.create_queue(**QUEUE)
        await self._operator.set_state("PAUSED")
        for number, pull in enumerate(PULLS, start=1):
            if pull.part is not Part.SUBMIT_URGENTLY:
                await self._author.submit(number)

    async def go_on(self, scene: Scene) -> None:
        if not self._opened:
            await self._open_when_ready(scene)
            return
        for number, part in list(self._to_come.items()):
            if has_come(part, number, scene):
                del self._to_come[number]
                await self._perform(part, number)

    async def _open_when_ready(self, scene: Scene) -> None:
        if all(stay.reason.code in READY_TO_OPEN for stay in scene.stays.values()):
            self._opened = True
            self._screen.tell("The queue opens.")
            await self._operator.set_state("RUNNING")

    async def _perform(self, part: Part, number: int) -> None:
        author = PULLS[number - 1].author
        match part:
            case Part.SUBMIT_URGENTLY:
                self._screen.tell(f"{author} submits #{number}, and it is urgent.")
                await self._author.submit(number, priority="urgent")
            case Part.MARK_READY:
                self._screen.tell(f"{author} marks #{number} as ready.")
                await update_pull(self._repository, PrNumber(number), Change(draft=False))
            case Part.TAKE_BACK:
                self._screen.tell(f"{author} notices that the test of #{number} never ends, and takes it back.")
                await self._author.cancel(number)
            case Part.NONE:
                pass
            case _:
                assert_never(part)


def has_come(part: Part, number: int, scene: Scene) -> bool:
    match part:
        case Part.SUBMIT_URGENTLY:
            return bool(scene.in_state(PrState.MERGED))
        case Part.TAKE_BACK:
            return scene.stays[number].state is PrState.TESTING and scene.urgent_one_is_merged
        case Part.MARK_READY:
            return bool(scene.in_state(PrState.FAILED))
        case Part.NONE:
            return False
        case _:
            assert_never(part)
