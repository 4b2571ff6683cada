"""What GitHub thinks of merging a pull request, and what we make of it where our own status is required."""

import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.states import Mergeability
from tests.contract.host.github_stage import GithubStage
from tests.contract.host.stage import ONE
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import ALWAYS, Answers
from tests.support.forges.github.facts import Guard


async def opinion_of(host: GithubHost, stage: GithubStage, number: PrNumber = ONE) -> Mergeability:
    pull = await host.pull(stage.repo, number)
    assert pull
    return pull.mergeability


@asynchronous
async def test_a_pull_request_that_nothing_stands_against_is_mergeable(github: GithubStage):
    github.open(1)
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.MERGEABLE


@asynchronous
async def test_while_github_computes_it_is_being_checked(github: GithubStage):
    github.open(1, being_checked=1)
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.CHECKING
        assert await opinion_of(host, github) is Mergeability.MERGEABLE


@asynchronous
async def test_a_conflict_makes_it_unmergeable(github: GithubStage):
    github.open(1, files={"a.txt": "mine"})
    github.acme.commits("main", {"a.txt": "theirs"})
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.NOT_MERGEABLE


@asynchronous
async def test_a_target_that_moved_on_does_not_make_it_unmergeable(github: GithubStage):
    github.open(1)
    github.acme.commits("main", {"b.txt": "1"})
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.MERGEABLE


@asynchronous
async def test_a_failing_status_that_nobody_requires_does_not_make_it_unmergeable(github: GithubStage):
    github.acme.reports(github.open(1), "lint", "failure")
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.MERGEABLE


@pytest.mark.parametrize("protection", ["guards", "rulesets"])
@asynchronous
async def test_a_missing_approval_or_status_blocks_it(github: GithubStage, protection: str):
    head = github.open(1)
    getattr(github.acme, protection)["main"] = Guard(contexts=["unit"], approvals=1)
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.NOT_MERGEABLE
        github.acme.reports(head, "unit", "success")
        assert await opinion_of(host, github) is Mergeability.NOT_MERGEABLE
        github.acme.roles["grace"] = "write"
        github.acme.reviews(1, "grace", "APPROVED")
        assert await opinion_of(host, github) is Mergeability.MERGEABLE


@pytest.mark.parametrize("protection", ["guards", "rulesets"])
@asynchronous
async def test_our_own_status_alone_does_not_block_it(github: GithubStage, protection: str):
    head = github.open(1)
    github.acme.roles |= {"grace": "write", "linus": "maintain"}
    getattr(github.acme, protection)["main"] = Guard(contexts=["unit", "mergeyard"], approvals=1)
    github.acme.reports(head, "mergeyard", "pending")
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.NOT_MERGEABLE
        github.acme.runs(head, "unit", conclusion="success")
        assert await opinion_of(host, github) is Mergeability.NOT_MERGEABLE
        github.acme.reviews(1, "grace", "APPROVED")
        github.acme.reviews(1, "linus", "CHANGES_REQUESTED")
        assert await opinion_of(host, github) is Mergeability.NOT_MERGEABLE
        github.acme.reviews(1, "linus", "DISMISSED")
        github.acme.reviews(1, "grace", "COMMENTED")
        assert await opinion_of(host, github) is Mergeability.MERGEABLE


@asynchronous
async def test_another_status_blocks_it_though_everybody_approved(github: GithubStage):
    github.open(1)
    github.acme.guards["main"] = Guard(contexts=["unit", "mergeyard"], approvals=1)
    github.acme.reviews(1, "grace", "APPROVED")
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.NOT_MERGEABLE


@pytest.mark.parametrize("status", [403, 404])
@asynchronous
async def test_whoever_may_not_see_the_approvals_that_are_needed_does_not_guess(github: GithubStage, status: int):
    github.open(1)
    github.acme.guards["main"] = Guard(contexts=["mergeyard"], approvals=1)
    hidden = Answers(status, body=b'{"message": "Not Found"}')
    github.github.faults.plan(hidden, "/protection$", times=ALWAYS)
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.NOT_MERGEABLE


@pytest.mark.parametrize("stranger", ["mallory", ""])
@asynchronous
async def test_the_approval_of_somebody_who_may_not_write_or_has_left_counts_for_nothing(
    github: GithubStage, stranger: str
):
    github.open(1)
    github.acme.roles |= {"mallory": "triage", "grace": "write"}
    github.acme.guards["main"] = Guard(contexts=["mergeyard"], approvals=1)
    github.acme.reviews(1, stranger, "APPROVED")
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.NOT_MERGEABLE
        github.acme.reviews(1, "grace", "APPROVED")
        assert await opinion_of(host, github) is Mergeability.MERGEABLE


UNCOUNTED = {
    "code owners": Guard(reviews={"require_code_owner_reviews": True}),
    "the last push": Guard(reviews={"require_last_push_approval": True}),
    "conversations": Guard(further={"required_conversation_resolution": {"enabled": True}}),
    "signatures": Guard(further={"required_signatures": {"url": "-", "enabled": True}}),
    "a lock": Guard(further={"lock_branch": {"enabled": True}}),
}
UNCOUNTED_IN_RULES = {
    "code owners": Guard(reviews={"require_code_owner_review": True}),
    "the last push": Guard(reviews={"require_last_push_approval": True}),
    "conversations": Guard(reviews={"required_review_thread_resolution": True}),
    "signatures": Guard(further={"required_signatures": True}),
}


@pytest.mark.parametrize("guard", UNCOUNTED.values(), ids=UNCOUNTED)
@asynchronous
async def test_what_else_protection_wants_may_be_what_blocks_it(github: GithubStage, guard: Guard):
    github.open(1)
    github.acme.guards["main"] = replace(guard, contexts=["mergeyard"])
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.NOT_MERGEABLE


@pytest.mark.parametrize("guard", UNCOUNTED_IN_RULES.values(), ids=UNCOUNTED_IN_RULES)
@asynchronous
async def test_what_else_a_ruleset_wants_may_be_what_blocks_it(github: GithubStage, guard: Guard):
    github.open(1)
    github.acme.rulesets["main"] = replace(guard, contexts=["mergeyard"])
    async with github.host() as host:
        assert await opinion_of(host, github) is Mergeability.NOT_MERGEABLE


@asynchronous
async def test_one_that_stays_blocked_is_read_again_and_again_for_nothing(github: GithubStage):
    github.open(1)
    github.acme.guards["main"] = Guard(contexts=["mergeyard"], approvals=1)
    async with github.host() as host:
        await opinion_of(host, github)
        once = len(github.github.faults.calls)
        github.github.faults.plan(Answers(304, body=b""), times=once)
        assert await opinion_of(host, github) is Mergeability.NOT_MERGEABLE
        assert len(github.github.faults.calls) == 2 * once
