"""Compares what landed, commit by commit, with what plain git makes of the same pull requests."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator

from mergeyard.domain.ids import Sha
from tests.campaign.evidence import ChainPart, DetailedEvidence
from tests.campaign.oracle import NotComparable, Oracle, Pick
from tests.support.evidence import Landing, SubmissionJson

OURS = re.compile(r"^Mergeyard-[A-Za-z-]+:.*$", re.MULTILINE)
QUOTED = re.compile(r"[\s\[\]()*-]+")
"""What can differ in a message: white space, and the marks that make a CI skip a commit."""

PieceMessages = tuple[int, list[tuple[str, str]]]
"""The number of a pull request, and the author and message of each of its commits."""


class LandingChecker:
    def __init__(self, evidence: DetailedEvidence, oracle: Oracle, method: str) -> None:
        self.not_comparable = 0
        """How many landings plain git could not reproduce."""
        self._evidence = evidence
        self._oracle = oracle
        self._method = method
        self._forms = defaultdict[Sha, set[Sha]](set)
        """The commits that each head became, in every chain so far: after a rewind some of them can remain."""

    def faults(self) -> Iterator[str]:
        for landing in self._evidence.landings:
            if landing.run is None:
                continue
            try:
                yield from (f"{landing}: {fault}" for fault in self._landing(landing))
            except NotComparable:
                self.not_comparable += 1

    def _landing(self, landing: Landing) -> Iterator[str]:
        landed = self._evidence.landed_parts(landing)
        numbers, tested = {piece.number for piece in landed}, list[PieceMessages]()
        for piece in self._evidence.tested_parts(landing):
            if piece.number in numbers:
                yield from (f"#{piece.number}: {fault}" for fault in self._piece(piece))
                tested.append(self._messages(piece))
            self._forms[piece.head].update(piece.commits)
        for piece in landed:
            self._forms[piece.head].update(piece.commits)
        if tested != [self._messages(piece) for piece in landed]:
            yield "its commits have other authors or messages than those that were tested"

    def _piece(self, piece: ChainPart) -> Iterator[str]:
        match self._method:
            case "rebase":
                yield from self._rebased(piece)
            case "squash":
                yield from self._squashed(piece)
            case _:
                yield from self._merged(piece, (piece.onto, piece.head))

    def _merged(self, piece: ChainPart, parents: tuple[Sha, ...]) -> Iterator[str]:
        if len(piece.commits) != 1:
            yield f"it became {len(piece.commits)} commits"
        if self._evidence.parents(piece.last) != parents:
            yield "it has unexpected parents"
        whole = self._whole(piece)
        if whole is None:
            yield "git finds a conflict in it"
        elif whole != self._oracle.tree(piece.last):
            yield "git merges it differently"

    def _squashed(self, piece: ChainPart) -> Iterator[str]:
        yield from self._merged(piece, (piece.onto,))
        made, own = self._commits(piece.onto, piece.last)[-1].identity, self._own_identities(piece)
        has_order = not self._oracle.has_merges(piece.onto, piece.head)
        expected = [with_a_name(f"{author_of(first)}\x1f{date_of(last)}") for first in own for last in own]
        if made not in ([with_a_name(f"{author_of(own[0])}\x1f{date_of(own[-1])}")] if has_order else expected):
            yield f"its author is {made!r}; the commits have {own}"

    def _own_identities(self, piece: ChainPart) -> list[str]:
        """Of its commits without merges, oldest first. The squashed commit has the author of the first and the date of
        the last: the metadata here names no address."""
        return self._oracle.identities(piece.onto, piece.head, self._landed_ahead(piece))

    def _rebased(self, piece: ChainPart) -> Iterator[str]:
        """A rebase leaves merges out. Where the others bring something else than the merge, it is refused."""
        expected = self._oracle.rebased_commits(piece.onto, piece.head, self._landed_ahead(piece))
        if expected is None:
            yield "git finds a conflict in rebasing it"
            return
        if self._oracle.tree(piece.last) != self._whole(piece):
            yield "git merges it differently"
        made = self._commits(piece.onto, piece.last)
        if any(len(self._evidence.parents(commit)) != 1 for commit in piece.commits):
            yield "a rebased commit has several parents"
        if not expected and len(made) == 1 and made[0].tree == self._oracle.tree(piece.onto):
            return
        if [pick.tree for pick in made] != [pick.tree for pick in expected]:
            yield "git rebases it differently"
        for ours, theirs in zip(made, expected, strict=False):
            if ours.identity != with_a_name(theirs.identity):
                yield f"the author {theirs.identity!r} became {ours.identity!r}"
            if normalize(ours.message) != (normalize(theirs.message) or "nomessage"):
                yield f"the message {theirs.message!r} became {ours.message!r}"

    def _whole(self, piece: ChainPart) -> Sha | None:
        """The tree with all its changes. For a pull request stacked on one that landed as other commits, only its own
        changes, unless these conflict."""
        ahead = self._landed_ahead(piece)
        own = self._oracle.merged_tree_with_heads(piece.onto, ahead, piece.head) if ahead else None
        return own or self._oracle.merged_tree(piece.onto, piece.head)

    def _landed_ahead(self, piece: ChainPart) -> list[Sha]:
        """Heads that it contains, and that the target branch contains only as other commits, and still contains: merged
        alone, each changes nothing. One that was reverted since does not count. Follows first parents, because other
        commits can have any trailers."""
        if self._method == "merge_commit":
            return []
        inside = self._evidence.commits_of(piece.head) - {piece.head}
        there = self._evidence.first_parent_history(piece.onto)
        landed = [head for head, forms in self._forms.items() if head in inside and not forms.isdisjoint(there)]
        return [head for head in landed if self._oracle.changes_nothing(piece.onto, head)]

    def _messages(self, piece: ChainPart) -> PieceMessages:
        """Of several runs with the same changes, the commits of any can land: only the trailers differ."""
        made = self._commits(piece.onto, piece.last)
        return piece.number, [(author_of(pick.identity), normalize(pick.message)) for pick in made]

    def _commits(self, old: Sha, new: Sha) -> list[Pick]:
        return self._oracle.list_commits(old, new)


def with_a_name(identity: str) -> str:
    """Many Git hosts refuse a commit without an author name."""
    return f"unknown{identity}" if identity.startswith("\x1f") else identity


def author_of(identity: str) -> str:
    return identity.rpartition("\x1f")[0]


def date_of(identity: str) -> str:
    return identity.rpartition("\x1f")[2]


def normalize(message: str) -> str:
    """The message without trailers and without the characters that can differ."""
    return QUOTED.sub("", OURS.sub("", message))


class HeadChecker:
    """Where the head branches of merged pull requests are at the end."""

    def __init__(
        self,
        evidence: DetailedEvidence,
        method: str,
        disturbed: Collection[int],
        shared: Collection[int],
        *,
        is_moved: bool,
    ) -> None:
        self.counted = Counter[str]()
        self._evidence = evidence
        self._is_moved = is_moved and method != "merge_commit"
        self._disturbed = disturbed
        """The pull requests whose authors changed their head branches."""
        self._shared = shared
        """The pull requests whose head branches belong to others too."""

    def faults(self) -> Iterator[str]:
        for submission in self._evidence.submissions.values():
            if submission["reason"]["code"] in ("merged_by_queue", "merged_directly"):
                place = "shared" if submission["prNumber"] in self._shared else self._place(submission)
                self.counted[place] += 1
                if place == "elsewhere" or (place == "not moved" and self._must_move(submission)):
                    name, ref = self._evidence.name(submission["id"]), self._ref(submission)
                    yield f"{name}: its head branch is {place}: {self._evidence.ref(ref)}"

    def _ref(self, submission: SubmissionJson) -> str:
        return self._evidence.head_branch_ref(submission["prNumber"])

    def _place(self, submission: SubmissionJson) -> str:
        ref = self._ref(submission)
        tip, is_author = self._evidence.ref(ref), self._evidence.is_last_written_by_others(ref)
        if tip is not None and tip in self._merged_commits(submission["prNumber"]):
            return "at the merged commit"
        if tip is None:
            return "deleted by its author" if is_author else "deleted by the queue"
        if tip == submission["prSha"]:
            return "not moved"
        return "pushed by its author" if is_author else "elsewhere"

    def _merged_commits(self, number: int) -> set[str | None]:
        """What the author pushed during a merge can be merged by a later submission."""
        submissions = self._evidence.submissions.values()
        return {each["mergedSha"] for each in submissions if each["prNumber"] == number}

    def _must_move(self, submission: SubmissionJson) -> bool:
        return self._is_moved and submission["prNumber"] not in self._disturbed


TipPredicate = Callable[[Sha], bool]


class OutcomeChecker:
    def __init__(
        self, evidence: DetailedEvidence, oracle: Oracle, method: str, *, tampered: bool, pushed: Collection[int]
    ) -> None:
        self._pushed = pushed
        """The pull requests whose authors pushed."""
        self._evidence = evidence
        self._oracle = oracle
        self._method = method
        self._tampered = tampered
        """A landing was interfered with."""
        self._tips = evidence.target_tips()

    def faults(self) -> Iterator[str]:
        for submission in self._evidence.submissions.values():
            try:
                justified = self._is_justified(submission)
            except NotComparable:
                continue
            if not justified:
                name, reason = self._evidence.name(submission["id"]), submission["reason"]["message"]
                yield f"{name} ended without a cause: {reason}"

    def _is_justified(self, submission: SubmissionJson) -> bool:
        head = Sha(submission["prSha"])
        match submission["state"], submission["reason"]["code"]:
            case "merged", "merged_by_queue" | "merged_directly":
                return True  # `broken_promises` checks the rest
            case "merged", "merged_manually" | "merged_with_another":
                return self._ever(lambda target: self._evidence.contains(target, head))
            case "failed", "merge_conflict":
                return self._ever(lambda target: self._conflicts(target, head))
            case "failed", "rebase_differs":
                return self._ever(lambda target: self._is_rebased_differently(target, head))
            case "failed", "nothing_to_merge":
                return self._ever(lambda target: self._oracle.merged_tree(target, head) == self._oracle.tree(target))
            case "failed", "contains_removed_commit":
                return not self._evidence.removed_by_others().isdisjoint(self._evidence.commits_of(head))
            case "failed", "invalid_tree":
                return self._evidence.has_refused_names(head)
            case "failed", "test_run_failed":
                return self._evidence.fails_checks(head)
            case "cancelled", "pr_pushed":
                return submission["prNumber"] in self._pushed
            case "not_ready", "missing_impacted_targets":  # of the head that its author pushed
                return submission["prNumber"] in self._pushed
            case "cancelled", "cancelled_by_user":
                return True
            case "cancelled", "landing_unknown":
                return self._tampered
            case "not_ready", "not_mergeable" | "no_longer_mergeable":
                return self._conflicts(self._evidence.tip, head)
            case "pending", "base_broken":
                return self._evidence.fails_checks(self._evidence.tip)
            case "pending" | "testing", "queue_paused" | "waiting_for_checks":
                return self._is_a_landing_halved()
            case "pending", "waiting_for_prs_ahead":
                return self._waits_for_a_pr_that_is_not_ready(submission)
            case _:
                return False

    def _is_a_landing_halved(self) -> bool:
        """A push removed some commits of a landing and left others: the audit finds contents that were not tested, and
        pauses the queue."""
        landed = [set(self._evidence.landed_commits(landing)) for landing in self._evidence.landings]
        left = [[self._evidence.contains(tip, each) for each in commits] for commits in landed for tip in self._tips]
        return any(any(each) and not all(each) for each in left)

    def _waits_for_a_pr_that_is_not_ready(self, submission: SubmissionJson) -> bool:
        """It contains the commits of a pull request whose author must repair it first."""
        ahead = [
            other
            for other in self._evidence.submissions.values()
            if other["prNumber"] in submission["reason"]["waitingFor"]
        ]
        return any(other["state"] == "not_ready" for other in ahead)

    def _ever(self, question: TipPredicate) -> bool:
        """Newest tips first: they are the most likely ones."""
        return any(question(target) for target in reversed(self._tips))

    def _conflicts(self, target: Sha, head: Sha) -> bool:
        """With and without the heads in its history that landed as other commits: while git merges it in one of these
        ways, it is mergeable."""
        return not any(self._whole_trees(target, head))

    def _is_rebased_differently(self, target: Sha, head: Sha) -> bool:
        picks = self._oracle.rebased_commits(target, head, self._contained_ahead(target, head))
        whole = [tree for tree in self._whole_trees(target, head) if tree is not None]
        if picks is None or not whole:
            return picks is None and bool(whole)
        return (picks[-1].tree if picks else self._oracle.tree(target)) not in whole[-1:]

    def _whole_trees(self, target: Sha, head: Sha) -> list[Sha | None]:
        """Of the plain merge and, where others landed that it contains, of the merge of what came after them."""
        ahead = self._contained_ahead(target, head)
        plain = self._oracle.merged_tree(target, head)
        return [plain, self._oracle.merged_tree_with_heads(target, ahead, head)] if ahead else [plain]

    def _contained_ahead(self, target: Sha, head: Sha) -> list[Sha]:
        """Heads in its history that landed as other commits, and whose changes are still there."""
        if self._method == "merge_commit":
            return []
        ahead = self._evidence.landed_heads_ahead(head, target)
        return [other for other in ahead if self._oracle.changes_nothing(target, other)]
