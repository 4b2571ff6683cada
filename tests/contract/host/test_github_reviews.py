"""Reviews that the rules of GitHub require: which are reported as missing, and because of which pull request."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.github.requirements import ReviewFacts, judge_reviews
from mergeyard.adapters.forges.github.rules import BranchRules, Parameters, Protection, Rule
from mergeyard.adapters.forges.github.wire import Review, ReviewRequest
from mergeyard.domain.states import Reason
from tests.contract.host.environment import ONE
from tests.contract.host.github_environment import APP, GithubEnvironment, github_app_environment
from tests.support.asynchronous import asynchronous
from tests.support.forges.github.rules import COPILOT
from tests.support.forges.github.rulesets import BypassActor, pull_request_rule

APP_BYPASS = BypassActor("Integration", int(APP), "exempt")
HEAD, OLD = "a" * 40, "b" * 40
TEAM = 17
EXTRA = "require_extra_approval_for_unattributed_changes"
Missing = list[tuple[Reason, tuple[str, ...]]]


@pytest.fixture
def env(tmp_path: Path) -> Generator[GithubEnvironment]:
    """Our account can bypass all rulesets, so GitHub itself enforces nothing."""
    with github_app_environment(tmp_path) as env:
        env.acme.roles |= {"grace": "write", "linus": "maintain", "bob": "write"}
        yield env


def require(env: GithubEnvironment, approvals: int = 1, **others: Any) -> None:
    env.acme.add_ruleset("reviews", [pull_request_rule(approvals, **others)], bypass=[APP_BYPASS])


async def missing(host: GithubHost, env: GithubEnvironment) -> Missing:
    pull_request = await host.read_pull_request(env.repo, ONE)
    assert pull_request
    return [(each.reason, each.names) for each in pull_request.unmet_requirements]


def judge(parameters: dict[str, Any], *reviews: Review, **facts: Any) -> Missing:
    rules = BranchRules((Rule("pull_request", msgspec.convert(parameters, Parameters)),), Protection(), frozenset())
    found = judge_reviews(rules, ReviewFacts(head=HEAD, reviews=reviews, **facts))
    return [(each.reason, each.names) for each in found if not each.is_met]


def review(login: str, state: str = "APPROVED", commit: str = HEAD) -> Review:
    return msgspec.convert({"state": state, "author": {"login": login}, "commit": {"oid": commit}}, Review)


def ask_owner(login: str) -> ReviewRequest:
    return msgspec.convert({"asCodeOwner": True, "requestedReviewer": {"login": login}}, ReviewRequest)


# The additional approval for pull requests of Copilot


@pytest.mark.parametrize("value", [True, False])
@asynchronous
async def test_the_rule_about_copilot_concerns_no_other_pull_request(env: GithubEnvironment, value: bool):
    require(env, extra_for_copilot=value)
    env.open(1)
    env.acme.add_review(1, "grace", "APPROVED")
    async with env.host() as host:
        assert await missing(host, env) == []


@asynchronous
async def test_a_pull_request_of_copilot_needs_one_more_approval(env: GithubEnvironment):
    require(env)
    env.open(1, author=COPILOT)
    env.acme.add_review(1, "grace", "APPROVED")
    async with env.host() as host:
        pull_request = await host.read_pull_request(env.repo, ONE)
        assert pull_request
        (found,) = pull_request.unmet_requirements
        assert (found.reason, found.given, found.needed) == (Reason.WAITING_FOR_REVIEW, 1, 2)
        env.acme.add_review(1, "linus", "APPROVED")
        assert await missing(host, env) == []


@asynchronous
async def test_what_copilot_opened_for_a_person_waits_for_one_approval_too_many(env: GithubEnvironment):
    """GitHub does not show that it was opened for a person."""
    require(env)
    env.open(1, author=COPILOT, is_for_person=True)
    env.acme.add_review(1, "grace", "APPROVED")
    async with env.host() as host:
        assert await missing(host, env) == [(Reason.WAITING_FOR_REVIEW, ())]


@pytest.mark.parametrize(
    ("author", "count", "value", "waits"),
    [
        ("Copilot", 1, True, True),
        ("copilot-swe-agent", 1, True, True),
        ("copilot-swe-agent[bot]", 1, True, True),
        ("dependabot[bot]", 1, True, False),
        ("Copilot", 1, False, False),
        ("Copilot", 0, True, False),
    ],
)
def test_only_required_approvals_of_copilots_account_are_one_more(author: str, count: int, value: bool, waits: bool):
    found = judge({"required_approving_review_count": count, EXTRA: value}, review("grace"), author=author)
    assert found == ([(Reason.WAITING_FOR_REVIEW, ())] if waits else [])


# What the decision of GitHub means while something else is missing


@pytest.mark.parametrize("approver", ["linus", "grace"])
@asynchronous
async def test_while_an_approval_is_missing_the_others_that_are_given_are_not_reported(
    env: GithubEnvironment, approver: str
):
    """Two approvals are required. The code owner, or the other one, approved what Ada pushed."""
    env.acme.code_owners["1.txt"] = ["@linus"]
    require(env, 2, code_owners=True, last_push=True)
    env.open(1)
    env.acme.add_review(1, approver, "APPROVED")
    owner = [(Reason.WAITING_FOR_CODE_OWNER, ("@linus",))] if approver == "grace" else []
    async with env.host() as host:
        assert (await missing(host, env))[1:] == owner
        assert (await missing(host, env))[0][0] is Reason.WAITING_FOR_REVIEW
        env.acme.add_review(1, "bob", "APPROVED")
        assert await missing(host, env) == owner
        env.acme.add_review(1, "linus", "APPROVED")
        assert await missing(host, env) == []


@asynchronous
async def test_a_code_owner_who_is_not_asked_is_missing_when_there_are_enough_approvals(env: GithubEnvironment):
    env.acme.code_owners["1.txt"] = ["@linus"]
    require(env, 2, code_owners=True)
    env.open(1)
    env.acme.add_review(1, "linus", "APPROVED")
    env.acme.dismiss(1, "linus")
    env.acme.add_review(1, "grace", "APPROVED")
    async with env.host() as host:
        assert await missing(host, env) == [(Reason.WAITING_FOR_REVIEW, ())]
        env.acme.add_review(1, "bob", "APPROVED")
        assert await missing(host, env) == [(Reason.WAITING_FOR_CODE_OWNER, ())]


@asynchronous
async def test_requested_changes_of_the_code_owner_are_the_only_reason(env: GithubEnvironment):
    env.acme.code_owners["1.txt"] = ["@linus"]
    require(env, code_owners=True, last_push=True)
    env.open(1)
    env.acme.add_review(1, "grace", "APPROVED")
    env.acme.add_review(1, "linus", "CHANGES_REQUESTED")
    async with env.host() as host:
        assert await missing(host, env) == [(Reason.CHANGES_REQUESTED, ("@linus",))]


ALL_RULES = {
    "required_approving_review_count": 2,
    "require_code_owner_review": True,
    "require_last_push_approval": True,
}
REVIEW, OWNER = (Reason.WAITING_FOR_REVIEW, ()), (Reason.WAITING_FOR_CODE_OWNER, ())
PUSH = (Reason.WAITING_FOR_LAST_PUSH_APPROVAL, ("@ada",))
UNKNOWN_PUSH = (Reason.WAITING_FOR_LAST_PUSH_APPROVAL, ())
ENOUGH = (review("grace"), review("bob"))
REQUIRED: dict[str, Any] = {"decision": "REVIEW_REQUIRED", "pusher": "ada"}


@pytest.mark.parametrize(
    ("reviews", "facts", "expected"),
    [
        ((review("bob"),), REQUIRED, [REVIEW]),
        ((review("bob", commit=OLD),), REQUIRED, [REVIEW, PUSH]),
        ((review("ada"),), REQUIRED, [REVIEW, PUSH]),
        ((), REQUIRED, [REVIEW, PUSH]),
        ((review("bob"),), REQUIRED | {"pusher": None}, [REVIEW]),
        ((review("bob", commit=OLD),), REQUIRED | {"pusher": None}, [REVIEW, UNKNOWN_PUSH]),
        (ENOUGH, REQUIRED, [OWNER]),
        (ENOUGH, REQUIRED | {"pusher": None}, [OWNER]),
        (ENOUGH, {"decision": "APPROVED"}, []),
        (ENOUGH, {"decision": None, "pusher": "ada"}, [OWNER]),
    ],
)
def test_something_is_missing_until_github_and_the_queue_find_everything(
    reviews: tuple[Review, ...], facts: dict[str, Any], expected: Missing
):
    assert judge(ALL_RULES, *reviews, **facts) == expected


def test_a_requested_code_owner_is_named_also_while_approvals_are_missing():
    found = judge(ALL_RULES, review("bob"), **REQUIRED, requests=(ask_owner("linus"),))
    assert found == [(Reason.WAITING_FOR_REVIEW, ("@linus",)), (Reason.WAITING_FOR_CODE_OWNER, ("@linus",))]


def test_a_rule_that_cannot_be_read_does_not_explain_the_decision():
    """It can be ignored with `unreadable_rules = "unknown"`. The decision cannot."""
    required = {"reviewer": {"id": TEAM, "type": "Team"}, "file_patterns": ["*"], "minimum_approvals": 1}
    parameters = {"required_reviewers": [required], "require_last_push_approval": True}
    assert PUSH in judge(parameters, review("bob"), **REQUIRED)
    blocked = (Reason.BLOCKED_BY_HOST_RULE, ("GitHub still requires a review",))
    assert blocked in judge({"required_reviewers": [required]}, review("bob"), **REQUIRED)


# Other pull requests with the same head


def open_other(env: GithubEnvironment, kind: str) -> None:
    """Pull request 2 with the head of pull request 1."""
    env.origin.branch("stable", base="main")
    match kind:
        case "another base":
            env.acme.open_pull_request("topic-1", base="stable")
        case "another branch":
            env.origin.branch("copy", base="topic-1")
            env.acme.open_pull_request("copy")
        case _:
            env.acme.open_pull_request("topic-1", base="stable", home="eve/app")


@pytest.mark.parametrize("kind", ["another base", "another branch", "a fork"])
@asynchronous
async def test_requested_changes_of_another_pull_request_with_the_same_head_count(env: GithubEnvironment, kind: str):
    require(env)
    env.open(1)
    open_other(env, kind)
    env.acme.add_review(1, "linus", "APPROVED")
    env.acme.add_review(2, "linus", "APPROVED")
    async with env.host() as host:
        assert await missing(host, env) == []
        env.acme.add_review(2, "grace", "CHANGES_REQUESTED")
        before = len(env.github.faults.calls)
        assert await missing(host, env) == [(Reason.CHANGES_REQUESTED, ("@grace on #2 (same head)",))]
        assert sum("graphql" in call for call in env.github.faults.calls[before:]) == 1
        env.acme.dismiss(2, "grace")
        assert await missing(host, env) == []
        env.acme.add_review(2, "mallory", "CHANGES_REQUESTED")
        assert await missing(host, env) == [], "without write access"
        env.acme.add_review(2, "grace", "CHANGES_REQUESTED")
        env.close(2)
        assert await missing(host, env) == []


@asynchronous
async def test_another_pull_request_with_the_same_head_that_waits_for_a_review_blocks(env: GithubEnvironment):
    require(env)
    env.open(1)
    open_other(env, "another branch")
    env.acme.add_review(1, "linus", "APPROVED")
    async with env.host() as host:
        assert await missing(host, env) == [(Reason.WAITING_FOR_REVIEW, ("a reviewer of #2 (same head)",))]
        env.acme.add_review(2, "linus", "APPROVED")
        assert await missing(host, env) == []


@asynchronous
async def test_the_draft_of_a_test_branch_needs_no_review(env: GithubEnvironment):
    """It has the head of a pull request whose head branch moved to the tested commit."""
    require(env)
    env.open(1)
    env.origin.branch("mergeyard/pr-1/x", base="topic-1")
    env.acme.open_pull_request("mergeyard/pr-1/x", draft=True)
    env.acme.add_review(1, "linus", "APPROVED")
    async with env.host() as host:
        assert await missing(host, env) == []


@asynchronous
async def test_a_head_that_the_default_branch_contains_is_compared_too(env: GithubEnvironment):
    """GitHub no longer associates this commit with open pull requests."""
    for branch in ("release", "stable"):
        env.origin.branch(branch, base="main")
    env.acme.push_commit("main", {"new.txt": "1"})
    env.acme.add_ruleset("reviews", [pull_request_rule(1)], include=["~ALL"], bypass=[APP_BYPASS])
    for base in ("release", "stable"):
        env.acme.open_pull_request("main", base=base)
    env.acme.add_review(1, "linus", "APPROVED")
    env.acme.add_review(2, "grace", "CHANGES_REQUESTED")
    async with env.host() as host:
        assert await missing(host, env) == [(Reason.CHANGES_REQUESTED, ("@grace on #2 (same head)",))]


@asynchronous
async def test_a_pull_request_on_top_has_another_head(env: GithubEnvironment):
    require(env)
    env.open(1)
    env.origin.branch("top", base="topic-1", files={"top.txt": "1"})
    env.acme.open_pull_request("top")
    env.acme.add_review(1, "linus", "APPROVED")
    env.acme.add_review(2, "grace", "CHANGES_REQUESTED")
    async with env.host() as host:
        assert await missing(host, env) == []


@asynchronous
async def test_where_no_review_is_required_other_pull_requests_do_not_matter(env: GithubEnvironment):
    require(env, 0)
    env.open(1)
    open_other(env, "another branch")
    env.acme.add_review(2, "grace", "CHANGES_REQUESTED")
    async with env.host() as host:
        assert await missing(host, env) == []
