"""What the rules of GitHub require of a pull request, for accounts that can bypass these rules and for others."""

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import PullRequest, Requirement
from mergeyard.domain.states import Reason
from mergeyard.domain.timestamps import MINUTE, later
from mergeyard.ports.forge import HostUnavailable
from tests.contract.host.environment import ONE
from tests.contract.host.github_environment import (
    APP,
    FINGERPRINT,
    KEY,
    TOKEN,
    FakeSigner,
    GithubEnvironment,
    github_app_environment,
)
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.forges.faults import ALWAYS, RespondsWith
from tests.support.forges.github.rules import mergeability
from tests.support.forges.github.rulesets import BypassActor, RuleData, pull_request_rule, required_checks_rule, rule
from tests.support.forges.github.world import BranchProtection, to_account_id
from tests.support.long_tests import mark_long_after

APP_BYPASS = BypassActor("Integration", int(APP), "exempt")
WRITERS = {"grace": "write", "linus": "maintain", "bob": "write"}
Grant = Callable[[GithubEnvironment], object]


@pytest.fixture
def as_app(tmp_path: Path) -> Generator[GithubEnvironment]:
    with github_app_environment(tmp_path) as env:
        env.acme.roles |= WRITERS
        yield env


@pytest.fixture
def github(github: GithubEnvironment) -> GithubEnvironment:
    github.acme.roles |= WRITERS
    return github


async def read(host: GithubHost, env: GithubEnvironment) -> PullRequest:
    pull_request = await host.read_pull_request(env.repo, ONE)
    assert pull_request
    return pull_request


async def missing(host: GithubHost, env: GithubEnvironment) -> list[tuple[Reason, tuple[str, ...]]]:
    return [(each.reason, each.names) for each in (await read(host, env)).unmet_requirements]


def reasons(found: list[tuple[Reason, tuple[str, ...]]]) -> list[Reason]:
    return [reason for reason, _ in found]


# Who asks does not matter


def require_by_ruleset(mode: str | None) -> Grant:
    def require(env: GithubEnvironment) -> None:
        bypass = [BypassActor("Integration", int(APP), mode)] if mode else []
        env.acme.add_ruleset("reviews", [pull_request_rule(1)], bypass=bypass)

    return require


def require_by_organization(env: GithubEnvironment) -> None:
    env.acme.organization.add_ruleset("reviews", [pull_request_rule(1)], bypass=[APP_BYPASS])


def require_by_classic_rule(env: GithubEnvironment) -> None:
    env.acme.protections["main"] = BranchProtection(approvals=1)


def require_except_from_administrators(env: GithubEnvironment) -> None:
    env.acme.protections["main"] = BranchProtection(approvals=1, enforce_admins=False)


APP_CASES: dict[str, tuple[Grant, str]] = {
    "never": (require_by_ruleset(None), "blocked"),
    "always": (require_by_ruleset("always"), "clean"),
    "exempt": (require_by_ruleset("exempt"), "clean"),
    "pull request only": (require_by_ruleset("pull_request"), "blocked"),
    "exempt in a ruleset of the organization": (require_by_organization, "clean"),
}
ADMINISTRATOR_CASES: dict[str, tuple[Grant, str]] = {
    "classic": (require_by_classic_rule, "blocked"),
    "classic administrator": (require_except_from_administrators, "clean"),
}


async def check_unapproved_waits(env: GithubEnvironment, require: Grant, looks: str) -> None:
    require(env)
    env.open(1)
    async with env.host() as host:
        assert await missing(host, env) == [(Reason.WAITING_FOR_REVIEW, ())]
        account = env.github.auth.find_caller([TOKEN, *env.github.auth.issued_tokens][-1])
        assert mergeability(env.acme, env.change(), account) == (True, looks), "what GitHub shows to our account"
        env.acme.add_review(1, "grace", "APPROVED")
        assert (await read(host, env)).is_mergeable
        env.acme.dismiss(1, "grace")
        assert await missing(host, env) == [(Reason.WAITING_FOR_REVIEW, ())]


@pytest.mark.parametrize(("require", "looks"), APP_CASES.values(), ids=APP_CASES)
@asynchronous
async def test_an_app_sees_the_missing_approval_in_every_bypass_mode(
    as_app: GithubEnvironment, require: Grant, looks: str
):
    await check_unapproved_waits(as_app, require, looks)


@pytest.mark.parametrize(("require", "looks"), ADMINISTRATOR_CASES.values(), ids=ADMINISTRATOR_CASES)
@asynchronous
async def test_an_administrator_sees_the_missing_approval(github: GithubEnvironment, require: Grant, looks: str):
    await check_unapproved_waits(github, require, looks)


# Reviews


@asynchronous
async def test_requested_reviewers_and_the_count_are_part_of_the_reason(github: GithubEnvironment):
    github.acme.add_ruleset("reviews", [pull_request_rule(2)])
    github.acme.organization.add_team("db", "linus")
    github.open(1)
    github.acme.request_review(1, "acme/db")
    github.acme.add_review(1, "grace", "APPROVED")
    async with github.host() as host:
        (found,) = (await read(host, github)).requirements
    assert found == Requirement(
        reason=Reason.WAITING_FOR_REVIEW, needed=2, given=1, names=("@acme/db",), given_by=("@grace",)
    )


@asynchronous
async def test_a_push_that_dismisses_approvals_takes_them_away(github: GithubEnvironment):
    github.acme.add_ruleset("reviews", [pull_request_rule(1, dismisses_stale=True)])
    github.open(1)
    github.acme.add_review(1, "grace", "APPROVED")
    async with github.host() as host:
        assert (await read(host, github)).is_mergeable
        github.push(1)
        assert reasons(await missing(host, github)) == [Reason.WAITING_FOR_REVIEW]


@pytest.mark.long
@pytest.mark.parametrize("stranger", ["mallory", ""])
@asynchronous
async def test_the_approval_of_a_user_without_write_access_does_not_count(github: GithubEnvironment, stranger: str):
    github.acme.roles["mallory"] = "triage"
    github.acme.protections["main"] = BranchProtection(approvals=1)
    github.open(1)
    github.acme.add_review(1, stranger, "APPROVED")
    async with github.host() as host:
        assert reasons(await missing(host, github)) == [Reason.WAITING_FOR_REVIEW]
        github.acme.add_review(1, "grace", "APPROVED")
        assert (await read(host, github)).is_mergeable


@asynchronous
async def test_requested_changes_name_their_author_until_they_are_dismissed(github: GithubEnvironment):
    github.acme.protections["main"] = BranchProtection(approvals=1)
    github.open(1)
    github.acme.add_review(1, "grace", "APPROVED")
    github.acme.add_review(1, "linus", "CHANGES_REQUESTED")
    async with github.host() as host:
        assert await missing(host, github) == [(Reason.CHANGES_REQUESTED, ("@linus",))]
        github.acme.dismiss(1, "linus")
        assert (await read(host, github)).is_mergeable


# Every rule: not met, met, withdrawn; also where our own status is required

Step = Callable[[GithubEnvironment, Sha], object]


class Rule:
    def __init__(self, require: Grant, meet: Step, withdraw: Step, reason: Reason, *names: str) -> None:
        self.require, self.meet, self.withdraw, self.reason, self.names = require, meet, withdraw, reason, names


def own_files_of_a_team(env: GithubEnvironment) -> None:
    team = env.acme.organization.add_team("db", "linus")
    env.acme.add_ruleset("reviews", [pull_request_rule(reviewers=[(team, ["*.txt"], 1)])], bypass=[APP_BYPASS])


def own_files_by_code_owners(env: GithubEnvironment) -> None:
    env.acme.code_owners["1.txt"] = ["@linus"]
    env.acme.add_ruleset("reviews", [pull_request_rule(1, code_owners=True)], bypass=[APP_BYPASS])


def approve_as(*users: str) -> Step:
    return lambda env, _: [env.acme.add_review(1, user, "APPROVED") for user in users]


def dismiss(user: str) -> Step:
    return lambda env, _: env.acme.dismiss(1, user)


def add_ruleset(*rules: RuleData) -> Grant:
    return lambda env: env.acme.add_ruleset("rules", list(rules), bypass=[APP_BYPASS])


def require_conversations_by_classic_rule(env: GithubEnvironment) -> None:
    env.acme.protections["main"] = BranchProtection(other_rules={"required_conversation_resolution": {"enabled": True}})


def require_code_owners_by_classic_rule(env: GithubEnvironment) -> None:
    env.acme.code_owners["1.txt"] = ["@linus"]
    env.acme.protections["main"] = BranchProtection(approvals=1, reviews={"require_code_owner_reviews": True})


RULES = {
    "code owners": Rule(
        own_files_by_code_owners,
        approve_as("grace", "linus"),
        dismiss("linus"),
        Reason.WAITING_FOR_CODE_OWNER,
        "@linus",
    ),
    "code owners in classic protection": Rule(
        require_code_owners_by_classic_rule,
        approve_as("grace", "linus"),
        dismiss("linus"),
        Reason.WAITING_FOR_CODE_OWNER,
        "@linus",
    ),
    "the last push": Rule(
        add_ruleset(pull_request_rule(1, last_push=True)),
        approve_as("grace"),
        lambda env, _: env.acme.push_commit("topic-1", {"2.txt": "2"}, by="grace"),
        Reason.WAITING_FOR_LAST_PUSH_APPROVAL,
    ),
    "a team by path": Rule(
        own_files_of_a_team, approve_as("linus"), dismiss("linus"), Reason.WAITING_FOR_REVIEW, "@acme/db"
    ),
    "conversations": Rule(
        add_ruleset(pull_request_rule(threads=True)),
        lambda env, _: env.acme.resolve_thread(1),
        lambda env, _: env.acme.resolve_thread(1, resolved=False),
        Reason.WAITING_FOR_CONVERSATIONS,
    ),
    "conversations in classic protection": Rule(
        require_conversations_by_classic_rule,
        lambda env, _: env.acme.resolve_thread(1),
        lambda env, _: env.acme.add_thread(1),
        Reason.WAITING_FOR_CONVERSATIONS,
    ),
    "checks of the head": Rule(
        add_ruleset(required_checks_rule("unit")),
        lambda env, head: env.acme.report_status(head, "unit", "success"),
        lambda env, head: env.acme.report_status(head, "unit", "pending"),
        Reason.WAITING_FOR_HEAD_CHECKS,
        "unit",
    ),
    "a deployment": Rule(
        add_ruleset(rule("required_deployments", required_deployment_environments=["staging"])),
        lambda env, head: env.acme.deploy(head, "staging"),
        lambda env, head: env.acme.deploy(head, "staging", state="failure"),
        Reason.WAITING_FOR_DEPLOYMENTS,
        "staging",
    ),
}


@pytest.mark.parametrize("own_status", mark_long_after(1, [True, False]), ids=["own status required", ""])
@pytest.mark.parametrize("case", RULES.values(), ids=RULES)
@asynchronous
async def test_each_rule_is_missing_then_met_then_withdrawn(as_app: GithubEnvironment, case: Rule, own_status: bool):
    case.require(as_app)
    if own_status:
        as_app.acme.add_ruleset("queue", [required_checks_rule("mergeyard")])
    head = as_app.open(1)
    if case.reason is Reason.WAITING_FOR_CONVERSATIONS:
        as_app.acme.add_thread(1)
    if "@acme/db" in case.names:
        as_app.acme.request_review(1, "acme/db")
    async with as_app.host() as host:
        found = await missing(host, as_app)
        assert case.reason in reasons(found)
        assert all(set(case.names) <= set(names) for reason, names in found if reason is case.reason)
        case.meet(as_app, head)
        assert await missing(host, as_app) == []
        case.withdraw(as_app, head)
        assert case.reason in reasons(await missing(host, as_app))


@asynchronous
async def test_a_check_that_failed_is_told_apart_from_one_that_runs_or_has_not_reported(as_app: GithubEnvironment):
    add_ruleset(required_checks_rule("unit", "lint", "docs", "build"))(as_app)
    head = as_app.open(1)
    as_app.acme.report_status(head, "build", "success")
    as_app.acme.report_status(head, "unit", "failure")
    as_app.acme.report_status(head, "lint", "pending")
    async with as_app.host() as host:
        assert await missing(host, as_app) == [
            (Reason.HEAD_CHECKS_FAILED, ("unit",)),
            (Reason.WAITING_FOR_HEAD_CHECKS, ("docs", "lint")),
        ]


@asynchronous
async def test_the_last_pusher_cannot_approve_the_own_push(as_app: GithubEnvironment):
    as_app.acme.add_ruleset("reviews", [pull_request_rule(1, last_push=True)])
    as_app.open(1)
    as_app.acme.push_commit("topic-1", {"2.txt": "2"}, by="grace")
    as_app.acme.add_review(1, "grace", "APPROVED")
    async with as_app.host() as host:
        assert (Reason.WAITING_FOR_LAST_PUSH_APPROVAL, ("@grace",)) in await missing(host, as_app)


@asynchronous
async def test_a_head_that_we_moved_back_was_pushed_by_its_author(as_app: GithubEnvironment):
    as_app.acme.add_ruleset("reviews", [pull_request_rule(1, last_push=True)])
    as_app.open(1)
    head = as_app.acme.push_commit("topic-1", {"2.txt": "2"}, by="grace")
    tested = as_app.acme.push_commit("topic-1", {"3.txt": "3"}, by="mergeyard-test[bot]")
    as_app.origin.set_ref("topic-1", head)
    as_app.acme.on_push({"refs/heads/topic-1": (tested, head)}, "mergeyard-test[bot]")
    as_app.acme.add_review(1, "grace", "APPROVED")
    async with as_app.host() as host:
        assert (Reason.WAITING_FOR_LAST_PUSH_APPROVAL, ("@grace",)) in await missing(host, as_app)


@asynchronous
async def test_files_of_no_team_need_no_approval_of_a_team(as_app: GithubEnvironment):
    own_files_of_a_team(as_app)
    as_app.open(1, files={"web/a.js": "1"})
    async with as_app.host() as host:
        assert await missing(host, as_app) == []


@asynchronous
async def test_many_conversations_are_all_read(as_app: GithubEnvironment):
    as_app.acme.add_ruleset("reviews", [pull_request_rule(threads=True)])
    as_app.open(1)
    for index in range(150):
        as_app.acme.add_thread(1)
        as_app.acme.resolve_thread(1, index, resolved=index != 149)
    async with as_app.host() as host:
        (found,) = (await read(host, as_app)).requirements
        assert (found.given, found.needed) == (149, 150)


# Missing permissions


PERMISSIONS = {
    "members": (own_files_of_a_team, "Members: Read-only (of the organization)"),
    "deployments": (RULES["a deployment"].require, "Deployments: Read-only"),
    "checks": (RULES["checks of the head"].require, "Checks: Read-only and Commit statuses: Read-only"),
    "administration": (
        require_by_classic_rule,
        "Administration: Read-only to the app, or the role Admin to the account of the token",
    ),
}


@pytest.mark.parametrize("permission", PERMISSIONS)
@asynchronous
async def test_a_rule_that_cannot_be_read_names_the_permission(as_app: GithubEnvironment, permission: str):
    require, title = PERMISSIONS[permission]
    require(as_app)
    as_app.open(1)
    as_app.acme.add_review(1, "linus", "APPROVED")
    assert as_app.github.auth.app
    del as_app.github.auth.app.permissions[permission]
    async with as_app.host() as host:
        assert await missing(host, as_app) == [(Reason.HOST_RULE_UNREADABLE, (title,))]
    async with as_app.host(unreadable_rules_block=False) as host:
        pull_request = await read(host, as_app)
        assert pull_request.is_mergeable
        assert [each.given for each in pull_request.requirements if each.names == (title,)] == [None]


@pytest.mark.parametrize("blocks", [True, False])
@asynchronous
async def test_a_team_without_members_is_not_a_team_that_cannot_be_read(as_app: GithubEnvironment, blocks: bool):
    own_files_of_a_team(as_app)
    as_app.acme.organization.teams["db"].members.clear()
    as_app.open(1)
    as_app.acme.add_review(1, "linus", "APPROVED")
    async with as_app.host(unreadable_rules_block=blocks) as host:
        assert reasons(await missing(host, as_app)) == [Reason.WAITING_FOR_REVIEW]


@asynchronous
async def test_a_team_that_was_deleted_cannot_be_read(as_app: GithubEnvironment):
    own_files_of_a_team(as_app)
    as_app.open(1)
    del as_app.acme.organization.teams["db"]
    async with as_app.host() as host:
        assert reasons(await missing(host, as_app)) == [Reason.HOST_RULE_UNREADABLE]


@asynchronous
async def test_teams_are_read_with_a_token_that_can_only_read_members_and_listed_once(as_app: GithubEnvironment):
    """Users report that the token for a single repository resolves no team, also with the permission."""
    own_files_of_a_team(as_app)
    as_app.open(1)
    async with as_app.host() as host:
        assert await missing(host, as_app) == [(Reason.WAITING_FOR_REVIEW, ("@acme/db",))]
        assert await missing(host, as_app) == [(Reason.WAITING_FOR_REVIEW, ("@acme/db",))]
    of_repository, of_members = map(as_app.github.auth.find_caller, as_app.github.auth.issued_tokens)
    assert of_repository is not None
    assert of_repository.repositories == {"acme/app"}
    assert of_members is not None
    assert (of_members.repositories, dict(of_members.permissions)) == (None, {"members": "read"})
    calls = [str(call) for call in as_app.github.faults.calls]
    assert len([call for call in calls if "/orgs/acme/teams?" in call]) == 1
    assert not [call for call in calls if "/organizations/" in call]


@asynchronous
async def test_a_team_that_was_renamed_is_found_again(as_app: GithubEnvironment):
    own_files_of_a_team(as_app)
    as_app.open(1)
    organization = as_app.acme.organization
    async with as_app.host() as host:
        assert await missing(host, as_app) == [(Reason.WAITING_FOR_REVIEW, ("@acme/db",))]
        team = organization.teams.pop("db")
        organization.teams["data"] = replace(team, slug="data")
        assert reasons(await missing(host, as_app)) == [Reason.HOST_RULE_UNREADABLE]
        assert await missing(host, as_app) == [(Reason.WAITING_FOR_REVIEW, ("@acme/data",))]


@asynchronous
async def test_a_team_that_is_not_listed_is_read_by_its_id_if_github_answers_that(as_app: GithubEnvironment):
    own_files_of_a_team(as_app)
    as_app.open(1)
    as_app.github.faults.plan(RespondsWith(200, body=b"[]"), "orgs/acme/teams$", times=ALWAYS)
    async with as_app.host() as host:
        assert reasons(await missing(host, as_app)) == [Reason.HOST_RULE_UNREADABLE]
        as_app.acme.organization.answers_team_ids = True
        team = as_app.acme.organization.teams["db"]
        assert await missing(host, as_app) == [(Reason.WAITING_FOR_REVIEW, (f"the team with the id {team.id}",))]


@asynchronous
async def test_a_permission_that_is_granted_later_is_used_after_a_minute(tmp_path: Path):
    clock = ManualClock()
    with github_app_environment(tmp_path, clock) as env:
        env.acme.roles |= WRITERS
        own_files_of_a_team(env)
        env.open(1)
        env.acme.add_review(1, "linus", "APPROVED")
        assert env.github.auth.app
        del env.github.auth.app.permissions["members"]
        async with env.host() as host:
            assert reasons(await missing(host, env)) == [Reason.HOST_RULE_UNREADABLE]
            env.github.auth.app.permissions["members"] = "read"
            assert reasons(await missing(host, env)) == [Reason.HOST_RULE_UNREADABLE]
            clock.move_to(later(clock.now(), 2 * MINUTE))
            assert reasons(await missing(host, env)) == [Reason.HOST_RULE_UNREADABLE]
            assert await missing(host, env) == []


@asynchronous
async def test_a_branch_that_only_rulesets_protect_has_no_unreadable_rule(as_app: GithubEnvironment):
    as_app.acme.add_ruleset("reviews", [pull_request_rule(1)])
    as_app.open(1)
    as_app.acme.add_review(1, "grace", "APPROVED")
    summary = b'{"protection": {"enabled": true}}'
    as_app.github.faults.plan(RespondsWith(200, body=summary), "app/branches/main$", times=ALWAYS)
    async with as_app.host() as host:
        assert await missing(host, as_app) == []
        assert sum(call.endswith("/protection") for call in as_app.github.faults.calls) == 1


@asynchronous
async def test_without_classic_rules_the_decision_of_github_still_blocks(as_app: GithubEnvironment):
    require_by_classic_rule(as_app)
    as_app.open(1)
    assert as_app.github.auth.app
    del as_app.github.auth.app.permissions["administration"]
    async with as_app.host(unreadable_rules_block=False) as host:
        assert reasons(await missing(host, as_app)) == [Reason.BLOCKED_BY_HOST_RULE]
        as_app.acme.add_review(1, "grace", "APPROVED")
        assert await missing(host, as_app) == []


def answer(*types: str) -> bytes:
    return json.dumps({"data": None, "errors": [{"type": kind, "message": "no"} for kind in types]}).encode()


@asynchronous
async def test_a_token_that_cannot_read_teams_reads_the_reviews_without_their_names(github: GithubEnvironment):
    github.acme.add_ruleset("reviews", [pull_request_rule(1)])
    github.acme.organization.add_team("db", "linus")
    github.open(1)
    github.acme.request_review(1, "acme/db")
    github.github.faults.plan(RespondsWith(200, body=answer("INSUFFICIENT_SCOPES")), "graphql")
    async with github.host() as host:
        assert await missing(host, github) == [(Reason.WAITING_FOR_REVIEW, ())]
        before = len(github.github.faults.calls)
        github.acme.add_review(1, "grace", "APPROVED")
        assert await missing(host, github) == []
        calls = [str(call) for call in github.github.faults.calls[before:]]
        assert len([call for call in calls if "graphql" in call]) == 1, "it is not tried again"


PULL_REQUEST_PATH = ["repository", "pullRequest"]


def answer_approved(**error: Any) -> bytes:
    """Two approvals, and an error about a part of the answer."""
    reviews = {"nodes": [{"state": "APPROVED", "author": {"login": "grace"}, "commit": None}, None]}
    facts = {"reviewDecision": None, "latestOpinionatedReviews": reviews, "reviewRequests": {"nodes": [None]}}
    data = {"repository": {"pullRequest": facts}}
    return json.dumps({"data": data, "errors": [{"message": "Something went wrong"} | error]}).encode()


@pytest.mark.parametrize(
    "error",
    [
        {"path": [*PULL_REQUEST_PATH, "reviewDecision"]},
        {"path": [*PULL_REQUEST_PATH, "latestOpinionatedReviews", "nodes", 1, "state"]},
        {},
    ],
    ids=["the decision", "a review", "unknown"],
)
@asynchronous
async def test_an_answer_that_lacks_what_could_withhold_an_approval_is_not_used(
    github: GithubEnvironment, error: dict[str, Any]
):
    github.acme.add_ruleset("reviews", [pull_request_rule(1)])
    github.open(1)
    github.github.faults.plan(RespondsWith(200, body=answer_approved(**error)), "graphql")
    async with github.host() as host:
        with pytest.raises(HostUnavailable, match="Something went wrong"):
            await read(host, github)


@asynchronous
async def test_an_answer_that_lacks_the_names_of_teams_is_used(as_app: GithubEnvironment):
    as_app.acme.add_ruleset("reviews", [pull_request_rule(1)])
    as_app.open(1)
    hidden = {"type": "FORBIDDEN", "path": [*PULL_REQUEST_PATH, "reviewRequests", "nodes", 0, "requestedReviewer"]}
    as_app.github.faults.plan(RespondsWith(200, body=answer_approved(**hidden)), "graphql")
    async with as_app.host() as host:
        assert await missing(host, as_app) == []


@asynchronous
async def test_an_exceeded_limit_of_queries_stops_queries_for_a_while(github: GithubEnvironment):
    github.acme.add_ruleset("reviews", [pull_request_rule(1)])
    github.open(1)
    github.github.faults.plan(RespondsWith(200, body=answer("RATE_LIMITED")), "graphql")
    async with github.host() as host:
        for _ in range(3):
            with pytest.raises(HostUnavailable):
                await read(host, github)
        assert await host.branch_tip(github.repo, "main"), "other requests go on"
    assert len([call for call in github.github.faults.calls if "graphql" in str(call)]) == 1


# Rules that the queue cannot judge


@asynchronous
async def test_a_rule_that_this_version_does_not_know_is_logged_once(as_app: GithubEnvironment):
    as_app.acme.add_ruleset("new", [rule("a_rule_of_tomorrow")], bypass=[APP_BYPASS])
    as_app.github.future_words.add("a_rule_of_tomorrow")
    as_app.open(1)
    async with as_app.host() as host:
        with capture_logs() as lines:
            await read(host, as_app)
            (found,) = (await read(host, as_app)).unmet_requirements
    logged = [line for line in lines if line["event"] == "host_rule_not_known"]
    assert [(line["repo"], line["rule"]) for line in logged] == [(str(as_app.repo), found.names[0])]


@asynchronous
async def test_another_type_can_give_a_parameter_another_meaning(as_app: GithubEnvironment):
    rules = [
        {"type": "new", "parameters": {"required_reviewers": 1}, "ruleset_id": 5},
        {"type": "update", "parameters": None},
    ]
    as_app.acme.add_ruleset("future", [rule("update")])
    as_app.open(1)
    as_app.github.faults.plan(RespondsWith(200, body=json.dumps(rules).encode()), "/rules/branches/main$", times=ALWAYS)
    as_app.github.faults.plan(
        RespondsWith(200, body=b'{"name": "x", "current_user_can_bypass": "never"}'), "/rulesets/5"
    )
    async with as_app.host() as host:
        assert await missing(host, as_app) == []


@pytest.mark.parametrize(
    "new_rule", [rule("new_rule"), pull_request_rule(0, new_condition=True)], ids=["type", "parameter"]
)
@asynchronous
async def test_an_unknown_rule_blocks_only_if_our_account_can_bypass_it(as_app: GithubEnvironment, new_rule: RuleData):
    as_app.github.future_words |= {"new_rule", "new_condition"}
    as_app.acme.add_ruleset("future", [new_rule])
    as_app.open(1)
    async with as_app.host() as host:
        assert await missing(host, as_app) == [], "GitHub itself enforces the rule when we push or merge"
    as_app.acme.add_ruleset("lenient", [new_rule], bypass=[APP_BYPASS])
    async with as_app.host() as host:
        ((reason, (name,)),) = await missing(host, as_app)
        assert (reason, name.partition(" ")[2]) == (Reason.BLOCKED_BY_HOST_RULE, 'of the ruleset "lenient"')
    async with as_app.host(unreadable_rules_block=False) as host:
        assert await missing(host, as_app) == []


@asynchronous
async def test_a_locked_branch_blocks(as_app: GithubEnvironment):
    as_app.acme.protections["main"] = BranchProtection(other_rules={"lock_branch": {"enabled": True}})
    as_app.open(1)
    async with as_app.host() as host:
        assert await missing(host, as_app) == [(Reason.BLOCKED_BY_HOST_RULE, ("the branch is locked",))]


# Costs and faults


@asynchronous
async def test_only_the_query_is_charged_when_nothing_changed(github: GithubEnvironment):
    github.acme.protections["main"] = BranchProtection(contexts=["unit"], approvals=1)
    github.open(1)
    async with github.host() as host:
        await missing(host, github)
        once = len(github.github.faults.calls)
        github.github.faults.plan(RespondsWith(304, body=b""), "/api/v3/", times=once - 1)
        assert set(reasons(await missing(host, github))) == {
            Reason.WAITING_FOR_REVIEW,
            Reason.WAITING_FOR_HEAD_CHECKS,
        }
        assert len(github.github.faults.calls) == 2 * once


@asynchronous
async def test_a_pull_request_into_an_unprotected_branch_needs_no_query(github: GithubEnvironment):
    github.open(1)
    async with github.host() as host:
        assert (await read(host, github)).requirements == ()
    assert not [call for call in github.github.faults.calls if "graphql" in str(call)]


# Signatures

SIGNED = rule("required_signatures")
UNSIGNED, NOT_ACCEPTED = Reason.COMMITS_UNSIGNED, Reason.SIGNING_KEY_NOT_ACCEPTED


def require_signatures(env: GithubEnvironment, is_classic: bool, bypass: list[BypassActor] | None = None) -> None:
    if is_classic:
        switch = {"required_signatures": {"enabled": True, "url": "-"}}
        env.acme.protections["main"] = BranchProtection(other_rules=switch)
    else:
        env.acme.add_ruleset("signed", [SIGNED], bypass=bypass or [])


@pytest.mark.parametrize("is_classic", [True, False])
@asynchronous
async def test_unsigned_commits_are_named_where_signatures_are_required(github: GithubEnvironment, is_classic: bool):
    first = github.open(1)
    github.github.auth.ssh_signing_keys["ada"] = [f"{KEY} on the laptop"]
    async with github.host(signer=FakeSigner()) as host:
        assert await missing(host, github) == []
        require_signatures(github, is_classic)
        second = github.push(1)
        assert await missing(host, github) == [(UNSIGNED, (first[:8], second[:8]))]
        github.acme.verified_commits.add(first)
        (unmet,) = (await read(host, github)).unmet_requirements
        assert (unmet.names, unmet.needed, unmet.given) == ((second[:8],), 2, 1)
        github.acme.verified_commits.add(second)
        assert await missing(host, github) == []


@asynchronous
async def test_unsigned_commits_are_named_also_to_an_account_that_can_bypass_the_rule(as_app: GithubEnvironment):
    head = as_app.open(1)
    require_signatures(as_app, is_classic=False, bypass=[APP_BYPASS])
    async with as_app.host() as host:
        assert await missing(host, as_app) == [(UNSIGNED, (head[:8],))]
        as_app.acme.verified_commits.add(head)
        assert await missing(host, as_app) == []


@pytest.mark.parametrize("bypass", [[], [BypassActor("Integration", int(APP), "pull_request")]])
@asynchronous
async def test_an_app_that_cannot_bypass_the_rule_is_told_that_it_cannot_have_a_key(
    as_app: GithubEnvironment, bypass: list[BypassActor]
):
    as_app.acme.verified_commits.add(as_app.open(1))
    require_signatures(as_app, is_classic=False, bypass=bypass)
    async with as_app.host(signer=FakeSigner()) as host:
        name = "GitHub accepts no keys of apps: let mergeyard-test bypass the rule"
        assert await missing(host, as_app) == [(NOT_ACCEPTED, (name,))]


@pytest.mark.parametrize("is_classic", [True, False])
@asynchronous
async def test_our_key_must_be_registered_for_our_account(github: GithubEnvironment, is_classic: bool):
    github.acme.verified_commits.add(github.open(1))
    require_signatures(github, is_classic)
    async with github.host() as host:
        assert await missing(host, github) == [(NOT_ACCEPTED, ("signing_key_file is not set for github.example",))]
    auth = github.github.auth
    auth.ssh_signing_keys = {"grace": [KEY], "ada": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG90aGVy"]}
    async with github.host(signer=FakeSigner()) as host:
        assert await missing(host, github) == [(NOT_ACCEPTED, (f"{FINGERPRINT} of @ada",))]
        auth.ssh_signing_keys["ada"].append(f"{KEY} a comment")
        assert await missing(host, github) == []


@asynchronous
async def test_an_expired_key_is_not_accepted(github: GithubEnvironment):
    github.acme.verified_commits.add(github.open(1))
    require_signatures(github, is_classic=False)
    github.github.auth.ssh_signing_keys["ada"] = [KEY]
    signer = FakeSigner()
    async with github.host(signer=signer) as host:
        assert await missing(host, github) == []
        signer.expires_at = 0
        assert await missing(host, github) == [(NOT_ACCEPTED, (f"{FINGERPRINT}, which has expired",))]


@asynchronous
async def test_an_openpgp_key_is_found_by_the_end_of_its_fingerprint(github: GithubEnvironment):
    github.acme.verified_commits.add(github.open(1))
    require_signatures(github, is_classic=False)
    fingerprint, auth = "0123456789ABCDEF" * 2 + "89ABCDEF", github.github.auth
    address = f"{to_account_id('ada')}+ada@users.noreply.127.0.0.1"
    auth.gpg_keys["ada"] = {"F" * 40: address}
    async with github.host(signer=FakeSigner("-----BEGIN PGP PUBLIC KEY BLOCK-----", fingerprint)) as host:
        assert await missing(host, github) == [(NOT_ACCEPTED, (f"{fingerprint} of @ada",))]
        auth.gpg_keys["ada"][fingerprint] = address
        assert await missing(host, github) == []
        revoked = [{"key_id": fingerprint[-16:], "revoked": True, "emails": [{"email": address, "verified": True}]}]
        github.github.faults.plan(RespondsWith(200, body=json.dumps(revoked).encode()), "/gpg_keys")
        assert reasons(await missing(host, github)) == [NOT_ACCEPTED]


@asynchronous
async def test_a_configured_address_must_be_one_that_our_account_shows(github: GithubEnvironment):
    github.acme.verified_commits.add(github.open(1))
    require_signatures(github, is_classic=False)
    github.github.auth.ssh_signing_keys["ada"] = [KEY]
    own = f"{to_account_id('ada')}+ada@users.noreply.127.0.0.1"
    async with github.host(signer=FakeSigner(), committer_email=own) as host:
        assert await missing(host, github) == []
    async with github.host(signer=FakeSigner(), committer_email="queue@example.org") as host:
        name = "committer_email queue@example.org, which is no public address of @ada"
        assert await missing(host, github) == [(NOT_ACCEPTED, (name,))]
        github.github.auth.public_addresses["ada"] = "Queue@example.org"
        assert await missing(host, github) == []


@pytest.mark.parametrize("is_verified", [True, False])
@asynchronous
async def test_an_openpgp_key_needs_the_address_of_our_commits(github: GithubEnvironment, is_verified: bool):
    github.acme.verified_commits.add(github.open(1))
    require_signatures(github, is_classic=False)
    fingerprint, own = "0123456789ABCDEF" * 2 + "89ABCDEF", f"{to_account_id('ada')}+ada@users.noreply.127.0.0.1"
    emails = [{"email": "ada@example.org", "verified": True}, {"email": own.upper(), "verified": is_verified}]
    key = [{"key_id": fingerprint[-16:], "emails": emails}]
    signer = FakeSigner("-----BEGIN PGP PUBLIC KEY BLOCK-----", fingerprint)
    async with github.host(signer=signer) as host:
        github.github.faults.plan(RespondsWith(200, body=json.dumps(key).encode()), "/gpg_keys")
        name = f"a verified identity {own} in the key {fingerprint[-16:]}"
        assert await missing(host, github) == ([] if is_verified else [(NOT_ACCEPTED, (name,))])
        name = f"a verified identity eve@example.org in the key {fingerprint[-16:]}"
    async with github.host(signer=signer, committer_email="eve@example.org") as host:
        github.github.faults.plan(RespondsWith(200, body=json.dumps(key).encode()), "/gpg_keys")
        assert await missing(host, github) == [(NOT_ACCEPTED, (name,))]


@pytest.mark.parametrize(
    ("role", "enforce_admins", "binds"), [("admin", False, False), ("admin", True, True), ("write", False, True)]
)
@asynchronous
async def test_classic_protection_exempts_administrators_from_signing_unless_it_includes_them(
    github: GithubEnvironment, role: str, enforce_admins: bool, binds: bool
):
    github.acme.verified_commits.add(github.open(1))
    require_signatures(github, is_classic=True)
    github.acme.protections["main"].enforce_admins = enforce_admins
    github.acme.only_admins_read_protection = False
    github.acme.roles["ada"] = role
    async with github.host() as host:
        assert reasons(await missing(host, github)) == ([NOT_ACCEPTED] if binds else [])


@asynchronous
async def test_commits_that_cannot_be_read_are_named_as_a_missing_permission(github: GithubEnvironment):
    github.open(1)
    require_signatures(github, is_classic=False)
    github.github.faults.plan(RespondsWith(403, body=b'{"message": "Resource not accessible"}'), "/pulls/1/commits")
    async with github.host() as host:
        assert reasons(await missing(host, github)) == [Reason.HOST_RULE_UNREADABLE]


@asynchronous
async def test_only_as_many_commits_are_read_as_github_lists(github: GithubEnvironment):
    github.open(1)
    require_signatures(github, is_classic=False)
    listed = [{"sha": f"{number:08x}" * 5} for number in range(100)]
    link = {"link": f'<{github.github.api_url}/repos/acme/app/pulls/1/commits?page=2>; rel="next"'}
    endless = RespondsWith(200, link, json.dumps(listed).encode())
    github.github.faults.plan(endless, "/pulls/1/commits", times=ALWAYS)
    async with github.host() as host:
        unsigned = (await read(host, github)).unmet_requirements[0]
    assert (unsigned.needed, len(unsigned.names)) == (300, 20)
