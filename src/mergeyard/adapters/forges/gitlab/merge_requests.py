"""Reads merge requests and what the rules of their project require, manages drafts for test branches, lists refs."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeVar, cast

from msgspec.structs import replace

from mergeyard.adapters.forges.gitlab import wire
from mergeyard.adapters.forges.gitlab.checks import Checks, remember
from mergeyard.adapters.forges.host import PolledPullRequest, build_requirement, judge_head_checks
from mergeyard.adapters.forges.http import (
    ForgeClient,
    ForgeConfig,
    Query,
    quote_segment,
    to_instant,
)
from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import HeadBranchAccess, PullRequest, Requirement
from mergeyard.domain.states import CheckState, Mergeability, Reason
from mergeyard.domain.timestamps import MINUTE, SECOND, Instant, later
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import (
    DraftPullRequest,
    HostError,
    HostRefused,
    HostUnavailable,
    OpenPullRequest,
    UnexpectedHostResponse,
    select_newest,
)

PAGE_QUERY = {"per_page": 100}
NOT_SHOWN = "{} does not show {} now"
PUSH_RULE = cast(type[wire.PushRule], wire.PushRule | None)
"""A project without push rules answers with an empty document, and a plan that has none with 403 or 404."""
UNDECIDED_STATUSES = frozenset({"unchecked", "checking", "preparing", "approvals_syncing"})
POLICY_PIPELINE_STATUS = "security_policy_pipeline_check"
"""GitLab does not document which rules it looks at after this one, so none of those is known to be met."""
POLICY_PIPELINE_NAME = (
    "security policy pipelines of the head, and the rules that GitLab checks after them (if they wait for the check "
    "mergeyard, turn off statusCheckEnabled)"
)
PIPELINE_STATUSES = frozenset({"ci_still_running", "ci_must_pass", POLICY_PIPELINE_STATUS})
"""The pipelines of the head do not block a merge request: the queue tests the commit that will be merged, and our own
status, which waits for the merge, is part of these pipelines."""
STATUSES_AFTER_ALL_RULES = frozenset({"mergeable", "need_rebase", "ci_still_running", "ci_must_pass"})
"""GitLab reports the first obstacle only, and the same one to every account. It looks at the pipeline last, and at the
position of the head right before: with one of these, GitLab has found every other rule met."""
CONFLICT_STATUS = "conflict"
UNAPPROVED_STATUS = "not_approved"
CHANGES_REQUESTED_STATUS = "requested_changes"
DISCUSSIONS_STATUS = "discussions_not_resolved"
EXTERNAL_CHECK_STATUSES = frozenset({"status_checks_must_pass", "external_status_checks"})
OTHER_KNOWN_STATUSES = (
    UNDECIDED_STATUSES
    | PIPELINE_STATUSES
    | STATUSES_AFTER_ALL_RULES
    | EXTERNAL_CHECK_STATUSES
    | {CONFLICT_STATUS, UNAPPROVED_STATUS, CHANGES_REQUESTED_STATUS, DISCUSSIONS_STATUS, "draft_status", "not_open", ""}
)
"""Everything else is a rule that only its name describes. Versions before 15.6 report the empty text."""
RULE_NAMES = {
    "blocked_status": "merge request dependencies",
    "broken_status": "a source branch with commits",
    "commits_status": "a source branch with commits",
    "jira_association_missing": "a Jira issue in the title or description",
    "locked_lfs_files": "LFS files that another user locked",
    "locked_paths": "paths that another user locked",
    "merge_request_blocked": "merge request dependencies",
    "merge_time": "the time before which it must not merge",
    "policies_denied": "license policies",
    "security_policy_violations": "security policies",
    "title_regex": "the pattern for titles",
}
CODE_OWNER_RULE = "code_owner"
MAX_RULES = 20
"""Further unmet approval rules of a merge request are not recorded. These keep it from being ready."""
READ_PERMISSION = "the scope api for the token, and the role Developer or Maintainer for its account"


def derive_mergeability(payload: wire.MergeRequest) -> Mergeability:
    """Whether it conflicts with its target branch. GitLab locks a merge request while it merges it."""
    status = payload.detailed_merge_status
    if payload.state == "locked" or status in UNDECIDED_STATUSES:
        return Mergeability.CHECKING
    if status == CONFLICT_STATUS or payload.merge_status == "cannot_be_merged":
        return Mergeability.NOT_MERGEABLE
    if status in STATUSES_AFTER_ALL_RULES or payload.merge_status == "can_be_merged":
        return Mergeability.MERGEABLE
    return Mergeability.CHECKING


def judge_approval_rules(rules: Iterable[wire.ApprovalRule]) -> list[Requirement]:
    """The rules that lack approvals."""
    unmet = (rule for rule in rules if not rule.is_met)
    return [
        build_requirement(
            Reason.WAITING_FOR_CODE_OWNER if rule.rule_type == CODE_OWNER_RULE else Reason.WAITING_FOR_REVIEW,
            rule.names_of_missing_approvers,
            needed=rule.approvals_required,
            given=len(rule.approved_by),
        )
        for rule in islice(unmet, MAX_RULES)
    ]


def judge_rule_by_name(payload: wire.MergeRequest) -> list[Requirement]:
    """An obstacle that has no facts of its own in the API; also one that GitLab will add in a later version."""
    status = payload.detailed_merge_status
    is_conflict = status == "broken_status" and payload.merge_status == "cannot_be_merged"
    if status in OTHER_KNOWN_STATUSES or is_conflict:
        return []
    return [build_requirement(Reason.BLOCKED_BY_HOST_RULE, [RULE_NAMES.get(status, status.replace("_", " "))])]


PUSH_RULE_MS = MINUTE

OPEN_STATES = ("opened", "locked")
DRAFT_PREFIX = "Draft: "
"""GitLab marks a merge request as a draft by its title."""
ALREADY_OPEN_STATUS = 409
CLOSE = {"state_event": "close"}
LATEST_QUERY = {"state": "all", "scope": "all", "order_by": "updated_at", "sort": "desc", "per_page": 100}
NEWEST_QUERY = {"state": "opened", "scope": "all", "order_by": "created_at", "sort": "desc", "per_page": 100}
QUICK_ACTION_PATTERN = re.compile(r"((?:^|[\r\n])[ \t]*)/")
RECENT_MS = 90 * SECOND
"""GitLab caches each merge request of a list. Within 60 seconds after the last update, a comment or a push does not
renew that entry. The rest is for clocks that differ."""


class MergeRequests(Checks):
    def __init__(self, config: ForgeConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self._push_rules = OrderedDict[Repo, tuple[Instant, bool]]()
        """Whether a push rule rejects unsigned commits, and until when that is trusted."""

    def _escape(self, text: str) -> str:
        """GitLab executes lines like `/merge` or `/close` with our permissions, also in text that we only quote."""
        return QUICK_ACTION_PATTERN.sub(r"\1\\/", text)

    async def read_pull_request(
        self, repo: Repo, number: PullRequestNumber, *, with_requirements: bool = True, with_head_branch: bool = True
    ) -> PullRequest | None:
        client = await self._client_for(repo)
        payload = await client.get(f"/merge_requests/{number}", wire.MergeRequest)
        if payload is None:
            return None
        if payload.sha is None:
            raise UnexpectedHostResponse(
                f"merge request !{number} of {repo} has no head: push its source branch again, or close it"
            )
        self._remember_status_ref(repo, Sha(payload.sha), payload.status_ref)
        access = HeadBranchAccess.IN_FORK if payload.is_from_fork else HeadBranchAccess.MOVABLE
        fork, requirements = "", ()
        if with_requirements and payload.state == "opened":
            if with_head_branch:
                fork, access = await self._read_head_branch(client, payload)
            requirements = await self._read_requirements(client, repo, payload)
        return PullRequest(
            number=PullRequestNumber(payload.iid),
            head=Sha(payload.sha),
            base_branch=payload.target_branch,
            head_branch=payload.source_branch,
            head_repo=fork,
            head_branch_access=access,
            is_merged_by_head=True,
            title=payload.title,
            author=wire.get_username(payload.author),
            is_open=payload.state in OPEN_STATES,
            draft=payload.draft,
            fork=payload.is_from_fork,
            mergeability=derive_mergeability(payload),
            requirements=requirements,
            merged_into=payload.target_branch if payload.state == "merged" else None,
        )

    async def _read_head_branch(self, client: ForgeClient, payload: wire.MergeRequest) -> tuple[str, HeadBranchAccess]:
        """The path of the fork, if it is from one, and whether we can move its source branch. Others control the fork,
        and it must not stop the queue: without a usable answer, its branch counts as one that we cannot push to.

        A squashed or rebased commit does not contain the head, so the push is forced. A protected branch stays, also if
        we can force a push there: the approvals of a merge request are not for it. `allow_collaboration` is false
        for a protected branch of a fork, and where one of the projects is private. Merge requests from the same branch
        into another project are not noticed.
        """
        path, fork, branch = f"/repository/branches/{quote_segment(payload.source_branch)}", "", None
        if payload.source_project_id is None:
            return fork, HeadBranchAccess.GONE
        if payload.is_from_fork:
            home, project = self._client, f"/projects/{payload.source_project_id}"
            found = await _get_unless(HostError, home, project, wire.Project)
            fork = found.path_with_namespace if found else ""
            if fork and payload.allow_collaboration:
                branch = await _get_unless(HostError, home, project + path, wire.Branch)
            if branch is None:
                return fork, HeadBranchAccess.IN_FORK
        try:
            branch = branch or await client.get(path, wire.Branch)
            if branch is None or branch.commit.id != payload.sha:
                return fork, HeadBranchAccess.GONE
            if branch.default or await _is_source_of_another(client, payload):
                return fork, HeadBranchAccess.SHARED
            can_move = branch.can_push and not branch.protected
        except HostRefused:
            can_move = False
        denied = HeadBranchAccess.IN_FORK if fork else HeadBranchAccess.PROTECTED
        return fork, HeadBranchAccess.MOVABLE if can_move else denied

    async def _read_requirements(
        self, client: ForgeClient, repo: Repo, payload: wire.MergeRequest
    ) -> tuple[Requirement, ...]:
        """What the rules of the project require and the merge request lacks.

        A merge request that lacks nothing needs no further request, except about signatures: see
        `STATUSES_AFTER_ALL_RULES`. Whether our account can merge or push is of no importance: GitLab shows it in other
        members, which this does not read.
        """
        path, status = f"/merge_requests/{payload.iid}", payload.detailed_merge_status
        found = judge_rule_by_name(payload)
        if status not in STATUSES_AFTER_ALL_RULES:
            found += await self._read_missing_approvals(client, path, status)
        if status == CHANGES_REQUESTED_STATUS:
            reviewers = await _read_details(client, f"{path}/reviewers", list[wire.Reviewer])
            names = [f"@{one.user.username}" for one in reviewers if one.state == CHANGES_REQUESTED_STATUS]
            found.append(build_requirement(Reason.CHANGES_REQUESTED, names))
        if status == DISCUSSIONS_STATUS or not payload.blocking_discussions_resolved:
            discussions = await _read_details(client, f"{path}/discussions", list[wire.Discussion])
            count = sum(one.is_unresolved for one in discussions)
            found.append(build_requirement(Reason.WAITING_FOR_CONVERSATIONS, needed=max(count, 1)))
        if status == POLICY_PIPELINE_STATUS:
            unknown = build_requirement(Reason.BLOCKED_BY_HOST_RULE, [POLICY_PIPELINE_NAME], given=None)
            found.append(replace(unknown, blocks_if_unknown=self._config.unreadable_rules_block))
        if status in EXTERNAL_CHECK_STATUSES:
            checks = await _read_details(client, f"{path}/status_checks", list[wire.ExternalCheck])
            missing = {check.name: CheckState.PENDING for check in checks if not check.has_passed}
            missing |= {check.name: CheckState.FAILED for check in checks if check.has_failed}
            unnamed = build_requirement(Reason.WAITING_FOR_HEAD_CHECKS)
            found += judge_head_checks(list(missing), missing) if missing else [unnamed]
        # The rule concerns commits that GitLab does not have yet: ours. It accepts the signature of an unknown key.
        problem = self._find_key_problem()
        if problem and await self._rejects_unsigned_commits(client, repo):
            missing = build_requirement(Reason.SIGNING_KEY_NOT_ACCEPTED, [problem])
            found.append(replace(missing, concerns_test_branches=True))
        return tuple(found)

    async def _rejects_unsigned_commits(self, client: ForgeClient, repo: Repo) -> bool:
        """Whether a push rule refuses them. GitLab shows push rules only to Maintainers, and answers others as it does
        in a plan that has none. Such a rule is then found when it refuses the first push of a test branch."""
        now = self._clock.now()
        until, rejects = self._push_rules.get(repo, (now, False))
        if until <= now:
            rule = await _get_unless(HostRefused, client, "/push_rule", PUSH_RULE)
            rejects = bool(rule and rule.reject_unsigned_commits)
            remember(self._push_rules, repo, (later(now, PUSH_RULE_MS), rejects))
        return rejects

    async def _read_missing_approvals(self, client: ForgeClient, path: str, status: str) -> list[Requirement]:
        """Only Premium has approval rules. The free edition answers without `approvals_left`, and with `approved` false
        until any account approves, although none has to: `approved` is not read."""
        try:
            approvals = await _read_existing(client, f"{path}/approvals", wire.Approvals)
        except HostRefused:
            found = [] if status == UNAPPROVED_STATUS else [self._require_permission(READ_PERMISSION)]
        else:
            found = await _read_unmet_rules(client, path, approvals) if approvals.approvals_left else []
        if status == UNAPPROVED_STATUS and not found:
            return [build_requirement(Reason.WAITING_FOR_REVIEW)]
        return found

    async def open_pull_requests(self, repo: Repo, branch: str) -> Sequence[OpenPullRequest]:
        """Without merge requests that have no head: the queue cannot read them either."""
        query = {**NEWEST_QUERY, "target_branch": branch}
        return select_newest(
            OpenPullRequest(
                number=PullRequestNumber(payload.iid),
                title=payload.title,
                author=wire.get_username(payload.author),
                head=Sha(payload.sha),
                head_branch=payload.source_branch,
                draft=payload.draft,
            )
            for payload in await self._list_merge_requests(await self._client_for(repo), repo, query)
            if payload.target_branch == branch and payload.sha is not None
        )

    async def open_draft(self, repo: Repo, draft: DraftPullRequest) -> None:
        """Idempotent: GitLab answers 409 if the test branch has an open merge request."""
        body = {
            "source_branch": draft.branch,
            "target_branch": draft.base_branch,
            "title": f"{DRAFT_PREFIX}{draft.title}",
            "description": self._escape(draft.text),
            "remove_source_branch": False,
        }
        reply = await (await self._client_for(repo)).send("POST", "/merge_requests", body, urgent=True)
        if reply.raise_for_status(allowed=(ALREADY_OPEN_STATUS,)).is_success:
            self._remember_draft(repo, reply.decode(wire.MergeRequest))

    async def close_draft(self, repo: Repo, branch: str) -> None:
        """Finds the merge request by its branch name, which works after the branch was deleted, too."""
        client = await self._client_for(repo)
        query = {"source_branch": branch, "state": "opened", "scope": "all", "per_page": 100}
        for payload in await client.get_all("/merge_requests", list[wire.MergeRequest], query, urgent=True):
            if not payload.is_from_fork:
                path = f"/merge_requests/{payload.iid}"
                reply = await client.send("PUT", path, CLOSE, urgent=True)
                reply.raise_for_status(allowed=(404,))

    async def close_pull_request(self, repo: Repo, number: PullRequestNumber) -> None:
        client, path = await self._client_for(repo), f"/merge_requests/{number}"
        payload = await client.get(path, wire.MergeRequest)
        if payload is not None and payload.state in OPEN_STATES:
            (await client.send("PUT", path, CLOSE)).raise_for_status(allowed=(404,))

    async def retarget_pull_requests(self, repo: Repo, branch: str, target: str) -> None:
        """Raises `HostRefused` if the branch must stay: it is the source branch of another open merge request, more
        than a page merge into it, or GitLab refuses one, for example because its source branch has another open merge
        request into `target`."""
        client, query = await self._client_for(repo), {**NEWEST_QUERY, "target_branch": branch}
        from_branch = await _read_existing(client, "/merge_requests", list[wire.MergeRequest], _source_query(branch))
        if any(one.source_project_id == one.target_project_id for one in from_branch):
            raise HostRefused(f"{branch} of {repo} is the source branch of another open merge request: delete it later")
        listed = await _read_existing(client, "/merge_requests", list[wire.MergeRequest], query)
        for payload in listed:
            path = f"/merge_requests/{payload.iid}"
            (await client.send("PUT", path, {"target_branch": target})).raise_for_status(allowed=(404,))
        if len(listed) == NEWEST_QUERY["per_page"]:
            raise HostRefused(f"too many merge requests of {repo} merge into {branch}: change their target branches")

    async def _read_branch_tip(self, client: ForgeClient, branch: str) -> str | None:
        found = await client.get(f"/repository/branches/{quote_segment(branch)}", wire.Branch)
        return found and found.commit.id

    async def _list_latest(self, client: ForgeClient, repo: Repo) -> Iterable[PolledPullRequest]:
        """A recent merge request differs after every poll interval, so that the poller reads it singly: the list can
        lack a comment or a push. It differs once more when it is no longer recent, so no read falls between."""
        now = self._clock.now()
        interval = now // self.poll_interval_ms
        return [
            PolledPullRequest(
                payload.iid, payload.sha, (_select_metadata(payload), interval if _is_recent(payload, now) else None)
            )
            for payload in await self._list_merge_requests(client, repo, LATEST_QUERY)
        ]

    async def _list_merge_requests(self, client: ForgeClient, repo: Repo, query: Query) -> list[wire.MergeRequest]:
        """The first page, without merge requests that show a test branch."""
        listed = await client.get("/merge_requests", list[wire.MergeRequest], query)
        if listed is None:
            raise HostUnavailable(f"the merge requests of {repo} are not visible to us: enable them in its settings")
        return [payload for payload in listed if not payload.source_branch.startswith(ids.TEST_BRANCH_PREFIX)]


def _is_recent(payload: wire.MergeRequest, now: Instant) -> bool:
    is_open = payload.state in OPEN_STATES
    return is_open and payload.updated_at is not None and now - to_instant(payload.updated_at) < RECENT_MS


def _select_metadata(payload: wire.MergeRequest) -> wire.MergeRequest:
    """Without the merge status: GitLab recomputes it for all merge requests whenever their target branch moves."""
    return replace(payload, merge_status="", detailed_merge_status="", merge_error=None, user=wire.UserPermissions())


async def _read_unmet_rules(client: ForgeClient, path: str, approvals: wire.Approvals) -> list[Requirement]:
    """GitLab counts a rule as approved that asks for more approvals than it has approvers: only the rules show it."""
    try:
        state = await client.get(f"{path}/approval_state", wire.ApprovalState)
    except HostRefused:
        state = None
    if state is not None:
        return judge_approval_rules(state.rules)
    needed = max(approvals.approvals_required or 0, approvals.approvals_left or 0)
    given = needed - (approvals.approvals_left or 0)
    return [build_requirement(Reason.WAITING_FOR_REVIEW, needed=needed, given=given)]


async def read_rules(client: ForgeClient) -> list[wire.ProtectedBranch]:
    path = "/protected_branches"
    pages = [page async for page in client.iterate_pages(path, list[wire.ProtectedBranch], PAGE_QUERY)]
    if not pages:
        raise HostUnavailable(NOT_SHOWN.format(client.repo, path))
    return [rule for page in pages for rule in page]


def _source_query(branch: str) -> Query:
    return {**NEWEST_QUERY, "source_branch": branch}


async def _is_source_of_another(client: ForgeClient, payload: wire.MergeRequest) -> bool:
    query = _source_query(payload.source_branch)
    listed = await _read_existing(client, "/merge_requests", list[wire.MergeRequest], query)
    return any(one.iid != payload.iid and one.source_project_id == payload.source_project_id for one in listed)


T = TypeVar("T")


async def _read_existing(client: ForgeClient, path: str, kind: type[T], query: Query | None = None) -> T:
    """For what every edition of GitLab has: a 404 is no answer."""
    found = await client.get(path, kind, query)
    if found is None:
        raise HostUnavailable(NOT_SHOWN.format(client.repo, path))
    return found


async def _get_unless(error: type[HostError], client: ForgeClient, path: str, kind: type[T]) -> T | None:
    try:
        return await client.get(path, kind)
    except error:
        return None


async def _read_details(client: ForgeClient, path: str, kind: type[list[T]]) -> list[T]:
    """Names and counts for a message, from the first page. Without them the rule blocks all the same, so an error does
    not matter here."""
    try:
        return await client.get(path, kind, PAGE_QUERY) or []
    except HostError:
        return []
