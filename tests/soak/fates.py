"""Finds those whose fate is not what their contents deserve."""

from collections.abc import Iterator

from tests.soak.sheets import Kind
from tests.soak.track import Track
from tests.support.evidence import Stay


def wronged(track: Track) -> Iterator[str]:
    stays = {stay["prNumber"]: stay for stay in track.evidence.stays.values()}
    for number, pull in track.pulls.items():
        stay, follower = stays[number], track.pulls.get(number + 1)
        match pull.kind:
            case Kind.BAD if stay["state"] == "merged":
                yield f"{_shown(stay)} is bad"
            case Kind.GOOD | Kind.LEFT if follower and follower.kind in {Kind.TWIN, Kind.RIGHT}:
                yield from _of_two(pull.kind, stay, stays[number + 1])
            case Kind.GOOD if stay["state"] != "merged" and number not in track.cancelled:
                yield f"{_shown(stay)} did nothing wrong"
            case _:
                continue


def _of_two(kind: Kind, one: Stay, other: Stay) -> Iterator[str]:
    """Whoever of a pair is cancelled for a conflict with one before it leaves the other alone."""
    states = [one["state"], other["state"]]
    if states == ["merged", "merged"]:
        yield f"{_shown(one)} and {_shown(other)} do not go together"
    if states == ["failed", "failed"]:
        yield f"neither {_shown(one)} nor {_shown(other)} merged, and one of them could ({kind})"


def _shown(stay: Stay) -> str:
    return f"#{stay['prNumber']} ({stay['state']}, {stay['reason']['code']})"
