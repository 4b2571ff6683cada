"""Unusual ref names through the whole service: they work, and do not disturb others."""

from pathlib import Path

from tests.contract.api.harness import QUEUE, api_without_queue
from tests.support.asynchronous import asynchronous

ODD = "re\u2028lease/é\x85"
STRANGE = ("refs/pull/1/head\u2028x/head", "refs/pull/\udcff/head", "refs/pull/2\u2029/meta", f"refs/heads/{ODD}\u2029")


@asynchronous
async def test_branch_with_line_separators_in_its_name_can_have_a_queue(tmp_path: Path):
    async with api_without_queue(tmp_path) as api:
        world = api.world
        world.origin.branch(ODD, base="main")
        world.open(1, base=ODD)
        world.set_pull_request(1, base=ODD)
        for ref in STRANGE:
            world.origin.set_ref(ref, world.origin.tip("main"))
        queue = QUEUE | {"targetBranch": ODD}
        await api.ask("createQueue", **queue)
        await api.ask("submitPullRequest", **queue, pr={"number": 1})
        pull = await api.ask("getSubmittedPullRequest", **queue, pr={"number": 1})
        run = await api.ask("getMergeQueueTestingDetails", **queue, testRunId=pull["testRunId"])
        await api.ask("reportCommitStatus", **queue, sha=run["testBranchSha"], context="unit", state="success")
        pull = await api.ask("getSubmittedPullRequest", **queue, pr={"number": 1})
        assert pull["state"] == "merged"
        assert world.origin.tip(ODD) == run["testBranchSha"]
