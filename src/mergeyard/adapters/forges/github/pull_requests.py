"""Reads pull requests from GitHub, manages draft pull requests, and lists refs."""

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.adapters.forges.github import rules, wire
from mergeyard.adapters.forges.github.requirements import Requirements
from mergeyard.adapters.forges.host import PolledPullRequest
from mergeyard.adapters.forges.http import ForgeClient, ForgeConfig, Reply, to_instant
from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import HeadBranchAccess, PullRequest
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import MINUTE, SECOND, Instant, later
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import (
    Comment,
    DraftPullRequest,
    HostError,
    HostRefused,
    HostUnavailable,
    OpenPullRequest,
    PullRequestText,
    select_newest,
)


async def fetch_pull_request(client: ForgeClient, number: PullRequestNumber) -> wire.PullRequestPayload | None:
    """Can spend the rate-limit reserve, because every landing reads its pull requests first."""
    return await client.get(f"/pulls/{number}", wire.PullRequestPayload)


def derive_mergeability(payload: wire.PullRequestPayload) -> Mergeability:
    """Only about conflicts: whether rules block a pull request, GitHub reports differently to each account."""
    if payload.state != "open":
        return Mergeability.UNKNOWN
    if payload.mergeable is None or payload.mergeable_state == "unknown":
        return Mergeability.CHECKING
    return Mergeability.MERGEABLE if payload.mergeable else Mergeability.NOT_MERGEABLE


LATEST_QUERY = {"state": "all", "sort": "updated", "direction": "desc"}
MAX_POLLED = 100
POLLED_PER_PAGE = 30
MAX_POLLED_PAGES = -(-MAX_POLLED // POLLED_PER_PAGE)
FULL_READ_INTERVAL_MS = 10 * MINUTE
"""GitHub can show a change late, after others."""
EDITS_QUERY = """
query ($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      comments(last: 100) {
        nodes {
          fullDatabaseId
          lastEditedAt
        }
      }
    }
  }
}
"""
"""The REST API has no time of the last edit. Its `updated_at` also changes when a comment is hidden, and can
be a second after `created_at` from the start."""
MAX_RETARGETED = 100
NEWEST_QUERY = {"state": "open", "sort": "created", "direction": "desc", "per_page": MAX_RETARGETED}
SETTLING_MS = 2 * SECOND
"""GitHub's timestamps have a resolution of one second: a second change in the same second does not alter them."""
RECHECK_MISSING_MS = 5 * SECOND
MAX_KNOWN = 10_000
NO_DRAFTS_MESSAGE = "draft pull requests are not supported"
"""Part of the response in private repositories on some plans."""
UNPROCESSABLE = 422
EXISTS_MESSAGE = "a pull request already exists"
UNKNOWN_HEAD_MESSAGE = "pullrequest head invalid"
"""GitHub does not know the branch: it does not exist, or it was pushed a moment ago."""
MAX_UNKNOWN_HEAD_MS = 2 * MINUTE


MAX_TITLE_CHARS = 300
MAX_BODY_BYTES = 64 * 1024
DELETED_ACCOUNT = "ghost"
HARMLESS_TYPES = frozenset({"creation", "deletion", "branch_name_pattern", "tag_name_pattern", "copilot_code_review"})
"""Rule types that never refuse to move a branch."""


class ClassicMarker(Struct, frozen=True):
    """Every classic protection has this member."""

    enforce_admins: rules.Switch | None = None


class PullRequests(Requirements):
    def __init__(self, config: ForgeConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self._known: dict[tuple[Repo, PullRequestNumber], Instant | None] = {}
        """The pull requests that GitHub showed, each with the time since when it does not. The last ones only."""
        self._polled: dict[Repo, tuple[Instant, Sequence[wire.PullRequestPayload]]] = {}
        """The pull requests of each repository that changed last, and when all of them are read again."""
        self._unknown_heads: dict[tuple[Repo, str], Instant] = {}
        """When GitHub first did not know a test branch. The last ones only."""

    async def read_pull_request(
        self, repo: Repo, number: PullRequestNumber, *, with_requirements: bool = True, with_head_branch: bool = True
    ) -> PullRequest | None:
        client = await self._client_for(repo)
        payload = await fetch_pull_request(client, number)
        self._raise_if_just_vanished((self.canonical_repo(repo), number), is_shown=payload is not None)
        if payload is None:
            return None
        # A plan without drafts shows test branches as ordinary pull requests. They must not be submitted either.
        is_draft, is_read = payload.draft or _shows_test_branch(payload), with_requirements and payload.state == "open"
        access = HeadBranchAccess.IN_FORK if payload.is_fork else HeadBranchAccess.MOVABLE
        if is_read and with_head_branch and not _shows_test_branch(payload):
            access = await self._read_head_branch_access(client, payload)
        return PullRequest(
            number=number,
            head=Sha(payload.head.sha),
            base_branch=payload.base.ref,
            head_branch=payload.head.ref,
            head_repo=payload.head.repo.full_name if payload.is_fork and payload.head.repo else "",
            head_branch_access=access,
            is_merged_by_head=True,
            title=payload.title,
            author=payload.user.login if payload.user else "",
            is_open=payload.state == "open",
            draft=is_draft,
            fork=payload.is_fork,
            mergeability=derive_mergeability(payload),
            requirements=await self._read_requirements(client, payload) if is_read and not is_draft else (),
            merged_into=payload.base.ref if payload.merged_at else None,
        )

    async def _read_head_branch_access(self, client: ForgeClient, payload: wire.PullRequestPayload) -> HeadBranchAccess:
        """A branch that GitHub refuses to show counts as one that we cannot push to."""
        try:
            return await self._judge_head_branch(client, payload)
        except HostRefused:
            return HeadBranchAccess.IN_FORK if payload.is_fork else HeadBranchAccess.PROTECTED

    async def _judge_head_branch(self, client: ForgeClient, payload: wire.PullRequestPayload) -> HeadBranchAccess:
        """Two requests, which cost nothing of the rate limit while the answers stay the same: GraphQL could give both
        at once, but has no such cache. No request about a fork that we cannot push to."""
        head = payload.head
        if head.repo is None or not self._is_valid_full_name(head.repo.full_name):
            return HeadBranchAccess.GONE
        if payload.is_fork and not (payload.maintainer_can_modify and self._can_push_to_forks):
            return HeadBranchAccess.IN_FORK
        if head.ref == head.repo.default_branch:
            return HeadBranchAccess.SHARED
        if payload.is_fork:
            branch = await _read_branch_of_fork(client, head.repo.full_name, head.ref)
        else:
            branch = await rules.read_branch(client, head.ref)
        if branch is None and payload.is_fork:
            return HeadBranchAccess.IN_FORK
        if branch is None or branch.commit.sha != head.sha:
            return HeadBranchAccess.GONE
        with_head = await _list_open_from(client, head.repo.full_name, head.ref)
        if any(other.number != payload.number for other in with_head):
            return HeadBranchAccess.SHARED
        is_movable = not branch.protected if payload.is_fork else await self._can_move(client, head.ref, branch)
        return HeadBranchAccess.MOVABLE if is_movable else HeadBranchAccess.PROTECTED

    async def _can_move(self, client: ForgeClient, name: str, branch: rules.Branch) -> bool:
        """Whether we can move a branch, also to a commit that does not contain its tip. Classic protection forbids that
        unless it says otherwise. Rulesets alone can also be shown as protection. A branch that a rule names stays even
        if we can bypass the rule: the approvals of a pull request are not for its head branch."""
        if not branch.protected:
            return True
        if branch.protection.enabled and await rules.read_classic(client, name, ClassicMarker) != ClassicMarker():
            return False
        binding = [rule for rule in await rules.read_rules(client, name) if rule.type not in HARMLESS_TYPES]
        return await self._can_ignore(client, binding)

    async def _can_ignore(self, client: ForgeClient, binding: Sequence[rules.Rule]) -> bool:
        """Whether these rules are for all branches, and do not bind our pushes."""
        rulesets = await rules.apply_rulesets(client, binding, (await self._read_identity()).app_id)
        return all(each.covers_all_branches and each.bypass in rules.PUSH_BYPASSES for each in rulesets)

    def _raise_if_just_vanished(self, key: tuple[Repo, PullRequestNumber], *, is_shown: bool) -> None:
        """GitHub can answer 404 for a moment about a pull request that exists. So one that it showed before counts as
        gone only when it is still not shown some seconds later. Until then, the caller retries."""
        now, was_known = self._clock.now(), key in self._known
        missing_since = self._known.pop(key, None)
        if is_shown:
            self._known[key] = None
            while len(self._known) > MAX_KNOWN:
                del self._known[next(iter(self._known))]
        elif was_known and (missing_since is None or now < missing_since + RECHECK_MISSING_MS):
            self._known[key] = now if missing_since is None else missing_since
            raise HostUnavailable(
                f"GitHub does not show pull request {key[1]} of {key[0]}, which it showed before: we ask again"
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
        """Idempotent: does nothing if the test branch has an open pull request. GitHub can need a moment until it knows
        a branch that was pushed, so the caller retries for two minutes."""
        client = await self._client_for(repo)
        if await _list_open_from(client, f"{repo.owner}/{repo.name}", draft.branch):
            return
        branches = {"head": draft.branch, "base": draft.base_branch}
        body = branches | {"title": draft.title, "body": draft.text}
        reply = await client.send("POST", "/pulls", body | {"draft": True}, urgent=True)
        if _is_refused_because(reply, NO_DRAFTS_MESSAGE):
            reply = await client.send("POST", "/pulls", body | {"draft": False}, urgent=True)
        if _is_refused_because(reply, UNKNOWN_HEAD_MESSAGE):
            self._raise_if_just_pushed(repo, draft.branch)
        if not _is_refused_because(reply, EXISTS_MESSAGE):
            reply.raise_for_status()

    def _raise_if_just_pushed(self, repo: Repo, branch: str) -> None:
        now = self._clock.now()
        refused_at = self._unknown_heads.setdefault((self.canonical_repo(repo), branch), now)
        while len(self._unknown_heads) > MAX_KNOWN:
            del self._unknown_heads[next(iter(self._unknown_heads))]
        if now < refused_at + MAX_UNKNOWN_HEAD_MS:
            raise HostUnavailable(f"GitHub does not know the branch {branch} of {repo} yet: we try again")

    async def close_draft(self, repo: Repo, branch: str) -> None:
        client = await self._client_for(repo)
        for draft in await _list_open_from(client, f"{repo.owner}/{repo.name}", branch):
            reply = await client.send("PATCH", f"/pulls/{draft.number}", {"state": "closed"}, urgent=True)
            reply.raise_for_status()

    async def close_pull_request(self, repo: Repo, number: PullRequestNumber) -> None:
        client = await self._client_for(repo)
        payload = await fetch_pull_request(client, number)
        if payload is not None and payload.state == "open":
            (await client.send("PATCH", f"/pulls/{number}", {"state": "closed"}, urgent=True)).raise_for_status()

    async def retarget_pull_requests(self, repo: Repo, branch: str, target: str) -> None:
        """Raises if the branch must stay: a rule forbids to delete it, it is the head of another open pull request, one
        is refused, or there are more than one call can retarget."""
        client = await self._client_for(repo)
        deletion = [rule for rule in await rules.read_rules(client, branch) if rule.type == "deletion"]
        if not await self._can_ignore(client, deletion):
            raise HostRefused(f"a rule of {repo} forbids to delete {branch}")
        if await _list_open_from(client, f"{repo.owner}/{repo.name}", branch):
            raise HostRefused(f"{branch} of {repo} is the head of another open pull request: delete it later")
        query = {**NEWEST_QUERY, "base": branch}
        found = await client.get("/pulls", list[wire.PullRequestPayload], query, urgent=True) or []
        based = [payload for payload in found if payload.base.ref == branch]
        replies = [await client.send("PATCH", f"/pulls/{one.number}", {"base": target}, urgent=True) for one in based]
        for reply in replies:
            reply.raise_for_status()
        if len(found) >= MAX_RETARGETED:
            raise HostUnavailable(f"{repo} has more pull requests into {branch} to retarget: we continue")

    async def read_text(self, repo: Repo, number: PullRequestNumber) -> PullRequestText | None:
        """Of an author whose account was deleted, GitHub shows the account `ghost`."""
        client = await self._client_for(repo)
        payload = await client.get(f"/pulls/{number}", wire.PullRequestTextPayload, urgent=True)
        if payload is None:
            return None
        title, body = payload.title[:MAX_TITLE_CHARS], (payload.body or "").encode()[:MAX_BODY_BYTES]
        text = PullRequestText(title=title, body=body.decode(errors="ignore"))
        user = payload.user
        if user is None or user.login == DELETED_ACCOUNT:
            return text
        details = await self._read_user(client, user.login) or user
        name = (details.name or user.login)[:MAX_TITLE_CHARS]
        return replace(text, author_name=name, author_email=self._build_address(user))

    async def is_edited(self, repo: Repo, number: PullRequestNumber, comment: Comment) -> bool:
        """A comment that the query does not show counts as edited if anything of it changed."""
        try:
            repository = await self._query(await self._client_for(repo), EDITS_QUERY, number)
        except HostRefused:
            return comment.is_changed
        facts = repository.pull_request
        shown = facts.comments if facts is not None else None
        for node in shown.nodes if shown is not None else ():
            if node is not None and str(node.full_database_id) == comment.id:
                return node.last_edited_at is not None
        return comment.is_changed

    async def _read_branch_tip(self, client: ForgeClient, branch: str) -> str | None:
        found = await client.get(f"/git/ref/heads/{quote(branch)}", wire.GitRef)
        return found and found.object.sha

    async def _list_latest(self, client: ForgeClient, repo: Repo) -> Iterable[PolledPullRequest]:
        """Reads only the pull requests that changed since the last read. The others are those of the last read."""
        repo, now = self.canonical_repo(repo), self._clock.now()
        expires_at, known = self._polled.get(repo, (Instant(0), ()))
        if now >= expires_at:
            expires_at, known = later(now, FULL_READ_INTERVAL_MS), ()
        changed = await _list_changed(client, known)
        by_number = {payload.number: payload for payload in (*known, *changed)}
        latest = sorted(by_number.values(), key=lambda payload: payload.updated_at, reverse=True)[:MAX_POLLED]
        self._polled[repo] = expires_at, latest
        return [
            PolledPullRequest(payload.number, payload.head.sha, _select_metadata(payload, self._clock.now()))
            for payload in latest
            if not _shows_test_branch(payload)
        ]


def _is_refused_because(reply: Reply, message: str) -> bool:
    return reply.status == UNPROCESSABLE and message in reply.detail.lower()


async def _list_changed(client: ForgeClient, known: Sequence[wire.PullRequestPayload]) -> list[wire.PullRequestPayload]:
    """Reads the next page only if all on this page changed since `known` was read, or in the same second. A long page
    costs GitHub about a second, which it counts against a limit of its own."""
    if not known:
        first = {**LATEST_QUERY, "per_page": MAX_POLLED}
        return await client.get("/pulls", list[wire.PullRequestPayload], first) or []
    newest, found = max(payload.updated_at for payload in known), list[wire.PullRequestPayload]()
    for number in range(1, MAX_POLLED_PAGES + 1):
        query = {**LATEST_QUERY, "per_page": POLLED_PER_PAGE, "page": number}
        page = await client.get("/pulls", list[wire.PullRequestPayload], query) or []
        found += page
        if len(page) < POLLED_PER_PAGE or min(payload.updated_at for payload in page) < newest:
            break
    return found


def _shows_test_branch(payload: wire.PullRequestPayload) -> bool:
    return not payload.is_fork and payload.head.ref.startswith(ids.TEST_BRANCH_PREFIX)


async def _read_branch_of_fork(client: ForgeClient, full_name: str, branch: str) -> rules.Branch | None:
    """None also without a usable answer: others control the fork, and it must not stop the queue. GitHub answers 404
    for a branch that was deleted and for a fork that it hides from us."""
    try:
        return await rules.read_branch(client.without_repository(), branch, f"/repos/{full_name}")
    except HostError:
        return None


async def _list_open_from(client: ForgeClient, full_name: str, branch: str) -> list[wire.PullRequestPayload]:
    """The open pull requests whose head is this branch of this repository, which can be a fork."""
    query = {"head": f"{full_name.partition('/')[0]}:{branch}", "state": "open"}
    found = await client.get_all("/pulls", list[wire.PullRequestPayload], query, urgent=True)
    heads = [(one, one.head.repo.full_name.lower() if one.head.repo else "") for one in found]
    return [one for one, home in heads if one.head.ref == branch and home == full_name.lower()]


def _select_metadata(payload: wire.PullRequestPayload, now: Instant) -> tuple[object, ...]:
    """Changes once more when the last change is older than `SETTLING_MS`, so that a change in the same second is not
    missed."""
    labels = sorted(label.name for label in payload.labels)
    is_settling = now - to_instant(payload.updated_at) < SETTLING_MS
    shown = (payload.state, payload.draft, payload.title, payload.base.ref, payload.merged_at, labels)
    return (*shown, payload.updated_at, is_settling)
