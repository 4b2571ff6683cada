"""What a mirror holds of branches and pull requests that are no more."""

from pathlib import Path

from mergeyard.domain.instants import MINUTE
from mergeyard.service import sweeping
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin
from tests.support.scenario import Stage, a_scenario

TWO_SWEEPS = 2 * sweeping.INTERVAL
SELDOM = Stage(look_every=MINUTE)


def refs_kept(folder: Path) -> set[str]:
    (head,) = folder.glob("mirrors/**/HEAD")
    return {name.split("/", 3)[3] for name in Origin(head.parent).refs()}


@asynchronous
async def test_nothing_leads_to_test_branches_and_pull_requests_that_are_gone(tmp_path: Path):
    async with a_scenario(tmp_path, stage=SELDOM) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        scenario.origin.remove("refs/pull/1/head")
        scenario.origin.remove("refs/pull/1/meta")
        await scenario.time_passes(TWO_SWEEPS)
        assert refs_kept(tmp_path) == {"heads/main", "pull/2/head"}
