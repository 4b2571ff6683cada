"""What came of comparing landings with the target, as the server tells of it."""

from datetime import datetime

from mergeyard.client.answer import Answer


class VerifiedLanding(Answer, frozen=True, kw_only=True):
    pr_number: int
    merged_sha: str | None
    verified_by_test_run: str | None
    landed_at: datetime
    form: str
    verdict: str


class LandingMismatch(Answer, frozen=True, kw_only=True):
    doubt: str
    pr_number: int
    sha: str | None
    message: str


class VerifiedLandings(Answer, frozen=True, kw_only=True):
    target_sha: str | None
    landings: tuple[VerifiedLanding, ...]
    mismatches: tuple[LandingMismatch, ...]
    notes: tuple[str, ...]
