"""Holds one landing to what was promised for its kind: what was tested is what landed."""

from collections.abc import Collection, Iterator
from typing import assert_never

from mergeyard.domain.ids import Sha
from mergeyard.domain.mismatches import Doubt, Mismatch
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import RunStatus
from mergeyard.service.verifying.history import History
from mergeyard.service.verifying.recorded import Form, Recorded
from mergeyard.service.verifying.shown import Shown
from mergeyard.service.verifying.words import mismatch


def broken(landing: Recorded, shown: Shown, history: History, ours: Collection[Sha]) -> Iterator[Mismatch]:
    """`ours`: every commit that some landing made."""
    yield from _untested(landing)
    if landing.stay.reason is not Reason.TREE_MISMATCH and history.holds(landing.commit):
        yield from _as_promised(landing, shown, history, ours)


def _untested(landing: Recorded) -> Iterator[Mismatch]:
    if landing.form is Form.DIRECT:
        yield from _unexamined(landing)
        return
    run = landing.run
    if run is None or run.status is not RunStatus.SUCCEEDED or landing.tested is None:
        yield mismatch(Doubt.UNTESTED, landing)
        return
    if landing.not_passed or not run.required:
        yield mismatch(Doubt.NOT_PASSED, landing, statuses=landing.not_passed)
    if landing.tested_head != landing.stay.pull.head:
        yield mismatch(Doubt.OTHER_HEAD, landing)


def _unexamined(landing: Recorded) -> Iterator[Mismatch]:
    exam = landing.stay.exam
    if exam is None or not exam.contains_tip:
        yield mismatch(Doubt.UNTESTED, landing)
    elif not exam.passed:
        yield mismatch(Doubt.NOT_PASSED, landing)


def _as_promised(landing: Recorded, shown: Shown, history: History, ours: Collection[Sha]) -> Iterator[Mismatch]:
    match landing.form:
        case Form.AS_TESTED:
            yield from _same_tree(landing, history)
            yield from _same_parent(landing, history)
        case Form.BY_PROVIDER:
            yield from _same_tree(landing, history)
        case Form.COMPOSED:
            yield from _composed(landing, shown, history, ours)
        case Form.DIRECT:
            yield from _same_tree(landing, history)
            yield from _upon_its_tip(landing, shown, history)
        case _:
            assert_never(landing.form)


def _same_tree(landing: Recorded, history: History) -> Iterator[Mismatch]:
    tested, exam = landing.tested, landing.stay.exam
    wanted = tested.tree if tested is not None else None if exam is None else exam.tree
    if landing.commit is not None and wanted not in (None, history[landing.commit].tree):
        yield mismatch(Doubt.OTHER_TREE, landing)


def _same_parent(landing: Recorded, history: History) -> Iterator[Mismatch]:
    upon = history.beneath(landing)
    if upon is not None and landing.tested is not None and upon != landing.tested.parent:
        yield mismatch(Doubt.OTHER_PARENT, landing)


def _composed(landing: Recorded, shown: Shown, history: History, ours: Collection[Sha]) -> Iterator[Mismatch]:
    """The tip may have moved since it was tested, but only by landings of this queue."""
    if not shown.faithful.get(landing.stay.ticket, True):
        yield mismatch(Doubt.OTHER_TREE, landing)
    upon = history.beneath(landing)
    between = () if upon is None or landing.run is None else history.between(landing.run.base, upon)
    if any(commit.sha not in ours for commit in between):
        yield mismatch(Doubt.OTHER_PARENT, landing)


def _upon_its_tip(landing: Recorded, shown: Shown, history: History) -> Iterator[Mismatch]:
    """What the provider merged is its own commit, and of that only the contents are promised."""
    exam, commit = landing.stay.exam, landing.commit
    if exam is None or commit is None or commit != exam.commit:
        return
    as_it_was = commit == landing.stay.pull.head
    stands = landing.stay.ticket in shown.upon_their_tip if as_it_was else history.beneath(landing) == exam.tip
    if not stands:
        yield mismatch(Doubt.OTHER_PARENT, landing)
