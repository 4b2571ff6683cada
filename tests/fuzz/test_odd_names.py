"""Names that only git would take, through the whole service: whoever has them is served, and everybody else as well."""

from pathlib import Path

from tests.contract.api.desk import QUEUE, an_empty_desk
from tests.support.asynchronous import asynchronous

ODD = "re\u2028lease/é\x85"
STRANGE = ("refs/pull/1/head\u2028x/head", "refs/pull/\udcff/head", "refs/pull/2\u2029/meta", f"refs/heads/{ODD}\u2029")


@asynchronous
async def test_a_branch_whose_name_holds_the_end_of_a_line_has_a_queue_like_any_other(tmp_path: Path):
    async with an_empty_desk(tmp_path) as desk:
        world = desk.world
        world.origin.branch(ODD, upon="main")
        world.open(1, upon=ODD)
        world.set_pull(1, base=ODD)
        for ref in STRANGE:
            world.origin.set(ref, world.origin.tip("main"))
        queue = QUEUE | {"targetBranch": ODD}
        await desk.ask("createQueue", **queue)
        await desk.ask("submitPullRequest", **queue, pr={"number": 1})
        pull = await desk.ask("getSubmittedPullRequest", **queue, pr={"number": 1})
        run = await desk.ask("getMergeQueueTestingDetails", **queue, testRunId=pull["testRunId"])
        await desk.ask("reportCommitStatus", **queue, sha=run["testBranchSha"], context="unit", state="success")
        pull = await desk.ask("getSubmittedPullRequest", **queue, pr={"number": 1})
        assert pull["state"] == "merged"
        assert world.origin.tip(ODD) == run["testBranchSha"]
