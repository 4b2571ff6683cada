"""The fake GitHub judges pull requests, merges and pushes by rules, as each viewer sees them.

Each test names its source: a page of github/docs, the API description or the GraphQL schema, or, where documents are
silent, a report of others about the real GitHub. The pages, below `content/`:

- Available rules for rulesets, Creating rulesets for a repository: repositories/
  configuring-branches-and-merges-in-your-repository/managing-rulesets
- About protected branches: repositories/configuring-branches-and-merges-in-your-repository/managing-protected-branches
- About code owners: repositories/managing-your-repositorys-settings-and-features/customizing-your-repository
- API versions, Troubleshooting the REST API: rest
- Rate limits and query limits for the GraphQL API: graphql/overview
"""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mergeyard.adapters.signing import parse_signing_key
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Signer
from tests.contract.host.github_environment import GithubEnvironment
from tests.support.forges.github.fake import ALL_PERMISSIONS
from tests.support.forges.github.rules import COPILOT
from tests.support.forges.github.rulesets import (
    EXTRA_APPROVAL,
    ROLE_IDS,
    BypassActor,
    matches_glob,
    pull_request_rule,
    required_checks_rule,
    rule,
)
from tests.support.forges.github.world import BranchProtection, Caller, to_account_id
from tests.support.repositories import ENVIRONMENT

pytestmark = pytest.mark.long

US, ADMIN, OTHER, APP_ID = "ada", "root", "grace", 4711
TEST_BRANCH = "mergeyard/pr-1/0b8f"


@pytest.fixture(autouse=True)
def _viewers(github: GithubEnvironment) -> None:
    """Each viewer's login is also the token. Hopper is the author of all pull requests."""
    github.acme.roles = {US: "write", ADMIN: "admin", OTHER: "write", "linus": "maintain", "hopper": "write"}
    for login in (US, ADMIN, OTHER):
        github.github.add_token(login, login)
    bot = Caller("mergeyard-test[bot]", ALL_PERMISSIONS, app_id=APP_ID)
    github.github.auth.tokens |= {"the app": bot, "another app": Caller("another[bot]", ALL_PERMISSIONS, app_id=1)}


def ask(env: GithubEnvironment, path: str, viewer: str = US, method: str = "GET", body: Any = None) -> Any:
    response = request(env, path, viewer, method, body)
    assert response.is_success, response.text
    return response.json()


def request(
    env: GithubEnvironment, path: str, viewer: str = US, method: str = "GET", body: Any = None
) -> httpx2.Response:
    headers = {"authorization": f"Bearer {viewer}"}
    is_absolute = path.startswith("api/")
    address = f"{env.github.web_url}/{path}" if is_absolute else f"{env.github.api_url}/repos/acme/app{path}"
    return httpx2.request(method, address, json=body, headers=headers, trust_env=False, verify=False)


def state_for(env: GithubEnvironment, viewer: str = OTHER) -> str:
    """Reads twice after a push: GitHub computes the mergeability when it is asked for it."""
    first = ask(env, "/pulls/1", viewer)["mergeable_state"]
    return first if first != "unknown" else ask(env, "/pulls/1", viewer)["mergeable_state"]


def merge(env: GithubEnvironment, viewer: str = US, method: str = "merge") -> httpx2.Response:
    return request(env, "/pulls/1/merge", viewer, "PUT", {"merge_method": method})


def open_pull_request(env: GithubEnvironment, **facts: Any) -> Sha:
    return env.open(1, author="hopper", **facts)


def as_user(mode: str, login: str = US) -> BypassActor:
    return BypassActor("User", to_account_id(login), mode)


# Viewers


@pytest.mark.parametrize(
    ("mode", "state", "merges"),
    [
        (None, "blocked", False),
        ("pull_request", "blocked", True),
        ("always", "clean", True),
        ("exempt", "clean", True),
    ],
)
def test_an_unapproved_pull_request_looks_clean_to_those_who_bypass(
    github: GithubEnvironment, mode: str | None, state: str, merges: bool
):
    """Sources: strands-labs/robots#1917 and openemr/openemr#13607: the state depends on the token;
    finite-sample/rmcp#71: it is clean for an actor with a bypass. The API description, "Create a repository ruleset",
    has the modes."""
    open_pull_request(github)
    github.acme.add_ruleset("reviews", [pull_request_rule(1)], bypass=[as_user(mode)] if mode else [])
    assert (state_for(github, US), state_for(github, OTHER)) == (state, "blocked")
    assert not merge(github, OTHER).is_success
    assert merge(github, US).is_success is merges


def test_the_mode_always_can_also_look_blocked(github: GithubEnvironment):
    """Sources: akuity/kargo#6623, runatlantis/atlantis#4116 and cli/cli#13388: actors with a bypass still saw
    `blocked`. No document decides."""
    open_pull_request(github)
    github.acme.add_ruleset("reviews", [pull_request_rule(1)], bypass=[as_user("always")])
    github.acme.always_looks_clean = False
    assert state_for(github, US) == "blocked"


def test_every_unmet_ruleset_must_be_bypassed(github: GithubEnvironment):
    """Source: issue 81 of actions/create-github-app-token: a bypass of one rule did not help against another."""
    open_pull_request(github)
    github.acme.add_ruleset("reviews", [pull_request_rule(1)], bypass=[as_user("exempt")])
    github.acme.organization.add_ruleset("checks", [required_checks_rule("unit")])
    assert state_for(github, US) == "blocked"
    github.acme.report_status(github.change().head, "unit", "success")
    assert state_for(github, US) == "clean"


def test_classic_protection_looks_clean_to_an_administrator_unless_it_applies_to_all(github: GithubEnvironment):
    """Source: github/docs, "About protected branches": its restrictions do not apply to administrators by default, and
    accounts can be allowed to bypass required pull requests."""
    open_pull_request(github)
    github.acme.protections["main"] = BranchProtection(approvals=1, enforce_admins=False)
    assert (state_for(github, ADMIN), state_for(github, US)) == ("clean", "blocked")
    github.acme.protections["main"] = BranchProtection(approvals=1, enforce_admins=True)
    assert state_for(github, ADMIN) == "blocked"
    github.acme.protections["main"] = BranchProtection(approvals=1, bypass={US: ""})
    assert (state_for(github, ADMIN), state_for(github, US)) == ("blocked", "clean")


ACTORS: dict[str, tuple[Callable[[GithubEnvironment], BypassActor], str]] = {
    "app": (lambda _: BypassActor("Integration", APP_ID), "the app"),
    "role": (lambda _: BypassActor("RepositoryRole", ROLE_IDS["admin"]), ADMIN),
    "team": (lambda env: BypassActor("Team", env.acme.organization.add_team("db", US).id), US),
    "owner of the organization": (lambda _: BypassActor("OrganizationAdmin", 1), "linus"),
    "user": (lambda _: as_user("always"), US),
}


@pytest.mark.parametrize("kind", ACTORS)
def test_each_kind_of_actor_bypasses_and_others_do_not(github: GithubEnvironment, kind: str):
    """Source: the API description, "Create a repository ruleset", member `bypass_actors`, for the kinds; "Get a
    repository ruleset", member `current_user_can_bypass`."""
    make_actor, viewer = ACTORS[kind]
    github.github.add_token("linus", "linus")
    github.acme.organization.admins.add("linus")
    number = github.acme.add_ruleset("reviews", [pull_request_rule(1)], bypass=[make_actor(github)]).id
    modes = {
        login: ask(github, f"/rulesets/{number}", login)["current_user_can_bypass"]
        for login in ("the app", "another app", ADMIN, US, "linus", OTHER)
    }
    assert modes == dict.fromkeys(modes, "never") | {viewer: "always"}


@pytest.mark.parametrize(
    ("mode", "shown"), [("always", "always"), ("pull_request", "pull_requests_only"), ("exempt", "exempt")]
)
def test_only_those_who_can_edit_a_ruleset_see_its_bypass_list(github: GithubEnvironment, mode: str, shown: str):
    """Source: the API description, "Get a repository ruleset": `bypass_actors` needs write access to the ruleset."""
    number = github.acme.add_ruleset("reviews", [pull_request_rule(1)], bypass=[as_user(mode)]).id
    seen = ask(github, f"/rulesets/{number}")
    assert (seen["current_user_can_bypass"], "bypass_actors" in seen) == (shown, False)
    (actor,) = ask(github, f"/rulesets/{number}", ADMIN)["bypass_actors"]
    assert actor == {"actor_type": "User", "actor_id": to_account_id(US), "bypass_mode": mode}
    of_organization = github.acme.organization.add_ruleset("all", [rule("deletion")]).id
    assert "bypass_actors" not in ask(github, f"/rulesets/{of_organization}", ADMIN)


# Rulesets


def rules_over(env: GithubEnvironment, branch: str) -> list[tuple[str, str]]:
    found = ask(env, f"/rules/branches/{branch.replace('/', '%2F')}")
    return [(each["type"], each["ruleset_source_type"]) for each in found]


def test_the_rules_of_a_branch_come_from_all_active_rulesets_over_it(github: GithubEnvironment):
    """Source: the API description, "Get rules for a branch": the branch need not exist, and rules in evaluation are
    left out; "Get all repository rulesets", parameter `includes_parents`."""
    acme = github.acme
    acme.rulesets["main"] = BranchProtection(contexts=["unit"])
    acme.add_ruleset("main", [pull_request_rule(1)], exclude=["refs/heads/mergeyard/**/*"])
    acme.add_ruleset("tests", [rule("creation"), rule("deletion")], include=["refs/heads/mergeyard/**/*"])
    acme.add_ruleset("tried", [rule("update")], enforcement="evaluate", include=["~ALL"])
    acme.organization.add_ruleset("all", [rule("non_fast_forward")], include=["~ALL"], exclude=["refs/heads/x"])
    everywhere = ("non_fast_forward", "Organization")
    own = [("required_status_checks", "Repository"), ("pull_request", "Repository")]
    assert rules_over(github, "main") == [*own, everywhere]
    assert rules_over(github, TEST_BRANCH) == [("creation", "Repository"), ("deletion", "Repository"), everywhere]
    assert rules_over(github, "x") == []
    names = [each["name"] for each in ask(github, "/rulesets")]
    assert names == ["reviews and checks", "main", "tests", "tried", "all"]
    assert len(ask(github, "/rulesets?includes_parents=false")) == 4


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("qa/*", "qa/x", True),
        ("qa/*", "qa/x/y", False),
        ("qa/**", "qa/x/y", False),
        ("qa/**/*", "qa/x/y", True),
        ("qa/**/*", "qa/x", True),
        ("**/*.py", "a.py", True),
        ("release-[0-9]?", "release-10", True),
        ("a.b", "aXb", False),
    ],
)
def test_patterns_match_as_on_github(pattern: str, path: str, matches: bool):
    """Source: github/docs, "Creating rulesets for a repository", fnmatch syntax."""
    assert matches_glob(pattern, path) is matches


def test_rules_that_github_has_later_are_sent_and_violated(github: GithubEnvironment):
    """Sources: github/docs, "API versions", additive changes; StefanMaron/BusinessCentral.AL.Runner#3314, where a
    parameter of a rule was new."""
    open_pull_request(github)
    github.acme.add_ruleset("new", [rule("moon_phase", phase="full"), pull_request_rule(0, require_a_poem=True)])
    assert request(github, "/rules/branches/main").status_code == 500
    github.github.mismatches.clear()
    github.github.future_words |= {"moon_phase", "require_a_poem"}
    first, second = ask(github, "/rules/branches/main")
    assert (first["parameters"], second["parameters"]["require_a_poem"]) == ({"phase": "full"}, True)
    assert len(ask(github, f"/rulesets/{github.acme.own_rulesets[0].id}")["rules"]) == 2
    assert state_for(github) == "blocked"
    github.acme.satisfied_rules |= {"moon_phase", "require_a_poem"}
    assert state_for(github) == "clean"


# Facts


def verdict(env: GithubEnvironment) -> tuple[str, str | None]:
    """What a viewer without bypass sees, and the decision about reviews, which must be the same for all."""
    decisions = {read_facts(env, "reviewDecision", viewer)["reviewDecision"] for viewer in (OTHER, ADMIN, "the app")}
    (decision,) = decisions
    return state_for(env), decision


def read_facts(env: GithubEnvironment, fields: str, viewer: str = US) -> Any:
    answer = query(env, fields, viewer)
    assert "errors" not in answer, answer
    return answer["data"]["repository"]["pullRequest"]


def query(env: GithubEnvironment, fields: str, viewer: str = US, name: str = "app", number: int = 1) -> Any:
    text = 'query ($name: String!, $number: Int!) { repository(owner: "acme", name: $name) { '
    text += "pullRequest(number: $number) { " + fields + " } } }"
    body = {"query": text, "variables": {"name": name, "number": number}}
    response = request(env, "api/graphql", viewer, "POST", body)
    assert response.status_code == 200
    return response.json()


BLOCKED, CLEAN = ("blocked", "REVIEW_REQUIRED"), ("clean", "APPROVED")


def test_no_rule_gives_no_decision_about_reviews(github: GithubEnvironment):
    """Sources: the GraphQL schema, `reviewDecision`; issue 2469 of runatlantis/atlantis: it is null where no review is
    required."""
    open_pull_request(github)
    github.acme.add_review(1, OTHER, "CHANGES_REQUESTED")
    assert verdict(github) == ("clean", None)


def test_approvals_of_writers_count_until_they_are_dismissed(github: GithubEnvironment):
    """Source: github/docs, "Available rules for rulesets", required reviews: by reviewers with write permissions. The
    API description, "Dismiss a review for a pull request", for the state."""
    open_pull_request(github)
    github.acme.add_ruleset("reviews", [pull_request_rule(2)])
    github.acme.add_review(1, OTHER, "APPROVED")
    github.acme.add_review(1, "stranger", "APPROVED")
    assert verdict(github) == BLOCKED
    github.acme.add_review(1, "linus", "APPROVED")
    github.acme.add_review(1, "linus", "COMMENTED")
    assert verdict(github) == CLEAN
    github.acme.dismiss(1, "linus")
    assert verdict(github) == BLOCKED
    states = [(each["user"]["login"], each["state"]) for each in ask(github, "/pulls/1/reviews")]
    assert states[2:] == [("linus", "DISMISSED"), ("linus", "COMMENTED")]


def test_requested_changes_block(github: GithubEnvironment):
    """Source: github/docs, "Available rules for rulesets", required reviews; the GraphQL schema, `reviewDecision`."""
    open_pull_request(github)
    github.acme.add_ruleset("reviews", [pull_request_rule(1)])
    github.acme.add_review(1, OTHER, "APPROVED")
    github.acme.add_review(1, "linus", "CHANGES_REQUESTED")
    assert verdict(github) == ("blocked", "CHANGES_REQUESTED")


def test_an_author_cannot_approve_the_own_pull_request(github: GithubEnvironment):
    """Source: issue 2388 of opencontainers/runc."""
    open_pull_request(github)
    github.acme.add_ruleset("reviews", [pull_request_rule(1)])
    github.acme.add_review(1, "hopper", "APPROVED")
    assert verdict(github) == BLOCKED
    assert [each["state"] for each in ask(github, "/pulls/1/reviews")] == ["COMMENTED"]


@pytest.mark.parametrize("dismisses", [True, False])
@pytest.mark.parametrize("classic", [True, False])
def test_a_push_dismisses_approvals_only_where_a_rule_says_so(
    github: GithubEnvironment, dismisses: bool, classic: bool
):
    """Source: github/docs, "Available rules for rulesets" and "About protected branches", stale approvals."""
    open_pull_request(github)
    if classic:
        github.acme.protections["main"] = BranchProtection(approvals=1, reviews={"dismiss_stale_reviews": dismisses})
    else:
        github.acme.add_ruleset("reviews", [pull_request_rule(1, dismisses_stale=dismisses)])
    github.acme.add_review(1, OTHER, "APPROVED")
    github.push(1)
    assert verdict(github) == (BLOCKED if dismisses else CLEAN)


def test_code_owners_of_each_changed_file_must_approve(github: GithubEnvironment):
    """Sources: github/docs, "About code owners": the last matching pattern counts, and one owner is enough; the GraphQL
    schema, `asCodeOwner` of a review request."""
    github.acme.organization.add_team("db", "linus")
    github.acme.code_owners = {"*": ["@ada"], "db/": ["@acme/db", "@grace"], "*.md": []}
    open_pull_request(github, files={"db/schema.sql": "1", "README.md": "1"})
    github.acme.add_ruleset("reviews", [pull_request_rule(1, code_owners=True)])
    github.acme.add_review(1, US, "APPROVED")
    assert verdict(github) == BLOCKED
    requests = "reviewRequests(first: 9) { nodes { asCodeOwner requestedReviewer { "
    requests += "... on User { login } ... on Team { combinedSlug databaseId } } } }"
    team = {"combinedSlug": "acme/db", "databaseId": github.acme.organization.teams["db"].id}
    shown = [each["requestedReviewer"] for each in read_facts(github, requests)["reviewRequests"]["nodes"]]
    assert shown == [team, {"login": "grace"}]
    github.acme.add_review(1, "linus", "APPROVED")
    assert verdict(github) == CLEAN
    shown = read_facts(github, requests)["reviewRequests"]["nodes"]
    assert shown == [{"asCodeOwner": True, "requestedReviewer": {"login": "grace"}}]
    assert [each["login"] for each in ask(github, "/pulls/1")["requested_reviewers"]] == ["grace"]
    github.acme.dismiss(1, "linus")
    assert verdict(github) == BLOCKED


def test_the_last_push_must_be_approved_by_another_user(github: GithubEnvironment):
    """Source: github/docs, "Available rules for rulesets", approval by someone other than the last pusher; the API
    description, "List repository activities"."""
    open_pull_request(github)
    github.acme.add_ruleset("reviews", [pull_request_rule(1, last_push=True)])
    github.acme.add_review(1, OTHER, "APPROVED")
    assert verdict(github) == CLEAN
    github.acme.push_commit("topic-1", {"b": "1"}, by="hopper")
    assert verdict(github) == BLOCKED
    github.acme.push_commit("topic-1", {"b": "2"}, by=OTHER)
    github.acme.add_review(1, OTHER, "APPROVED")
    assert verdict(github) == BLOCKED
    github.acme.add_review(1, "linus", "APPROVED")
    assert verdict(github) == CLEAN
    activities = ask(github, "/activity?ref=refs/heads/topic-1&per_page=1")
    assert [(each["actor"]["login"], each["after"]) for each in activities] == [(OTHER, github.change().head)]


def test_conversations_must_be_resolved(github: GithubEnvironment):
    """Source: github/docs, "Available rules for rulesets", resolved comments; the GraphQL schema, `reviewThreads`."""
    open_pull_request(github)
    github.acme.add_ruleset("reviews", [pull_request_rule(threads=True)])
    for _ in range(3):
        github.acme.add_thread(1)
    assert verdict(github) == ("blocked", None)
    github.acme.resolve_thread(1, 2)
    page = "{ totalCount nodes { isResolved } pageInfo { hasNextPage endCursor } }"
    first = read_facts(github, f"reviewThreads(first: 2) {page}")["reviewThreads"]
    assert (first["totalCount"], first["pageInfo"]["hasNextPage"]) == (3, True)
    after = first["pageInfo"]["endCursor"]
    rest = read_facts(github, f'reviewThreads(first: 2, after: "{after}") {page}')["reviewThreads"]
    assert (rest["nodes"], rest["pageInfo"]["hasNextPage"]) == ([{"isResolved": True}], False)
    github.acme.resolve_thread(1, 0)
    github.acme.resolve_thread(1, 1)
    assert verdict(github) == ("clean", None)
    github.acme.resolve_thread(1, 1, resolved=False)
    assert verdict(github) == ("blocked", None)


@pytest.mark.parametrize("counts", [True, False])
def test_required_reviewers_of_changed_files_block_whatever_the_decision_is(github: GithubEnvironment, counts: bool):
    """Source: github/docs, "Available rules for rulesets", required reviewers. No document says whether they count in
    `reviewDecision`."""
    team = github.acme.organization.add_team("db", "linus")
    open_pull_request(github, files={"db/a/schema.sql": "1"})
    github.acme.decision_counts_required_reviewers = counts
    github.acme.add_ruleset("other", [pull_request_rule(reviewers=[(team, ["docs/**/*"], 1)])])
    assert state_for(github) == "clean"
    github.acme.add_ruleset("reviews", [pull_request_rule(reviewers=[(team, ["db/**/*"], 1)])])
    assert verdict(github) == ("blocked", "REVIEW_REQUIRED" if counts else "APPROVED")
    github.acme.add_review(1, OTHER, "APPROVED")
    assert state_for(github) == "blocked"
    github.acme.add_review(1, "linus", "APPROVED")
    assert verdict(github) == CLEAN


def test_what_copilot_opened_without_a_person_needs_one_more_approval(github: GithubEnvironment):
    """Source: github/docs, "Available rules for rulesets", additional approval for unattributed Copilot pull requests:
    by default, and only if approvals are required; dakomi/HouseholdACTracker#1 for the login in the REST API."""
    github.open(1, author=COPILOT)
    ruleset = github.acme.add_ruleset("reviews", [pull_request_rule(1)])
    assert ask(github, "/rules/branches/main")[0]["parameters"][EXTRA_APPROVAL] is True
    assert ask(github, "/pulls/1")["user"]["login"] == "Copilot"
    github.acme.add_review(1, OTHER, "APPROVED")
    assert verdict(github) == BLOCKED
    github.change().is_for_person = True
    assert verdict(github) == CLEAN
    github.change().is_for_person = False
    ruleset.rules = [pull_request_rule(1, extra_for_copilot=False)]
    assert verdict(github) == CLEAN
    ruleset.rules = [pull_request_rule(1)]
    github.acme.add_review(1, "linus", "APPROVED")
    assert verdict(github) == CLEAN
    ruleset.rules = [pull_request_rule(0)]
    github.acme.dismiss(1, "linus")
    github.acme.dismiss(1, OTHER)
    assert verdict(github) == ("clean", None)


def test_requested_changes_of_another_pull_request_with_the_same_head_block(github: GithubEnvironment):
    """Source: github/docs, "Available rules for rulesets", required reviews. No document says whether they count in
    `reviewDecision`."""
    open_pull_request(github)
    github.acme.add_ruleset("reviews", [pull_request_rule(1)])
    github.acme.add_review(1, OTHER, "APPROVED")
    github.origin.branch("stable", base="main")
    github.acme.open_pull_request("topic-1", base="stable", author="hopper")
    assert verdict(github) == CLEAN
    github.acme.add_review(2, "linus", "CHANGES_REQUESTED")
    assert verdict(github) == ("blocked", "APPROVED")
    assert not merge(github, OTHER).is_success
    github.close(2)
    assert verdict(github) == CLEAN


def test_a_pending_review_of_another_pull_request_with_the_same_head_blocks(github: GithubEnvironment):
    """Source: github/docs, the note about pull requests with the same head, "pending or rejected reviews"."""
    open_pull_request(github)
    github.acme.add_ruleset("reviews", [pull_request_rule(1)])
    github.acme.add_review(1, OTHER, "APPROVED")
    github.origin.branch("copy", base="topic-1")
    github.acme.open_pull_request("copy", author="hopper")
    assert verdict(github) == ("blocked", "APPROVED")
    assert not merge(github, OTHER).is_success
    github.acme.add_review(2, OTHER, "APPROVED")
    assert verdict(github) == CLEAN


def test_deployments_and_signatures_can_be_required(github: GithubEnvironment):
    """Source: github/docs, "Available rules for rulesets", deployments and signed commits; the API description, "List
    deployments" and "List deployment statuses"."""
    head = open_pull_request(github)
    production = rule("required_deployments", required_deployment_environments=["production"])
    github.acme.add_ruleset("deployed", [production])
    deployment = github.acme.deploy(head, "production", "in_progress")
    assert state_for(github) == "blocked"
    github.acme.deploy(head, "production")
    assert state_for(github) == "clean"
    (shown,) = ask(github, f"/deployments?sha={head}&environment=production")
    states = [each["state"] for each in ask(github, f"/deployments/{shown['id']}/statuses")]
    assert (shown["id"], states) == (deployment.id, ["success", "in_progress"])
    assert ask(github, f"/deployments?sha={head}&environment=staging") == []
    github.acme.add_ruleset("signed", [rule("required_signatures")])
    assert state_for(github) == "blocked"
    github.acme.verified_commits.add(head)
    assert state_for(github) == "clean"


def test_an_outdated_head_is_behind_where_it_must_be_up_to_date(github: GithubEnvironment):
    """Source: the GraphQL schema, `BEHIND` of `MergeStateStatus`; github/docs, "Available rules for rulesets", strict
    checks."""
    head = open_pull_request(github)
    github.acme.report_status(head, "unit", "success")
    github.acme.add_ruleset("checks", [required_checks_rule("unit", strict=True)])
    assert state_for(github) == "clean"
    github.acme.push_commit("main", {"other": "1"})
    assert state_for(github) == "behind"


@pytest.mark.parametrize("classic", [True, False])
def test_a_merge_of_an_outdated_head_expects_the_checks_again(github: GithubEnvironment, classic: bool):
    """Source: pull request 2460 of RakuenSoftware/aimee, which has the words; github/docs, "Available rules for
    rulesets", says only that the head must be up to date."""
    github.acme.report_status(open_pull_request(github), "unit", "success")
    if classic:
        github.acme.protections["main"] = BranchProtection(contexts=["unit"], strict=True)
    else:
        github.acme.add_ruleset("checks", [required_checks_rule("unit", strict=True)])
    github.acme.push_commit("main", {"other": "1"})
    refused = merge(github)
    heading = "" if classic else "Repository rule violations found\n\n"
    expected = f"{heading}1 of 1 required status checks are expected."
    assert (refused.status_code, refused.json()["message"]) == (405, expected)
    github.acme.report_status(github.acme.push_commit("topic-1", {}, merging="main"), "unit", "success")
    assert merge(github).is_success


def test_without_required_checks_an_outdated_head_is_not_behind(github: GithubEnvironment):
    """Source: a measurement, pull request 426 of home-operations/tuppr."""
    open_pull_request(github)
    github.acme.add_ruleset("checks", [required_checks_rule(strict=True)])
    github.acme.push_commit("main", {"other": "1"})
    assert state_for(github) == "clean"


def test_the_name_of_a_commit_status_has_no_case(github: GithubEnvironment):
    """Source: the API description, "Create a commit status", member `context`."""
    github.acme.report_status(open_pull_request(github), "Unit", "success")
    github.acme.add_ruleset("checks", [required_checks_rule("unit")])
    assert state_for(github) == "clean"


def test_changed_files_are_listed_with_their_old_names(github: GithubEnvironment):
    """Source: the API description, "List pull requests files": `status` and `previous_filename`."""
    github.acme.push_commit("main", {"old.txt": "the same text\n" * 9, "gone.txt": "1"})
    files = {"old.txt": None, "new.txt": "the same text\n" * 9, "gone.txt": None, "more.txt": "2"}
    open_pull_request(github, files=files)
    listed = ask(github, "/pulls/1/files?per_page=100")
    assert [(each["status"], each["filename"], each.get("previous_filename")) for each in listed] == [
        ("removed", "gone.txt", None),
        ("added", "more.txt", None),
        ("renamed", "new.txt", "old.txt"),
    ]
    page = request(github, "/pulls/1/files?per_page=2")
    assert (len(page.json()), 'rel="next"' in page.headers["link"]) == (2, True)


def test_teams_are_visible_with_a_permission_of_the_organization(github: GithubEnvironment):
    """Source: the API description, "List teams", "List team members" and "Get team membership for a user", permission
    Members. It has no form of "List team members" with ids."""
    team = github.acme.organization.add_team("db", "linus", OTHER)
    org = ask(github, "")["owner"]["id"]
    assert [(each["id"], each["slug"]) for each in ask(github, "api/v3/orgs/acme/teams")] == [(team.id, "db")]
    members = ask(github, "api/v3/orgs/acme/teams/db/members")
    assert request(github, f"api/v3/organizations/{org}/team/{team.id}/members").status_code == 404
    assert [each["login"] for each in members] == [OTHER, "linus"]
    assert ask(github, "api/v3/orgs/acme/teams/db/memberships/linus")["state"] == "active"
    assert request(github, "api/v3/orgs/acme/teams/db/memberships/ada").status_code == 404
    without = {name: level for name, level in ALL_PERMISSIONS.items() if name != "members"}
    github.github.add_token("limited", US, without)
    assert request(github, "api/v3/orgs/acme/teams/db/memberships/linus", "limited").status_code == 403


def test_classic_protection_is_hidden_from_users_who_do_not_administer(github: GithubEnvironment):
    """Sources: github/docs, "Troubleshooting the REST API": 404 for a missing permission; issue 870 of
    octokit/octokit.rb and issue 138 of ossf/scorecard for branch protection, issue 666 of PyGithub/PyGithub for
    webhooks."""
    github.acme.protections["main"] = BranchProtection(approvals=1)
    assert request(github, "/branches/main/protection").status_code == 404
    assert request(github, "/branches/main/protection", ADMIN).is_success
    assert request(github, "/branches/main/protection", "the app").is_success
    none = {"metadata": "read"}
    github.github.auth.tokens |= {"limited": Caller(ADMIN, none), "limited app": Caller("app[bot]", none, app_id=1)}
    for path in ("/branches/main/protection", "/hooks"):
        statuses = [request(github, path, viewer).status_code for viewer in ("limited", "limited app")]
        assert statuses == [404, 403]


# GraphQL


REVIEWS = """latestOpinionatedReviews(first: 100, writersOnly: %s) { nodes {
    state author { login } commit { oid } onBehalfOf(first: 9) { nodes { combinedSlug } } } }"""


def test_reviews_have_their_commit_and_the_teams_of_their_author(github: GithubEnvironment):
    """Source: the GraphQL schema, `latestOpinionatedReviews` with `writersOnly`, and `onBehalfOf`."""
    github.acme.organization.add_team("db", "linus")
    head = open_pull_request(github)
    github.acme.request_review(1, "acme/db")
    github.acme.add_review(1, "linus", "APPROVED")
    github.acme.add_review(1, "stranger", "APPROVED")
    github.push(1)
    (review,) = read_facts(github, REVIEWS % "true")["latestOpinionatedReviews"]["nodes"]
    assert review["author"] == {"login": "linus"}
    assert (review["state"], review["commit"]) == ("APPROVED", {"oid": head})
    assert review["onBehalfOf"]["nodes"] == [{"combinedSlug": "acme/db"}]
    assert len(read_facts(github, REVIEWS % "false")["latestOpinionatedReviews"]["nodes"]) == 2


def test_teams_are_forbidden_errors_without_the_permission(github: GithubEnvironment):
    """Sources: issue 14317 of cli/cli for the type and the path; pull request 29326 of dust-tt/dust: the permission is
    Members, and the rest of the response is there."""
    github.acme.organization.add_team("db", "linus")
    github.acme.organization.add_team("web", OTHER)
    open_pull_request(github)
    github.acme.request_review(1, "acme/db")
    github.acme.request_review(1, "acme/web")
    github.acme.add_review(1, "linus", "APPROVED")
    without = {name: level for name, level in ALL_PERMISSIONS.items() if name != "members"}
    github.github.add_token("limited", US, without)
    requests = "reviewRequests(first: 9) { nodes { requestedReviewer { ... on Team { slug } } } }"
    answer = query(github, f"number {requests} {REVIEWS % 'true'}", "limited")
    assert {error["type"] for error in answer["errors"]} == {"FORBIDDEN"}
    assert [error["path"][-3:] for error in answer["errors"]] == [
        ["nodes", 0, "requestedReviewer"],
        ["onBehalfOf", "nodes", 0],
    ]
    found = answer["data"]["repository"]["pullRequest"]
    assert found["number"] == 1
    assert found["reviewRequests"]["nodes"] == [{"requestedReviewer": None}]
    assert found["latestOpinionatedReviews"]["nodes"][0]["onBehalfOf"]["nodes"] == [None]


def test_what_is_missing_or_forbidden_is_null_with_an_error(github: GithubEnvironment):
    """Sources: issue 120 of nodejs/node-core-utils for NOT_FOUND, issue 49 of fpicalausa/remove-stale-branches for
    FORBIDDEN."""
    open_pull_request(github)
    github.github.add_token("limited", US, {"metadata": "read"})
    for answer, kind, data in (
        (query(github, "number", name="other"), "NOT_FOUND", {"repository": None}),
        (query(github, "number", number=9), "NOT_FOUND", {"repository": {"pullRequest": None}}),
        (query(github, "number", "limited"), "FORBIDDEN", {"repository": {"pullRequest": None}}),
    ):
        assert ([error["type"] for error in answer["errors"]], answer["data"]) == ([kind], data)
    assert request(github, "api/graphql", "unknown", "POST", {"query": "{ rateLimit { cost } }"}).status_code == 401
    limit = ask(github, "api/graphql", US, "POST", {"query": "{ rateLimit { cost remaining } }"})
    assert limit["data"]["rateLimit"]["cost"] == 1


def test_a_commit_is_associated_with_pull_requests_of_its_own_repository(github: GithubEnvironment):
    """Sources: the GraphQL schema, `associatedPullRequests` of a commit: those that add it, and, if the default branch
    contains it, only the merged one; TooTallNate/nx.js#410 and retransmission/retransmission#280: without forks."""
    head = open_pull_request(github)
    github.origin.branch("top", base="topic-1", files={"top.txt": "1"})
    github.acme.open_pull_request("top")
    github.acme.open_pull_request("topic-1", home="eve/app")
    assert list_associated(github, head) == [1, 2]
    assert list_associated(github, "1" * 40) is None
    assert list_named(github, "topic-1") == [1, 3]
    github.acme.push_commit("main", {}, merging=head)
    assert list_associated(github, head) == [1, 3]
    assert list_named(github, "topic-1") == []


def list_associated(env: GithubEnvironment, commit: str) -> list[int] | None:
    found = query_repository(
        env, f'object(oid: "{commit}") {{ ... on Commit {{ found: associatedPullRequests(first: 9)'
    )
    return found and [each["number"] for each in found["found"]["nodes"]]


def list_named(env: GithubEnvironment, branch: str) -> list[int]:
    found = query_repository(env, f'pullRequests(first: 9, states: OPEN, headRefName: "{branch}")')
    return [each["number"] for each in found["nodes"]]


def query_repository(env: GithubEnvironment, lists: str) -> Any:
    text = 'query { repository(owner: "acme", name: "app") { result: ' + lists + " { nodes { number } "
    text += "}" * (text.count("{") - text.count("}"))
    return ask(env, "api/graphql", US, "POST", {"query": text, "variables": {}})["data"]["repository"]["result"]


@pytest.mark.parametrize(
    ("first", "kind"), [("", "MISSING_PAGINATION_BOUNDARIES"), ("(first: 101)", "EXCESSIVE_PAGINATION")]
)
def test_lists_need_a_size(github: GithubEnvironment, first: str, kind: str):
    """Source: github/docs, "Rate limits and query limits for the GraphQL API", node limit: 1 to 100. No document has
    the types of the errors."""
    open_pull_request(github)
    (error,) = query(github, f"reviewRequests{first} {{ nodes {{ asCodeOwner }} }}")["errors"]
    assert error["type"] == kind


@pytest.mark.parametrize("fields", ["wishes", "number {", "reviewThreads(first: 1) { nodes { isFunny } }"])
def test_a_query_that_the_schema_does_not_allow_is_recorded(github: GithubEnvironment, fields: str):
    """Source: the GraphQL schema."""
    assert query(github, fields)["errors"]
    assert len(github.github.mismatches) == 1
    github.github.mismatches.clear()


# Merges and pushes


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (rule("update"), "Cannot update this protected ref."),
        (rule("required_linear_history"), "must not contain merge commits"),
        (pull_request_rule(allowed_merge_methods=["squash"]), "not allowed on this"),
        (rule("merge_queue"), "through the merge queue"),
    ],
)
def test_a_merge_that_a_rule_forbids_is_refused(github: GithubEnvironment, kind: Any, message: str):
    """Sources: github/docs, "Available rules for rulesets", for what is refused; pull request 2053 of rue-language/rue
    for the status, the heading and the words about the merge queue; question 78285135 of Stack Overflow for those about
    updates; the README of brandonchinn178/mergit for those about merge commits. Those about methods are known only for
    a whole repository."""
    open_pull_request(github)
    ruleset = github.acme.add_ruleset("rules", [kind])
    refused = merge(github)
    assert (refused.status_code, message in refused.json()["message"]) == (405, True)
    ruleset.bypass.append(as_user("pull_request"))
    assert merge(github).is_success


def push(env: GithubEnvironment, tmp_path: Path, refspec: str, user: str = US) -> str:
    """What `git push` prints when the server refuses it; empty when it succeeds."""
    address = env.github.web_url.replace("http://", f"http://{user}:{user}@")
    command = ["git", "push", "--atomic", f"{address}/acme/app.git", *refspec.split()]
    environment = ENVIRONMENT | {"no_proxy": "*", "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run(command, cwd=tmp_path / "clone", env=environment, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


@pytest.fixture
def clone(github: GithubEnvironment, tmp_path: Path) -> Path:
    """A clone with a commit on `main`, one on `merged` that merges another, and `other`, which `main` does not have."""
    script = f"""
        git clone -q {github.origin.path} clone && cd clone
        git commit -q --allow-empty -m next
        git checkout -q -b merged origin/main && git merge -q --no-ff -m merge main
        git checkout -q --orphan other && git commit -q --allow-empty -m other && git checkout -q main"""
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, env=ENVIRONMENT, check=True)
    return tmp_path


CI = rule("workflows", workflows=[{"path": ".github/workflows/ci.yml", "repository_id": 1}])
UNCHECKED = 'Required status check "unit" is expected.'
UNRUN = "Required workflow '.github/workflows/ci.yml' is not satisfied"
PUSHES = {
    "update": (rule("update"), "main", "Cannot update this protected ref."),
    "pull request": (pull_request_rule(), "main", "Changes must be made through a pull request."),
    "checks": (required_checks_rule("unit"), "main", UNCHECKED),
    "checks of a new branch": (required_checks_rule("unit"), f"main:{TEST_BRANCH}", UNCHECKED),
    "workflows": (CI, "main", UNRUN),
    "workflows of a new branch": (CI, f"main:{TEST_BRANCH}", UNRUN),
    "signatures": (rule("required_signatures"), "main", "Commits must have verified signatures."),
    "linear history": (rule("required_linear_history"), "merged:main", "must not contain merge commits"),
    "force": (rule("non_fast_forward"), "+other:main", "Cannot force-push to this branch"),
    "deletion": (rule("deletion"), ":topic", "Cannot delete this branch"),
    "creation": (rule("creation"), f"main:{TEST_BRANCH}", "Cannot create ref due to creations being restricted."),
    "name": (
        rule("branch_name_pattern", operator="starts_with", pattern="topic"),
        f"main:{TEST_BRANCH}",
        "Branch name must match",
    ),
}


@pytest.mark.parametrize("name", PUSHES)
def test_a_push_that_a_ruleset_forbids_is_refused(github: GithubEnvironment, clone: Path, name: str):
    """Source: github/docs, "Available rules for rulesets", for what is refused. The form and the words: issue 81 of
    actions/create-github-app-token (pull request), question 78285135 of Stack Overflow (update), pull request 1080 of
    TykTechnologies/tyk-pump (checks), run 30923654264 of Verjson/verjson-temporal-kit (workflows), pull request 169 of
    vercel/sandbox (signatures), the README of brandonchinn178/mergit (linear history), issue 3715 of
    YumaInaura/YumaInaura (force), issue 82 of pAI-OS/paios (deletion), issue 1194 of
    googleapis/release-please-action (creation). No document has those about names."""
    kind, refspec, message = PUSHES[name]
    github.origin.branch("topic", base="main")
    before = github.origin.refs()
    ruleset = github.acme.add_ruleset("rules", [kind], include=["~ALL"], bypass=[as_user("pull_request")])
    ref = f"refs/heads/{refspec.rpartition(':')[2]}"
    output = push(github, clone, refspec)
    assert f"GH013: Repository rule violations found for {ref}." in output
    assert message in output
    assert "[remote rejected]" in output
    assert "(push declined due to repository rule violations)" in output
    assert github.origin.refs() == before
    ruleset.bypass = [as_user("always")]
    assert push(github, clone, refspec) == ""
    assert github.origin.refs() != before


@pytest.mark.parametrize(("kind", "satisfied"), [(required_checks_rule("unit"), ""), (CI, "workflows")])
def test_a_new_branch_needs_what_is_required_unless_the_rule_is_not_for_creations(
    github: GithubEnvironment, clone: Path, kind: Any, satisfied: str
):
    """Source: github/docs, "Available rules for rulesets", "Do not require status checks on creation", also for
    workflows. The words, and that the pushed commit counts: pull request 1080 of TykTechnologies/tyk-pump."""
    ruleset = github.acme.add_ruleset("rules", [kind], include=["refs/heads/mergeyard/**/*"])
    for sha in (run_git(clone, "rev-parse", name).strip() for name in ("main", "merged")):
        assert "GH013" in push(github, clone, f"{sha}:refs/heads/{TEST_BRANCH}")
    ruleset.rules = [kind | {"parameters": kind["parameters"] | {"do_not_enforce_on_create": True}}]
    assert push(github, clone, f"main:refs/heads/{TEST_BRANCH}") == ""
    ruleset.rules = [kind]
    github.acme.satisfied_rules.add(satisfied)
    github.acme.report_status(Sha(run_git(clone, "rev-parse", "main").strip()), "unit", "success")
    assert push(github, clone, f"main:refs/heads/{TEST_BRANCH}-2") == ""


def run_git(clone: Path, *arguments: str, stdin: bytes = b"") -> str:
    command = ["git", "-C", clone / "clone", *arguments]
    return subprocess.run(command, input=stdin, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE).stdout.decode()


def sign_tip(clone: Path, signer: Signer) -> str:
    """Signs the commit of `main`, and returns its new name."""
    header, _, message = run_git(clone, "cat-file", "commit", "main").partition("\n\n")
    signature = signer.sign(f"{header}\n\n{message}".encode(), "git").strip().replace("\n", "\n ")
    content = f"{header}\ngpgsig {signature}\n\n{message}".encode()
    sha = run_git(clone, "hash-object", "-t", "commit", "-w", "--stdin", stdin=content).strip()
    run_git(clone, "update-ref", "refs/heads/main", sha)
    return sha


def test_a_push_without_verified_signatures_names_the_commits(github: GithubEnvironment, clone: Path):
    """Also commits that another branch has. A key counts only if the account of the committer registered it. Sources:
    github/docs, "Available rules for rulesets", signed commits; pull request 169 of vercel/sandbox for the words."""
    github.acme.add_ruleset("signed", [rule("required_signatures")])
    private = ed25519.Ed25519PrivateKey.generate()
    signer = parse_signing_key(private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    run_git(clone, "commit", "-q", "--allow-empty", "-m", "another")
    unsigned, signed = run_git(clone, "rev-parse", "main~1").strip(), sign_tip(clone, signer)
    assert push(github, clone, "main:other-place") == ""
    output = push(github, clone, "main")
    assert re.search(f"signatures\\.\\s+remote:   Found 2 violations:.*{signed}.*{unsigned}", output, re.DOTALL)
    line = f"{signer.public_key} of the queue"
    github.github.auth.ssh_signing_keys["grace"] = [line]
    assert signed in push(github, clone, "main")
    github.github.auth.ssh_signing_keys["ada"] = [line]
    output = push(github, clone, "main")
    assert (signed in output, unsigned in output, "Found 1 violation:" in output) == (False, True, True)
    github.acme.verified_commits.add(unsigned)
    assert push(github, clone, "main") == ""
    (key,) = ask(github, "api/v3/users/ada/ssh_signing_keys")
    assert key["key"] == line


def test_the_commits_of_a_pull_request_show_whether_they_are_verified(github: GithubEnvironment):
    """Source: the API description, "List commits on a pull request", member `verification`."""
    first = open_pull_request(github)
    second = github.push(1)
    github.acme.verified_commits.add(first)
    shown = [(each["sha"], each["commit"]["verification"]["verified"]) for each in ask(github, "/pulls/1/commits")]
    assert shown == [(first, True), (second, False)]


def test_an_allowed_push_is_not_refused_by_rules_that_it_meets(github: GithubEnvironment, clone: Path):
    """Source: github/docs, "Available rules for rulesets": rules about updates are not about new branches."""
    rules = [rule("deletion"), rule("creation"), rule("non_fast_forward"), rule("required_linear_history")]
    github.acme.add_ruleset("rules", rules)
    github.acme.add_ruleset(
        "new branches", [rule("update"), pull_request_rule()], include=["refs/heads/mergeyard/**/*"]
    )
    assert push(github, clone, f"main main:{TEST_BRANCH}") == ""
    assert github.acme.activities[-1].actor == US


WITHOUT_WORKFLOWS = {name: level for name, level in ALL_PERMISSIONS.items() if name != "workflows"}


@pytest.mark.parametrize(
    ("app_id", "words"),
    [
        (APP_ID, "a GitHub App to create or update workflow `{}` without `workflows` permission"),
        (None, "a Personal Access Token to create or update workflow `{}` without `workflow` scope"),
    ],
)
def test_a_push_of_a_new_workflow_file_needs_a_permission(
    github: GithubEnvironment, clone: Path, app_id: int | None, words: str
):
    """Source: issue 1234 of peter-evans/create-pull-request and issue 34 of flashcatcloud/categraf for the words;
    github/docs, "Scopes for OAuth apps" (apps/oauth-apps/building-oauth-apps), for a file that another branch has."""
    path = ".github/workflows/ci.yml"
    github.github.auth.tokens["limited"] = Caller("limited", WITHOUT_WORKFLOWS, app_id=app_id)
    script = f"mkdir -p .github/workflows && echo 1 > {path} && git add . && git commit -q -m ci"
    subprocess.run(script, shell=True, cwd=clone / "clone", env=ENVIRONMENT, check=True)
    output = push(github, clone, f"HEAD:refs/heads/{TEST_BRANCH}", "limited")
    assert f"[remote rejected] HEAD -> {TEST_BRANCH} (refusing to allow {words.format(path)})" in output
    assert github.origin.ref(TEST_BRANCH) is None
    assert push(github, clone, "HEAD:refs/heads/topic", US) == ""
    assert push(github, clone, f"HEAD:refs/heads/{TEST_BRANCH} HEAD~1:refs/heads/other", "limited") == ""


def test_one_refused_ref_refuses_the_whole_push(github: GithubEnvironment, clone: Path):
    """Source: the manual of `git push`, option `--atomic`."""
    github.acme.add_ruleset("rules", [rule("update")])
    assert "atomic push failure" in push(github, clone, f"main main:{TEST_BRANCH}")
    assert github.origin.ref(TEST_BRANCH) is None


def test_classic_protection_refuses_pushes(github: GithubEnvironment, clone: Path):
    """Sources: github/docs, "About protected branches"; issue 110 of foundry-rs/block-explorers and issue 47 of
    supportpal/github-gh-cli for the form and the words."""
    github.acme.protections["main"] = BranchProtection(approvals=1, enforce_admins=False)
    output = push(github, clone, "main")
    assert "GH006: Protected branch update failed for refs/heads/main." in output
    assert "Changes must be made through a pull request." in output
    assert "(protected branch hook declined)" in output
    github.acme.protections["main"] = BranchProtection(contexts=["unit"])
    assert 'Required status check "unit" is expected.' in push(github, clone, "main")
    github.acme.protections["main"] = BranchProtection()
    assert "Cannot force-push to this branch" in push(github, clone, "+other:main")
    assert push(github, clone, "main") == ""


def test_administrators_and_allowed_users_push_past_classic_protection(github: GithubEnvironment, clone: Path):
    """Sources: github/docs, "About protected branches", administrators and who can push; issue 1524 of
    az-digital/arizona-bootstrap for the words."""
    github.acme.protections["main"] = BranchProtection(approvals=1, enforce_admins=False)
    assert push(github, clone, "main", ADMIN) == ""
    github.acme.protections["main"] = BranchProtection(
        approvals=1, bypass={US: ""}, other_rules={"restrictions": {"users": [{"login": US}]}}
    )
    assert "not authorized" in push(github, clone, "merged:main", OTHER)
    assert push(github, clone, "merged:main", US) == ""
