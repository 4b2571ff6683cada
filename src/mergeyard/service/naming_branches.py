"""The names of the refs that we write: test branches, all below one prefix, each with its run's id in it."""

import re

from mergeyard.domain import ours
from mergeyard.domain.ids import RunId
from mergeyard.domain.runs import Run, RunKind

BISECTION = "-bisection"
_NAME = re.compile(rf"refs/heads/{ours.BRANCHES}.+/([0-9a-f-]{{36}})(?:{BISECTION})?")


def branch_ref(branch: str) -> str:
    return f"refs/heads/{branch}"


TEST_BRANCHES = branch_ref(f"{ours.BRANCHES}*")


def test_branch(run: Run) -> str:
    """A bare run tests no pull request, and its branch names none."""
    if run.kind is RunKind.BARE:
        return f"{ours.BRANCHES}bare/{run.id}"
    ending = BISECTION if run.kind is RunKind.BISECTION else ""
    return f"{ours.BRANCHES}pr-{run.tested[0].number}/{run.id}{ending}"


def run_of(ref: str) -> RunId | None:
    found = _NAME.fullmatch(ref)
    return None if found is None else RunId(found[1])
