"""Rulesets of repositories and organizations: over which branches they are, who can bypass them, and their short forms.

app = github.create_repository("acme/app")
us = BypassActor("Integration", 4711, "exempt")
app.add_ruleset("reviews", [pull_request_rule(2, code_owners=True)], bypass=[us])
app.organization.add_ruleset("checks", [required_checks_rule("unit")], include=["refs/heads/mergeyard/**/*"])
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from msgspec import Struct, field

from tests.support.forges.github.world import Authentication, BranchProtection, Caller, Team, to_account_id

DEFAULT_BRANCH = "main"
RULESET, UPDATE_RULESET = 31, 32
ROLE_IDS = {"maintain": 2, "write": 4, "admin": 5}
"""Actor IDs of the roles that can be on a bypass list."""
MODES = ("never", "pull_request", "always", "exempt")
"""Bypass modes, the weakest first."""
EXTRA_APPROVAL = "require_extra_approval_for_unattributed_changes"
PUSH_MODES = frozenset({"always", "exempt"})
"""Modes in which a push bypasses the rules, and not only a merge of a pull request."""

RuleData = dict[str, Any]


class BypassActor(Struct, frozen=True):
    actor_type: str
    """`Integration`, `RepositoryRole`, `Team`, `OrganizationAdmin`, `User` or `DeployKey`."""
    actor_id: int | None
    bypass_mode: str = "always"


class Ruleset(Struct, kw_only=True):
    id: int
    name: str
    rules: list[RuleData]
    source: str
    source_type: str = "Repository"
    include: list[str] = field(default_factory=lambda: ["~DEFAULT_BRANCH"])
    exclude: list[str] = field(default_factory=list[str])
    enforcement: str = "active"
    bypass: list[BypassActor] = field(default_factory=list[BypassActor])

    def applies_to(self, branch: str) -> bool:
        """Whether it is in force over a branch, which need not exist."""
        is_included = any(matches_ref(pattern, branch) for pattern in self.include)
        is_excluded = any(matches_ref(pattern, branch) for pattern in self.exclude)
        return self.enforcement == "active" and is_included and not is_excluded


class Organization:
    """The owner of repositories."""

    def __init__(self, login: str, auth: Authentication) -> None:
        self.login = login
        self.id = to_account_id(login)
        self.auth = auth
        self.admins: set[str] = set()
        self.teams: dict[str, Team] = {}
        """By slug."""
        self.answers_team_ids = False
        """Whether it lists the members of a team by ids, which no description of the API has."""
        self.rulesets: list[Ruleset] = []
        self._ids = count(501)

    def add_team(self, slug: str, *members: str) -> Team:
        self.teams[slug] = Team(id=next(self._ids), slug=slug, members=set(members))
        return self.teams[slug]

    def add_ruleset(self, name: str, rules: Sequence[RuleData], **facts: Any) -> Ruleset:
        facts |= {"source": self.login, "source_type": "Organization"}
        self.rulesets.append(Ruleset(id=next(self._ids), name=name, rules=list(rules), **facts))
        return self.rulesets[-1]

    def find_team(self, team_id: int) -> Team | None:
        return next((team for team in self.teams.values() if team.id == team_id), None)

    def members_of(self, reviewer: str) -> set[str]:
        """The users behind a reviewer or code owner: `@grace` or `@acme/db`."""
        owner, _, slug = reviewer.removeprefix("@").rpartition("/")
        if not owner:
            return {slug}
        return self.teams[slug].members if owner == self.login and slug in self.teams else set()


def find_bypass_mode(ruleset: Ruleset, organization: Organization, roles: Mapping[str, str], viewer: Caller) -> str:
    """The strongest mode in which the viewer can bypass the ruleset."""
    modes = [actor.bypass_mode for actor in ruleset.bypass if _is_actor(actor, organization, roles, viewer)]
    return max(modes, key=MODES.index, default="never")


def _is_actor(actor: BypassActor, organization: Organization, roles: Mapping[str, str], viewer: Caller) -> bool:
    match actor.actor_type:
        case "Integration":
            return viewer.app_id == actor.actor_id
        case "User":
            return actor.actor_id == to_account_id(viewer.login)
        case "RepositoryRole":
            return actor.actor_id == ROLE_IDS.get(roles.get(viewer.login, ""))
        case "Team":
            team = organization.find_team(actor.actor_id or 0)
            return team is not None and viewer.login in team.members
        case "OrganizationAdmin":
            return viewer.login in organization.admins
        case _:
            return False


# Patterns


def matches_ref(pattern: str, branch: str) -> bool:
    """Whether a condition of a ruleset includes a branch."""
    if pattern == "~ALL":
        return True
    if pattern == "~DEFAULT_BRANCH":
        return branch == DEFAULT_BRANCH
    return matches_glob(pattern, f"refs/heads/{branch}")


def matches_glob(pattern: str, path: str) -> bool:
    """GitHub's patterns: `*` does not match a slash, and `**` matches folders only in front of a slash. So `qa/**`
    matches `qa/x`, and only `qa/**/*` also matches `qa/x/y`."""
    parts = re.split(r"(\*\*/|\*+|\?|\[[^]]+\])", pattern)
    return re.fullmatch("".join(map(_translate, parts)), path) is not None


def _translate(part: str) -> str:
    if part == "**/":
        return "(?:[^/]+/)*"
    if part.startswith("*"):
        return "[^/]*"
    if part == "?":
        return "[^/]"
    return part if part.startswith("[") and part.endswith("]") else re.escape(part)


def is_owned(pattern: str, path: str) -> bool:
    """Whether a pattern of a CODEOWNERS file matches a path: without a slash, or only with a last one, in any folder; a
    folder with all that it contains."""
    anchored = pattern.removeprefix("/")
    if "/" not in pattern.rstrip("/"):
        anchored = f"**/{anchored}"
    return matches_glob(f"{anchored.rstrip('/')}/**/*", path) or (
        not pattern.endswith("/") and matches_glob(anchored, path)
    )


# Rules


def pull_request_rule(
    approvals: int = 0,
    *,
    code_owners: bool = False,
    last_push: bool = False,
    threads: bool = False,
    dismisses_stale: bool = False,
    extra_for_copilot: bool = True,
    reviewers: Iterable[tuple[Team, Sequence[str], int]] = (),
    **others: Any,
) -> RuleData:
    """`reviewers` are teams with file patterns and a minimum of approvals; `others` are further parameters. GitHub
    turns `extra_for_copilot` on by default."""
    parameters: dict[str, Any] = {
        "required_approving_review_count": approvals,
        "require_code_owner_review": code_owners,
        "require_last_push_approval": last_push,
        "required_review_thread_resolution": threads,
        "dismiss_stale_reviews_on_push": dismisses_stale,
        EXTRA_APPROVAL: extra_for_copilot,
    }
    required = [
        {"file_patterns": list(patterns), "minimum_approvals": minimum, "reviewer": {"id": team.id, "type": "Team"}}
        for team, patterns, minimum in reviewers
    ]
    chosen = {"required_reviewers": required} if required else {}
    return {"type": "pull_request", "parameters": parameters | chosen | others}


def required_checks_rule(*contexts: str, apps: Mapping[str, int] | None = None, strict: bool = False) -> RuleData:
    checks = [
        {"context": name} | ({"integration_id": apps[name]} if apps and name in apps else {}) for name in contexts
    ]
    parameters = {"required_status_checks": checks, "strict_required_status_checks_policy": strict}
    return {"type": "required_status_checks", "parameters": parameters}


def rule(kind: str, **parameters: Any) -> RuleData:
    """Any other rule, also one that GitHub does not have."""
    return {"type": kind} | ({"parameters": parameters} if parameters else {})


# Short forms


def from_short_form(guard: BranchProtection, branch: str, source: str, auth: Authentication) -> Ruleset:
    """The ruleset `reviews and checks` of one branch."""
    rules = [required_checks_rule(*guard.contexts, apps=guard.apps, strict=guard.strict)] if guard.contexts else []
    if guard.approvals or guard.reviews:
        rules.append(pull_request_rule(guard.approvals, **guard.reviews))
    rules += [rule(kind, **(facts if isinstance(facts, dict) else {})) for kind, facts in guard.other_rules.items()]
    return _to_ruleset(RULESET, "reviews and checks", rules, guard, branch, source, auth)


def from_update_short_form(guard: BranchProtection, branch: str, source: str, auth: Authentication) -> Ruleset:
    """The ruleset `only the queue updates` of one branch."""
    return _to_ruleset(UPDATE_RULESET, "only the queue updates", [rule("update")], guard, branch, source, auth)


def _to_ruleset(
    id_: int, name: str, rules: list[RuleData], guard: BranchProtection, branch: str, source: str, auth: Authentication
) -> Ruleset:
    bypass = [to_bypass_actor(login, mode, auth) for login, mode in guard.bypass.items()]
    return Ruleset(id=id_, name=name, rules=rules, source=source, include=[f"refs/heads/{branch}"], bypass=bypass)


def to_bypass_actor(login: str, mode: str, auth: Authentication) -> BypassActor:
    if login.endswith("[bot]"):
        return BypassActor("Integration", auth.find_app_id(login), mode)
    return BypassActor("User", to_account_id(login), mode)


def to_classic_rules(guard: BranchProtection) -> list[RuleData]:
    """Classic protection, as the rules that a ruleset would have."""
    rules = [required_checks_rule(*guard.contexts, apps=guard.apps, strict=guard.strict)] if guard.contexts else []
    switched_on = {name for name, facts in guard.other_rules.items() if facts.get("enabled", True)}
    if guard.approvals or guard.reviews:
        classic = guard.reviews
        rules.append(
            pull_request_rule(
                guard.approvals,
                code_owners=classic.get("require_code_owner_reviews", False),
                last_push=classic.get("require_last_push_approval", False),
                dismisses_stale=classic.get("dismiss_stale_reviews", False),
                extra_for_copilot=False,
            )
        )
    if "required_conversation_resolution" in switched_on:
        rules.append(rule("required_conversation_resolution"))
    rules += [rule(kind) for kind in CLASSIC_SWITCHES if kind in switched_on]
    rules += [] if "allow_force_pushes" in switched_on else [rule("non_fast_forward")]
    return rules + ([] if "allow_deletions" in switched_on else [rule("deletion")])


CLASSIC_SWITCHES = ("required_signatures", "required_linear_history", "lock_branch", "restrictions")
