"""What the rules of its base branch require of a pull request on GitHub, and how much of that it has.

GitHub computes `mergeable_state` for the account that asks, and our account can be on a bypass list. So all of this is
read as facts that are the same for every account, and judged here. `reviewDecision` is one of these facts: it can only
withhold an approval, because GitHub leaves it empty for some rules. While missing approvals or requested changes
explain it, it does not show whether a code owner or an approval of the last push is missing, too.
"""

import asyncio
import fnmatch
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import structlog
from msgspec import Struct
from msgspec.structs import replace

from mergeyard.adapters.forges.github import rules, wire
from mergeyard.adapters.forges.github.auth import Authentication
from mergeyard.adapters.forges.github.checks import Checks
from mergeyard.adapters.forges.github.rules import PER_PAGE, BranchRules, RequiredReviewer
from mergeyard.adapters.forges.host import User, build_requirement
from mergeyard.adapters.forges.http import ForgeClient, ForgeConfig, quote_segment
from mergeyard.domain import ids
from mergeyard.domain.ids import Repo
from mergeyard.domain.pull_requests import Requirement
from mergeyard.domain.states import Reason
from mergeyard.domain.timestamps import HOUR, Instant, later
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import HostError, HostRefused, HostUnavailable

log = structlog.get_logger()

APPROVED, CHANGES_REQUESTED, REVIEW_REQUIRED = "APPROVED", "CHANGES_REQUESTED", "REVIEW_REQUIRED"
TEAM_FIELDS = "... on Team { combinedSlug }"
REVIEWS_QUERY = f"""
query ($owner: String!, $name: String!, $number: Int!, $head: GitObjectID!, $branch: String!) {{
  repository(owner: $owner, name: $name) {{
    sameName: pullRequests(first: 40, states: OPEN, headRefName: $branch) {{
      nodes {{ ...Other }}
    }}
    headCommit: object(oid: $head) {{
      ... on Commit {{
        associatedPullRequests(first: 40) {{
          nodes {{ ...Other }}
        }}
      }}
    }}
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

fragment Other on PullRequest {{
  number
  state
  headRefName
  headRefOid
  reviewDecision
  latestOpinionatedReviews(first: 40, writersOnly: true) {{
    nodes {{
      state
      author {{ login }}
    }}
  }}
}}
"""
"""GitHub has no list of pull requests by their head. It associates a commit with the pull requests that contain it,
except those from forks, and, if the default branch contains it, only with those that are merged."""
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
OPTIONAL_FIELDS = frozenset({"reviewRequests"})
"""If one of these is null because of an error, the queue only shows fewer names. Without other fields, something that
blocks the pull request could be missed. An error without a path can concern each of them."""
REFUSED_MESSAGE = "Resource not accessible by"
MAX_CONVERSATION_PAGES = 10
MAX_TEAM_PAGES = 30
"""Of 100 teams each."""
MAX_LISTED_FILES = 3000
"""GitHub lists no more files of a pull request."""
ACTIVITIES_PER_PAGE = 30
MAX_COMMIT_PAGES = 3
"""GitHub lists at most 250 commits of a pull request."""
SHORT_SHA_CHARS = 8
HIDDEN_STATUSES = (403, 404)
MAX_COMPARISONS = 100_000
"""Of files with patterns, which takes a tenth of a second. More count as a match."""
READ_TEAMS = "Members: Read-only (of the organization)"
READ_REVIEWS = "Pull requests: Read-only"
READ_CLASSIC_RULES = "Administration: Read-only to the app, or the role Admin to the account of the token"


class Team(Struct, frozen=True):
    name: str
    """Such as `@acme/db`; empty if it is not known."""
    members: frozenset[str]


class ReviewFacts(Struct, frozen=True, kw_only=True):
    """Everything that reviews of a pull request are judged by."""

    head: str
    author: str = ""
    decision: str | None = None
    reviews: tuple[wire.Review, ...] = ()
    requests: tuple[wire.ReviewRequest, ...] = ()
    same_head: tuple[wire.OtherPullRequest, ...] = ()
    """Other open pull requests with the same head."""
    pusher: str | None = None
    """Who pushed the head; None: unknown."""
    files: tuple[str, ...] | None = None
    """None: more than GitHub lists."""
    teams: Mapping[int, Team] = {}
    """By id; without those that our account cannot read."""

    def list_with_state(self, state: str) -> list[wire.Review]:
        """Reviews of deleted accounts do not count."""
        return [review for review in self.reviews if review.state == state and review.author is not None]


def judge_reviews(branch_rules: BranchRules, facts: ReviewFacts) -> list[Requirement]:
    approvals, found = facts.list_with_state(APPROVED), list[Requirement]()
    rejections = [each.author_name for each in facts.list_with_state(CHANGES_REQUESTED)]
    rejections += [name for other in facts.same_head for name in _name_rejections(other)]
    if rejections or facts.decision == CHANGES_REQUESTED:
        found.append(build_requirement(Reason.CHANGES_REQUESTED, rejections))
    needed = max((reviews.count_needed(facts.author) for reviews in branch_rules.reviews), default=0)
    if needed:
        awaited = (request.name for request in facts.requests if request.name)
        given, given_by = min(len(approvals), needed), [each.author_name for each in approvals]
        found.append(
            build_requirement(Reason.WAITING_FOR_REVIEW, awaited, needed=needed, given=given, given_by=given_by)
        )
    for reviews in branch_rules.reviews:
        found += [
            _judge_required_reviewer(required, facts, approvals)
            for required in reviews.required_reviewers
            if required.minimum_approvals > 0 and _matches_files(required, facts.files)
        ]
    is_explained = _lacks_any(found)
    if any(reviews.needs_code_owner for reviews in branch_rules.reviews):
        found += _judge_code_owners(facts, is_explained=is_explained)
    if any(reviews.require_last_push_approval for reviews in branch_rules.reviews):
        found += _judge_last_push(facts, approvals, is_explained=is_explained or _lacks_any(found))
    if facts.decision == REVIEW_REQUIRED and not _lacks_any(found):
        found.append(build_requirement(Reason.BLOCKED_BY_HOST_RULE, ["GitHub still requires a review"]))
    # At the end: what others lack does not explain the decision about this pull request.
    pending = [f"a reviewer of #{other.number} (same head)" for other in facts.same_head if _lacks_review(other)]
    if pending:
        found.append(build_requirement(Reason.WAITING_FOR_REVIEW, pending))
    return found


def _lacks_review(other: wire.OtherPullRequest) -> bool:
    """GitHub does not merge a pull request while another open one with the same head waits for a review. The draft of a
    test branch waits for none: it has this head while the queue merges."""
    if other.head_ref_name.startswith(ids.TEST_BRANCH_PREFIX):
        return False
    return other.review_decision == REVIEW_REQUIRED


def _lacks_any(found: Iterable[Requirement]) -> bool:
    """Whether a requirement that the queue can judge is not met."""
    return any(each.given is not None and each.given < each.needed for each in found)


def _name_rejections(other: wire.OtherPullRequest) -> list[str]:
    """GitHub does not merge a pull request while reviewers request changes of another open one with the same head."""
    reviews = other.latest_opinionated_reviews or wire.Reviews()
    rejections = [each for each in reviews.nodes if each and each.author and each.state == CHANGES_REQUESTED]
    where = f"on #{other.number} (same head)"
    if not rejections and other.review_decision == CHANGES_REQUESTED:
        return [f"a reviewer {where}"]
    return [f"{each.author_name} {where}" for each in rejections]


def _judge_required_reviewer(
    required: RequiredReviewer, facts: ReviewFacts, approvals: list[wire.Review]
) -> Requirement:
    team = facts.teams.get(required.reviewer.id)
    if team is None:
        return build_requirement(Reason.HOST_RULE_UNREADABLE, [READ_TEAMS], given=None)
    of_team = [review for review in approvals if review.author is not None and review.author.login in team.members]
    return build_requirement(
        Reason.WAITING_FOR_REVIEW,
        [team.name or f"the team with the id {required.reviewer.id}"],
        needed=required.minimum_approvals,
        given=min(len(of_team), required.minimum_approvals),
        given_by=[each.author_name for each in of_team],
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


def _judge_code_owners(facts: ReviewFacts, *, is_explained: bool) -> list[Requirement]:
    """Only GitHub knows the code owners. While something else explains that it does not report `APPROVED`, and it asks
    no code owner for a review, nothing is reported: they can have approved."""
    owners = [request.name for request in facts.requests if request.as_code_owner]
    if is_explained and not owners:
        return []
    return [build_requirement(Reason.WAITING_FOR_CODE_OWNER, owners, given=int(facts.decision == APPROVED))]


def _judge_last_push(facts: ReviewFacts, approvals: list[wire.Review], *, is_explained: bool) -> list[Requirement]:
    """An update of the branch without changes of its own keeps older approvals valid, and only GitHub knows that. While
    something else explains that GitHub requires a review, an approval of the head counts. Then nothing is reported
    where it is not known whether another person gave it."""
    by_others = [review for review in approvals if review.author and not _is_same_account(review.author, facts.pusher)]
    approves_head = any(review.commit is not None and review.commit.oid == facts.head for review in by_others)
    if is_explained and approves_head and facts.pusher is None:
        return []
    is_withheld = facts.decision == REVIEW_REQUIRED and not is_explained
    is_approved = facts.pusher is not None and approves_head and not is_withheld
    is_approved = is_approved or (facts.decision == APPROVED and bool(by_others))
    pusher = (f"@{facts.pusher}",) if facts.pusher else ()
    return [build_requirement(Reason.WAITING_FOR_LAST_PUSH_APPROVAL, pusher, given=int(is_approved))]


def _is_same_account(author: User, login: str | None) -> bool:
    """GraphQL names an app without the suffix that the REST API adds."""
    return login is not None and author.login.lower() == login.lower().removesuffix("[bot]")


class TeamsHidden(HostRefused):
    """The token has no scope to read teams."""


QUERY_ERRORS: dict[str, type[HostError]] = {"FORBIDDEN": HostRefused, "INSUFFICIENT_SCOPES": TeamsHidden}


class Requirements(Authentication, Checks):
    _can_read_teams = True

    def __init__(self, config: ForgeConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self._slugs: dict[str, tuple[Instant, Mapping[int, str]]] = {}
        """Of teams, by the name of their organization and their ids; with the time when the entry expires."""
        self._logged_rules = set[tuple[Repo | None, str]]()

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
            repository = await self._read_review_facts(client, payload)
        except HostRefused:
            return [self._require_permission(READ_REVIEWS)]
        facts = repository.pull_request
        if facts is None or facts.latest_opinionated_reviews is None:
            raise HostUnavailable(f"GitHub does not show the reviews of pull request {payload.number}: we ask again")
        needs_pusher = any(reviews.require_last_push_approval for reviews in branch_rules.reviews)
        teams = {required.reviewer.id for reviews in branch_rules.reviews for required in reviews.required_reviewers}
        requests = facts.review_requests or wire.ReviewRequests()
        judged = judge_reviews(
            branch_rules,
            ReviewFacts(
                head=payload.head.sha,
                author=payload.user.login if payload.user else "",
                decision=facts.review_decision,
                reviews=tuple(review for review in facts.latest_opinionated_reviews.nodes if review is not None),
                same_head=repository.list_same_head(payload.number, payload.head.sha),
                requests=tuple(request for request in requests.nodes if request is not None),
                pusher=await self._read_pusher(client, payload) if needs_pusher else None,
                files=await self._read_files(client, payload) if teams else None,
                teams=await self._read_teams(client.repo, payload, teams) if client.repo else {},
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
                repository = await self._query(client, CONVERSATIONS_QUERY, payload.number, after=cursor)
            except HostRefused:
                return [self._require_permission(READ_REVIEWS)]
            threads = repository.pull_request and repository.pull_request.review_threads
            if threads is None:
                raise HostUnavailable(f"GitHub does not show the conversations of {payload.number}: we ask again")
            total = threads.total_count
            resolved += sum(node is not None and node.is_resolved for node in threads.nodes)
            cursor = threads.page_info.end_cursor
            if not threads.page_info.has_next_page:
                break
        return [build_requirement(Reason.WAITING_FOR_CONVERSATIONS, needed=total, given=min(resolved, total))]

    async def _judge_signatures(
        self, client: ForgeClient, branch_rules: BranchRules, payload: wire.PullRequestPayload
    ) -> list[Requirement]:
        """The commits of the pull request are judged also if we can bypass the rule, as its reviews are. Our own
        commits need a signature only if we cannot."""
        if not branch_rules.need_classic_signatures and not branch_rules.signature_rules:
            return []
        path = f"/pulls/{payload.number}/commits"
        try:
            commits = await rules.read_list(client, path, list[wire.ListedCommit], MAX_COMMIT_PAGES)
        except HostRefused:
            return [self._require_permission(READ_REVIEWS)]
        unsigned = [each.sha[:SHORT_SHA_CHARS] for each in commits if not each.commit.verification.verified]
        given = len(commits) - len(unsigned)
        found = [build_requirement(Reason.COMMITS_UNSIGNED, unsigned, needed=len(commits), given=given)]
        if len(commits) < payload.commits:
            hidden = f"signatures of all but {len(commits)} of {payload.commits} commits"
            hint = "(GitHub does not list the others: squash some)"
            unknown = build_requirement(Reason.COMMITS_UNSIGNED, [f"{hidden} {hint}"], given=None)
            found.append(replace(unknown, blocks_if_unknown=self._config.unreadable_rules_block))
        found = [replace(each, concerns_host_merges=True) for each in found]
        if not await self._can_push_unsigned(client, branch_rules):
            missing = await self._find_missing_key(client)
            found.append(build_requirement(Reason.SIGNING_KEY_NOT_ACCEPTED, [missing], given=int(not missing)))
        return found

    async def _can_push_unsigned(self, client: ForgeClient, branch_rules: BranchRules) -> bool:
        """Of classic protection, only administrators can be exempt."""
        if branch_rules.classic is not None and branch_rules.need_classic_signatures:
            repository = await client.read_repository(wire.Repository)
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
                name = f'"{ruleset.name}"' if ruleset else str(rule.ruleset_id)
                labels = [f"{unjudged} of the ruleset {name}" for unjudged in rule.unjudged]
                self._log_unjudged(client, labels)
                unknown = build_requirement(Reason.BLOCKED_BY_HOST_RULE, labels, given=None)
                found.append(replace(unknown, blocks_if_unknown=self._config.unreadable_rules_block))
        return found

    def _log_unjudged(self, client: ForgeClient, labels: Iterable[str]) -> None:
        """Once each: GitHub adds rules and parameters without a new version of its API, on for all repositories."""
        for label in labels:
            if (client.repo, label) not in self._logged_rules:
                self._logged_rules.add((client.repo, label))
                log.warning("host_rule_not_known", repo=str(client.repo), rule=label)

    async def _read_review_facts(self, client: ForgeClient, payload: wire.PullRequestPayload) -> wire.RepositoryNode:
        head = {"head": payload.head.sha, "branch": payload.head.ref}
        if self._can_read_teams:
            try:
                return await self._query(client, REVIEWS_QUERY, payload.number, **head)
            except TeamsHidden:
                self._can_read_teams = False
        return await self._query(client, REVIEWS_WITHOUT_TEAMS_QUERY, payload.number, **head)

    async def _query(self, client: ForgeClient, query: str, number: int, **variables: Any) -> wire.RepositoryNode:
        """GitHub answers 200 also with errors; members that we are not allowed to read are then null."""
        if client.repo is None:
            raise HostUnavailable("a query needs a repository")
        named = {"owner": client.repo.owner, "name": client.repo.name, "number": number}
        result = (await client.query(query, named | variables)).decode(wire.QueryResult)
        repository = result.data.repository if result.data else None
        is_empty = repository is None or repository.pull_request is None
        errors = [error for error in result.errors if is_empty or not OPTIONAL_FIELDS & {*(error.path or ())}]
        if repository is not None and not is_empty and not errors:
            return repository
        message = errors[0].message[:300] if errors else "no data"
        kind = _classify_errors(errors)
        raise kind(f"GitHub does not answer a query about pull request {number}: {message}")

    async def _read_pusher(self, client: ForgeClient, payload: wire.PullRequestPayload) -> str | None:
        """None for a fork, whose activities we are not allowed to read. Our own account is not the pusher: it moved the
        head branch back after a merge that did not happen, to a commit that another account had pushed."""
        if payload.is_fork:
            return None
        query = {"ref": f"refs/heads/{payload.head.ref}", "per_page": ACTIVITIES_PER_PAGE}
        try:
            activities = await client.get("/activity", list[wire.Activity], query)
        except HostRefused:
            return None
        own_login = await self._read_own_login()
        for activity in activities or ():
            if activity.after != payload.head.sha:
                continue
            if activity.actor is None:
                return None
            if activity.actor.login.lower() != own_login.lower():
                return activity.actor.login
        return None

    async def _read_teams(
        self, repo: Repo, payload: wire.PullRequestPayload, wanted: Collection[int]
    ) -> dict[int, Team]:
        """Without those that our account is not allowed to read, which is not the same as a team without members."""
        owner = payload.base.repo.owner if payload.base.repo else wire.Owner()
        found = dict[int, Team]()
        if not wanted:
            return found
        try:
            client = await self._members_client_for(repo)
            slugs = await self._list_slugs(client, owner.login, wanted)
            for team in wanted:
                slug = slugs.get(team)
                path = f"/organizations/{owner.id}/team/{team}"  # not documented for members, so only without a slug
                if slug is not None:
                    path = f"/orgs/{quote_segment(owner.login)}/teams/{quote_segment(slug)}"
                members = await _read_members(client, f"{path}/members")
                if members is None:
                    self._slugs.pop(owner.login, None)  # the team can have another name by now
                else:
                    found[team] = Team(f"@{owner.login}/{slug}" if slug else "", members)
        except HostRefused:
            return found
        return found

    async def _list_slugs(self, client: ForgeClient, owner: str, wanted: Collection[int]) -> Mapping[int, str]:
        """The names of all teams in addresses of the API, kept for an hour: a rule names its teams by their ids."""
        expires_at, slugs = self._slugs.get(owner, (Instant(0), dict[int, str]()))
        if self._clock.now() >= expires_at or not slugs.keys() >= set(wanted):
            path = f"/orgs/{quote_segment(owner)}/teams"
            teams = await client.get_all(path, list[wire.Team], PER_PAGE, MAX_TEAM_PAGES, missing=HIDDEN_STATUSES)
            slugs = {team.id: team.slug for team in teams}
            self._slugs[owner] = later(self._clock.now(), HOUR), slugs
        return slugs

    async def _read_files(self, client: ForgeClient, payload: wire.PullRequestPayload) -> tuple[str, ...] | None:
        listed = await rules.read_list(client, f"/pulls/{payload.number}/files", list[wire.ChangedFile])
        names = (name for file in listed for name in (file.filename, file.previous_filename) if name)
        return tuple(names) if payload.changed_files <= len(listed) < MAX_LISTED_FILES else None


def _classify_errors(errors: Iterable[wire.QueryError]) -> type[HostError]:
    types = {"FORBIDDEN" if error.message.startswith(REFUSED_MESSAGE) else error.type for error in errors}
    return next((kind for name, kind in QUERY_ERRORS.items() if name in types), HostUnavailable)


async def _read_members(client: ForgeClient, path: str) -> frozenset[str] | None:
    """None when our account is not allowed to read the team, or there is none at this path."""
    listed = client.iterate_pages(path, list[User], PER_PAGE, missing=HIDDEN_STATUSES)
    pages = [page async for page in listed]
    return frozenset(member.login for page in pages for member in page) if pages else None
