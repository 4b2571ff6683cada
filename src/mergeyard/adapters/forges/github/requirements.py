"""What the rules of its base branch require of a pull request on GitHub, and how much of that it has.

GitHub computes `mergeable_state` for the account that asks, and our account can be on a bypass list. So all of this is
read as facts that are the same for every account, and judged here. `reviewDecision` is one of these facts: it can only
withhold an approval, because GitHub leaves it empty for some rules.
"""

import asyncio
import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.adapters.forges.github import rules, wire
from mergeyard.adapters.forges.github.auth import Authentication
from mergeyard.adapters.forges.github.checks import Checks, select_worst
from mergeyard.adapters.forges.github.rules import BranchRules, RequiredReviewer
from mergeyard.adapters.forges.host import User, build_requirement
from mergeyard.adapters.forges.http import ForgeClient
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import Requirement
from mergeyard.domain.states import SATISFIED_CHECK_STATES, Reason
from mergeyard.ports.forge import HostRefused, HostUnavailable

APPROVED, CHANGES_REQUESTED, REVIEW_REQUIRED = "APPROVED", "CHANGES_REQUESTED", "REVIEW_REQUIRED"
TEAM_FIELDS = "... on Team { combinedSlug databaseId }"
REVIEWS_QUERY = f"""
query ($owner: String!, $name: String!, $number: Int!) {{
  repository(owner: $owner, name: $name) {{
    pullRequest(number: $number) {{
      reviewDecision
      latestOpinionatedReviews(first: 100, writersOnly: true) {{
        nodes {{
          state
          author {{ login }}
          commit {{ oid }}
        }}
      }}
      reviewRequests(first: 100) {{
        nodes {{
          asCodeOwner
          requestedReviewer {{
            ... on User {{ login }}
            ... on Bot {{ login }}
            {TEAM_FIELDS}
          }}
        }}
      }}
    }}
  }}
}}
"""
REVIEWS_WITHOUT_TEAMS_QUERY = REVIEWS_QUERY.replace(TEAM_FIELDS, "")
"""For a token without the scope `read:org`, to which GitHub refuses the whole query otherwise."""
CONVERSATIONS_QUERY = """
query ($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: 100, after: $after) {
        totalCount
        nodes { isResolved }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}
"""
JUDGED_FIELDS = frozenset({"reviewDecision", "latestOpinionatedReviews"})
"""If one of these is null because of an error, requested changes could be missed. Without other fields, the queue only
waits longer or shows fewer names. An error without a path can concern each of them."""
MAX_CONVERSATION_PAGES = 10
MAX_LISTED_FILES = 3000
"""GitHub lists no more files of a pull request."""
MAX_COMPARISONS = 100_000
"""Of files with patterns, which takes a tenth of a second. More count as a match."""
ACTIVITIES_PER_PAGE = 30
MAX_COMMIT_PAGES = 3
"""GitHub lists at most 250 commits of a pull request."""
SHORT_SHA_CHARS = 8
PER_PAGE = {"per_page": 100}
HIDDEN_STATUSES = (403, 404)
READ_REVIEWS = "Pull requests: Read-only"
READ_CHECKS = "Checks: Read-only and Commit statuses: Read-only"
READ_CLASSIC_RULES = "Administration: Read-only to the app, or the role Admin to the account of the token"
READ_TEAMS = "Members: Read-only (of the organization)"
READ_DEPLOYMENTS = "Deployments: Read-only"


class ReviewFacts(Struct, frozen=True, kw_only=True):
    """Everything that reviews of a pull request are judged by."""

    head: str
    decision: str | None = None
    reviews: tuple[wire.Review, ...] = ()
    requests: tuple[wire.ReviewRequest, ...] = ()
    pusher: str | None = None
    """Who pushed the head; None: unknown."""
    files: tuple[str, ...] | None = None
    """None: more than GitHub lists."""
    team_members: Mapping[int, frozenset[str]] = {}
    """By the id of a team; without those that our account cannot read."""

    def list_with_state(self, state: str) -> list[wire.Review]:
        """Reviews of deleted accounts do not count."""
        return [review for review in self.reviews if review.state == state and review.author is not None]


def judge_reviews(branch_rules: BranchRules, facts: ReviewFacts) -> list[Requirement]:
    approvals, found = facts.list_with_state(APPROVED), list[Requirement]()
    rejections = facts.list_with_state(CHANGES_REQUESTED)
    if rejections or facts.decision == CHANGES_REQUESTED:
        found.append(build_requirement(Reason.CHANGES_REQUESTED, map(_author_name, rejections)))
    needed = max((reviews.required_approving_review_count for reviews in branch_rules.reviews), default=0)
    if needed:
        awaited = (request.name for request in facts.requests if request.name)
        given, given_by = min(len(approvals), needed), map(_author_name, approvals)
        found.append(
            build_requirement(Reason.WAITING_FOR_REVIEW, awaited, needed=needed, given=given, given_by=given_by)
        )
    for reviews in branch_rules.reviews:
        found += [
            _judge_required_reviewer(required, facts, approvals)
            for required in reviews.required_reviewers
            if required.minimum_approvals > 0 and _matches_files(required, facts.files)
        ]
    if any(reviews.needs_code_owner for reviews in branch_rules.reviews):
        owners = (request.name for request in facts.requests if request.as_code_owner and request.name)
        is_approved = facts.decision == APPROVED
        found.append(build_requirement(Reason.WAITING_FOR_CODE_OWNER, owners, given=int(is_approved)))
    if any(reviews.require_last_push_approval for reviews in branch_rules.reviews):
        is_approved = _is_last_push_approved(facts, approvals)
        pusher = (f"@{facts.pusher}",) if facts.pusher else ()
        found.append(build_requirement(Reason.WAITING_FOR_LAST_PUSH_APPROVAL, pusher, given=int(is_approved)))
    if facts.decision == REVIEW_REQUIRED and all(requirement.is_met for requirement in found):
        found.append(build_requirement(Reason.BLOCKED_BY_HOST_RULE, ["GitHub still requires a review"]))
    return found


def _judge_required_reviewer(
    required: RequiredReviewer, facts: ReviewFacts, approvals: list[wire.Review]
) -> Requirement:
    team = required.reviewer.id
    if team not in facts.team_members:
        return build_requirement(Reason.HOST_RULE_UNREADABLE, [READ_TEAMS], given=None)
    members = facts.team_members[team]
    of_team = [review for review in approvals if review.author is not None and review.author.login in members]
    reviewers = (request.requested_reviewer for request in facts.requests)
    names = [each.combined_slug for each in reviewers if each is not None and each.database_id == team]
    name = f"@{names[0]}" if names and names[0] else f"the team with the id {team}"
    return build_requirement(
        Reason.WAITING_FOR_REVIEW,
        [name],
        needed=required.minimum_approvals,
        given=min(len(of_team), required.minimum_approvals),
        given_by=map(_author_name, of_team),
    )


def _matches_files(required: RequiredReviewer, files: Sequence[str] | None) -> bool:
    """Broader than GitHub where its syntax leaves a choice: `*` also matches slashes, a name matches in every folder
    and everything below it. Patterns that exclude files are ignored; if there are no others, every file matches. A set
    of characters, an escape or a path that names no file matches every file too. So the queue asks for an approval too
    many rather than for one too few."""
    if files is None:
        return True
    names = {pattern.strip("/") for pattern in required.file_patterns if not pattern.startswith("!")}
    if not names or any(set("{[\\") & set(name) or {"", ".", ".."} & set(name.split("/")) for name in names):
        return bool(files)
    names = {name.replace("**/", "*") for name in names}
    variants = {variant for name in names for variant in (name, f"{name}/*", f"*/{name}", f"*/{name}/*")}
    if len(variants) * len(files) > MAX_COMPARISONS:
        return True
    return any(fnmatch.filter(files, variant) for variant in variants)


def _is_last_push_approved(facts: ReviewFacts, approvals: list[wire.Review]) -> bool:
    """An update of the branch without changes of its own keeps older approvals valid, and only GitHub knows that."""
    if facts.decision in (REVIEW_REQUIRED, CHANGES_REQUESTED):
        return False
    by_others = [review for review in approvals if review.author and not _is_same_account(review.author, facts.pusher)]
    approves_head = any(review.commit is not None and review.commit.oid == facts.head for review in by_others)
    return (facts.pusher is not None and approves_head) or (facts.decision == APPROVED and bool(by_others))


def _is_same_account(author: User, login: str | None) -> bool:
    """GraphQL names an app without the suffix that the REST API adds."""
    return login is not None and author.login.lower() == login.lower().removesuffix("[bot]")


def _author_name(review: wire.Review) -> str:
    return f"@{review.author.login}" if review.author else ""


class TeamsHidden(HostRefused):
    """The token has no scope to read teams."""


QUERY_ERRORS: dict[str, type[HostUnavailable]] = {"FORBIDDEN": HostRefused, "INSUFFICIENT_SCOPES": TeamsHidden}


class Requirements(Authentication, Checks):
    _can_read_teams = True

    async def _read_requirements(
        self, client: ForgeClient, payload: wire.PullRequestPayload
    ) -> tuple[Requirement, ...]:
        """Reads everything again, because a landing relies on it."""
        branch_rules = await rules.read_branch_rules(client, payload.base.ref)
        parts = await asyncio.gather(
            self._judge_reviews(client, branch_rules, payload),
            self._judge_conversations(client, branch_rules, payload),
            self._judge_head_checks(client, branch_rules, payload),
            self._judge_deployments(client, branch_rules, payload),
            self._judge_signatures(client, branch_rules, payload),
            self._judge_bypassed_rules(client, branch_rules),
            return_exceptions=True,
        )
        found = list[Requirement]()
        for part in parts:
            if isinstance(part, BaseException):
                raise part
            found += part
        if self._installations and client.repo and any(each.reason is Reason.HOST_RULE_UNREADABLE for each in found):
            self._installations.renew_if_old(client.repo)
        return tuple(found)

    async def _judge_reviews(
        self, client: ForgeClient, branch_rules: BranchRules, payload: wire.PullRequestPayload
    ) -> list[Requirement]:
        """Also if classic protection cannot be read: GitHub's decision then still can withhold the approval."""
        if not branch_rules.need_reviews and branch_rules.classic is not None:
            return []
        try:
            facts = await self._read_review_facts(client, payload)
        except HostRefused:
            return [self._require_permission(READ_REVIEWS)]
        needs_pusher = any(reviews.require_last_push_approval for reviews in branch_rules.reviews)
        teams = {required.reviewer.id for reviews in branch_rules.reviews for required in reviews.required_reviewers}
        reviews = facts.latest_opinionated_reviews or wire.Reviews()
        requests = facts.review_requests or wire.ReviewRequests()
        judged = judge_reviews(
            branch_rules,
            ReviewFacts(
                head=payload.head.sha,
                decision=facts.review_decision,
                reviews=tuple(review for review in reviews.nodes if review is not None),
                requests=tuple(request for request in requests.nodes if request is not None),
                pusher=await self._read_pusher(client, payload) if needs_pusher else None,
                files=await self._read_files(client, payload) if teams else None,
                team_members={
                    team: members
                    for team in teams
                    if (members := await _read_members(client, payload, team)) is not None
                },
            ),
        )
        return [self._require_permission(READ_TEAMS) if each.given is None else each for each in judged]

    async def _judge_conversations(
        self, client: ForgeClient, branch_rules: BranchRules, payload: wire.PullRequestPayload
    ) -> list[Requirement]:
        if not branch_rules.need_resolved_conversations:
            return []
        total = resolved = 0
        cursor: str | None = None
        for _ in range(MAX_CONVERSATION_PAGES):
            try:
                facts = await self._read_facts(client, CONVERSATIONS_QUERY, payload, after=cursor)
            except HostRefused:
                return [self._require_permission(READ_REVIEWS)]
            if facts.review_threads is None:
                return [self._require_permission(READ_REVIEWS)]
            total = facts.review_threads.total_count
            resolved += sum(node is not None and node.is_resolved for node in facts.review_threads.nodes)
            cursor = facts.review_threads.page_info.end_cursor
            if not facts.review_threads.page_info.has_next_page:
                break
        return [build_requirement(Reason.WAITING_FOR_CONVERSATIONS, needed=total, given=min(resolved, total))]

    async def _judge_head_checks(
        self, client: ForgeClient, branch_rules: BranchRules, payload: wire.PullRequestPayload
    ) -> list[Requirement]:
        required = rules.select_required_contexts(branch_rules.checks)
        if not required:
            return []
        try:
            reports = await self._read_reports(client, Sha(payload.head.sha), branch_rules.checks, urgent=True)
        except HostRefused:
            return [self._require_permission(READ_CHECKS)]
        worst = select_worst(reports, branch_rules.checks)
        passed = {status.context for status in worst if status.check_state in SATISFIED_CHECK_STATES}
        missing = [context for context in required if context not in passed]
        given = len(required) - len(missing)
        return [build_requirement(Reason.WAITING_FOR_HEAD_CHECKS, missing, needed=len(required), given=given)]

    async def _judge_deployments(
        self, client: ForgeClient, branch_rules: BranchRules, payload: wire.PullRequestPayload
    ) -> list[Requirement]:
        environments = sorted(
            {name for rule in branch_rules.rules for name in rule.parameters.required_deployment_environments}
        )
        if not environments:
            return []
        try:
            missing = [name for name in environments if not await _is_deployed(client, payload.head.sha, name)]
        except HostRefused:
            return [self._require_permission(READ_DEPLOYMENTS)]
        given = len(environments) - len(missing)
        return [build_requirement(Reason.WAITING_FOR_DEPLOYMENTS, missing, needed=len(environments), given=given)]

    async def _judge_signatures(
        self, client: ForgeClient, branch_rules: BranchRules, payload: wire.PullRequestPayload
    ) -> list[Requirement]:
        """The commits of the pull request are judged also if we can bypass the rule, as its reviews are. Our own
        commits need a signature only if we cannot."""
        if not branch_rules.need_classic_signatures and not branch_rules.signature_rules:
            return []
        path = f"/pulls/{payload.number}/commits"
        try:
            commits = await client.get_all(path, list[wire.ListedCommit], PER_PAGE, MAX_COMMIT_PAGES, urgent=True)
        except HostRefused:
            return [self._require_permission(READ_REVIEWS)]
        unsigned = [each.sha[:SHORT_SHA_CHARS] for each in commits if not each.commit.verification.verified]
        given = len(commits) - len(unsigned)
        found = [build_requirement(Reason.COMMITS_UNSIGNED, unsigned, needed=len(commits), given=given)]
        if not await self._can_push_unsigned(client, branch_rules):
            missing = await self._find_missing_key(client)
            found.append(build_requirement(Reason.SIGNING_KEY_NOT_ACCEPTED, [missing], given=int(not missing)))
        return found

    async def _can_push_unsigned(self, client: ForgeClient, branch_rules: BranchRules) -> bool:
        """Of classic protection, only administrators can be exempt."""
        if branch_rules.classic is not None and branch_rules.need_classic_signatures:
            repository = await client.read_repository(wire.Repository, urgent=True)
            if branch_rules.classic.enforce_admins.enabled or not repository.permissions.get("admin"):
                return False
        return await rules.can_bypass(client, branch_rules.signature_rules, (await self._read_identity()).app_id)

    async def _judge_bypassed_rules(self, client: ForgeClient, branch_rules: BranchRules) -> list[Requirement]:
        """Rules that the queue cannot judge. GitHub enforces them when the queue merges, unless our account can bypass
        their ruleset."""
        found = list[Requirement]()
        if branch_rules.classic is None:
            found.append(self._require_permission(READ_CLASSIC_RULES))
        elif branch_rules.classic.lock_branch.enabled:
            found.append(build_requirement(Reason.BLOCKED_BY_HOST_RULE, ["the branch is locked"]))
        for rule in (rule for rule in branch_rules.rules if rule.unjudged):
            ruleset = await rules.read_ruleset(client, rule.ruleset_id)
            if ruleset is None or ruleset.can_be_bypassed_by((await self._read_identity()).app_id) is not False:
                name = ruleset.name if ruleset else str(rule.ruleset_id)
                labels = [f"{unjudged} of the ruleset {name}" for unjudged in rule.unjudged]
                unknown = build_requirement(Reason.BLOCKED_BY_HOST_RULE, labels, given=None)
                found.append(replace(unknown, blocks_if_unknown=self._config.unreadable_rules_block))
        return found

    async def _read_review_facts(self, client: ForgeClient, payload: wire.PullRequestPayload) -> wire.PullRequestFacts:
        if self._can_read_teams:
            try:
                return await self._read_facts(client, REVIEWS_QUERY, payload)
            except TeamsHidden:
                self._can_read_teams = False
        return await self._read_facts(client, REVIEWS_WITHOUT_TEAMS_QUERY, payload)

    async def _read_facts(
        self, client: ForgeClient, query: str, payload: wire.PullRequestPayload, **variables: Any
    ) -> wire.PullRequestFacts:
        """GitHub answers 200 also with errors; members that we are not allowed to read are then null."""
        if client.repo is None:
            raise HostUnavailable("a query needs a repository")
        named = {"owner": client.repo.owner, "name": client.repo.name, "number": payload.number}
        result = (await client.query(query, named | variables)).decode(wire.QueryResult)
        repository = result.data.repository if result.data else None
        found = repository.pull_request if repository else None
        errors = [error for error in result.errors if found is None or JUDGED_FIELDS & {*(error.path or JUDGED_FIELDS)}]
        if found is not None and not errors:
            return found
        message = errors[0].message[:300] if errors else "no data"
        types = {error.type for error in errors}
        kind = next((QUERY_ERRORS[each] for each in sorted(types) if each in QUERY_ERRORS), HostUnavailable)
        raise kind(f"GitHub does not answer a query about pull request {payload.number}: {message}")

    async def _read_pusher(self, client: ForgeClient, payload: wire.PullRequestPayload) -> str | None:
        """None for a fork, whose activities we are not allowed to read."""
        if payload.is_fork:
            return None
        query = {"ref": f"refs/heads/{payload.head.ref}", "per_page": ACTIVITIES_PER_PAGE}
        try:
            activities = await client.get("/activity", list[wire.Activity], query, urgent=True)
        except HostRefused:
            return None
        actors = (each.actor for each in activities or () if each.after == payload.head.sha)
        actor = next(actors, None)
        return actor.login if actor else None

    async def _read_files(self, client: ForgeClient, payload: wire.PullRequestPayload) -> tuple[str, ...] | None:
        path = f"/pulls/{payload.number}/files"
        listed = await client.get_all(path, list[wire.ChangedFile], PER_PAGE, urgent=True)
        names = (name for file in listed for name in (file.filename, file.previous_filename) if name)
        return tuple(names) if len(listed) < MAX_LISTED_FILES else None


async def _read_members(client: ForgeClient, payload: wire.PullRequestPayload, team: int) -> frozenset[str] | None:
    """None when our account is not allowed to read the team, which is not the same as a team without members."""
    organization = payload.base.repo.owner.id if payload.base.repo else 0
    path = f"/organizations/{organization}/team/{team}/members"
    listed = client.without_repository().iterate_pages(path, list[User], PER_PAGE, urgent=True, missing=HIDDEN_STATUSES)
    pages = [page async for page in listed]
    return frozenset(member.login for page in pages for member in page) if pages else None


async def _is_deployed(client: ForgeClient, sha: str, environment: str) -> bool:
    query = {"sha": sha, "environment": environment, "per_page": 1}
    latest = await client.get("/deployments", list[wire.Deployment], query, urgent=True)
    if not latest:
        return False
    path = f"/deployments/{latest[0].id}/statuses"
    statuses = await client.get(path, list[wire.DeploymentStatus], {"per_page": 1}, urgent=True)
    return bool(statuses) and statuses[0].state == "success"
