"""People who perform the acts of the script, if possible: with the queue and at the host."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import PullRequest
from mergeyard.ports.git import Conflict
from tests.simulation import script as s
from tests.simulation.api_client import SimApi
from tests.simulation.ci import SimCi
from tests.simulation.host import BRANCH, HostState, require_approval
from tests.support.api_client import ApiRefused
from tests.support.host_log import TEST_BRANCH_PREFIX
from tests.support.world.repository import CheckRules

EXPECTED_REFUSALS = frozenset(
    {
        "pr_closed",
        "pr_already_merged",
        "pr_not_in_queue",
        "pr_not_submitted",
        "merge_in_progress",
        "mode_switch_in_progress",
        "pr_base_mismatch",
        "pr_not_found",
        "invalid_config",
        "invalid_request",
        "sha_mismatch",
    }
)


NO_RUN = "00000000-0000-4000-8000-000000000000"


class MergedChange(Struct, frozen=True):
    before: Sha
    last: Sha


class People:
    def __init__(
        self, host_state: HostState, api: SimApi, ci: SimCi, check_rules: CheckRules, nature: s.Nature
    ) -> None:
        self.host_state = host_state
        self.api = api
        self.ci = ci
        self.moved_target_branch = False
        self.deleted_test_branch = False
        self.pushed = set[int]()
        """The pull requests to which their authors pushed after they had opened them."""
        self.retargeted = set[int]()
        self.deleted_heads = set[int]()
        """The pull requests whose authors deleted the head branch: the queue cannot move it back."""
        self.disturbed = set[int]()
        """The pull requests that people changed at the host after they had opened them."""
        self.reopened = set[int]()
        self._nature = nature
        self._pushes = 0
        self._own_heads = dict[PullRequestNumber, Sha]()
        """What the author of a pull request has in a clone."""
        self._first_heads = dict[int, Sha]()
        """The heads that pull requests were opened with."""
        self._set_check_rules(check_rules)

    async def perform(self, act: s.Act) -> None:
        try:
            await PERFORMERS[type(act)](self, act)
        except ApiRefused as refused:
            if refused.code not in EXPECTED_REFUSALS:
                raise

    def _set_check_rules(self, check_rules: CheckRules) -> None:
        check_rules.failing |= {f"pr{number}" for number in self._nature.bad}
        check_rules.failing_together |= {frozenset({f"pr{one}", f"pr{other}"}) for one, other in self._nature.bad_pairs}
        if self._nature.base_is_broken:
            check_rules.failing.add("broken")
            check_rules.repaired_by["broken"] = f"pr{self._nature.repaired_by}"

    # With the queue.

    async def submit(self, act: s.Submit) -> None:
        self.open(act.pr)
        options = {"priority": act.priority, "noBatch": act.no_batch, "force": act.forced}
        await self._ask(
            "submitPullRequest", act.pr, **{name: value for name, value in options.items() if value is not None}
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
        await self.api.post_until_answered("updateQueue", state=act.state.upper())

    async def change(self, act: s.Change) -> None:
        await self.api.post_until_answered("updateQueue", **{act.setting: act.value})

    async def _ask(self, path: str, pr: int, **members: Any) -> None:
        pull_request = self.host_state.pull_requests.get(PullRequestNumber(pr))
        if pull_request is not None:
            is_reviewed = pull_request.fork and path == "submitPullRequest"
            head = {"sha": pull_request.head} if is_reviewed or path == "setImpactedTargets" else {}
            await self.api.post_until_answered(path, pr={"number": pr, **head}, **members)

    # At the host.

    def open(self, number: int) -> None:
        """Mostly with a file of its own, on top of the current target branch."""
        if number in self.host_state.pull_requests:
            return
        other = dict(self._nature.stacked_on).get(number, 0)
        known = self.host_state.pull_requests.get(PullRequestNumber(other))
        base = self.host_state.origin.target if known is None else known.head
        head = self._commits_of(number, base)
        self._first_heads[number] = head
        heads = self.host_state.heads
        is_fork = heads is not None and number in (*heads.in_forks, *heads.in_closed_forks)
        pull_request = PullRequest(
            number=PullRequestNumber(number),
            head=head,
            base_branch=BRANCH,
            head_branch=f"feature{number}",
            head_repo=f"author{number}/app" if is_fork else "",
            fork=is_fork,
            title=f"{number}",
            requirements=(require_approval(given=0),) if self.host_state.requires_approval else (),
        )
        if heads is not None:
            self._create_head_branch(pull_request, heads)
        self.host_state.change(PullRequestNumber(number), pull_request)

    def _commits_of(self, number: int, base: Sha) -> Sha:
        """The commits that it is opened with, as its nature is, where that is possible yet."""
        nature, objects = self._nature, self.host_state.origin.objects
        start = self._first_heads.get(dict(nature.landing_again).get(number, 0), base)
        if number in nature.undoing:
            changed = self._commit(start, {"shared": f"tried {number}"}, "try something")
            start = objects.commit(objects.commits[start].tree, (changed,), "revert it")
        for undone in self._merged_changes(dict(nature.reverting).get(number, 0)):
            return self._revert(undone, start) or start
        for picked in self._merged_changes(dict(nature.picking).get(number, 0)):
            start = self._pick(picked, start) or start
        path = "shared" if number in nature.sharing else f"file{number}"
        about = dict(nature.forging).get(number)
        if about is None:
            return self._commit(start, {path: f"pr{number}"}, f"change {number}")
        message = self._forged(about, self._first_heads.get(about, start))
        return self._commit(start, {path: f"pr{number}"}, message)

    def _merged_changes(self, number: int) -> list[MergedChange]:
        """What the target branch shows as merged by this pull request, the newest: one commit, or several if it was
        rebased."""
        objects, commit = self.host_state.origin.objects, self.host_state.origin.target
        while parents := objects.commits[commit].parents:
            if self._is_of(number, commit):
                before = parents[0]
                while objects.commits[before].parents and self._is_of(number, before):
                    before = objects.commits[before].parents[0]
                return [MergedChange(before, commit)]
            commit = parents[0]
        return []

    def _is_of(self, number: int, commit: Sha) -> bool:
        message = self.host_state.origin.objects.commits[commit].message
        return f"Mergeyard-Pull-Request: {number}\n" in f"{message}\n"

    def _revert(self, undone: MergedChange, onto: Sha) -> Sha | None:
        tree = self.host_state.origin.objects.merge_with_base(undone.last, onto, undone.before)
        message = f"Revert\n\nThis reverts commit {undone.last}."
        return None if isinstance(tree, Conflict) else self.host_state.origin.objects.commit(tree, (onto,), message)

    def _pick(self, picked: MergedChange, onto: Sha) -> Sha | None:
        """With the message of the original, and so with its trailers."""
        objects = self.host_state.origin.objects
        tree = objects.merge_with_base(picked.before, onto, picked.last)
        message = objects.commits[picked.last].message
        return None if isinstance(tree, Conflict) else objects.commit(tree, (onto,), message, committed="picked")

    def _forged(self, about: int, head: Sha, run: int | None = None) -> str:
        refs = sorted(ref for ref in self.host_state.origin.refs if ref.startswith(TEST_BRANCH_PREFIX))
        name = NO_RUN if run is None or not refs else refs[run % len(refs)].rpartition("/")[2]
        return f"forged\n\nMergeyard-Pull-Request: {about}\nMergeyard-Run: {name}\nMergeyard-Head: {head}\n"

    def _create_head_branch(self, pull_request: PullRequest, heads: s.Heads) -> None:
        ref = self.host_state.head_branch_ref(pull_request)
        self._own_heads[pull_request.number] = pull_request.head
        self.host_state.origin.set(ref, pull_request.head)
        if pull_request.number in (*heads.in_closed_forks, *heads.protected, *heads.refused):
            self.host_state.origin.refused_refs.add(ref)

    async def push(self, act: s.Push) -> None:
        """Git refuses the push of a clone that lacks what the branch has."""
        for pull_request in self._pull_requests(act.pr):
            own = self._own_heads.get(pull_request.number, pull_request.head)
            if self._branch_tip(pull_request) in (own, None):
                self._push_head(pull_request, self._commit_more(own, act.pr))

    async def pull_and_push(self, act: s.PullAndPush) -> None:
        for pull_request in self._pull_requests(act.pr):
            self._push_head(pull_request, self._commit_more(self._branch_tip(pull_request), act.pr))

    async def rewrite_head(self, act: s.RewriteHead) -> None:
        """On top of the target branch, or from scratch if it conflicts."""
        objects, target = self.host_state.origin.objects, self.host_state.origin.target
        for pull_request in self._pull_requests(act.pr):
            own = self._own_heads.get(pull_request.number, pull_request.head)
            self._pushes += 1
            merged = objects.merge(target, own)
            tree = objects.commits[own].tree if isinstance(merged, Conflict) else merged
            self._push_head(pull_request, objects.commit(tree, (target,), f"rewritten {self._pushes}"))

    async def restore_head(self, act: s.RestoreHead) -> None:
        for pull_request in self._pull_requests(act.pr):
            self._push_head(pull_request, self._own_heads.get(pull_request.number, pull_request.head))

    async def delete_head(self, act: s.DeleteHead) -> None:
        for pull_request in self._pull_requests(act.pr):
            self.disturbed.add(act.pr)
            self.deleted_heads.add(act.pr)
            if self.host_state.heads is not None:
                self.host_state.origin.set(self.host_state.head_branch_ref(pull_request), None)

    def _commit_more(self, parent: Sha | None, number: int) -> Sha:
        self._pushes += 1
        base = self.host_state.origin.target if parent is None else parent
        return self._commit(base, {f"more{number}": f"push {self._pushes}"}, "more")

    def _branch_tip(self, pull_request: PullRequest) -> Sha | None:
        if self.host_state.heads is None:
            return pull_request.head
        return self.host_state.origin.refs.get(self.host_state.head_branch_ref(pull_request))

    def _push_head(self, pull_request: PullRequest, head: Sha) -> None:
        self.pushed.add(pull_request.number)
        self.disturbed.add(pull_request.number)
        self._own_heads[pull_request.number] = head
        if self.host_state.heads is not None:
            self.host_state.origin.set(self.host_state.head_branch_ref(pull_request), head)
        if pull_request.is_open and not self.host_state.notices_heads:
            self.host_state.change(pull_request.number, replace(pull_request, head=head))

    def _pull_requests(self, number: int) -> list[PullRequest]:
        """If there are head branches, their authors can push also when the pull request is merged."""
        found = self.host_state.pull_requests.get(PullRequestNumber(number))
        return [found] if found is not None and (found.is_open or self.host_state.heads is not None) else []

    async def close(self, act: s.Close) -> None:
        for pull_request in self._open_pull_requests(act.pr):
            self.disturbed.add(act.pr)
            self.host_state.change(pull_request.number, replace(pull_request, is_open=False))

    async def reopen(self, act: s.Reopen) -> None:
        pull_request = self.host_state.pull_requests.get(PullRequestNumber(act.pr))
        head = None if pull_request is None else self._branch_tip(pull_request)
        if pull_request is not None and head is not None and pull_request.merged_into is None:
            self.disturbed.add(act.pr)
            self.reopened.add(act.pr)
            reopened = replace(pull_request, is_open=True, base_branch=BRANCH)
            seen = replace(reopened, head=head) if self.host_state.notices_heads else reopened
            self.host_state.change(pull_request.number, seen)

    async def retarget(self, act: s.Retarget) -> None:
        for pull_request in self._open_pull_requests(act.pr):
            self.disturbed.add(act.pr)
            self.retargeted.add(act.pr)
            self.host_state.change(pull_request.number, replace(pull_request, base_branch="other"))

    async def merge_by_hand(self, act: s.MergeByHand) -> None:
        objects, target = self.host_state.origin.objects, self.host_state.origin.target
        for pull_request in self._open_pull_requests(act.pr):
            tree = objects.merge(target, pull_request.head)
            if not isinstance(tree, Conflict) and pull_request.base_branch == BRANCH:
                self.disturbed.add(act.pr)
                self._move_target(objects.commit(tree, (target, pull_request.head), "by hand"))
                self.host_state.change(pull_request.number, replace(pull_request, is_open=False, merged_into=BRANCH))

    async def push_to_target(self, _: s.PushToTarget) -> None:
        self._pushes += 1
        self._move_target(
            self._commit(self.host_state.origin.target, {f"foreign{self._pushes}": "x"}, "a foreign push")
        )

    async def push_revert(self, act: s.PushRevert) -> None:
        for merged in self._merged_changes(act.pr):
            target = self.host_state.origin.target
            commit = self._pick(merged, target) if act.again else self._revert(merged, target)
            if commit is not None:
                self._move_target(commit)

    async def push_forged(self, act: s.PushForged) -> None:
        self._pushes += 1
        target, objects = self.host_state.origin.target, self.host_state.origin.objects
        head = self._first_heads.get(act.pr, target)
        own = objects.beyond(head, [target])
        if not (act.picks and own):
            message = self._forged(act.pr, head, act.run)
            self._move_target(self._commit(target, {f"foreign{self._pushes}": "x"}, message))
            return
        tree = objects.pick(target, own[0])
        if not isinstance(tree, Conflict):
            self._move_target(objects.commit(tree, (target,), self._forged(act.pr, own[0], act.run)))

    async def rewind_target(self, _: s.RewindTarget) -> None:
        parents = self.host_state.origin.objects.commits[self.host_state.origin.target].parents
        if parents:
            self._move_target(parents[0])

    async def delete_test_branch(self, act: s.DeleteTestBranch) -> None:
        branches = sorted(ref for ref in self.host_state.origin.refs if ref.startswith(TEST_BRANCH_PREFIX))
        if branches:
            self.deleted_test_branch = True
            self.host_state.origin.set(branches[act.which % len(branches)], None)

    async def report_on_head(self, act: s.ReportOnHead) -> None:
        for pull_request in self._open_pull_requests(act.pr):
            await self.ci.report(pull_request.head, self.ci.evaluate(pull_request.head))

    async def approve(self, act: s.Approve) -> None:
        self.open(act.pr)
        for pull_request in self._open_pull_requests(act.pr):
            self.host_state.review(pull_request.number, approve=True)

    async def withdraw(self, act: s.Withdraw) -> None:
        for pull_request in self._open_pull_requests(act.pr):
            self.host_state.review(pull_request.number, approve=False)

    def _open_pull_requests(self, number: int) -> list[PullRequest]:
        pull_request = self.host_state.pull_requests.get(PullRequestNumber(number))
        return [pull_request] if pull_request is not None and pull_request.is_open else []

    def _commit(self, parent: Sha, files: dict[str, str], message: str) -> Sha:
        objects = self.host_state.origin.objects
        return objects.commit(objects.tree({**objects.files(parent), **files}), (parent,), message)

    def _move_target(self, to: Sha) -> None:
        self.moved_target_branch = True
        self.host_state.move_target(to)


PERFORMERS: dict[type[s.Act], Callable[[People, Any], Awaitable[None]]] = {
    s.Submit: People.submit,
    s.Cancel: People.cancel,
    s.Restart: People.restart,
    s.Upload: People.upload,
    s.SetState: People.set_state,
    s.Change: People.change,
    s.Push: People.push,
    s.PullAndPush: People.pull_and_push,
    s.RewriteHead: People.rewrite_head,
    s.DeleteHead: People.delete_head,
    s.RestoreHead: People.restore_head,
    s.Close: People.close,
    s.Reopen: People.reopen,
    s.Retarget: People.retarget,
    s.MergeByHand: People.merge_by_hand,
    s.PushToTarget: People.push_to_target,
    s.RewindTarget: People.rewind_target,
    s.PushRevert: People.push_revert,
    s.PushForged: People.push_forged,
    s.DeleteTestBranch: People.delete_test_branch,
    s.ReportOnHead: People.report_on_head,
    s.Approve: People.approve,
    s.Withdraw: People.withdraw,
}
