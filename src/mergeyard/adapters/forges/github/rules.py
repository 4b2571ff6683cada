"""Branch rules of GitHub, classic protection and rulesets: required checks, reviews and bypass; roles of users."""

from typing import Any

from msgspec import Struct

from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.auth import Identity
from mergeyard.adapters.forges.host import User
from mergeyard.adapters.forges.http import ForgeClient, quote_segment
from mergeyard.domain import ids
from mergeyard.ports.forge import HostRefused

RULES_WITHOUT_REVIEWS = frozenset(
    {"creation", "update", "deletion", "non_fast_forward", "required_linear_history", "required_status_checks"}
)
"""Rule types that never block a pull request for missing reviews. Required checks are evaluated separately."""


class RequiredCheck(Struct, frozen=True):
    context: str
    app_id: int | None = None
    integration_id: int | None = None

    @property
    def app(self) -> int | None:
        """The only app whose report counts; None: any source. Classic protection and rulesets use different members."""
        app = self.app_id or self.integration_id or 0
        return app if app > 0 else None


class RequiredChecks(Struct, frozen=True):
    contexts: tuple[str, ...] = ()
    checks: tuple[RequiredCheck, ...] = ()

    @property
    def all_checks(self) -> tuple[RequiredCheck, ...]:
        """Older servers return only the names."""
        with_app = {check.context for check in self.checks}
        return (*self.checks, *(RequiredCheck(context) for context in self.contexts if context not in with_app))


class ProtectionSummary(Struct, frozen=True):
    """Classic protection, as visible to every account with read access."""

    enabled: bool = True
    required_status_checks: RequiredChecks | None = None


class Branch(Struct, frozen=True):
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


class Reviews(Struct, frozen=True):
    """Required reviews. Classic protection and rulesets contain some of these members each, and spell one of them
    differently."""

    required_approving_review_count: int = 0
    require_code_owner_review: bool = False
    require_code_owner_reviews: bool = False
    require_last_push_approval: bool = False
    required_review_thread_resolution: bool = False
    required_reviewers: tuple[Any, ...] = ()
    bypass_pull_request_allowances: BypassAllowances = BypassAllowances()

    @property
    def are_required(self) -> bool:
        return self._need_certain_reviewers or self.required_approving_review_count > 0

    @property
    def approvals(self) -> int | None:
        """The number of required approvals; None when the rule requires more than a number of approvals."""
        requires_more = self._need_certain_reviewers or self.required_review_thread_resolution
        return None if requires_more else self.required_approving_review_count

    @property
    def _need_certain_reviewers(self) -> bool:
        needs_code_owner = self.require_code_owner_review or self.require_code_owner_reviews
        return needs_code_owner or self.require_last_push_approval or bool(self.required_reviewers)


class Protection(Struct, frozen=True):
    """Classic protection, as visible to administrators of the repository."""

    required_pull_request_reviews: Reviews = Reviews()
    enforce_admins: Switch = Switch()
    required_conversation_resolution: Switch = Switch()
    required_signatures: Switch = Switch()
    lock_branch: Switch = Switch()

    @property
    def approvals(self) -> int | None:
        switches = (self.required_conversation_resolution, self.required_signatures, self.lock_branch)
        return None if any(switch.enabled for switch in switches) else self.required_pull_request_reviews.approvals


class Parameters(Reviews, frozen=True):
    required_status_checks: tuple[RequiredCheck, ...] = ()


class Rule(Struct, frozen=True):
    """A rule of a ruleset."""

    type: str
    parameters: Parameters | None = None
    ruleset_id: int | None = None

    @property
    def requires_reviews(self) -> bool:
        return self.type == "pull_request" and self.parameters is not None and self.parameters.are_required

    @property
    def checks(self) -> tuple[RequiredCheck, ...]:
        return self.parameters.required_status_checks if self.parameters else ()

    @property
    def approvals(self) -> int | None:
        if self.type == "pull_request" and self.parameters is not None:
            return self.parameters.approvals
        return 0 if self.type in RULES_WITHOUT_REVIEWS else None


class BypassActor(Struct, frozen=True):
    actor_type: str
    actor_id: int | None = None


class Ruleset(Struct, frozen=True):
    name: str
    current_user_can_bypass: str | None = None
    """`never`, `always`, `pull_requests_only` or `exempt`; absent on older servers."""
    bypass_actors: tuple[BypassActor, ...] | None = None
    """Visible only to accounts that can edit the ruleset."""

    def can_be_bypassed_by(self, app_id: int | None) -> bool | None:
        """Whether the requesting account can bypass the ruleset; None when GitHub does not reveal it."""
        if self.current_user_can_bypass is not None:
            return self.current_user_can_bypass != "never"
        if self.bypass_actors == ():
            return False
        apps = [actor.actor_id for actor in self.bypass_actors or () if actor.actor_type == "Integration"]
        return True if app_id is not None and app_id in apps else None


PLAN_UPGRADE_MESSAGE = "Upgrade to GitHub"
"""Part of the response for private repositories on a free plan, which cannot have rules."""

CLASSIC_RULE = "the branch protection rule"


class Bypass(Struct, frozen=True):
    """A rule that requires reviews and that our account can bypass, or may be able to."""

    rule: str
    is_certain: bool
    """False when GitHub does not show us the bypass list."""
    as_admin: bool = False
    """The rule does not apply to administrators, and our account is one."""


def select_required_contexts(checks: frozenset[RequiredCheck]) -> tuple[str, ...]:
    """Without our own status: the queue must not wait for itself."""
    return tuple(sorted({check.context for check in checks} - {ids.STATUS_CONTEXT}))


async def read_required_checks(client: ForgeClient, branch: str) -> frozenset[RequiredCheck]:
    """Read from the branch, because its protection is visible only to administrators."""
    classic = (await _read_summary(client, branch)).required_status_checks
    of_rulesets = [rule.checks for rule in await _read_rules(client, branch)]
    return frozenset(check for checks in (classic.all_checks if classic else (), *of_rulesets) for check in checks)


async def read_required_approvals(client: ForgeClient, branch: str) -> int | None:
    """The number of required approvals; None when a rule requires more than a number, or is not visible to us."""
    classic, rules = await _read_classic_protection(client, branch), await _read_rules(client, branch)
    required = [classic and classic.approvals, *(rule.approvals for rule in rules)]
    known = [count for count in required if count is not None]
    return max(known) if len(known) == len(required) else None


async def find_review_bypasses(client: ForgeClient, branch: str, identity: Identity) -> list[Bypass]:
    """The rules of the branch that require reviews and that our account can bypass, or may be able to."""
    rulesets = {rule.ruleset_id for rule in await _read_rules(client, branch) if rule.requires_reviews}
    found = [await _find_ruleset_bypass(client, id_, identity) for id_ in sorted(rulesets - {None}, key=str)]
    found.append(await _find_classic_bypass(client, branch, identity))
    return [bypass for bypass in found if bypass is not None]


async def _find_ruleset_bypass(client: ForgeClient, ruleset_id: int | None, identity: Identity) -> Bypass | None:
    ruleset = await client.get(f"/rulesets/{ruleset_id}", Ruleset)
    if ruleset is None:
        return Bypass(f"ruleset {ruleset_id}", is_certain=False)
    can_bypass = ruleset.can_be_bypassed_by(identity.app_id)
    return None if can_bypass is False else Bypass(f"the ruleset {ruleset.name}", is_certain=can_bypass is True)


async def _find_classic_bypass(client: ForgeClient, branch: str, identity: Identity) -> Bypass | None:
    classic = await _read_classic_protection(client, branch)
    if classic is None:
        return Bypass(CLASSIC_RULE, is_certain=False)
    reviews = classic.required_pull_request_reviews
    if not reviews.are_required:
        return None
    if identity.login in reviews.bypass_pull_request_allowances.logins:
        return Bypass(CLASSIC_RULE, is_certain=True)
    if identity.app_id is not None or classic.enforce_admins.enabled:
        return None
    repository = await client.get("", wire.Repository)
    is_admin = repository is not None and repository.permissions.get("admin")
    return Bypass(CLASSIC_RULE, is_certain=True, as_admin=True) if is_admin else None


async def _read_summary(client: ForgeClient, branch: str) -> ProtectionSummary:
    found = await client.get(f"/branches/{quote_segment(branch)}", Branch)
    return ProtectionSummary(enabled=False) if found is None else found.protection


async def _read_classic_protection(client: ForgeClient, branch: str) -> Protection | None:
    """None when the branch is protected, but the protection is not visible to us."""
    if not (await _read_summary(client, branch)).enabled:
        return Protection()
    try:
        return await client.get(f"/branches/{quote_segment(branch)}/protection", Protection)
    except HostRefused:
        return None


async def _read_rules(client: ForgeClient, branch: str) -> list[Rule]:
    path = f"/rules/branches/{quote_segment(branch)}"
    try:
        return await client.get_all(path, list[Rule], {"per_page": 100})
    except HostRefused as error:
        if PLAN_UPGRADE_MESSAGE in str(error):
            return []
        raise


APPROVED, CHANGES_REQUESTED = "APPROVED", "CHANGES_REQUESTED"
REVIEW_DECISIONS = frozenset({APPROVED, CHANGES_REQUESTED, "DISMISSED"})


async def is_approved(client: ForgeClient, branch: str, number: int) -> bool:
    """Whether the pull request has the approvals that the rules of its base branch require. Every account can approve,
    but only approvals of accounts with write access count."""
    required = await read_required_approvals(client, branch)
    if required is None:
        return False
    decisions = await _read_review_decisions(client, number)
    if CHANGES_REQUESTED in decisions.values():
        return False
    approving = [user for user, decision in decisions.items() if decision == APPROVED]
    return len([user for user in approving if (await read_role(client, user)).can_write]) >= required


async def _read_review_decisions(client: ForgeClient, number: int) -> dict[str, str]:
    """The last decision per user. Deleted accounts share the empty name, whose approval does not count."""
    reviews = await client.get_all(f"/pulls/{number}/reviews", list[wire.Review], {"per_page": 100})
    decisive = [review for review in reviews if review.state in REVIEW_DECISIONS]
    return {review.user.login if review.user else "": review.state for review in decisive}


async def read_role(client: ForgeClient, user: str) -> wire.Role:
    """An empty name is that of a deleted account, which has no role."""
    role = await client.get(f"/collaborators/{quote_segment(user)}/permission", wire.Role) if user else None
    return role or wire.Role("none")
