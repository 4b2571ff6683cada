"""API responses as the demo reads them, built with defaults."""

from msgspec import convert

from mergeyard.cli.demo.progress import Progress, Submission
from mergeyard.cli.demo.sample_repository import SAMPLE_PULL_REQUESTS, ExpectedOutcome
from tests.support.api_examples import SUBMITTED


def a_submission(number: int, state: str, reason: str = "ready", **more: object) -> Submission:
    why = {"code": reason, "message": f"{reason}."}
    return convert(SUBMITTED | {"prNumber": number, "state": state, "reason": why} | more, type=Submission)


def a_progress(*submissions: Submission, bisections: frozenset[str] = frozenset()) -> Progress:
    return Progress({submission.pr_number: submission for submission in submissions}, bisections)


def a_finished_progress(**others: ExpectedOutcome) -> Progress:
    """All sample pull requests in their expected end states, except those whose branch is given."""
    outcomes = (
        (number, others.get(sample.branch, sample.expected))
        for number, sample in enumerate(SAMPLE_PULL_REQUESTS, start=1)
    )
    return a_progress(*(a_submission(number, outcome.state, outcome.reason) for number, outcome in outcomes))
