"""What the host shows of a target now: read afresh, and as far down as the landings reach that it is compared with."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.ids import Sha, Ticket
from mergeyard.ports.git import Commit, Mirror, MissingObject
from mergeyard.service.site import Site
from mergeyard.service.verifying.history import History
from mergeyard.service.verifying.recorded import Form, Recorded


class Shown(Struct, frozen=True, kw_only=True):
    tip: Sha | None = None
    bottom: Sha | None = None
    """The commit beneath the line."""
    line: tuple[Commit, ...] = ()
    """Along first parents, oldest first."""
    beside: tuple[Commit, ...] = ()
    """Landings that the target holds elsewhere."""
    faithful: Mapping[Ticket, bool] = {}
    """Of composed landings, whether they brought exactly what was tested, to where nobody else had changed anything.
    Those of which the mirror has lost what was tested are left out."""
    upon_their_tip: frozenset[Ticket] = frozenset()
    """Direct merges that hold the tip which they were examined upon."""

    @property
    def history(self) -> History:
        return History(self.line, self.beside, self.bottom)


async def read_target(site: Site, landings: Sequence[Recorded]) -> Shown:
    mirror = site.mirror
    tip = await site.tip()
    if tip is None:
        return Shown()
    bottom, line = await _line(mirror, tip, landings)
    on_line = {commit.sha for commit in line}
    elsewhere = [landing.commit for landing in landings if landing.commit and landing.commit not in on_line]
    beside = [await mirror.read(commit) for commit in elsewhere if await mirror.holds(tip, commit)]
    shown = Shown(tip=tip, bottom=bottom, line=line, beside=tuple(beside))
    held = [landing for landing in landings if shown.history.holds(landing.commit)]
    return replace(
        shown,
        faithful=await _faithful(mirror, held, shown.history),
        upon_their_tip=await _upon_their_tip(mirror, held),
    )


async def _line(mirror: Mirror, tip: Sha, landings: Iterable[Recorded]) -> tuple[Sha | None, tuple[Commit, ...]]:
    """From what the oldest stood upon; where people rewrote the target, from the first that is still there."""
    for bottom in _bottoms(landings):
        if await mirror.holds(tip, bottom):
            line = await mirror.first_parents(tip, down_to=bottom)
            if line is not None:
                return bottom, line
    return None, ()


def _bottoms(landings: Iterable[Recorded]) -> Iterator[Sha]:
    for landing in landings:
        if landing.stood_upon is not None:
            yield landing.stood_upon
        if landing.commit is not None:
            yield landing.commit


async def _faithful(mirror: Mirror, landings: Iterable[Recorded], history: History) -> dict[Ticket, bool]:
    found = dict[Ticket, bool]()
    for landing in landings:
        upon = history.beneath(landing)
        if landing.form is Form.COMPOSED and upon is not None:
            try:
                found[landing.stay.ticket] = await _is_faithful(mirror, landing, upon)
            except MissingObject:
                continue
    return found


async def _is_faithful(mirror: Mirror, landing: Recorded, upon: Sha) -> bool:
    tested, commit = landing.tested, landing.commit
    assert commit is not None
    if tested is None:
        return False
    brought = await mirror.changed_paths(tested.parent, tested.commit)
    if brought != await mirror.changed_paths(upon, commit):
        return False
    elsewhere = await mirror.changed_paths(tested.parent, upon)
    return brought.isdisjoint(elsewhere) and brought.isdisjoint(await mirror.changed_paths(tested.commit, commit))


async def _upon_their_tip(mirror: Mirror, landings: Iterable[Recorded]) -> frozenset[Ticket]:
    examined = [(landing.stay.ticket, landing.commit, landing.stay.exam) for landing in landings]
    return frozenset(
        [
            ticket
            for ticket, commit, exam in examined
            if commit is not None and exam is not None and await mirror.holds(commit, exam.tip)
        ]
    )
