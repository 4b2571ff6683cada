"""Branch rules of GitHub, classic protection and rulesets: what they require, and who can bypass them."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.host import User
from mergeyard.adapters.forges.http import ForgeClient, quote_segment
from mergeyard.domain import ids
from mergeyard.ports.forge import HostRefused, HostUnavailable

PUSH_BYPASSES = ("always", "exempt")
SIGNATURES_TYPE = "required_signatures"
JUDGED_TYPES = frozenset({"pull_request", "required_status_checks", "required_deployments", SIGNATURES_TYPE})
BRANCH_TYPES = frozenset(
    {"creation", "update", "deletion", "non_fast_forward", "required_linear_history", "merge_queue",
     "branch_name_pattern", "tag_name_pattern", "copilot_code_review"}
)  # fmt: skip
"""Rule types about who moves the branch and how, or that block no merge: a pull request needs nothing for them."""
COPILOT_LOGINS = frozenset({"copilot", "copilot-swe-agent", "copilot-swe-agent[bot]"})
"""Names of the account that Copilot opens pull requests with: `Copilot` in the REST API, that of its app elsewhere."""


class ProtectionSummary(Struct, frozen=True):
    """Classic protection, as visible to every account with read access."""

    enabled: bool = True
    required_status_checks: wire.RequiredChecks | None = None


class Branch(Struct, frozen=True):
    commit: wire.GitObject = wire.GitObject("")
    protected: bool = False
    """By classic protection or by a ruleset."""
    protection: ProtectionSummary = ProtectionSummary()


class Switch(Struct, frozen=True):
    enabled: bool = False


class NamedApp(Struct, frozen=True):
    slug: str = ""


class BypassAllowances(Struct, frozen=True):
    users: tuple[User, ...] = ()
    apps: tuple[NamedApp | None, ...] = ()

    @property
    def logins(self) -> frozenset[str]:
        """The accounts that these users and apps act as."""
        apps = [f"{app.slug}[bot]" for app in self.apps if app is not None]
        return frozenset([*(user.login for user in self.users), *apps])


class Team(Struct, frozen=True):
    id: int
    type: str = "Team"


class RequiredReviewer(Struct, frozen=True):
    """A team that must approve changes of some files."""

    reviewer: Team
    file_patterns: tuple[str, ...] = ()
    minimum_approvals: int = 0


class Reviews(Struct, frozen=True):
    """Required reviews. Classic protection and rulesets contain some of these members each, and spell one of them
    differently."""

    required_approving_review_count: int = 0
    require_code_owner_review: bool = False
    require_code_owner_reviews: bool = False
    require_last_push_approval: bool = False
    require_extra_approval_for_unattributed_changes: bool = False
    """One more approval of what Copilot opened without a person, if any approval is required."""
    required_review_thread_resolution: bool = False
    required_reviewers: tuple[RequiredReviewer, ...] = ()
    bypass_pull_request_allowances: BypassAllowances = BypassAllowances()

    @property
    def needs_code_owner(self) -> bool:
        return self.require_code_owner_review or self.require_code_owner_reviews

    @property
    def are_required(self) -> bool:
        needs_certain_reviewers = self.needs_code_owner or self.require_last_push_approval or self.required_reviewers
        return bool(needs_certain_reviewers) or self.required_approving_review_count > 0

    def count_needed(self, author: str) -> int:
        """How many approvals a pull request of this author needs. GitHub does not show whether Copilot opened it for a
        person. So the queue waits for the additional approval in this case, too."""
        count, has_extra = self.required_approving_review_count, self.require_extra_approval_for_unattributed_changes
        return count + int(count > 0 and has_extra and author.lower() in COPILOT_LOGINS)


class Protection(Struct, frozen=True):
    """Classic protection, as visible to administrators of the repository."""

    required_pull_request_reviews: Reviews = Reviews()
    required_conversation_resolution: Switch = Switch()
    required_signatures: Switch = Switch()
    lock_branch: Switch = Switch()
    enforce_admins: Switch = Switch()


class Parameters(Reviews, frozen=True):
    required_status_checks: tuple[wire.RequiredCheck, ...] = ()
    strict_required_status_checks_policy: bool = False
    allowed_merge_methods: tuple[str, ...] = ()
    required_deployment_environments: tuple[str, ...] = ()


KNOWN_PARAMETERS = frozenset(
    {
        *Parameters.__struct_fields__,
        "dismiss_stale_reviews_on_push",
        "dismissal_restriction",
        "do_not_enforce_on_create",
        "automatic_copilot_code_review_enabled",
    }
)
"""GitHub itself dismisses stale reviews, and limits who else can do that: the reviews show the result."""


class RulePayload(Struct, frozen=True):
    type: str
    ruleset_id: int | None = None
    ruleset_source: str = ""
    parameters: dict[str, Any] | None = None


class Rule(Struct, frozen=True):
    """A rule of a ruleset of the repository or of its organization."""

    type: str
    parameters: Parameters = Parameters()
    ruleset_id: int | None = None
    ruleset_source: str = ""
    unknown_parameters: tuple[str, ...] = ()
    """Conditions that this version does not know: GitHub adds some without a new API version."""

    @property
    def requires_reviews(self) -> bool:
        return self.type == "pull_request" and self.parameters.are_required

    @property
    def unjudged(self) -> tuple[str, ...]:
        """What of this rule the queue cannot judge by itself."""
        if self.type in BRANCH_TYPES:
            return ()
        return self.unknown_parameters if self.type in JUDGED_TYPES else (self.type,)


class BypassActor(Struct, frozen=True):
    actor_type: str
    actor_id: int | None = None
    bypass_mode: str = "always"


ALL_BRANCHES = "~ALL"
WILDCARDS = frozenset("*?[")
TEST_BRANCHES = f"refs/heads/{ids.TEST_BRANCH_PREFIX}"


class RefNames(Struct, frozen=True):
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class Conditions(Struct, frozen=True):
    ref_name: RefNames = RefNames()


class Ruleset(Struct, frozen=True):
    name: str
    conditions: Conditions | None = None
    current_user_can_bypass: str | None = None
    """`never`, `always`, `pull_requests_only` or `exempt`; absent on older servers."""
    bypass_actors: tuple[BypassActor, ...] | None = None
    """Visible only to accounts that can edit the ruleset."""

    @property
    def covers_all_branches(self) -> bool:
        """Whether it covers the branches of every pull request, and so protects none of them in particular. One that
        leaves out a pattern, such as `feature/*`, protects the branches that are no features."""
        if self.conditions is None:
            return False
        names = self.conditions.ref_name
        left_out = [each for each in names.exclude if not each.startswith(TEST_BRANCHES)]
        return ALL_BRANCHES in names.include and all(WILDCARDS.isdisjoint(each) for each in left_out)

    def can_be_bypassed_by(self, app_id: int | None) -> bool | None:
        """Whether the requesting account can bypass the ruleset; None when GitHub does not reveal it."""
        if self.current_user_can_bypass is not None:
            return self.current_user_can_bypass != "never"
        if self.bypass_actors == ():
            return False
        apps = [actor.actor_id for actor in self.bypass_actors or () if actor.actor_type == "Integration"]
        return True if app_id is not None and app_id in apps else None


class BranchRules(Struct, frozen=True):
    """All rules of a branch together: a pull request must satisfy each of them."""

    rules: tuple[Rule, ...]
    classic: Protection | None
    """None when the branch has classic protection that our account cannot read."""
    checks: frozenset[wire.RequiredCheck]

    @property
    def reviews(self) -> tuple[Reviews, ...]:
        classic = () if self.classic is None else (self.classic.required_pull_request_reviews,)
        return (*classic, *(rule.parameters for rule in self.rules if rule.type == "pull_request"))

    @property
    def need_reviews(self) -> bool:
        return any(reviews.are_required for reviews in self.reviews)

    @property
    def need_resolved_conversations(self) -> bool:
        is_required_by_classic = self.classic is not None and self.classic.required_conversation_resolution.enabled
        return is_required_by_classic or any(reviews.required_review_thread_resolution for reviews in self.reviews)

    @property
    def need_classic_signatures(self) -> bool:
        return self.classic is not None and self.classic.required_signatures.enabled

    @property
    def signature_rules(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.type == SIGNATURES_TYPE)


CLASSIC_RULE = "the branch protection rule"
MAX_CHARS = 100


class Account(Struct, frozen=True):
    name: str
    """Of the account that the queue acts as: `the app mergeyard` or `the account ada`."""
    login: str
    app_id: int | None = None
    is_admin: bool = False
    user_id: int | None = None

    @property
    def on_list(self) -> str:
        """For a bypass list. GitHub's page does not offer single users everywhere."""
        return self.name if self.app_id is not None else f"a team that contains only {self.name}"

    def is_actor(self, actor: BypassActor) -> bool:
        """In classic protection the type of an actor is its name."""
        if actor.actor_id is None:
            return actor.actor_type == self.login
        return (actor.actor_type, actor.actor_id) in (("Integration", self.app_id), ("User", self.user_id))


class AppliedRuleset(Struct, frozen=True):
    """The rules of one ruleset, or of a part of classic protection, over one branch."""

    name: str
    rules: tuple[Rule, ...]
    bypass: str | None
    """How we can bypass it: `always`, `exempt`, `pull_requests_only` or `never`; None: GitHub does not show it."""
    actors: tuple[BypassActor, ...] | None
    """Who can bypass it; None: GitHub does not show it."""
    covers_all_branches: bool = False

    @property
    def types(self) -> frozenset[str]:
        return frozenset(rule.type for rule in self.rules)

    def describe_remedy(self, account: Account) -> str:
        if self.name == CLASSIC_RULE:
            return f"let {account.name} push and bypass pull requests there (only in organizations), or use a ruleset"
        return f"put {account.on_list} on its bypass list with *Always allow* or *Exempt*"


class Actors(BypassAllowances, frozen=True):
    teams: tuple[NamedApp, ...] = ()


class ClassicReviews(Reviews, frozen=True):
    bypass_pull_request_allowances: Actors = Actors()


class ClassicChecks(wire.RequiredChecks, frozen=True):
    strict: bool = False


class ClassicRule(Struct, frozen=True):
    """Classic protection, as visible to administrators. What is None is not required."""

    required_pull_request_reviews: ClassicReviews | None = None
    required_status_checks: ClassicChecks | None = None
    restrictions: Actors | None = None
    enforce_admins: Switch = Switch()
    required_signatures: Switch = Switch()
    required_linear_history: Switch = Switch()


PLAN_UPGRADE_MESSAGE = "Upgrade to GitHub"
"""Part of the response for private repositories on a free plan, which cannot have rules."""

NO_CLASSIC_MESSAGE = "Branch not protected"
NOT_FOUND_MESSAGE = " answered 404: "
"""Part of the error for a 404."""
PER_PAGE = {"per_page": 100}
T = TypeVar("T")


def select_required_contexts(checks: Collection[wire.RequiredCheck]) -> tuple[str, ...]:
    """Without our own status: the queue must not wait for itself. GitHub ignores the case of names."""
    spellings = {name.lower(): name for name in sorted({check.context for check in checks}, reverse=True)}
    spellings.pop(ids.STATUS_CONTEXT, None)
    return tuple(sorted(spellings.values()))


async def read_branch_rules(client: ForgeClient, branch: str) -> BranchRules:
    rules, summary = await asyncio.gather(read_rules(client, branch), _read_summary(client, branch))
    classic = await read_classic(client, branch, Protection) if summary.enabled else Protection()
    return BranchRules(tuple(rules), classic, _collect_checks(rules, summary))


async def read_required_checks(client: ForgeClient, branch: str) -> frozenset[wire.RequiredCheck]:
    """Read from the branch, because its protection is visible only to administrators."""
    return _collect_checks(*await asyncio.gather(read_rules(client, branch), _read_summary(client, branch)))


def _collect_checks(rules: list[Rule], summary: ProtectionSummary) -> frozenset[wire.RequiredCheck]:
    classic = summary.required_status_checks
    of_rulesets = (check for rule in rules for check in rule.parameters.required_status_checks)
    return frozenset([*(classic.all_checks if classic else ()), *of_rulesets])


async def read_ruleset(client: ForgeClient, ruleset_id: int | None) -> Ruleset | None:
    """None when GitHub does not show it to us."""
    if ruleset_id is None:
        return None
    try:
        return await client.get(f"/rulesets/{ruleset_id}", Ruleset)
    except HostRefused:
        return None


async def read_branch(client: ForgeClient, branch: str, path: str = "") -> Branch | None:
    """`path` is that of another repository, for a client without one."""
    return await client.get(f"{path}/branches/{quote_segment(branch)}", Branch)


async def _read_summary(client: ForgeClient, branch: str) -> ProtectionSummary:
    """A branch that does not exist has no protection. GitHub can answer 404 for a moment about one that does exist, so
    its ref is read then, too."""
    found = await read_branch(client, branch)
    if found is not None:
        return found.protection
    if await client.get(f"/git/ref/heads/{quote(branch)}", wire.GitRef) is not None:
        raise HostUnavailable(f"GitHub does not show the branch {branch} of {client.repo}, which exists: we ask again")
    return ProtectionSummary(enabled=False)


async def read_classic_protection(client: ForgeClient, branch: str, kind: type[T]) -> T | None:
    """None when the branch is protected, but the protection is not visible to us."""
    is_protected = (await _read_summary(client, branch)).enabled
    return await read_classic(client, branch, kind) if is_protected else kind()


async def read_classic(client: ForgeClient, branch: str, kind: type[T]) -> T | None:
    """GitHub answers 404 for a missing permission and for a branch that only rulesets protect."""
    path = f"/branches/{quote_segment(branch)}/protection"
    try:
        return await client.get(path, kind, missing=())
    except HostRefused as error:
        return kind() if NO_CLASSIC_MESSAGE in str(error) else None


async def read_rules(client: ForgeClient, branch: str) -> list[Rule]:
    """Empty also on a plan without rules."""
    return [_to_rule(payload) for payload in await list_rule_payloads(client, branch) or ()]


async def list_rule_payloads(client: ForgeClient, branch: str) -> list[RulePayload] | None:
    """Of all active rulesets, also those of the organization, and also for a branch that does not exist. None: the plan
    of the repository has no rules."""
    try:
        return await read_list(client, f"/rules/branches/{quote_segment(branch)}", list[RulePayload])
    except HostRefused as error:
        if PLAN_UPGRADE_MESSAGE in str(error):
            return None
        raise


async def read_list(client: ForgeClient, path: str, kind: type[list[T]], first_pages: int | None = None) -> list[T]:
    """The items of a list that exists, of all pages or of the first ones only. A 404 is neither an empty list nor a
    refusal: GitHub can answer it for a moment about what exists."""
    try:
        return await client.get_all(path, kind, PER_PAGE, first_pages, missing=())
    except HostRefused as error:
        if NOT_FOUND_MESSAGE in str(error):
            raise HostUnavailable(f"{error}. It exists, so we ask again") from error
        raise


def _to_rule(payload: RulePayload) -> Rule:
    """Of other types the parameters are not read: GitHub can give the same name another meaning there."""
    given = payload.parameters or {} if payload.type in JUDGED_TYPES else {}
    try:
        parameters = msgspec.convert(given, Parameters)
    except msgspec.ValidationError as error:
        raise HostUnavailable(f"unexpected parameters of the rule {payload.type}: {error}") from error
    unknown = (name for name, value in given.items() if value and name not in KNOWN_PARAMETERS)
    return Rule(payload.type, parameters, payload.ruleset_id, payload.ruleset_source, tuple(unknown))


async def can_bypass(client: ForgeClient, found: Iterable[Rule], app_id: int | None) -> bool:
    """Whether GitHub shows that these rules do not bind our pushes."""
    return all(ruleset.bypass in PUSH_BYPASSES for ruleset in await apply_rulesets(client, found, app_id))


async def apply_rulesets(client: ForgeClient, found: Iterable[Rule], app_id: int | None) -> list[AppliedRuleset]:
    grouped = defaultdict[int | None, list[Rule]](list)
    for rule in found:
        grouped[rule.ruleset_id].append(rule)
    details = await asyncio.gather(*(read_ruleset(client, ruleset_id) for ruleset_id in grouped))
    return [apply_ruleset(*pair, app_id) for pair in zip(grouped.values(), details, strict=True)]


def apply_ruleset(group: Sequence[Rule], ruleset: Ruleset | None, app_id: int | None) -> AppliedRuleset:
    """Older servers do not say how we can bypass, but can list who can."""
    source = group[0].ruleset_source[:MAX_CHARS]
    origin = f" of the organization {source}" if source and "/" not in source else ""
    if ruleset is None:
        return AppliedRuleset(f"the ruleset {group[0].ruleset_id}{origin}", tuple(group), None, None)
    bypass, actors = ruleset.current_user_can_bypass, ruleset.bypass_actors
    if bypass is None and actors is not None:
        modes = [each.bypass_mode for each in actors if (each.actor_type, each.actor_id) == ("Integration", app_id)]
        bypass = modes[0].replace("pull_request", "pull_requests_only") if modes else None if actors else "never"
    name = f'the ruleset "{ruleset.name[:MAX_CHARS]}"{origin}'
    return AppliedRuleset(name, tuple(group), bypass, actors, ruleset.covers_all_branches)


def apply_classic(classic: ClassicRule, account: Account) -> Iterator[AppliedRuleset]:
    """Each list of accounts in it, and the settings without such a list, as a ruleset."""
    reviews, checks = classic.required_pull_request_reviews, classic.required_status_checks or ClassicChecks()
    admins = () if classic.enforce_admins.enabled else (BypassActor("repository administrators", bypass_mode="exempt"),)
    given = Parameters(required_status_checks=checks.all_checks, strict_required_status_checks_policy=checks.strict)
    switches = [Rule("required_status_checks", given)] if classic.required_status_checks else []
    switches += [Rule(SIGNATURES_TYPE)] if classic.required_signatures.enabled else []
    switches += [Rule("required_linear_history")] if classic.required_linear_history.enabled else []
    parts = [(switches, Actors())] if switches else []
    if reviews is not None:
        parameters = Parameters(required_approving_review_count=int(reviews.are_required))
        parts.append(([Rule("pull_request", parameters)], reviews.bypass_pull_request_allowances))
    if classic.restrictions is not None:
        parts.append(([Rule("update")], classic.restrictions))
    for part, allowed in parts:
        teams = tuple(BypassActor(f"the team {team.slug[:MAX_CHARS]}") for team in allowed.teams)
        actors = (*(BypassActor(login[:MAX_CHARS]) for login in sorted(allowed.logins)), *teams, *admins)
        bypass = "always" if account.login in allowed.logins else None if teams and not account.app_id else "never"
        yield AppliedRuleset(CLASSIC_RULE, tuple(part), "exempt" if account.is_admin and admins else bypass, actors)
