"""Judges how pull requests ended: a conflict must be one for plain git too, and nobody is left without a reason."""

from collections.abc import Callable, Iterator

from mergeyard.domain.ids import Sha
from tests.campaign.evidence import DetailedEvidence
from tests.campaign.oracle import Oracle, Speechless
from tests.support.evidence import Stay

Question = Callable[[Sha], bool]


class Verdicts:
    def __init__(self, evidence: DetailedEvidence, oracle: Oracle, method: str, *, tampered: bool) -> None:
        self._evidence = evidence
        self._oracle = oracle
        self._method = method
        self._tampered = tampered
        """Somebody else had his hands in a landing."""

    def faults(self) -> Iterator[str]:
        for stay in self._evidence.stays.values():
            try:
                rightly = self._rightly(stay)
            except Speechless:
                continue
            if not rightly:
                yield f"{self._evidence.name(stay['id'])} ended so without a cause: {stay['reason']['message']}"

    def _rightly(self, stay: Stay) -> bool:
        head = Sha(stay["prSha"])
        match stay["state"], stay["reason"]["code"]:
            case "merged", "merged_by_queue" | "merged_directly":
                return True  # the promises say the rest
            case "merged", "merged_manually":
                return self._ever(lambda target: self._evidence.holds(target, head))
            case "failed", "merge_conflict":
                return self._ever(lambda target: self._conflicts(target, head))
            case "failed", "nothing_to_merge":
                return self._ever(lambda target: self._oracle.merged(target, head) == self._oracle.tree(target))
            case "failed", "contains_removed_commit":
                return not self._evidence.removed_by_others().isdisjoint(self._evidence.commits_of(head))
            case "failed", "test_run_failed":
                return self._evidence.is_red(head)
            case "cancelled", "pr_pushed" | "cancelled_by_user":
                return True
            case "cancelled", "landing_unknown":
                return self._tampered
            case "not_ready", "not_mergeable" | "no_longer_mergeable":
                return self._conflicts(self._evidence.tip, head)
            case "pending", "waiting_for_prs_ahead":
                return self._waits_for_one_that_cannot_come(stay)
            case _:
                return False

    def _waits_for_one_that_cannot_come(self, stay: Stay) -> bool:
        """It holds the commits of one that its people have to repair first."""
        ahead = [other for other in self._evidence.stays.values() if other["prNumber"] in stay["reason"]["waitingFor"]]
        return any(other["state"] == "not_ready" for other in ahead)

    def _ever(self, question: Question) -> bool:
        """The last targets are asked first: there the answer is most often."""
        return any(question(target) for target in reversed(self._evidence.targets()))

    def _conflicts(self, target: Sha, head: Sha) -> bool:
        """As it is, or without those beneath it that landed in another form."""
        beneath = self._evidence.heads_beneath(head, target)
        return any(self._fails_to_merge(target, heads, head) for heads in ([], beneath))

    def _fails_to_merge(self, target: Sha, beneath: list[Sha], head: Sha) -> bool:
        if self._oracle.merged_upon(target, beneath, head) is None:
            return True
        return self._method == "rebase" and self._oracle.rebased(target, head, beneath) is None
