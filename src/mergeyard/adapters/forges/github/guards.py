"""What GitHub answers about the rules that guard a branch, as far as we read it."""

from typing import Any

from msgspec import Struct

ABOUT_NO_REVIEW = frozenset(
    {"creation", "update", "deletion", "non_fast_forward", "required_linear_history", "required_status_checks"}
)
"""Rules that keep out no pull request for what it is, and the one whose checks are looked at by themselves."""


class RequiredCheck(Struct, frozen=True):
    context: str
    app_id: int | None = None
    integration_id: int | None = None

    @property
    def app(self) -> int | None:
        """Who must report it: classic protection and rulesets have two words for that. None: anybody may."""
        named = self.app_id or self.integration_id or 0
        return named if named > 0 else None


class RequiredChecks(Struct, frozen=True):
    contexts: tuple[str, ...] = ()
    checks: tuple[RequiredCheck, ...] = ()

    @property
    def every(self) -> tuple[RequiredCheck, ...]:
        """Older servers give only the names."""
        told = {check.context for check in self.checks}
        return (*self.checks, *(RequiredCheck(context) for context in self.contexts if context not in told))


class Summary(Struct, frozen=True):
    """Classic protection, as everybody sees it."""

    enabled: bool = True
    required_status_checks: RequiredChecks | None = None


class Branch(Struct, frozen=True):
    protection: Summary = Summary()


class Switch(Struct, frozen=True):
    enabled: bool = False


class NamedUser(Struct, frozen=True):
    login: str


class NamedApp(Struct, frozen=True):
    slug: str = ""


class BypassAllowances(Struct, frozen=True):
    users: tuple[NamedUser, ...] = ()
    apps: tuple[NamedApp | None, ...] = ()

    @property
    def logins(self) -> frozenset[str]:
        """The accounts that these users and apps act as."""
        apps = [f"{app.slug}[bot]" for app in self.apps if app is not None]
        return frozenset([*(user.login for user in self.users), *apps])


class Reviews(Struct, frozen=True):
    required_approving_review_count: int = 0
    require_code_owner_reviews: bool = False
    require_last_push_approval: bool = False
    bypass_pull_request_allowances: BypassAllowances = BypassAllowances()

    @property
    def are_required(self) -> bool:
        further = self.require_code_owner_reviews or self.require_last_push_approval
        return further or self.required_approving_review_count > 0


class Protection(Struct, frozen=True):
    """Classic protection, as those see it who may administrate."""

    required_pull_request_reviews: Reviews = Reviews()
    enforce_admins: Switch = Switch()
    required_conversation_resolution: Switch = Switch()
    required_signatures: Switch = Switch()
    lock_branch: Switch = Switch()

    @property
    def approvals(self) -> int | None:
        """None where more is wanted than can be counted."""
        reviews = self.required_pull_request_reviews
        switches = (self.required_conversation_resolution, self.required_signatures, self.lock_branch)
        wants_more = reviews.require_code_owner_reviews or reviews.require_last_push_approval
        wants_more = wants_more or any(switch.enabled for switch in switches)
        return None if wants_more else reviews.required_approving_review_count


class Parameters(Struct, frozen=True):
    required_status_checks: tuple[RequiredCheck, ...] = ()
    required_approving_review_count: int = 0
    require_code_owner_review: bool = False
    require_last_push_approval: bool = False
    required_review_thread_resolution: bool = False
    required_reviewers: tuple[Any, ...] = ()

    @property
    def approvals(self) -> int | None:
        wants_more = self.require_code_owner_review or self.require_last_push_approval
        wants_more = wants_more or self.required_review_thread_resolution or bool(self.required_reviewers)
        return None if wants_more else self.required_approving_review_count

    @property
    def require_reviews(self) -> bool:
        further = self.require_code_owner_review or self.require_last_push_approval or self.required_reviewers
        return bool(further) or self.required_approving_review_count > 0


class Rule(Struct, frozen=True):
    """Of a ruleset."""

    type: str
    parameters: Parameters | None = None
    ruleset_id: int | None = None

    @property
    def requires_reviews(self) -> bool:
        return self.type == "pull_request" and self.parameters is not None and self.parameters.require_reviews

    @property
    def checks(self) -> tuple[RequiredCheck, ...]:
        return self.parameters.required_status_checks if self.parameters else ()

    @property
    def approvals(self) -> int | None:
        """None where more is wanted than can be counted."""
        if self.type == "pull_request" and self.parameters is not None:
            return self.parameters.approvals
        return 0 if self.type in ABOUT_NO_REVIEW else None


class BypassActor(Struct, frozen=True):
    actor_type: str
    actor_id: int | None = None


class Ruleset(Struct, frozen=True):
    name: str
    current_user_can_bypass: str | None = None
    """`never`, `always`, `pull_requests_only` or `exempt`; absent on servers that do not know it."""
    bypass_actors: tuple[BypassActor, ...] | None = None
    """Shown only to those who may edit the ruleset."""

    def can_be_bypassed_by(self, app_id: int | None) -> bool | None:
        """Whether the account that asked can bypass it; None where GitHub does not say."""
        if self.current_user_can_bypass is not None:
            return self.current_user_can_bypass != "never"
        if self.bypass_actors == ():
            return False
        apps = [actor.actor_id for actor in self.bypass_actors or () if actor.actor_type == "Integration"]
        return True if app_id is not None and app_id in apps else None
