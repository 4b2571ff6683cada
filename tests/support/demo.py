"""API responses as the demo reads them, built with defaults."""

from msgspec import convert

from mergeyard.cli.demo.sample_repository import SAMPLE_PULL_REQUESTS, ExpectedOutcome
from mergeyard.cli.demo.verification import Progress
from mergeyard.client import SubmittedPullRequest
from tests.support.api_examples import SUBMITTED


def a_submission(number: int, state: str, reason: str = "ready", **more: object) -> SubmittedPullRequest:
    why = {"code": reason, "message": f"{reason}.", "waitingFor": ()}
    return convert(SUBMITTED | {"prNumber": number, "state": state, "reason": why} | more, type=SubmittedPullRequest)


def a_progress(*submissions: SubmittedPullRequest, bisections: frozenset[str] = frozenset()) -> Progress:
    return Progress({submission.pr_number: submission for submission in submissions}, bisections)


def a_finished_progress(**others: ExpectedOutcome) -> Progress:
    """All sample pull requests in their expected end states, except those whose branch is given."""
    outcomes = (
        (number, others.get(sample.branch, sample.expected))
        for number, sample in enumerate(SAMPLE_PULL_REQUESTS, start=1)
    )
    return a_progress(*(a_submission(number, outcome.state, outcome.reason) for number, outcome in outcomes))
