"""People who do what the script says, if it can be done: with the queue, and at the host."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import PullRequest
from mergeyard.ports.git import Conflict
from mergeyard.sim.checks import Truth
from tests.simulation import script as s
from tests.simulation.answering import SimApi
from tests.simulation.ci import SimCi
from tests.simulation.hosting import BRANCH, Hosting
from tests.support.api import Refused
from tests.support.host_log import TEST_BRANCHES

EXPECTED_REFUSALS = frozenset(
    {
        "pr_closed",
        "pr_already_merged",
        "pr_not_in_queue",
        "pr_not_submitted",
        "tests_not_running",
        "merge_in_progress",
        "mode_switch_in_progress",
        "pr_base_mismatch",
        "pr_not_found",
        "invalid_config",
        "invalid_request",
    }
)


class People:
    def __init__(self, hosting: Hosting, api: SimApi, ci: SimCi, truth: Truth, nature: s.Nature) -> None:
        self.hosting = hosting
        self.api = api
        self.ci = ci
        self.moved_the_target = False
        self.deleted_a_branch = False
        self._nature = nature
        self._pushes = 0
        self._say_what_is_bad(truth)

    async def perform(self, act: s.Act) -> None:
        try:
            await PERFORMERS[type(act)](self, act)
        except Refused as refused:
            if refused.code not in EXPECTED_REFUSALS:
                raise

    def _say_what_is_bad(self, truth: Truth) -> None:
        truth.bad |= {f"pr{number}" for number in self._nature.bad}
        truth.bad_together |= {frozenset({f"pr{one}", f"pr{other}"}) for one, other in self._nature.bad_pairs}
        if self._nature.base_is_broken:
            truth.bad.add("broken")
            truth.repairs["broken"] = f"pr{self._nature.repaired_by}"

    # With the queue.

    async def submit(self, act: s.Submit) -> None:
        self.open(act.pr)
        wishes = {"priority": act.priority, "noBatch": act.no_batch, "force": act.forced}
        await self._ask(
            "submitPullRequest", act.pr, **{name: wish for name, wish in wishes.items() if wish is not None}
        )

    async def cancel(self, act: s.Cancel) -> None:
        await self._ask("cancelPullRequest", act.pr)

    async def restart(self, act: s.Restart) -> None:
        await self._ask("restartTestsOnPullRequest", act.pr)

    async def upload(self, act: s.Upload) -> None:
        self.open(act.pr)
        targets = "ALL" if act.targets is None else list(act.targets)
        await self._ask("setImpactedTargets", act.pr, impactedTargets=targets)

    async def set_state(self, act: s.SetState) -> None:
        await self.api.insist("updateQueue", state=act.state.upper())

    async def change(self, act: s.Change) -> None:
        await self.api.insist("updateQueue", **{act.setting: act.value})

    async def _ask(self, path: str, pr: int, **members: Any) -> None:
        if PrNumber(pr) in self.hosting.pulls:
            head = {"sha": self.hosting.pulls[PrNumber(pr)].head} if path == "setImpactedTargets" else {}
            await self.api.insist(path, pr={"number": pr, **head}, **members)

    # At the host.

    def open(self, number: int) -> None:
        """Mostly with a file of its own, upon the target as it is."""
        if number in self.hosting.pulls:
            return
        beneath = dict(self._nature.upon).get(number, 0)
        known = self.hosting.pulls.get(PrNumber(beneath))
        upon = self.hosting.origin.target if known is None else known.head
        path = "shared" if number in self._nature.sharing else f"file{number}"
        head = self._commit(upon, {path: f"pr{number}"}, f"change {number}")
        pull = PullRequest(
            number=PrNumber(number), head=head, base=BRANCH, branch=f"feature{number}", title=f"{number}"
        )
        self.hosting.change(PrNumber(number), pull)

    async def push(self, act: s.Push) -> None:
        for pull in self._open_ones(act.pr):
            self._pushes += 1
            head = self._commit(pull.head, {f"more{act.pr}": f"push {self._pushes}"}, "more")
            self.hosting.change(pull.number, replace(pull, head=head))

    async def close(self, act: s.Close) -> None:
        for pull in self._open_ones(act.pr):
            self.hosting.change(pull.number, replace(pull, is_open=False))

    async def reopen(self, act: s.Reopen) -> None:
        pull = self.hosting.pulls.get(PrNumber(act.pr))
        if pull is not None and pull.merged_into is None:
            self.hosting.change(pull.number, replace(pull, is_open=True, base=BRANCH))

    async def retarget(self, act: s.Retarget) -> None:
        for pull in self._open_ones(act.pr):
            self.hosting.change(pull.number, replace(pull, base="other"))

    async def merge_by_hand(self, act: s.MergeByHand) -> None:
        objects, target = self.hosting.origin.objects, self.hosting.origin.target
        for pull in self._open_ones(act.pr):
            tree = objects.merge(target, pull.head)
            if not isinstance(tree, Conflict) and pull.base == BRANCH:
                self._move_target(objects.commit(tree, (target, pull.head), "by hand"))
                self.hosting.change(pull.number, replace(pull, is_open=False, merged_into=BRANCH))

    async def push_to_target(self, _: s.PushToTarget) -> None:
        self._pushes += 1
        self._move_target(self._commit(self.hosting.origin.target, {f"foreign{self._pushes}": "x"}, "a foreign push"))

    async def rewind_target(self, _: s.RewindTarget) -> None:
        parents = self.hosting.origin.objects.commits[self.hosting.origin.target].parents
        if parents:
            self._move_target(parents[0])

    async def delete_test_branch(self, act: s.DeleteTestBranch) -> None:
        there = sorted(ref for ref in self.hosting.origin.refs if ref.startswith(TEST_BRANCHES))
        if there:
            self.deleted_a_branch = True
            self.hosting.origin.set(there[act.which % len(there)], None)

    async def report_on_head(self, act: s.ReportOnHead) -> None:
        for pull in self._open_ones(act.pr):
            await self.ci.report(pull.head, self.ci.verdict(pull.head))

    def _open_ones(self, number: int) -> list[PullRequest]:
        pull = self.hosting.pulls.get(PrNumber(number))
        return [pull] if pull is not None and pull.is_open else []

    def _commit(self, upon: Sha, files: dict[str, str], message: str) -> Sha:
        objects = self.hosting.origin.objects
        return objects.commit(objects.tree({**objects.files(upon), **files}), (upon,), message)

    def _move_target(self, to: Sha) -> None:
        self.moved_the_target = True
        self.hosting.move_target(to)


PERFORMERS: dict[type[s.Act], Callable[[People, Any], Awaitable[None]]] = {
    s.Submit: People.submit,
    s.Cancel: People.cancel,
    s.Restart: People.restart,
    s.Upload: People.upload,
    s.SetState: People.set_state,
    s.Change: People.change,
    s.Push: People.push,
    s.Close: People.close,
    s.Reopen: People.reopen,
    s.Retarget: People.retarget,
    s.MergeByHand: People.merge_by_hand,
    s.PushToTarget: People.push_to_target,
    s.RewindTarget: People.rewind_target,
    s.DeleteTestBranch: People.delete_test_branch,
    s.ReportOnHead: People.report_on_head,
}
