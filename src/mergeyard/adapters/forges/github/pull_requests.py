"""Reads pull requests and their mergeability from GitHub, manages draft pull requests, and lists refs."""

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.checks import is_blocked_only_by_own_status
from mergeyard.adapters.forges.host import ForgeHost, PolledPullRequest
from mergeyard.adapters.forges.http import ForgeClient, to_instant
from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import PullRequest
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.forge import DraftPullRequest, OpenPullRequest, select_newest

MERGEABLE_STATES = frozenset({"clean", "unstable", "has_hooks", "behind", "draft"})
"""`behind` and `unstable` count as mergeable: the queue updates the branch and runs the checks itself. `draft` is
reported in a field of its own."""


async def fetch_pull_request(client: ForgeClient, number: PullRequestNumber) -> wire.PullRequestPayload | None:
    """Can spend the rate-limit reserve, because every landing reads its pull requests first."""
    return await client.get(f"/pulls/{number}", wire.PullRequestPayload, urgent=True)


def derive_mergeability(payload: wire.PullRequestPayload) -> Mergeability:
    if payload.state != "open":
        return Mergeability.UNKNOWN
    if payload.mergeable is None or payload.mergeable_state == "unknown":
        return Mergeability.CHECKING
    is_mergeable = payload.mergeable and payload.mergeable_state in MERGEABLE_STATES
    return Mergeability.MERGEABLE if is_mergeable else Mergeability.NOT_MERGEABLE


def is_blocked(payload: wire.PullRequestPayload) -> bool:
    """Blocked by rules of the base branch, not by a conflict."""
    return payload.state == "open" and payload.mergeable is True and payload.mergeable_state == "blocked"


LATEST_QUERY = {"state": "all", "sort": "updated", "direction": "desc", "per_page": 100}
NEWEST_QUERY = {"state": "open", "sort": "created", "direction": "desc", "per_page": 100}
SETTLING_MS = 2 * SECOND
"""GitHub's timestamps have a resolution of one second: a second change in the same second does not alter them."""


class PullRequests(ForgeHost):
    async def read_pull_request(self, repo: Repo, number: PullRequestNumber) -> PullRequest | None:
        client = await self._client_for(repo)
        payload = await fetch_pull_request(client, number)
        if payload is None:
            return None
        mergeability = derive_mergeability(payload)
        if is_blocked(payload) and await is_blocked_only_by_own_status(client, payload, self._clock):
            mergeability = Mergeability.MERGEABLE
        return PullRequest(
            number=number,
            head=Sha(payload.head.sha),
            base_branch=payload.base.ref,
            head_branch=payload.head.ref,
            title=payload.title,
            author=payload.user.login if payload.user else "",
            is_open=payload.state == "open",
            draft=payload.draft,
            fork=payload.is_fork,
            mergeability=mergeability,
            merged_into=payload.base.ref if payload.merged_at else None,
        )

    async def open_pull_requests(self, repo: Repo, branch: str) -> Sequence[OpenPullRequest]:
        client = await self._client_for(repo)
        newest = await client.get("/pulls", list[wire.PullRequestPayload], {**NEWEST_QUERY, "base": branch}) or []
        return select_newest(
            OpenPullRequest(
                number=PullRequestNumber(payload.number),
                title=payload.title,
                author=payload.user.login if payload.user else "",
                head=Sha(payload.head.sha),
                head_branch=payload.head.ref,
                draft=payload.draft,
            )
            for payload in newest
            if payload.base.ref == branch and not _shows_test_branch(payload)
        )

    async def open_draft(self, repo: Repo, draft: DraftPullRequest) -> None:
        """Idempotent: does nothing if the test branch has an open pull request."""
        client = await self._client_for(repo)
        if not await _list_open_drafts(client, repo, draft.branch):
            branches = {"head": draft.branch, "base": draft.base_branch}
            body = branches | {"title": draft.title, "body": draft.text, "draft": True}
            (await client.send("POST", "/pulls", body)).raise_for_status()

    async def close_draft(self, repo: Repo, branch: str) -> None:
        client = await self._client_for(repo)
        for draft in await _list_open_drafts(client, repo, branch):
            (await client.send("PATCH", f"/pulls/{draft.number}", {"state": "closed"})).raise_for_status()

    async def _read_branch_tip(self, client: ForgeClient, branch: str) -> str | None:
        found = await client.get(f"/git/ref/heads/{quote(branch)}", wire.GitRef)
        return found and found.object.sha

    async def _list_latest(self, client: ForgeClient, repo: Repo) -> Iterable[PolledPullRequest]:  # noqa: ARG002
        latest = await client.get("/pulls", list[wire.PullRequestPayload], LATEST_QUERY) or []
        return [
            PolledPullRequest(payload.number, payload.head.sha, _select_metadata(payload, self._clock.now()))
            for payload in latest
            if not _shows_test_branch(payload)
        ]


def _shows_test_branch(payload: wire.PullRequestPayload) -> bool:
    return not payload.is_fork and payload.head.ref.startswith(ids.TEST_BRANCH_PREFIX)


async def _list_open_drafts(client: ForgeClient, repo: Repo, branch: str) -> list[wire.PullRequestPayload]:
    query = {"head": f"{repo.owner}:{branch}", "state": "open"}
    found = await client.get_all("/pulls", list[wire.PullRequestPayload], query)
    return [pull_request for pull_request in found if pull_request.head.ref == branch and not pull_request.is_fork]


def _select_metadata(payload: wire.PullRequestPayload, now: Instant) -> tuple[object, ...]:
    """Changes once more when the last change is older than `SETTLING_MS`, so that a change in the same second is not
    missed."""
    labels = sorted(label.name for label in payload.labels)
    is_settling = now - to_instant(payload.updated_at) < SETTLING_MS
    shown = (payload.state, payload.draft, payload.title, payload.base.ref, payload.merged_at, labels)
    return (*shown, payload.updated_at, is_settling)
