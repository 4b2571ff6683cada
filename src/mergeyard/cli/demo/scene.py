"""What there is to see of the queue at one moment, as its answers tell it."""

from itertools import groupby

from msgspec import Struct

from mergeyard.cli.demo.asking import Asking, Stay
from mergeyard.cli.demo.sample import PULLS
from mergeyard.domain.states import TERMINAL, PrState

UNDER_TEST = frozenset({PrState.TESTING, PrState.TESTS_PASSED, PrState.PENDING_FAILURE})

Group = tuple[Stay, ...]
"""Those that one run tests together."""


class Scene(Struct, frozen=True):
    stays: dict[int, Stay]
    bisections: frozenset[str] = frozenset()
    """The runs that seek a guilty one."""

    @property
    def decided(self) -> int:
        return sum(stay.state in TERMINAL for stay in self.stays.values())

    @property
    def over(self) -> bool:
        return self.decided == len(PULLS)

    @property
    def urgent_one_is_merged(self) -> bool:
        return any(stay.skip_the_line for stay in self.in_state(PrState.MERGED))

    def in_state(self, state: PrState) -> Group:
        return tuple(stay for stay in self.stays.values() if stay.state is state)

    def groups(self) -> list[Group]:
        """Those under test: the line from its front, then those among whom a guilty one is sought."""
        placed = [stay for stay in self.stays.values() if stay.state in UNDER_TEST]
        placed.sort(key=lambda stay: stay.position or 0)
        return [tuple(group) for _, group in groupby(placed, key=lambda stay: (stay.test_run_id, stay.state))]

    def is_bisection(self, group: Group) -> bool:
        return group[0].test_run_id in self.bisections


class Watching:
    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._known: dict[str, bool] = {}
        """Whether each run that was seen is a bisection."""

    async def look(self) -> Scene:
        stays = await self._asking.stays()
        for run in {stay.test_run_id for stay in stays.values()} - self._known.keys():
            if run is not None:
                self._known[run] = (await self._asking.run(run)).is_bisection
        return Scene(stays, frozenset(run for run, is_bisection in self._known.items() if is_bisection))
