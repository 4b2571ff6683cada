"""Checks a world that was played: every safety promise against its three logs, and the liveness promises L1 to L3."""

from collections.abc import Iterator

from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.states import Reason
from mergeyard.domain.timestamps import SECOND
from mergeyard.engine.views import wait_reason
from mergeyard.ports.git import Conflict
from tests.simulation.faults import Family
from tests.simulation.script import Change, JumpClock
from tests.simulation.world import TRAILER, World
from tests.support.evidence import Evidence, Landing, SubmissionJson
from tests.support.host_log import RefUpdate
from tests.support.promises import broken_promises


class SimEvidence(Evidence):
    def __init__(self, world: World) -> None:
        super().__init__(world.origin, world.api, world.ci)
        self.required = frozenset(world.script.statuses)
        self.clocks_agree = not any(isinstance(act, JumpClock) for act in world.script.acts)
        self._origin = world.origin
        self._objects = world.origin.objects
        self._observed_tips = world.observed_tips
        self._late = world.origin.late
        self._host_state = world.host_state
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

    def known_as_removed(self) -> set[Sha]:
        """Also commits that the queue had not observed when they were removed: the response to its own push can come
        after that."""
        moves = [each.update_of(self.target_ref) for each in self.transactions if not each.by_service]
        return set[Sha]().union(
            *(self._with_heads(super(SimEvidence, self).removed_by(move), move) for move in moves if move)
        )

    def conflicts(self, submission: SubmissionJson, tip: Sha) -> bool:
        """As git merges it onto this tip, with and without the heads in its history that landed as other commits and
        are still contained: while git merges it in one of these ways, it is mergeable."""
        head = Sha(submission["prSha"])
        return not any(self._merged_tree(base, head) for base in self._whole_bases(tip, submission))

    def is_rebased_differently(self, submission: SubmissionJson, tip: Sha) -> bool:
        """Git merges it onto this tip, and its commits one by one conflict or bring something else."""
        head = Sha(submission["prSha"])
        whole = [tree for base in self._whole_bases(tip, submission) if (tree := self._merged_tree(base, head))]
        return bool(whole) and self._rebased_tree(submission, tip) != whole[-1]

    def _rebased_tree(self, submission: SubmissionJson, tip: Sha) -> Sha | None:
        without, onto = [tip, *self.find_contained_ahead(tip, submission)], tip
        for commit in self._objects.beyond(Sha(submission["prSha"]), without):
            if len(self._objects.commits[commit].parents) == 1:
                picked = self._objects.pick(onto, commit)
                if isinstance(picked, Conflict):
                    return None
                onto = self._objects.commit(picked, (onto,), "picked")
        return self.tree(onto)

    def is_about_a_late_merge(self, broken: str) -> bool:
        late = [landing for landing in self.landings if landing.new in self._late]
        names = [self.name(submission["id"]) for landing in late for submission in self.submissions_in(landing)]
        return any(name in broken for name in (*map(str, late), *names))

    def removed_landings(self, *, without_a_branch: bool) -> list[Sha]:
        """Commits that the service landed and a foreign push removed again."""
        moves = [(each, move) for each in self.transactions if (move := each.update_of(self.target_ref))]
        landed = [
            move.new for each, move in moves if each.by_service and not (without_a_branch and len(each.updates) > 1)
        ]
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

    def origin_of(self, commit: Sha | None) -> tuple[int, str]:
        named = dict[str, str](TRAILER.findall(self._objects.commits[commit].message)) if commit else {}
        return int(named.get("Pull-Request", 0)), named.get("Head", "")

    def head_branch_ref(self, number: int) -> str:
        pull_request = self._host_state.pull_requests.get(PullRequestNumber(number))
        return "" if pull_request is None else self._host_state.head_branch_ref(pull_request)

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
        *s15_nothing_merges_whose_approval_was_withdrawn(world, evidence),
        *the_host_shows_what_merged(world),
        *l1_every_submission_ends_or_waits_for_an_allowed_reason(world),
        *l2_only_culprits_fail(world, evidence),
        *l3_every_change_is_observed(world),
    ]


def _is_known_limit(broken: str, evidence: SimEvidence) -> bool:
    """A landing that is removed from the target branch after its response was lost, and before the service reads the
    branch again, cannot be known. If its test branch is gone, the outcome is reported as unknown; with `provider_merge`
    there is no trace, and the Git host performs a merge however late the request arrives.

    While the Git host shows a moved head, a person can merge it there: this merges the tested commit, and the service
    takes it for its own merge."""
    if broken.startswith("s5") and any(name in broken for name in evidence.merged_by_hand_as_tested()):
        return True
    if broken.startswith(("s1", "s5")) and evidence.is_about_a_late_merge(broken):
        return True
    if broken.startswith("s1"):
        return any(new[:8] in broken for new in evidence.removed_landings(without_a_branch=True))
    if broken.startswith("s5") and "landing_unknown" in broken:
        return bool(evidence.removed_landings(without_a_branch=False))
    return broken.startswith(("s3", "s4", "s5")) and bool(evidence.removed_landings(without_a_branch=True))


MAX_READ_AGE_MS = 10 * SECOND
MAX_SLEWED_AGE_MS = 11_200
"""As a replica's clock measures ten seconds while it corrects itself after a jump."""


def s15_nothing_merges_whose_approval_was_withdrawn(world: World, evidence: SimEvidence) -> Iterator[str]:
    """The Git host does not refuse, so each merge needs a read that showed the approval, at most ten seconds before the
    service began it. Only a withdrawal after that read comes too late."""
    max_age = MAX_READ_AGE_MS if evidence.clocks_agree else MAX_SLEWED_AGE_MS
    for landing in evidence.landings if world.script.requires_approval else ():
        sent_at = world.origin.sent_at[landing.new]
        for submission in evidence.submissions_in(landing):
            number = PullRequestNumber(submission["prNumber"])
            last = max((at for at in world.host_state.approved_reads[number] if at <= sent_at), default=None)
            if not submission["forceEnqueued"] and (last is None or sent_at - last > max_age):
                known = "never seen as approved" if last is None else f"seen as approved {sent_at - last} ms before"
                state = "approved" if world.was_approved(number, sent_at) else "not approved"
                yield f"S15: {landing} merged {evidence.name(submission['id'])}, {state} at that time and {known}"


SLOW_FAMILIES = frozenset(
    {Family.SLOWNESS, Family.STALE_READS, Family.CLOCKS, Family.FREEZES, Family.REFUSALS, Family.FOREIGN_PUSHES}
)
"""With these, the service can give up waiting until the host shows a moved head, or the target branch is rewound."""
MAX_WAIT_MS = 60 * SECOND


def the_host_shows_what_merged(world: World) -> Iterator[str]:
    """Never as open if all that the pull request has is merged; as merged if its head branch could be moved in time."""
    for number in world.merged_but_open():
        yield f"shown as open: #{number} is merged"
    heads = world.script.heads
    if heads is None or not world.host_state.notices_heads or heads.shown_after_ms >= MAX_WAIT_MS:
        return
    for number, _, commit in world.merged_heads() if world.script.families.isdisjoint(SLOW_FAMILIES) else ():
        pull_request = world.host_state.pull_requests[number]
        is_moved = world.origin.refs.get(world.host_state.head_branch_ref(pull_request)) == commit
        if is_moved and number not in world.people.disturbed and pull_request.merged_into is None:
            yield f"not shown as merged: the head branch of #{number} was moved to {commit}"


def l1_every_submission_ends_or_waits_for_an_allowed_reason(world: World) -> Iterator[str]:
    queue = world.queue
    assert queue, "no replica has loaded the queue"
    for submission in queue.submissions.values():
        waiting = wait_reason(queue, submission, world.loop.now)
        is_unapproved = bool(world.host_state.pull_requests[submission.number].unmet_requirements)
        if waiting.reason is Reason.WAITING_FOR_REVIEW and is_unapproved:
            continue
        if waiting.reason not in ALLOWED_WAIT_REASONS:
            yield f"L1: #{submission.number} is {submission.state} and waits for {waiting.reason} without faults"


def l3_every_change_is_observed(world: World) -> Iterator[str]:
    for submission in world.outdated_submissions():
        yield f"L3: #{submission.number} is still {submission.state} though it was closed or pushed to"
    for submission in world.unseen_approvals():
        yield f"L3: #{submission.number} waits for an approval that it has"


def l2_only_culprits_fail(world: World, evidence: SimEvidence) -> Iterator[str]:
    for submission in evidence.submissions.values():
        if submission["state"] in {"failed", "cancelled"} and not _has_cause(world, evidence, submission):
            yield f"L2: {evidence.name(submission['id'])} left the queue without a cause"


def _has_cause(world: World, evidence: SimEvidence, submission: SubmissionJson) -> bool:
    """Whether something in the world is a cause for this."""
    reason, contents = submission["reason"]["code"], _contents_of(world, submission)
    match reason:
        case "cancelled_by_user" | "pr_closed" | "pr_base_changed":
            return True
        case "pr_pushed":
            return submission["prNumber"] in world.people.pushed | world.people.deleted_heads
        case "head_not_moved_back":
            return submission["prNumber"] in world.people.deleted_heads
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
        case "rebase_differs":
            tips = _tips_since_submission(evidence, submission)
            return any(evidence.is_rebased_differently(submission, tip) for tip in tips)
        case "merge_refused":
            number = PullRequestNumber(submission["prNumber"])
            is_changed = number in world.people.pushed | world.people.retargeted
            is_unseen = is_changed and Family.STALE_READS in world.script.families
            return is_unseen or (number, Sha(submission["prSha"])) in world.host_state.conflicted
        case "contains_removed_commit":
            removed = evidence.known_as_removed()
            return any(evidence.contains(Sha(submission["prSha"]), commit) for commit in removed)
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
