"""Finds who overtook whom: among those of one lane and one priority, nobody lands before one that was ready earlier.

Only those count whose way was straight. Whoever was sent back, searched for a culprit, given another priority, or
shares a path with another and may have had to wait for it, can be overtaken rightly.
"""

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.evidence import Evidence, Landing, Stay

STRAIGHT = frozenset(
    {"submitted", "ready", "test_run_started", "test_run_passed", "successor_passed", "merged_by_queue"}
)


class Arrival(Struct, frozen=True):
    stay: Stay
    submitted: str
    ready: str
    landed: tuple[int, int]
    lanes: frozenset[str]

    def may_not_be_overtaken_by(self, other: "Arrival") -> bool:
        same = all(self.stay[name] == other.stay[name] for name in ("priorityValue", "skipTheLine", "noBatch"))
        return same and self.ready < other.submitted and self.lanes_meet(other)

    def lanes_meet(self, other: "Arrival") -> bool:
        return not self.lanes or not other.lanes or not self.lanes.isdisjoint(other.lanes)


def overtakings(evidence: Evidence) -> Iterator[str]:
    """In the order of landings, so that few must be compared: those that came after somebody was ready who waits."""
    if not evidence.clocks_agree:
        return
    arrivals = sorted(_arrivals(evidence), key=lambda arrival: arrival.landed)
    last_submitted = ""
    for at, earlier in enumerate(arrivals):
        for later in arrivals[:at] if earlier.ready < last_submitted else ():
            if (
                earlier.may_not_be_overtaken_by(later)
                and later.landed < earlier.landed
                and not _stood_upon_another(evidence, earlier)
            ):
                yield f"{evidence.name(later.stay['id'])} overtook {evidence.name(earlier.stay['id'])}"
        last_submitted = max(last_submitted, earlier.submitted)


def _stood_upon_another(evidence: Evidence, arrival: Arrival) -> bool:
    """Whose commits it brings along, so that it had to wait for that one's end."""
    head = Sha(arrival.stay["prSha"])
    return any(
        other["id"] != arrival.stay["id"] and evidence.holds(head, Sha(other["prSha"])) and arrival.ready < _end(other)
        for other in evidence.stays.values()
    )


def _end(stay: Stay) -> str:
    return max(moment["at"] for moment in stay["timeline"])


def _arrivals(evidence: Evidence) -> list[Arrival]:
    landings = {stay["id"]: landing for landing in evidence.landings for stay in evidence.stays_in(landing)}
    paths = {
        name: evidence.paths_changed_by(stay, upon=landings[name].old if name in landings else evidence.tip)
        for name, stay in evidence.stays.items()
    }
    touched = Counter(path for changed in paths.values() for path in changed)
    told = {(stay["id"], stay["priorityValue"]) for *_, stay in evidence.told_stays()}
    priorities = Counter(name for name, _ in told)
    return [
        _arrival(evidence, landing, evidence.stays[name])
        for name, landing in landings.items()
        if _went_straight(evidence.stays[name])
        and priorities[name] <= 1
        and all(touched[path] == 1 for path in paths[name])
    ]


def _went_straight(stay: Stay) -> bool:
    reasons = {moment["reason"] for moment in stay.get("timeline", ())}
    return {"submitted", "ready", "merged_by_queue"} <= reasons <= STRAIGHT


def _arrival(evidence: Evidence, landing: Landing, stay: Stay) -> Arrival:
    moments = {moment["reason"]: moment["at"] for moment in stay["timeline"]}
    return Arrival(
        stay=stay,
        submitted=moments["submitted"],
        ready=moments["ready"],
        landed=evidence.place_of(landing, stay),
        lanes=evidence.lanes_of(stay),
    )
