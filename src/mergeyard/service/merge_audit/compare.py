"""Compares recorded merges with the target branch and reports mismatches. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.events import Mismatch, MismatchKind
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha, SubmissionId
from mergeyard.domain.states import Reason, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.service.merge_audit.records import BranchHistory, LandingForm, MergeClaim, RecordedMerge, read_claim


class Verdict(StrEnum):
    AS_TESTED = "as_tested"
    DIFFERS = "differs"
    REMOVED = "removed"
    """Removed from the target branch by a push, as the queue observed."""
    NOT_COMPARABLE = "not_comparable"
    """This replica no longer has the tested commits."""


class AuditedMerge(Struct, frozen=True, kw_only=True):
    """One audited merge."""

    number: PullRequestNumber
    commit: Sha | None
    run: RunId | None
    landed_at: Instant
    form: LandingForm
    verdict: Verdict


class AuditReport(Struct, frozen=True, kw_only=True):
    tip: Sha | None = None
    """The tip of the target branch; None if it does not exist or there is nothing to compare."""
    landings: tuple[AuditedMerge, ...] = ()
    """Oldest first."""
    mismatches: tuple[Mismatch, ...] = ()
    notes: tuple[str, ...] = ()
    """Observations that are not mismatches."""

    def keep_confirmed_by(self, earlier: "AuditReport") -> "AuditReport":
        """Keeps only mismatches that both reports have: the branch may have been pushed to during one of the reads."""
        earlier_names = {mismatch.key for mismatch in earlier.mismatches}
        return replace(
            self, mismatches=tuple(mismatch for mismatch in self.mismatches if mismatch.key in earlier_names)
        )

    def verdict_of(self, landing: AuditedMerge) -> Verdict:
        mismatched = {(mismatch.number, mismatch.commit) for mismatch in self.mismatches}
        return Verdict.DIFFERS if (landing.number, landing.commit) in mismatched else landing.verdict


MISMATCH_MESSAGES: dict[MismatchKind, str] = {
    MismatchKind.MISSING: "{merge} was merged, but is missing from the target branch, and no observed push removed "
    "it. Find out which push did, and restore the commit unless that was intended.",
    MismatchKind.NOWHERE: "{merge} is recorded as merged, but without a commit. Look for it on the target branch.",
    MismatchKind.OTHER_TREE: "{merge} has other contents than the tested commit {tested}. Compare the two.",
    MismatchKind.OTHER_PARENT: "{merge} was tested on {parent}, but merged on another commit. Test the target branch.",
    MismatchKind.OTHER_HEAD: "{merge} was merged with head {head}, but tested with another one. Compare the two.",
    MismatchKind.UNTESTED: "{merge} was merged without a test run that passed. Test the target branch.",
    MismatchKind.NOT_PASSED: "{merge} was merged, but {checks} had not passed on {tip}. Run the check there.",
    MismatchKind.INCOMPLETE: "{merge} did not bring the whole change of its head {head}: git's merge of that head "
    "gives other files. Compare the two, and restore what is missing.",
    MismatchKind.LANDED_TWICE: "{merge} is on the target branch twice, also as {copy}. Remove one, unless intended.",
    MismatchKind.ALTERED: "{merge} was replaced by {copy}, which has other contents than were tested. Compare the two.",
    MismatchKind.UNRECORDED: "{copy} has the trailers of a merge of {merge}, but no merge is recorded. Find out "
    "which push added it.",
    MismatchKind.OUT_OF_ORDER: "{merge} is on the target branch before a merge that is older. Find out which push "
    "rewrote the branch.",
}


def build_mismatch(kind: MismatchKind, landing: RecordedMerge, *, missing_checks: tuple[str, ...] = ()) -> Mismatch:
    """A mismatch of a recorded merge."""
    number, commit, tested = landing.submission.number, landing.commit, landing.tested_step
    message = MISMATCH_MESSAGES[kind].format(
        merge=_describe(number, commit),
        tested=abbreviate_sha(None if tested is None else tested.commit),
        parent=abbreviate_sha(landing.tested_on),
        head=abbreviate_sha(landing.submission.pull_request.head),
        checks=" and ".join(missing_checks) or "a required check",
        tip=abbreviate_sha(landing.run.tip if landing.run is not None and landing.run.chain else None),
    )
    return Mismatch(kind=kind, commit=commit, number=number, message=message)


def build_copy_mismatch(
    kind: MismatchKind, number: PullRequestNumber, copy: Sha, original: Sha | None = None
) -> Mismatch:
    """A mismatch of a commit that is not a recorded merge."""
    message = MISMATCH_MESSAGES[kind].format(merge=_describe(number, original), copy=abbreviate_sha(copy))
    return Mismatch(kind=kind, commit=copy, number=number, message=message)


def abbreviate_sha(commit: Sha | None) -> str:
    return "nothing" if commit is None else commit[:12]


def _describe(number: PullRequestNumber, commit: Sha | None) -> str:
    return f"#{number}" if commit is None else f"#{number} ({abbreviate_sha(commit)})"


def _find_mismatches(
    landing: RecordedMerge, history: BranchHistory, own_commits: Collection[Sha], context: "AuditContext"
) -> Iterator[Mismatch]:
    """`own_commits`: the commits of all recorded merges."""
    yield from _check_tested(landing)
    if landing.submission.id in context.incomplete_merges:
        yield build_mismatch(MismatchKind.INCOMPLETE, landing)
    if landing.submission.reason is Reason.TREE_MISMATCH or not history.contains(landing.commit):
        return
    if landing.form is LandingForm.REBASED:
        yield from _check_rebased(landing, history, own_commits)
        return
    tested, parent = landing.tested_step, history.find_parent(landing)
    if landing.commit is not None and tested is not None and tested.tree != history[landing.commit].tree:
        yield build_mismatch(MismatchKind.OTHER_TREE, landing)
    is_own_push = landing.form is LandingForm.AS_TESTED
    if is_own_push and parent is not None and tested is not None and parent != tested.parent:
        yield build_mismatch(MismatchKind.OTHER_PARENT, landing)


def _check_tested(landing: RecordedMerge) -> Iterator[Mismatch]:
    run = landing.run
    if run is None or run.status is not RunStatus.SUCCEEDED or landing.tested_step is None:
        yield build_mismatch(MismatchKind.UNTESTED, landing)
        return
    if landing.missing_checks or not run.required_statuses:
        yield build_mismatch(MismatchKind.NOT_PASSED, landing, missing_checks=landing.missing_checks)
    if landing.tested_head != landing.submission.pull_request.head:
        yield build_mismatch(MismatchKind.OTHER_HEAD, landing)


def _check_rebased(landing: RecordedMerge, history: BranchHistory, own_commits: Collection[Sha]) -> Iterator[Mismatch]:
    """The target branch may have moved since the test, but only by merges of this queue."""
    if not history.rebased_as_tested.get(landing.submission.id, True):
        yield build_mismatch(MismatchKind.OTHER_TREE, landing)
    parent = history.find_parent(landing)
    between = () if parent is None or landing.run is None else history.list_between(landing.run.base, parent)
    if any(commit.sha not in own_commits for commit in between):
        yield build_mismatch(MismatchKind.OTHER_PARENT, landing)


MAX_MISMATCHES = 200
"""The maximum in one report."""


class AuditContext(Struct, frozen=True, kw_only=True):
    """What the queue knows about its target branch."""

    removed_commits: frozenset[Sha] = frozenset()
    """Commits that were removed from the target branch, as the queue observed."""
    landing_pull_requests: frozenset[PullRequestNumber] = frozenset()
    """Pull requests of a landing in progress, whose result is not recorded yet."""
    known_commits: frozenset[Sha] = frozenset()
    """Recorded commits that are not among these merges: older ones, or those of another queue."""
    incomplete_merges: frozenset[SubmissionId] = frozenset()
    """Merges that did not bring the whole change of their pull request."""


def compare_merges(landings: Sequence[RecordedMerge], history: BranchHistory, context: AuditContext) -> AuditReport:
    if history.tip is None:
        return AuditReport(notes=("The target branch does not exist, so there is nothing to compare.",))
    own_commits = collect_merge_commits(landings, history, context.known_commits)
    claims = find_unrecorded_claims(history, own_commits)
    mismatches = [
        *(found for landing in landings for found in _find_mismatches(landing, history, own_commits, context)),
        *_find_missing(landings, history, context),
        *_find_out_of_order(landings, history),
        *_find_duplicates(landings, history),
        *_find_unrecorded(landings, history, claims, context),
    ]
    return AuditReport(
        tip=history.tip,
        landings=tuple(_build_audited(landing, history) for landing in landings),
        mismatches=tuple(mismatches[:MAX_MISMATCHES]),
        notes=tuple(_build_notes(landings, history, context)),
    )


def collect_merge_commits(
    landings: Iterable[RecordedMerge], history: BranchHistory, known: Iterable[Sha] = ()
) -> frozenset[Sha]:
    """All commits of these merges, and of other recorded merges."""
    found = tuple(landings)
    recorded = {sha for sha in (*known, *(landing.commit for landing in found)) if sha and history.contains(sha)}
    own = {commit.sha for sha in recorded for commit in history.list_merge_commits(sha)}
    for landing in found:
        own.update(commit.sha for commit in history.list_rebased_by_host(landing, recorded))
    return frozenset(own)


def find_unrecorded_claims(history: BranchHistory, own_commits: Collection[Sha]) -> dict[Sha, MergeClaim]:
    """Commits of ours that no record knows; of consecutive ones with the same claim, the last.

    Trailers alone are no claim: every author can write them, and they stay in a commit that a user cherry-picks or that
    the Git host rebases. Such a commit has another committer.
    """
    claims = [
        read_claim(commit) if commit.sha not in own_commits and history.has_own_committer(commit) else None
        for commit in history.first_parent_commits
    ]
    next_claims = [*claims[1:], None]
    found = zip(history.first_parent_commits, claims, next_claims, strict=False)
    return {commit.sha: claim for commit, claim, next_claim in found if claim is not None and claim != next_claim}


def _find_missing(
    landings: Sequence[RecordedMerge], history: BranchHistory, context: AuditContext
) -> Iterator[Mismatch]:
    for landing in landings:
        if landing.commit is None:
            yield build_mismatch(MismatchKind.NOWHERE, landing)
        elif not history.contains(landing.commit) and landing.commit not in context.removed_commits:
            yield build_mismatch(MismatchKind.MISSING, landing)


def _find_out_of_order(landings: Sequence[RecordedMerge], history: BranchHistory) -> Iterator[Mismatch]:
    positions = history.positions
    on_branch = [
        (positions[commit], landing) for landing in landings if (commit := landing.commit) and commit in positions
    ]
    for (position_before, _), (position, landing) in pairwise(on_branch):
        if position < position_before:
            yield build_mismatch(MismatchKind.OUT_OF_ORDER, landing)


def _find_duplicates(landings: Sequence[RecordedMerge], history: BranchHistory) -> Iterator[Mismatch]:
    """The same head merged twice. A pull request that was reopened with new commits can be merged again."""
    first = dict[tuple[PullRequestNumber, Sha], Sha]()
    for landing in landings:
        pull_request, commit = landing.submission.pull_request, landing.commit
        if commit is not None and history.contains(commit):
            original = first.setdefault((pull_request.number, pull_request.head), commit)
            if original != commit:
                yield build_copy_mismatch(MismatchKind.LANDED_TWICE, pull_request.number, commit, original)


def _find_unrecorded(
    landings: Iterable[RecordedMerge],
    history: BranchHistory,
    claims: Mapping[Sha, MergeClaim],
    context: AuditContext,
) -> Iterator[Mismatch]:
    by_number = {landing.submission.number: landing for landing in landings if landing.commit is not None}
    for copy, claim in claims.items():
        landing = by_number.get(claim.number)
        if claim.number in context.landing_pull_requests:
            continue
        if landing is None:
            yield build_copy_mismatch(MismatchKind.UNRECORDED, claim.number, copy)
        elif history.contains(landing.commit):
            yield build_copy_mismatch(MismatchKind.LANDED_TWICE, claim.number, copy, landing.commit)
        elif not _has_tested_tree(landing, history, copy):
            yield build_copy_mismatch(MismatchKind.ALTERED, claim.number, copy, landing.commit)


def _has_tested_tree(landing: RecordedMerge, history: BranchHistory, copy: Sha) -> bool:
    """Whether only the history was rewritten and the contents are the same, for example to sign commits."""
    return landing.tested_step is not None and history[copy].tree == landing.tested_step.tree


def _build_notes(landings: Sequence[RecordedMerge], history: BranchHistory, context: AuditContext) -> Iterator[str]:
    for landing in landings:
        name = f"#{landing.submission.number} ({abbreviate_sha(landing.commit)})"
        if not history.contains(landing.commit) and landing.commit in context.removed_commits:
            yield f"{name} was removed from the target branch by a push."
        elif landing.submission.reason is Reason.TREE_MISMATCH:
            yield f"{name} differs from what was tested; this was found when it was merged."


def _build_audited(landing: RecordedMerge, history: BranchHistory) -> AuditedMerge:
    """With the verdict without mismatches; `AuditReport.verdict_of` adds those."""
    verdict = Verdict.AS_TESTED
    if not history.contains(landing.commit):
        verdict = Verdict.REMOVED
    elif landing.submission.reason is Reason.TREE_MISMATCH:
        verdict = Verdict.DIFFERS
    elif landing.form is LandingForm.REBASED and landing.submission.id not in history.rebased_as_tested:
        verdict = Verdict.NOT_COMPARABLE
    return AuditedMerge(
        number=landing.submission.number,
        commit=landing.commit,
        run=landing.submission.verified_by,
        landed_at=landing.submission.state_changed_at,
        form=landing.form,
        verdict=verdict,
    )
