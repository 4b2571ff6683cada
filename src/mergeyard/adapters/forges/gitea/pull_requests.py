"""Reads pull requests and their checks from Gitea: mergeability, dependencies, branch protection, drafts, refs."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from mergeyard.adapters.forges.gitea import wire
from mergeyard.adapters.forges.host import ForgeHost, PolledPullRequest
from mergeyard.adapters.forges.http import ForgeClient, ForgeConfig, quote_segment, to_instant
from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import PullRequest, Status, StatusState
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import DraftPullRequest, OpenPullRequest, select_newest

UNKNOWN_RULE = wire.Rule()


async def read_branch(client: ForgeClient, name: str) -> wire.Branch | None:
    return await client.get(f"/branches/{quote_segment(name)}", wire.Branch, urgent=True)


def select_required_contexts(branch: wire.Branch | None) -> tuple[str, ...]:
    """Without our own status: the queue must not wait for itself. A pattern is returned as it is. No check has that
    name, so nothing merges until the rule names the checks."""
    if branch is None or not branch.enable_status_check:
        return ()
    return tuple(context for context in branch.status_check_contexts or () if context != ids.STATUS_CONTEXT)


async def has_missing_reviews(client: ForgeClient, payload: wire.PullRequestPayload) -> bool:
    branch = await read_branch(client, payload.base.label)
    if branch is None:
        return False
    rule = await _read_rule(client, branch)
    if not branch.required_approvals and rule == UNKNOWN_RULE:
        return False
    path = f"/pulls/{payload.number}/reviews"
    reviews = await client.get_all(path, list[wire.Review], {"limit": 50}, urgent=True)
    counting = [review for review in reviews if review.official and not review.dismissed]
    return _is_blocked(branch.required_approvals, rule, counting)


async def _read_rule(client: ForgeClient, branch: wire.Branch) -> wire.Rule:
    if not branch.effective_branch_protection_name:
        return UNKNOWN_RULE
    path = f"/branch_protections/{quote_segment(branch.effective_branch_protection_name)}"
    return await client.get(path, wire.Rule, urgent=True) or UNKNOWN_RULE


def _is_blocked(required_approvals: int, rule: wire.Rule, reviews: Sequence[wire.Review]) -> bool:
    states = [review.state for review in reviews if not (rule.ignore_stale_approvals and review.stale)]
    if states.count("APPROVED") < required_approvals:
        return True
    all_states = {review.state for review in reviews}
    is_rejected = rule.block_on_rejected_reviews and "REQUEST_CHANGES" in all_states
    is_review_requested = rule.block_on_official_review_requests and "REQUEST_REVIEW" in all_states
    return is_rejected or is_review_requested


def is_open(payload: wire.PullRequestPayload) -> bool:
    return payload.state == "open" and not payload.merged


def is_fork(payload: wire.PullRequestPayload) -> bool:
    """From another repository, or without a branch (AGit flow), which every account with read access can create."""
    return payload.head.repo_id != payload.base.repo_id or not payload.head.label


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


STATES = {
    "pending": StatusState.PENDING,
    "success": StatusState.SUCCESS,
    "skipped": StatusState.SKIPPED,
    "failure": StatusState.FAILURE,
    "warning": StatusState.FAILURE,
    "error": StatusState.ERROR,
}
"""A warning blocks a merge on Gitea like a failure."""
DRAFT_PREFIX = "WIP: "
"""Gitea marks a pull request as a draft by its title."""
ALREADY_OPEN_STATUS = 409
LATEST_QUERY = {"state": "all", "sort": "recentupdate", "limit": 50}
"""50 is the largest page that Gitea returns by default."""
NEWEST_QUERY = {"state": "open", "limit": 50}
"""Newest first, unless another order is requested."""
NEWEST_PAGES = 6
"""Versions before 1.23 ignore `base_branch`: pull requests into other branches take places on these pages."""


class PullRequests(ForgeHost):
    def __init__(self, config: ForgeConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self._mergeability_tracker = MergeabilityTracker(clock)

    async def read_pull_request(self, repo: Repo, number: PullRequestNumber) -> PullRequest | None:
        client = await self._client_for(repo)
        payload = await client.get(f"/pulls/{number}", wire.PullRequestPayload, urgent=True)
        if payload is None:
            return None
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
            mergeability=await self._derive_mergeability(client, repo, payload),
            merged_into=payload.base.label if payload.merged else None,
        )

    async def open_pull_requests(self, repo: Repo, branch: str) -> Sequence[OpenPullRequest]:
        client, query = await self._client_for(repo), {**NEWEST_QUERY, "base_branch": branch}
        newest = await client.get_all("/pulls", list[wire.PullRequestPayload], query, first_pages=NEWEST_PAGES)
        return select_newest(
            OpenPullRequest(
                number=payload.number,
                title=payload.title,
                author=payload.user.login if payload.user else "",
                head=Sha(payload.head.sha),
                head_branch=payload.head.label,
                draft=payload.draft,
            )
            for payload in newest
            if payload.base.label == branch and not payload.head.label.startswith(ids.TEST_BRANCH_PREFIX)
        )

    async def _derive_mergeability(
        self, client: ForgeClient, repo: Repo, payload: wire.PullRequestPayload
    ) -> Mergeability:
        """Gitea's `mergeable` ignores missing reviews, so they are checked here."""
        mergeability = self._mergeability_tracker.assess(repo, payload)
        is_decided = mergeability not in (Mergeability.MERGEABLE, Mergeability.UNKNOWN) or not is_open(payload)
        if is_decided or not await has_missing_reviews(client, payload):
            return mergeability
        return Mergeability.NOT_MERGEABLE

    async def open_draft(self, repo: Repo, draft: DraftPullRequest) -> None:
        """Idempotent: Gitea answers 409 if the test branch has an open pull request."""
        title = DRAFT_PREFIX + draft.title
        body = {"head": draft.branch, "base": draft.base_branch, "title": title, "body": draft.text}
        reply = await (await self._client_for(repo)).send("POST", "/pulls", body)
        reply.raise_for_status(allowed=(ALREADY_OPEN_STATUS,))

    async def close_draft(self, repo: Repo, branch: str) -> None:
        """Usually finds none: Gitea closes a pull request when its branch is deleted."""
        client = await self._client_for(repo)
        for payload in await client.get_all("/pulls", list[wire.PullRequestPayload], {"state": "open", "limit": 50}):
            if payload.head.label == branch and payload.head.repo_id == payload.base.repo_id:
                (await client.send("PATCH", f"/pulls/{payload.number}", {"state": "closed"})).raise_for_status()

    async def _read_branch_tip(self, client: ForgeClient, branch: str) -> str | None:
        found = await read_branch(client, branch)
        return found and found.commit.id

    async def _list_latest(self, client: ForgeClient, repo: Repo) -> Iterable[PolledPullRequest]:
        latest = await client.get("/pulls", list[wire.PullRequestPayload], LATEST_QUERY) or []
        return [
            PolledPullRequest(payload.number, payload.head.sha, self._select_metadata(repo, payload))
            for payload in latest
            if not payload.head.label.startswith(ids.TEST_BRANCH_PREFIX)
        ]

    def _select_metadata(self, repo: Repo, payload: wire.PullRequestPayload) -> tuple[object, ...]:
        labels = sorted(label.name for label in payload.labels or ())
        shown = (payload.state, payload.merged, payload.draft, payload.base.label, payload.title, labels)
        mergeability = self._mergeability_tracker.assess_if_tracked(repo, payload)
        return (*shown, payload.comments, payload.updated_at, mergeability)

    # Checks. Jobs of Gitea Actions are statuses as well.

    async def required_statuses(self, repo: Repo, branch: str) -> tuple[str, ...]:
        return select_required_contexts(await read_branch(await self._client_for(repo), branch))

    async def statuses(self, repo: Repo, sha: Sha, branch: str) -> Sequence[Status]:  # noqa: ARG002
        return await read_statuses(await self._client_for(repo), sha, self._config.web_url)

    async def set_status(self, repo: Repo, sha: Sha, status: Status) -> None:
        body = {
            "context": status.context,
            "state": status.state.value,
            "target_url": status.url,
            "description": status.description,
        }
        client = await self._client_for(repo)
        (await client.send("POST", f"/statuses/{quote_segment(sha)}", body)).raise_for_status()


async def read_statuses(client: ForgeClient, sha: Sha, web_url: str) -> list[Status]:
    reported = await client.get_all(f"/commits/{quote_segment(sha)}/statuses", list[wire.CommitStatus], {"limit": 50})
    latest = {status.context: status for status in sorted(reported, key=lambda status: status.id)}
    return [_to_status(status, web_url) for status in latest.values() if status.context != ids.STATUS_CONTEXT]


def _to_status(status: wire.CommitStatus, web_url: str) -> Status:
    """Some versions return links to their own pages without the host."""
    url = web_url + status.target_url if status.target_url.startswith("/") else status.target_url
    return Status(
        context=status.context,
        state=STATES.get(status.status, StatusState.PENDING),
        at=to_instant(status.created_at),
        url=url,
        description=status.description,
    )
