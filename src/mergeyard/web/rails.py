"""Lays the rails: which lane and column each batch stands in, and the switches from those that it stands upon.

Columns grow away from the target. A batch goes on in the lane of one that it stands upon, if nobody did so before it,
else it begins a lane of its own. Switches lie in the gap before a column, one piece per lane that they cross.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from mergeyard.domain.ids import BatchId

Upon = Mapping[BatchId, Sequence[BatchId]]
"""Whom each batch stands upon directly."""

PIECES = {
    "down": "M0 0C50 0 50 100 100 100",
    "down-begins": "M0 0C50 0 50 40 50 100",
    "down-ends": "M50 0C50 60 50 100 100 100",
    "up": "M0 100C50 100 50 0 100 0",
    "up-begins": "M0 100C50 100 50 60 50 0",
    "up-ends": "M50 100C50 40 50 0 100 0",
    "through": "M50 0V100",
}
"""How each is drawn in a square of 100, from the rail of the lane above to the rail of its own."""


class Place(Struct, frozen=True):
    lane: int
    column: int


class Spot(Struct, kw_only=True):
    """A place in the yard, and the gap before it."""

    batch: BatchId | None = None
    rail: bool = False
    lead: bool = False
    """Whether the rail also runs through the gap."""
    switches: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        return [PIECES[switch] for switch in self.switches]


class Yard:
    """Lanes, each as long as the longest."""

    def __init__(self, places: Mapping[BatchId, Place]) -> None:
        self.columns = 1 + max((place.column for place in places.values()), default=-1)
        lanes = 1 + max((place.lane for place in places.values()), default=-1)
        self.lanes = [self._empty_lane() for _ in range(lanes)]
        for batch, place in places.items():
            self.lanes[place.lane][place.column] = Spot(batch=batch, rail=True)

    def connect(self, lower: Place, upper: Place) -> None:
        """With a rail that passes no other batch, along the one lane, along the other, or along a new one."""
        start, end = lower.column + 1, upper.column
        if self._free(lower.lane, start, end):
            self._run(lower.lane, start, end)
            self._lead(lower.lane, start, end)
            self._switch(lower.lane, upper.lane, end)
        elif self._free(upper.lane, start, end):
            self._switch(lower.lane, upper.lane, start)
            self._run(upper.lane, start, end)
            self._lead(upper.lane, start + 1, end + 1)
        else:
            self.lanes.append(self._empty_lane())
            bypass = len(self.lanes) - 1
            self._switch(lower.lane, bypass, start)
            self._run(bypass, start, end)
            self._lead(bypass, start + 1, end)
            self._switch(bypass, upper.lane, end)

    def _empty_lane(self) -> list[Spot]:
        return [Spot() for _ in range(self.columns)]

    def _free(self, lane: int, start: int, end: int) -> bool:
        return all(spot.batch is None for spot in self.lanes[lane][start:end])

    def _run(self, lane: int, start: int, end: int) -> None:
        for spot in self.lanes[lane][start:end]:
            spot.rail = True

    def _lead(self, lane: int, start: int, end: int) -> None:
        for spot in self.lanes[lane][start:end]:
            spot.lead = True

    def _switch(self, source: int, goal: int, column: int) -> None:
        if source == goal:
            self.lanes[goal][column].lead = True
        for lane, piece in _pieces(source, goal):
            spot = self.lanes[lane][column]
            if piece not in spot.switches:
                spot.switches += (piece,)


def laid(order: Sequence[BatchId], upon: Upon) -> list[list[Spot]]:
    places = _placed(order, upon)
    yard = Yard(places)
    for batch in order:
        if not upon[batch]:
            yard.lanes[places[batch].lane][0].lead = True
        for other in upon[batch]:
            yard.connect(places[other], places[batch])
    return yard.lanes


def _placed(order: Sequence[BatchId], upon: Upon) -> dict[BatchId, Place]:
    places, ends = dict[BatchId, Place](), list[BatchId]()
    for batch in order:
        beneath = sorted((places[other] for other in upon[batch]), key=lambda place: -place.column)
        lane = next((place.lane for place in beneath if places[ends[place.lane]] == place), len(ends))
        places[batch] = Place(lane, beneath[0].column + 1 if beneath else 0)
        ends[lane : lane + 1] = [batch]
    return places


def _pieces(source: int, goal: int) -> Iterator[tuple[int, str]]:
    """From the rail of one lane to the rail of the other; a rail lies at the lower edge of its lane."""
    way = "down" if goal > source else "up"
    lanes = range(source + 1, goal + 1) if goal > source else range(source, goal, -1)
    for lane in lanes:
        if len(lanes) == 1:
            yield lane, way
        elif lane == lanes[0]:
            yield lane, f"{way}-begins"
        else:
            yield lane, f"{way}-ends" if lane == lanes[-1] else "through"
