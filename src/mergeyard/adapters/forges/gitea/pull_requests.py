"""Reads pull requests from Gitea: mergeability, dependencies, branch protection, drafts for test branches, refs."""

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import sha1

from msgspec import Struct

from mergeyard.adapters.forges.gitea import wire
from mergeyard.adapters.forges.http import ForgeClient
from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import PullRequest
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import DraftPullRequest

UNKNOWN_RULE = wire.Rule()


async def read_branch(client: ForgeClient, repo: Repo, name: str) -> wire.Branch | None:
    return await client.get_urgent(wire.branch_api_path(repo, name), wire.Branch)


def select_required_contexts(branch: wire.Branch | None) -> tuple[str, ...]:
    """Without our own status: the queue must not wait for itself. A pattern is returned as it is. No check has that
    name, so nothing merges until the rule names the checks."""
    if branch is None or not branch.enable_status_check:
        return ()
    return tuple(context for context in branch.status_check_contexts or () if context != ids.STATUS_CONTEXT)


async def has_missing_reviews(client: ForgeClient, repo: Repo, payload: wire.PullRequestPayload) -> bool:
    branch = await read_branch(client, repo, payload.base.label)
    if branch is None:
        return False
    rule = await _read_rule(client, repo, branch)
    if not branch.required_approvals and rule == UNKNOWN_RULE:
        return False
    reviews = await client.get_all_urgent(
        f"{wire.pull_request_api_path(repo, payload.number)}/reviews", list[wire.Review], {"limit": 50}
    )
    counting = [review for review in reviews if review.official and not review.dismissed]
    return _is_blocked(branch.required_approvals, rule, counting)


async def _read_rule(client: ForgeClient, repo: Repo, branch: wire.Branch) -> wire.Rule:
    name = branch.effective_branch_protection_name
    if not name:
        return UNKNOWN_RULE
    return (
        await client.get_urgent(f"{wire.repo_api_path(repo)}/branch_protections/{wire.quote_segment(name)}", wire.Rule)
        or UNKNOWN_RULE
    )


def _is_blocked(required_approvals: int, rule: wire.Rule, reviews: Sequence[wire.Review]) -> bool:
    states = [review.state for review in reviews if not (rule.ignore_stale_approvals and review.stale)]
    if states.count("APPROVED") < required_approvals:
        return True
    all_states = {review.state for review in reviews}
    is_rejected = rule.block_on_rejected_reviews and "REQUEST_CHANGES" in all_states
    is_review_requested = rule.block_on_official_review_requests and "REQUEST_REVIEW" in all_states
    return is_rejected or is_review_requested


def to_pull_request(payload: wire.PullRequestPayload, mergeability: Mergeability) -> PullRequest:
    return PullRequest(
        number=payload.number,
        head=Sha(payload.head.sha),
        base_branch=payload.base.label,
        head_branch=payload.head.label,
        title=payload.title,
        author=payload.user.login if payload.user else "",
        is_open=is_open(payload),
        draft=payload.draft,
        fork=is_fork(payload),
        mergeability=mergeability,
        merged_into=payload.base.label if payload.merged else None,
    )


def is_open(payload: wire.PullRequestPayload) -> bool:
    return payload.state == "open" and not payload.merged


def is_fork(payload: wire.PullRequestPayload) -> bool:
    """From another repository, or without a branch (AGit flow), which every account with read access can create."""
    return payload.head.repo_id != payload.base.repo_id or not payload.head.label


DRAFT_PREFIX = "WIP: "
"""Gitea marks a pull request as a draft by its title."""
ALREADY_OPEN_STATUS = 409


async def open_draft(client: ForgeClient, repo: Repo, draft: DraftPullRequest) -> None:
    """Idempotent: Gitea answers 409 if the test branch has an open pull request."""
    body = {"head": draft.branch, "base": draft.base_branch, "title": DRAFT_PREFIX + draft.title, "body": draft.text}
    reply = await client.send("POST", f"{wire.repo_api_path(repo)}/pulls", body)
    reply.raise_for_status(allowed=(ALREADY_OPEN_STATUS,))


async def close_draft(client: ForgeClient, repo: Repo, branch: str) -> None:
    """Usually finds none: Gitea closes a pull request when its branch is deleted."""
    newest_first = await client.get_all(
        f"{wire.repo_api_path(repo)}/pulls", list[wire.PullRequestPayload], {"state": "open", "limit": 50}
    )
    for payload in newest_first:
        if payload.head.label == branch and payload.head.repo_id == payload.base.repo_id:
            reply = await client.send("PATCH", wire.pull_request_api_path(repo, payload.number), {"state": "closed"})
            reply.raise_for_status()


async def list_open_dependencies(client: ForgeClient, repo: Repo, number: PullRequestNumber) -> list[str]:
    """As references: `#12`, or `owner/name#12` for another repository."""
    found = await client.get_all_urgent(
        f"{wire.issue_api_path(repo, number)}/dependencies", list[wire.Dependency], {"limit": 50}
    )
    return [_format_reference(dependency, repo) for dependency in found if dependency.state == "open"]


def _format_reference(dependency: wire.Dependency, repo: Repo) -> str:
    full_name = "" if dependency.repository is None else dependency.repository.full_name
    is_same_repository = full_name.lower() == wire.to_full_name(repo).lower()
    return f"#{dependency.number}" if is_same_repository else f"{full_name}#{dependency.number}"


RECHECK_WINDOW_MS = 15 * SECOND


class ReportedUnmergeable(Struct, frozen=True):
    head: str
    base: str
    since: Instant


class MergeabilityTracker:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._reports: dict[tuple[Repo, PullRequestNumber], ReportedUnmergeable] = {}
        self._refused: dict[tuple[Repo, PullRequestNumber], str] = {}
        """The heads that Gitea refused to merge."""

    def record_refusal(self, repo: Repo, number: PullRequestNumber, head: str) -> None:
        self._refused[repo, number] = head

    def assess(self, repo: Repo, payload: wire.PullRequestPayload) -> Mergeability:
        if payload.mergeable or payload.state != "open":
            self._reports.pop((repo, payload.number), None)
            self._refused.pop((repo, payload.number), None)
            return Mergeability.MERGEABLE
        if payload.draft:
            return Mergeability.UNKNOWN
        if self._clock.now() < self._track(repo, payload).since + RECHECK_WINDOW_MS:
            return Mergeability.CHECKING
        is_refused = self._refused.get((repo, payload.number)) == payload.head.sha
        return Mergeability.NOT_MERGEABLE if is_refused else Mergeability.UNKNOWN

    def assess_if_tracked(self, repo: Repo, payload: wire.PullRequestPayload) -> Mergeability:
        """Assesses only pull requests that were reported as unmergeable before. Gitea rechecks all others whenever
        their base branch moves, and that must not look like a change."""
        return self.assess(repo, payload) if (repo, payload.number) in self._reports else Mergeability.MERGEABLE

    def _track(self, repo: Repo, payload: wire.PullRequestPayload) -> ReportedUnmergeable:
        known = self._reports.get((repo, payload.number))
        if known is not None and (known.head, known.base) == (payload.head.sha, payload.base.sha):
            return known
        report = ReportedUnmergeable(payload.head.sha, payload.base.sha, self._clock.now())
        self._reports[repo, payload.number] = report
        return report


HEAD_REF_PATTERN = "refs/pull/*/head"
PULL_REF_PATTERN = re.compile(r"refs/pull/([1-9][0-9]*)/(?:head|meta)")
LATEST_QUERY = {"state": "all", "sort": "recentupdate", "limit": 50}
"""50 is the largest page that Gitea returns by default."""


def head_ref(number: PullRequestNumber) -> str:
    return f"refs/pull/{number}/head"


def pull_request_number_of(ref: str) -> PullRequestNumber | None:
    match = PULL_REF_PATTERN.fullmatch(ref)
    return PullRequestNumber(int(match[1])) if match else None


async def read_refs(
    client: ForgeClient, tracker: MergeabilityTracker, repo: Repo, branches: Collection[str]
) -> dict[str, Sha]:
    tips, pull_requests = await asyncio.gather(
        _read_branch_tips(client, repo, branches), _read_latest_pull_requests(client, repo)
    )
    return tips | dict(_to_refs(tracker, repo, pull_requests))


async def _read_branch_tips(client: ForgeClient, repo: Repo, names: Collection[str]) -> dict[str, Sha]:
    found = await asyncio.gather(*(read_branch(client, repo, name) for name in names))
    return {f"refs/heads/{name}": branch.commit.id for name, branch in zip(names, found, strict=True) if branch}


async def _read_latest_pull_requests(client: ForgeClient, repo: Repo) -> list[wire.PullRequestPayload]:
    pull_requests = await client.get(f"{wire.repo_api_path(repo)}/pulls", list[wire.PullRequestPayload], LATEST_QUERY)
    if pull_requests is None:
        await wire.ensure_repository_visible(client, repo)
    return pull_requests or []


def _to_refs(
    tracker: MergeabilityTracker, repo: Repo, pull_requests: Iterable[wire.PullRequestPayload]
) -> Iterator[tuple[str, Sha]]:
    """The meta ref is not a git ref, but a digest that changes with the pull request's metadata."""
    for payload in pull_requests:
        if not payload.head.label.startswith(ids.TEST_BRANCH_PREFIX):
            yield head_ref(payload.number), Sha(payload.head.sha)
            yield (
                f"refs/pull/{payload.number}/meta",
                _metadata_digest(payload, tracker.assess_if_tracked(repo, payload)),
            )


def _metadata_digest(payload: wire.PullRequestPayload, mergeability: str) -> Sha:
    labels = sorted(label.name for label in payload.labels or ())
    metadata = (
        payload.state,
        payload.merged,
        payload.draft,
        payload.base.label,
        payload.title,
        labels,
        payload.comments,
        payload.updated_at,
        mergeability,
    )
    return Sha(sha1(repr(metadata).encode(), usedforsecurity=False).hexdigest())
