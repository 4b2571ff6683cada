"""What people are told when what they ask of a pull request cannot be done."""

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.reasons import Refusal
from mergeyard.domain.repositories import QueueKey
from mergeyard.service.errors import Code, Refused

WORDS: dict[Refusal, tuple[Code, str]] = {
    Refusal.PR_NOT_SUBMITTED: (Code.PR_NOT_SUBMITTED, "was never submitted to the queue: submit it first."),
    Refusal.PR_ALREADY_MERGED: (Code.PR_ALREADY_MERGED, "is merged already: nothing is left to do."),
    Refusal.PR_CLOSED: (Code.PR_CLOSED, "is closed: open it again and submit it then."),
    Refusal.MERGE_IN_PROGRESS: (Code.MERGE_IN_PROGRESS, "is being merged right now: it is too late for that."),
    Refusal.TESTS_NOT_RUNNING: (Code.TESTS_NOT_RUNNING, "is not being tested: there is nothing to restart."),
}


def refused(refusal: Refusal, number: PrNumber) -> Refused:
    code, words = WORDS[refusal]
    return Refused(code, f"Pull request {number} {words}")


def not_found(key: QueueKey, number: PrNumber) -> Refused:
    return Refused(Code.PR_NOT_FOUND, f"{key.repo} has no pull request {number}: check the number.")
