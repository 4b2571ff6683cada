"""Checks a world that was played: every safety promise against its three logs, and the liveness promises L1 to L3."""

import re
from collections.abc import Iterator

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.states import Reason
from mergeyard.engine.views import wait_reason
from mergeyard.ports.git import Conflict
from tests.simulation.faults import Family
from tests.simulation.script import Change, JumpClock
from tests.simulation.world import World
from tests.support.evidence import Evidence, Landing, SubmissionJson
from tests.support.host_log import RefUpdate
from tests.support.promises import broken_promises

TRAILER = re.compile(r"^Mergeyard-(Pull-Request|Run): (.*)$", re.MULTILINE)


class SimEvidence(Evidence):
    def __init__(self, world: World) -> None:
        super().__init__(world.origin, world.api, world.ci)
        self.required = frozenset(world.script.statuses)
        self.clocks_agree = not any(isinstance(act, JumpClock) for act in world.script.acts)
        self._origin = world.origin
        self._objects = world.origin.objects
        self._observed_tips = world.observed_tips
        self._late = world.origin.late
        changes = [act for act in world.script.acts if isinstance(act, Change) and act.setting == "mergeMethod"]
        self._methods = {world.script.config.merge_method, *(change.value for change in changes)}

    @property
    def tip(self) -> Sha:
        return self._origin.target

    def tree(self, commit: str) -> Sha:
        return self._objects.commits[Sha(commit)].tree

    def contains(self, commit: Sha, ancestor: Sha) -> bool:
        return self._objects.contains(commit, ancestor)

    def removed_by(self, update: RefUpdate) -> set[Sha]:
        """Without commits that our queue had not observed on the target branch: it cannot keep them away."""
        place = next(transaction.index for transaction in self.transactions if update in transaction.updates)
        observed = [tip for tip, at in self._observed_tips.items() if at <= place]
        return {commit for commit in super().removed_by(update) if any(self.contains(tip, commit) for tip in observed)}

    def conflicts(self, submission: SubmissionJson, tip: Sha) -> bool:
        """As git merges it onto this tip; where all are squashed or rebased, with the heads it is stacked on in the
        history of that tip. A commit that was removed and came back with a foreign merge does not count as landed."""
        head = Sha(submission["prSha"])
        landed = [
            each for each in self.submissions.values() if each["mergedSha"] and self._is_on_first_parents(each, tip)
        ]
        stacked_on = [Sha(each["prSha"]) for each in landed if self.contains(head, Sha(each["prSha"]))]
        base = tip if MergeMethod.MERGE_COMMIT in self._methods else self._with_parents(tip, stacked_on)
        return not self._merged_tree(base, head)

    def _is_on_first_parents(self, submission: SubmissionJson, tip: Sha) -> bool:
        return self._objects.first_parents(tip, Sha(submission["mergedSha"])) is not None

    def is_about_a_late_merge(self, broken: str) -> bool:
        late = [landing for landing in self.landings if landing.new in self._late]
        names = [self.name(submission["id"]) for landing in late for submission in self.submissions_in(landing)]
        return any(name in broken for name in (*map(str, late), *names))

    def removed_landings(self, *, without_a_branch: bool) -> list[Sha]:
        """Commits that the service landed and a foreign push removed again."""
        moves = [(each, move) for each in self.transactions if (move := each.update_of(self.target_ref))]
        alone = {1} if without_a_branch else {1, 2}
        landed = [move.new for each, move in moves if each.by_service and len(each.updates) in alone]
        removed = [super(SimEvidence, self).removed_by(move) for each, move in moves if not each.by_service]
        return [new for new in landed if new and any(new in commits for commits in removed)]

    def _read_commits(self, landing: Landing) -> list[tuple[Sha, int, str]]:
        """As git shows it: first parents that the old tip does not contain, the last first."""
        found, sha = list[tuple[Sha, int, str]](), landing.new
        while not self._objects.contains(landing.old, sha):
            named = dict[str, str](TRAILER.findall(self._objects.commits[sha].message))
            found.append((sha, int(named.get("Pull-Request", 0)), named.get("Run", "")))
            sha = self._objects.commits[sha].parents[0]
        return found

    def _first_parent_ancestor(self, commit: str, count: int) -> str:
        for _ in range(count):
            commit = self._objects.commits[Sha(commit)].parents[0]
        return commit

    def _commits_missing_in(self, commit: Sha, other: Sha) -> set[Sha]:
        return {*self._objects.beyond(commit, [other])}

    def _with_parents(self, commit: Sha, parents: list[Sha]) -> str:
        return self._objects.commit(self.tree(commit), (commit, *parents), "ground")

    def _merge_base(self, one: str, other: str) -> str:
        return self._objects.merge_base(Sha(one), Sha(other))

    def _merged_tree(self, onto: str, head: str) -> str:
        tree = self._objects.merge(Sha(onto), Sha(head))
        return "" if isinstance(tree, Conflict) else tree

    def _trees(self, commit: str, count: int) -> list[str]:
        trees = list[str]()
        while len(trees) < count:
            found = self._objects.commits[Sha(commit)]
            trees.append(found.tree)
            if not found.parents:
                break
            commit = found.parents[0]
        return trees

    def _changes(self, old: str, new: str) -> dict[str, str]:
        return {path: content or "" for path, content in self._objects.changes(Sha(old), Sha(new)).items()}


ALLOWED_WAIT_REASONS = frozenset(
    {Reason.NOT_MERGEABLE, Reason.BASE_BRANCH_MISMATCH, Reason.BASE_BROKEN, Reason.WAITING_FOR_PRS_AHEAD}
)


def violations(world: World) -> list[str]:
    """Every violation of a promise."""
    evidence = SimEvidence(world)
    evidence.collect()
    return [
        *world.errors,
        *(broken for broken in broken_promises(evidence) if not _is_known_limit(broken, evidence)),
        *l1_every_submission_ends_or_waits_for_an_allowed_reason(world),
        *l2_only_culprits_fail(world, evidence),
        *l3_every_change_is_observed(world),
    ]


def _is_known_limit(broken: str, evidence: SimEvidence) -> bool:
    """A landing that is removed from the target branch after its response was lost, and before the service reads the
    branch again, cannot be known. If its test branch is gone, the outcome is reported as unknown; with `provider_merge`
    there is no trace, and the Git host performs a merge however late the request arrives."""
    if broken.startswith(("s1", "s5")) and evidence.is_about_a_late_merge(broken):
        return True
    if broken.startswith("s1"):
        return any(new[:8] in broken for new in evidence.removed_landings(without_a_branch=True))
    if broken.startswith("s5") and "landing_unknown" in broken:
        return bool(evidence.removed_landings(without_a_branch=False))
    return broken.startswith(("s3", "s4", "s5")) and bool(evidence.removed_landings(without_a_branch=True))


def l1_every_submission_ends_or_waits_for_an_allowed_reason(world: World) -> Iterator[str]:
    queue = world.queue
    assert queue, "no replica has loaded the queue"
    for submission in queue.submissions.values():
        waiting = wait_reason(queue, submission, world.loop.now)
        if waiting.reason not in ALLOWED_WAIT_REASONS:
            yield f"L1: #{submission.number} is {submission.state} and waits for {waiting.reason} without faults"


def l3_every_change_is_observed(world: World) -> Iterator[str]:
    for submission in world.outdated_submissions():
        yield f"L3: #{submission.number} is still {submission.state} though it was closed or pushed to"


def l2_only_culprits_fail(world: World, evidence: SimEvidence) -> Iterator[str]:
    for submission in evidence.submissions.values():
        if submission["state"] in {"failed", "cancelled"} and not _has_cause(world, evidence, submission):
            yield f"L2: {evidence.name(submission['id'])} left the queue without a cause"


def _has_cause(world: World, evidence: SimEvidence, submission: SubmissionJson) -> bool:
    """Whether something in the world is a cause for this."""
    reason, contents = submission["reason"]["code"], _contents_of(world, submission)
    match reason:
        case "cancelled_by_user" | "pr_pushed" | "pr_closed" | "pr_base_changed":
            return True
        case "landing_unknown":
            return world.people.moved_target_branch or world.people.deleted_test_branch
        case "test_run_failed":
            return _can_fail(world, contents)
        case "test_run_timeout":
            return _can_time_out(world)
        case "failed_by_optimization":
            return _can_fail(world, contents) or _can_time_out(world)
        case "nothing_to_merge":
            return any(_changes_nothing(world, submission, tip) for tip in _tips_since_submission(evidence, submission))
        case "merge_conflict":
            return any(evidence.conflicts(submission, tip) for tip in _tips_since_submission(evidence, submission))
        case "merge_refused":
            return (PullRequestNumber(submission["prNumber"]), Sha(submission["prSha"])) in world.host_state.conflicted
        case "contains_removed_commit":
            return world.people.moved_target_branch
        case _:
            return False


def _can_fail(world: World, contents: set[str]) -> bool:
    return world.ci.reported_falsely or world.script.nature.base_is_broken or bool(contents & _failing_contents(world))


def _can_time_out(world: World) -> bool:
    """A fresh read does not help while the host itself returns stale data."""
    return not world.script.families.isdisjoint({Family.ODD_CI, Family.SLOWNESS, Family.STALE_READS})


def _changes_nothing(world: World, submission: SubmissionJson, tip: Sha) -> bool:
    objects = world.origin.objects
    return objects.merge(tip, submission["prSha"]) == objects.commits[tip].tree


def _tips_since_submission(evidence: SimEvidence, submission: SubmissionJson) -> list[Sha]:
    """Also tips that were removed later: they were there when they were read. The client that submitted may never
    have received a response."""
    submissions = evidence.responses_to("submitPullRequest")
    asked_at = min(
        (answer.log_index_at_request for answer in submissions if answer.content["id"] == submission["id"]), default=0
    )
    moves = [(each.index, move.new) for each in evidence.transactions if (move := each.update_of(evidence.target_ref))]
    first = max((place for place, _ in moves if place < asked_at), default=0)
    return [tip for place, tip in moves if place >= first and tip is not None]


def _contents_of(world: World, submission: SubmissionJson) -> set[str]:
    return {*world.origin.objects.files(submission["prSha"]).values()}


def _failing_contents(world: World) -> set[str]:
    return world.check_rules.failing.union(*world.check_rules.failing_together)
