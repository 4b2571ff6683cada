"""The endpoint that verifies what landed: what it is asked, what it answers, and how."""

from typing import Annotated

from msgspec import Meta

from mergeyard.api.addressing import Addressing
from mergeyard.api.answers import Answer, At
from mergeyard.api.endpoint import Call
from mergeyard.api.presenting import encode
from mergeyard.api.requests import OfQueue
from mergeyard.api.times import written
from mergeyard.api.wire import says
from mergeyard.domain.mismatches import Doubt, Mismatch
from mergeyard.service.service import Service
from mergeyard.service.verifying.recorded import Form
from mergeyard.service.verifying.rounds import LAST
from mergeyard.service.verifying.verdicts import Report, Verdict, Verified


class VerifyLandings(OfQueue, frozen=True, kw_only=True):
    last: Annotated[int, Meta(ge=1, le=200, description="How many landings, the latest.")] = LAST


class VerifiedLanding(Answer, frozen=True, kw_only=True):
    pr_number: int
    merged_sha: Annotated[str | None, says("Its own commit on the target, as recorded.")]
    verified_by_test_run: Annotated[str | None, says("The run that verified its merge, if one did.")]
    landed_at: At
    form: Annotated[Form, says("By which way it landed.")]
    verdict: Annotated[Verdict, says("What came of comparing it with the target.")]


class LandingMismatch(Answer, frozen=True, kw_only=True):
    doubt: Annotated[Doubt, says("What is not as recorded, in one word.")]
    pr_number: int
    sha: Annotated[str | None, says("The commit that it is about.")]
    message: Annotated[str, says("The same for people, with what to do about it.")]


class VerifiedLandings(Answer, frozen=True, kw_only=True):
    target_sha: Annotated[str | None, says("Where the target was; null when there was nothing to compare.")]
    landings: Annotated[tuple[VerifiedLanding, ...], says("Oldest first.")]
    mismatches: Annotated[
        tuple[LandingMismatch, ...], says("None when all is as tested; the queue pauses for each once.")
    ]
    notes: Annotated[tuple[str, ...], says("What is worth knowing, and no reason to stop.")]


class LandingEndpoints:
    def __init__(self, service: Service) -> None:
        self._verifier = service.verifier
        self._addressing = Addressing(service.sites)

    async def verify(self, call: Call) -> bytes:
        asked: VerifyLandings = call.request
        return encode(_shown(await self._verifier.verify(self._addressing.queue(call), asked.last)))


def _shown(report: Report) -> VerifiedLandings:
    return VerifiedLandings(
        target_sha=report.tip,
        landings=tuple(_landing(landing, report) for landing in report.landings),
        mismatches=tuple(map(_mismatch, report.mismatches)),
        notes=report.notes,
    )


def _landing(landing: Verified, report: Report) -> VerifiedLanding:
    return VerifiedLanding(
        pr_number=landing.number,
        merged_sha=landing.commit,
        verified_by_test_run=landing.run,
        landed_at=written(landing.landed_at),
        form=landing.form,
        verdict=report.verdict(landing),
    )


def _mismatch(found: Mismatch) -> LandingMismatch:
    return LandingMismatch(doubt=found.doubt, pr_number=found.number, sha=found.commit, message=found.words)
