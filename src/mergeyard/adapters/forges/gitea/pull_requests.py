"""Reads pull requests and their checks from Gitea: conflicts, what its rules require, drafts, refs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from mergeyard.adapters.forges.gitea import wire
from mergeyard.adapters.forges.host import ForgeHost, PolledPullRequest, build_requirement
from mergeyard.adapters.forges.http import ForgeClient, ForgeConfig, Query, quote_segment, to_instant
from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import HeadBranchAccess, PullRequest, Requirement, Status, StatusState
from mergeyard.domain.states import Mergeability, Reason
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import DraftPullRequest, HostRefused, HostUnavailable, OpenPullRequest, select_newest

ADMIN_PERMISSION = "the permission admin in the repository"
MAX_FILE_PAGES = 20
MAX_COMMIT_PAGES = 20
SHORT_SHA_CHARS = 10
MAX_READ_TEST_COMMITS = 3
TEST_BRANCHES_PATH = f"/git/refs/{quote_segment('heads/' + ids.TEST_BRANCH_PREFIX)}"
SSH_FINGERPRINT_START = "SHA256:"
KEY_ID_CHARS = 16
MAX_NUMBERED_PAGES = 20
NOT_SHOWN = "{} does not show {} now"
MAX_FILE_COMPARISONS = 10_000_000
"""Characters of changed paths, times characters of patterns."""


async def read_branch(client: ForgeClient, name: str) -> wire.Branch | None:
    """None if git has no such branch either. Another 404 is no answer: the branch can have rules."""
    branch, ref = await client.get(f"/branches/{quote_segment(name)}", wire.Branch, urgent=True), f"heads/{name}"
    if branch is None:
        refs = await client.get(f"/git/refs/{quote_segment(ref)}", list[wire.GitRef], urgent=True) or []
        if any(each.ref == f"refs/{ref}" for each in refs):
            raise HostUnavailable(NOT_SHOWN.format(client.repo, f"the branch {name}"))
    return branch


def select_required_contexts(branch: wire.Branch | None) -> tuple[str, ...]:
    """Without our own status: the queue must not wait for itself. A pattern is returned as it is. No check has that
    name, so nothing merges until the rule names the checks."""
    if branch is None or not branch.enable_status_check:
        return ()
    return tuple(context for context in branch.status_check_contexts or () if context != ids.STATUS_CONTEXT)


async def read_rule(client: ForgeClient, branch: wire.Branch) -> wire.Rule | None:
    """The protection rule of the branch; None if it has one that our account cannot read."""
    name = branch.effective_branch_protection_name
    if not branch.protected:
        return wire.Rule()
    if not name:
        return None
    rule = await client.get(f"/branch_protections/{quote_segment(name)}", wire.Rule, urgent=True)
    if rule is None:
        raise HostUnavailable(f"the protection rule {name} of {client.repo} changes at this moment")
    return rule


def judge_reviews(rule: wire.Rule, reviews: Sequence[wire.Review], owner: str) -> Iterator[Requirement]:
    counting = [review for review in reviews if review.official and not review.dismissed]
    fresh = [review for review in counting if not (rule.ignore_stale_approvals and review.stale)]
    requests = [review for review in reviews if review.state == "REQUEST_REVIEW"]
    approvals, needed = [review for review in fresh if review.state == "APPROVED"], rule.required_approvals
    awaited = [request for request in requests if request.official] if rule.block_on_official_review_requests else []
    if needed:
        names, by = _names(requests, owner), _names(approvals, owner)
        yield build_requirement(Reason.WAITING_FOR_REVIEW, names, needed=needed, given=len(approvals), given_by=by)
    if len(approvals) >= needed and awaited:
        yield build_requirement(Reason.WAITING_FOR_REVIEW, _names(awaited, owner), needed=len(awaited))
    rejections = [review for review in counting if review.state == "REQUEST_CHANGES"]
    if rule.block_on_rejected_reviews and rejections:
        yield build_requirement(Reason.CHANGES_REQUESTED, _names(rejections, owner))


async def _read_reviews(client: ForgeClient, payload: wire.PullRequestPayload, rule: wire.Rule) -> list[wire.Review]:
    is_needed = rule.required_approvals or rule.block_on_rejected_reviews or rule.block_on_official_review_requests
    path = f"/pulls/{payload.number}/reviews"
    reviews = await read_numbered_pages(client, path, list[wire.Review]) if is_needed else []
    if reviews is None:
        raise HostUnavailable(NOT_SHOWN.format(client.repo, path))
    return reviews


T = TypeVar("T")


async def read_numbered_pages(client: ForgeClient, path: str, kind: type[list[T]]) -> list[T] | None:
    """For lists without links to the next page. A server can limit pages to any size, so an empty page is the last.
    None if Gitea has no such list."""
    items = list[T]()
    for number in range(1, MAX_NUMBERED_PAGES + 1):
        page = await client.get(path, kind, {"limit": 50, "page": number}, urgent=True)
        if not page:
            return None if page is None else items
        items += page
    raise HostUnavailable(f"{path} of {client.repo} has more than {MAX_NUMBERED_PAGES} pages")


async def _read_pages(client: ForgeClient, path: str, kind: type[list[T]], query: Query, max_pages: int) -> list[T]:
    """For lists with links to the next page that every pull request has: a 404 is no answer."""
    items, pages = list[T](), 0
    async for page in client.iterate_pages(path, kind, query, urgent=True):
        items, pages = items + page, pages + 1
        if pages == max_pages:
            break
    if pages == 0:
        raise HostUnavailable(NOT_SHOWN.format(client.repo, path))
    return items


def _names(reviews: Iterable[wire.Review], owner: str) -> Iterator[str]:
    for review in reviews:
        if review.team:
            yield f"@{owner}/{review.team.name}"
        elif review.user:
            yield f"@{review.user.login}"


async def _list_protected_files(client: ForgeClient, payload: wire.PullRequestPayload, rule: wire.Rule) -> list[str]:
    """The changed files that Gitea lets no account change. Files that are too many to compare block as well."""
    patterns = [pattern.strip() for pattern in rule.protected_file_patterns.lower().split(";") if pattern.strip()]
    if not patterns:
        return []
    path, query = f"/pulls/{payload.number}/files", {"limit": 50}
    files = await _read_pages(client, path, list[wire.ChangedFile], query, MAX_FILE_PAGES)
    comparisons = sum(len(file.filename) for file in files) * len(rule.protected_file_patterns)
    if len(files) < (payload.changed_files or 0) or comparisons > MAX_FILE_COMPARISONS:
        return ["protected files, because the pull request changes too many files to compare them"]
    changed = [file.filename for file in files]
    return [
        f"protected file {name}"
        for name in changed
        if any(wire.matches(pattern, name.lower(), "./") for pattern in patterns)
    ]


async def list_open_dependencies(client: ForgeClient, repo: Repo, number: PullRequestNumber) -> list[str]:
    """As references: `#12`, or `owner/name#12` for another repository. Gitea answers 404 where the repository has
    dependencies turned off. Another 404 is no answer."""
    path = f"/issues/{number}/dependencies"
    found = await read_numbered_pages(client, path, list[wire.Dependency])
    if found is None:
        if (await client.read_repository(wire.Repository, urgent=True)).internal_tracker.enable_issue_dependencies:
            raise HostUnavailable(NOT_SHOWN.format(client.repo, path))
        return []
    return [_format_reference(dependency, repo) for dependency in found if dependency.state == "open"]


def _format_reference(dependency: wire.Dependency, repo: Repo) -> str:
    full_name = "" if dependency.repository is None else dependency.repository.full_name
    is_same_repository = full_name.lower() == f"{repo.owner}/{repo.name}".lower()
    return f"#{dependency.number}" if is_same_repository else f"{full_name}#{dependency.number}"


def is_open(payload: wire.PullRequestPayload) -> bool:
    return payload.state == "open" and not payload.merged


def is_fork(payload: wire.PullRequestPayload) -> bool:
    """From another repository, or without a branch (AGit flow), which every account with read access can create."""
    return payload.head.repo_id != payload.base.repo_id or not payload.head.label


async def _judge_head_branch(
    client: ForgeClient, payload: wire.PullRequestPayload, *, is_read: bool
) -> HeadBranchAccess:
    """Gitea deletes no branch that a rule protects, and accepts no forced push to it, whatever the rule allows. That
    another open pull request has the same head branch, only a list of all of them can show: it is read before the
    branch is deleted."""
    if is_fork(payload) or not is_read:
        return HeadBranchAccess.IN_FORK if is_fork(payload) else HeadBranchAccess.NOT_MOVED
    if payload.base.repo is not None and payload.head.label == payload.base.repo.default_branch:
        return HeadBranchAccess.SHARED
    try:
        branch = await read_branch(client, payload.head.label)
    except HostRefused:
        return HeadBranchAccess.PROTECTED
    if branch is None or branch.commit.id != payload.head.sha:
        return HeadBranchAccess.GONE
    return HeadBranchAccess.PROTECTED if branch.protected or not branch.user_can_push else HeadBranchAccess.NOT_MOVED


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
        self._verified_keys = set[str]()
        """Fingerprints of our keys whose signatures Gitea accepts."""
        self._unverified: dict[Repo, Sha] = {}
        """A test commit of each repository whose signature Gitea does not accept; it exists longer than its branch."""

    async def read_pull_request(
        self, repo: Repo, number: PullRequestNumber, *, with_requirements: bool = True, with_head_branch: bool = True
    ) -> PullRequest | None:
        client = await self._client_for(repo)
        payload = await client.get(f"/pulls/{number}", wire.PullRequestPayload, urgent=True)
        if payload is None:
            return None
        is_judged = with_requirements and is_open(payload)
        return PullRequest(
            number=payload.number,
            head=Sha(payload.head.sha),
            base_branch=payload.base.label,
            head_branch=payload.head.label,
            head_repo=payload.head.repo.full_name if is_fork(payload) and payload.head.repo else "",
            head_branch_access=await _judge_head_branch(client, payload, is_read=is_judged and with_head_branch),
            title=payload.title,
            author=payload.user.login if payload.user else "",
            is_open=is_open(payload),
            draft=payload.draft,
            fork=is_fork(payload),
            mergeability=self._mergeability_tracker.assess(repo, payload),
            requirements=await self._read_requirements(client, repo, payload) if is_judged else (),
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

    async def _read_requirements(
        self, client: ForgeClient, repo: Repo, payload: wire.PullRequestPayload
    ) -> tuple[Requirement, ...]:
        """Judged by facts that are the same for every account. Gitea's `mergeable` is about conflicts alone, and an
        administrator can override the rules, so neither counts.

        The required checks are no requirement of the head: each run requires them of the tested commit. Only when Gitea
        itself merges (`provider_merge`), it requires them of the head too, and refuses."""
        blockers = [f"open dependency {each}" for each in await list_open_dependencies(client, repo, payload.number)]
        found = list[Requirement]()
        branch = await read_branch(client, payload.base.label)
        if branch:
            readable_rule = await read_rule(client, branch)
            rule = readable_rule or wire.Rule(required_approvals=branch.required_approvals)
            found += judge_reviews(rule, await _read_reviews(client, payload, rule), repo.owner)
            found += await self._judge_signatures(client, payload) if rule.require_signed_commits else []
            blockers += await _list_protected_files(client, payload, rule)
            found += [] if readable_rule else [self._require_permission(ADMIN_PERMISSION)]
        return (*found, build_requirement(Reason.BLOCKED_BY_HOST_RULE, blockers)) if blockers else tuple(found)

    async def _judge_signatures(self, client: ForgeClient, payload: wire.PullRequestPayload) -> list[Requirement]:
        """Gitea accepts a commit only if a key of its committer's account signed it. Commits after the first thousand
        are not read."""
        path, query = f"/pulls/{payload.number}/commits", {"limit": 50, "files": "false", "stat": "false"}
        commits = await _read_pages(client, path, list[wire.Commit], query, MAX_COMMIT_PAGES)
        unsigned = [commit.sha[:SHORT_SHA_CHARS] for commit in commits if not commit.is_verified]
        found = [build_requirement(Reason.COMMITS_UNSIGNED, unsigned)] if unsigned else []
        missing = await self.find_missing_key() or await self._find_unverified_key(client)
        return [*found, build_requirement(Reason.SIGNING_KEY_NOT_ACCEPTED, [missing])] if missing else found

    async def find_missing_key(self) -> str:
        """The key that our account lacks; empty if our commits are signed with one of its keys. Gitea does not report
        whether an SSH key is verified."""
        signer, problem = self._config.signer, self._find_key_problem()
        if signer is None or problem:
            return problem
        fingerprint = signer.fingerprint
        if fingerprint.startswith(SSH_FINGERPRINT_START):
            query = {"fingerprint": fingerprint}
            keys = await self._client.get("/user/keys", list[wire.SshKey], query, urgent=True) or []
            has_key = any(key.key.split()[:2] == signer.public_key.split()[:2] for key in keys)
        else:
            found = await self._client.get_all("/user/gpg_keys", list[wire.GpgKey], {"limit": 50}, urgent=True)
            has_key = any(key.accepts(fingerprint[-KEY_ID_CHARS:].upper()) for key in found)
        return "" if has_key else f"{fingerprint} of @{await self._read_own_login()}"

    async def _find_unverified_key(self, client: ForgeClient) -> str:
        """Our key, if Gitea does not accept its signature of a test commit: only such a commit shows whether an SSH key
        is verified. Without this, Gitea would refuse the merge with an internal error. A commit with an address that
        is no longer ours shows nothing."""
        signer, repo = self._config.signer, client.repo
        if signer is None or repo is None or signer.fingerprint in self._verified_keys:
            return ""
        if not signer.fingerprint.startswith(SSH_FINGERPRINT_START):
            return ""
        account = await self._client.get("/user", wire.Author, urgent=True) or wire.Author()
        address = self._config.committer_email or account.email
        refs = await client.get(TEST_BRANCHES_PATH, list[wire.GitRef], urgent=True) or []
        remembered = [self._unverified[repo]] if repo in self._unverified else []
        for sha in [*(ref.object.sha for ref in refs[:MAX_READ_TEST_COMMITS]), *remembered]:
            commit = await client.get(f"/git/commits/{quote_segment(sha)}", wire.Commit, urgent=True)
            if commit is None or not commit.is_made_by(address, signer.public_key):
                continue
            if commit.is_verified:
                self._verified_keys.add(signer.fingerprint)
                return ""
            self._unverified[repo] = Sha(sha)
            return f"{signer.fingerprint} of @{await self._read_own_login()}, which is not verified there"
        self._unverified.pop(repo, None)
        return ""

    async def open_draft(self, repo: Repo, draft: DraftPullRequest) -> None:
        """Idempotent: Gitea answers 409 if the test branch has an open pull request."""
        title = DRAFT_PREFIX + draft.title
        body = {"head": draft.branch, "base": draft.base_branch, "title": title, "body": draft.text}
        reply = await (await self._client_for(repo)).send("POST", "/pulls", body, urgent=True)
        reply.raise_for_status(allowed=(ALREADY_OPEN_STATUS,))

    async def close_draft(self, repo: Repo, branch: str) -> None:
        """Usually finds none: Gitea closes a pull request when its branch is deleted."""
        client = await self._client_for(repo)
        for payload in await client.get_all("/pulls", list[wire.PullRequestPayload], {"state": "open", "limit": 50}):
            if payload.head.label == branch and payload.head.repo_id == payload.base.repo_id:
                reply = await client.send("PATCH", f"/pulls/{payload.number}", {"state": "closed"}, urgent=True)
                reply.raise_for_status()

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

    async def statuses(
        self,
        repo: Repo,
        sha: Sha,
        branch: str,  # noqa: ARG002
        test_branch: str = "",  # noqa: ARG002
    ) -> Sequence[Status]:
        return await read_statuses(await self._client_for(repo), sha, self._config.web_url)

    async def set_status(self, repo: Repo, sha: Sha, status: Status, *, urgent: bool = False) -> None:
        shown = {"target_url": status.url, "description": status.description}
        body = {"context": status.context, "state": status.state.value, **shown}
        client = await self._client_for(repo)
        (await client.send("POST", f"/statuses/{quote_segment(sha)}", body, urgent=urgent)).raise_for_status()


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
