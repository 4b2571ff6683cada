"""What a pull request needs before the queue takes it in, as a checklist with what to do about whatever is missing."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.states import Mergeability, PrState, QueueState
from mergeyard.service.views import PullView
from mergeyard.web.words import short


class Mark(StrEnum):
    MET = "met"
    MISSING = "missing"
    AWAITED = "awaited"
    """Nobody has to do anything: it will show by itself."""


class Item(Struct, frozen=True):
    mark: Mark
    words: str
    advice: str = ""


MERGEABILITY = {
    Mergeability.MERGEABLE: Item(Mark.MET, "Can be merged"),
    Mergeability.NOT_MERGEABLE: Item(
        Mark.MISSING, "Cannot be merged", "Resolve its conflicts with the target branch, or what protects the branch."
    ),
    Mergeability.UNKNOWN: Item(Mark.AWAITED, "Can be merged?", "The host is asked. There is nothing to do."),
    Mergeability.CHECKING: Item(Mark.AWAITED, "Can be merged?", "The host is finding out. There is nothing to do."),
}
DOORS = {
    QueueState.RUNNING: Item(Mark.MET, "The queue is open"),
    QueueState.PAUSED: Item(Mark.MISSING, "The queue is paused", "Somebody who may administer it has to resume it."),
    QueueState.DRAINING: Item(
        Mark.MISSING, "The queue is draining", "It takes nothing new until somebody who may administer it resumes it."
    ),
    QueueState.SWITCHING_MODES: Item(
        Mark.AWAITED, "The queue changes its mode", "It opens by itself when the runs under way are over."
    ),
}


def checklist(view: PullView, state: QueueState) -> tuple[Item, ...]:
    targets = (_targets(view),) if view.parallel else ()
    return (_base(view), _draft(view), *_guarded(view), _mergeable(view), *targets, DOORS[state])


def _base(view: PullView) -> Item:
    base = view.stay.pull.base
    if base == view.target:
        return Item(Mark.MET, f"Points at {view.target}")
    advice = f"Change its base branch to {view.target}, or cancel it here and submit it to the queue for {base}."
    return Item(Mark.MISSING, f"Points at {base}", advice)


def _draft(view: PullView) -> Item:
    if view.stay.pull.draft:
        return Item(Mark.MISSING, "Is a draft", "Mark it as ready for review.")
    return Item(Mark.MET, "Is no draft")


def _guarded(view: PullView) -> tuple[Item, ...]:
    stay = view.stay
    if not (stay.pull.fork and stay.pull.guarded):
        return ()
    paths = ", ".join(stay.pull.guarded)
    if stay.by_maintainer:
        return (Item(Mark.MET, "Changes guarded paths, and a maintainer submitted it", f"Changed: {paths}"),)
    advice = f"Changed: {paths}. A maintainer has to review its head {stay.pull.head} and submit it."
    return (Item(Mark.MISSING, "Changes guarded paths", advice),)


def _mergeable(view: PullView) -> Item:
    if view.stay.forced and view.stay.pull.mergeability is not Mergeability.MERGEABLE:
        return Item(
            Mark.MET, "Need not be called mergeable", "It was submitted with force, and is tested all the same."
        )
    return MERGEABILITY[view.stay.pull.mergeability]


def _targets(view: PullView) -> Item:
    if view.has_targets:
        return Item(Mark.MET, "Its impacted targets are known")
    if view.stay.state is not PrState.NOT_READY:
        return Item(
            Mark.MET, "Its impacted targets are not needed", "It came in before lanes, and counts as impacting ALL."
        )
    head = short(view.stay.pull.head)
    advice = f"Upload them for its present head {head}: mergeyard targets set, or setImpactedTargets."
    return Item(Mark.MISSING, "Its impacted targets are not known", advice)
