"""Head branches on GitHub: whether the queue can move them, and how the fake notices that they, or their base, move."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import HeadBranchAccess
from mergeyard.ports.forge import HostRefused, HostUnavailable, PullRequestText
from tests.contract.host.environment import ONE, TWO
from tests.contract.host.github_environment import NAME, GithubEnvironment, github_app_environment
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import Fault, LosesResponse, RespondsWith
from tests.support.forges.github.rulesets import BypassActor, rule
from tests.support.forges.github.world import BranchProtection, Hook, to_account_id
from tests.support.repositories import ENVIRONMENT

CLASSIC = "ghp_of_ada"
TOPIC = "refs/heads/topic-1"


async def read_access(github: GithubEnvironment, token: str = CLASSIC) -> HeadBranchAccess:
    github.github.add_token(token, "ada")
    async with github.host(token=token) as host:
        pull_request = await host.read_pull_request(github.repo, ONE)
        assert pull_request
        assert pull_request.is_merged_by_head
        return pull_request.head_branch_access


def open_from_fork(github: GithubEnvironment, **facts: Any) -> Sha:
    """The branch `topic` of Eve's fork."""
    fork = github.github.fork(github.acme, "eve/app")
    head = fork.origin.branch("topic", base="main", files={"b.txt": "1"})
    github.acme.open_pull_request("topic", fork=fork, author="eve", **facts)
    return head


# Access to the head branch


@asynchronous
async def test_a_head_branch_in_the_repository_can_be_moved(github: GithubEnvironment):
    github.open(1)
    assert await read_access(github) is HeadBranchAccess.MOVABLE


@asynchronous
async def test_the_access_to_the_branch_of_a_draft_is_known_too(github: GithubEnvironment):
    github.open(1, draft=True)
    github.acme.protections["topic-1"] = BranchProtection()
    assert await read_access(github) is HeadBranchAccess.PROTECTED


@pytest.mark.parametrize("skipped", ["with_requirements", "with_head_branch"])
@asynchronous
async def test_nothing_is_asked_about_a_head_branch_that_does_not_matter(github: GithubEnvironment, skipped: str):
    """Then the branch of a fork is never called movable."""
    github.open(1)
    github.acme.protections["topic-1"] = BranchProtection()
    open_from_fork(github, maintainer_can_modify=True)
    github.github.add_token(CLASSIC, "ada")
    async with github.host(token=CLASSIC) as host:
        found = [await host.read_pull_request(github.repo, number, **{skipped: False}) for number in (ONE, TWO)]
    assert [each and (each.head_repo, each.head_branch_access) for each in found] == [
        ("", HeadBranchAccess.MOVABLE),
        ("eve/app", HeadBranchAccess.IN_FORK),
    ]
    calls = github.github.faults.calls
    assert not any("topic" in call or "eve" in call or call.endswith("/pulls") for call in calls)


@pytest.mark.parametrize("harmless", ["deletion", "creation"])
@pytest.mark.parametrize("strict", ["non_fast_forward", "update", "pull_request", "required_signatures", "new_kind"])
@asynchronous
async def test_a_ruleset_that_can_refuse_a_move_protects_the_head_branch(
    github: GithubEnvironment, strict: str, harmless: str
):
    github.open(1)
    github.github.future_words.add("new_kind")
    everywhere = {"include": ["~ALL"], "exclude": ["refs/heads/main"]}
    github.acme.add_ruleset("harmless", [rule(harmless)], **everywhere)
    assert await read_access(github) is HeadBranchAccess.MOVABLE
    ruleset = github.acme.add_ruleset("strict", [rule(strict)], **everywhere)
    assert await read_access(github) is HeadBranchAccess.PROTECTED
    ruleset.bypass = [BypassActor("User", to_account_id("ada"), "pull_request")]
    assert await read_access(github) is HeadBranchAccess.PROTECTED
    ruleset.bypass = [BypassActor("User", to_account_id("ada"), "always")]
    assert await read_access(github) is HeadBranchAccess.MOVABLE


@pytest.mark.parametrize("types", [("update",), ("non_fast_forward", "deletion"), ("pull_request",)], ids=str)
@asynchronous
async def test_a_ruleset_that_names_the_head_branch_protects_it_also_if_we_can_bypass_it(
    github: GithubEnvironment, types: tuple[str, ...]
):
    github.open(1)
    bypass = [BypassActor("User", to_account_id("ada"), "always")]
    include = ["refs/heads/main", "refs/heads/topic-*"]
    github.acme.add_ruleset("protected branches", [rule(each) for each in types], include=include, bypass=bypass)
    assert await read_access(github) is HeadBranchAccess.PROTECTED


@pytest.mark.parametrize(
    ("excluded", "access"),
    [
        ("refs/heads/feature/*", HeadBranchAccess.PROTECTED),
        ("refs/heads/mergeyard/**/*", HeadBranchAccess.MOVABLE),
        ("refs/heads/main", HeadBranchAccess.MOVABLE),
    ],
)
@asynchronous
async def test_a_ruleset_for_all_branches_but_those_of_features_protects_the_others(
    github: GithubEnvironment, excluded: str, access: HeadBranchAccess
):
    """It protects `release/1.0` as one that names it would."""
    github.open(1)
    bypass = [BypassActor("User", to_account_id("ada"), "always")]
    rules = [rule("non_fast_forward"), rule("deletion")]
    github.acme.add_ruleset("all but features", rules, include=["~ALL"], exclude=[excluded], bypass=bypass)
    assert await read_access(github) is access


@asynchronous
async def test_a_branch_that_a_rule_protects_from_deletion_stays_also_if_we_can_bypass_the_rule(
    github: GithubEnvironment,
):
    github.open(1)
    bypass = [BypassActor("User", to_account_id("ada"), "always")]
    everywhere = github.acme.add_ruleset("kept", [rule("deletion")], include=["~ALL"], bypass=bypass)
    async with github.host() as host:
        await host.retarget_pull_requests(github.repo, "release/1.0", "main")
        everywhere.include = ["refs/heads/release/*"]
        with pytest.raises(HostRefused, match=r"forbids to delete release/1\.0"):
            await host.retarget_pull_requests(github.repo, "release/1.0", "main")


@pytest.mark.parametrize("role", ["admin", "write"])
@asynchronous
async def test_classic_protection_protects_the_head_branch_also_if_it_is_hidden(github: GithubEnvironment, role: str):
    github.open(1)
    github.acme.roles["ada"] = role
    github.acme.protections["topic-1"] = BranchProtection()
    assert await read_access(github) is HeadBranchAccess.PROTECTED


@asynchronous
async def test_a_branch_that_github_calls_protected_because_of_a_harmless_ruleset_can_be_moved(
    github: GithubEnvironment,
):
    head = github.open(1)
    body = b'{"commit": {"sha": "%b"}, "protected": true, "protection": {"enabled": true}}' % head.encode()
    github.github.faults.plan(RespondsWith(200, body=body), "/branches/topic-1$")
    assert await read_access(github) is HeadBranchAccess.MOVABLE


@asynchronous
async def test_a_head_branch_with_another_open_pull_request_is_shared(github: GithubEnvironment):
    github.open(1)
    github.origin.branch("release", base="main")
    github.acme.open_pull_request("topic-1", base="release")
    assert await read_access(github) is HeadBranchAccess.SHARED
    github.close(2)
    assert await read_access(github) is HeadBranchAccess.MOVABLE


@asynchronous
async def test_a_branch_of_the_same_name_in_a_fork_is_not_shared(github: GithubEnvironment):
    github.open(1)
    github.acme.open_pull_request("topic-1", home="mallory/app")
    github.acme.open_pull_request("topic-1", home="acme/fork")
    assert await read_access(github) is HeadBranchAccess.MOVABLE


@asynchronous
async def test_the_default_branch_as_head_is_shared(github: GithubEnvironment):
    github.origin.branch("release", base="main")
    github.acme.push_commit("main", {"b.txt": "1"})
    github.acme.open_pull_request("main", base="release")
    assert await read_access(github) is HeadBranchAccess.SHARED


@pytest.mark.parametrize("is_deleted", [True, False])
@asynchronous
async def test_a_head_branch_that_is_missing_or_elsewhere_is_gone(github: GithubEnvironment, is_deleted: bool):
    github.open(1)
    if is_deleted:
        github.origin.delete_ref("topic-1")
    else:
        github.origin.commit("topic-1", {"b.txt": "1"})
    assert await read_access(github) is HeadBranchAccess.GONE


@pytest.mark.parametrize("path", ["/branches/topic-1$", "/pulls$", "/rules/branches/topic-1$"])
@asynchronous
async def test_a_head_branch_that_github_does_not_show_us_counts_as_protected(github: GithubEnvironment, path: str):
    github.open(1)
    github.acme.add_ruleset("harmless", [rule("deletion")], include=["~ALL"], exclude=["refs/heads/main"])
    github.github.faults.plan(RespondsWith(403), path)
    assert await read_access(github) is HeadBranchAccess.PROTECTED
    assert await read_access(github) is HeadBranchAccess.MOVABLE
    github.github.faults.plan(RespondsWith(503), path)
    with pytest.raises(HostUnavailable, match="503"):
        await read_access(github)


UNUSABLE = [
    *(RespondsWith(status) for status in (401, 403, 404, 410, 429, 451, 500, 503)),
    RespondsWith(301, {"location": "/elsewhere"}),
    RespondsWith(200, body=b"[]"),
    LosesResponse(),
]


@pytest.mark.parametrize("fault", UNUSABLE)
@asynchronous
async def test_a_fork_without_a_usable_answer_does_not_make_the_read_fail(github: GithubEnvironment, fault: Fault):
    open_from_fork(github, maintainer_can_modify=True)
    github.github.faults.plan(fault, "/repos/eve/app/branches/topic$")
    assert await read_access(github) is HeadBranchAccess.IN_FORK
    assert await read_access(github) is HeadBranchAccess.MOVABLE
    github.github.faults.plan(RespondsWith(403), "/repos/acme/app/pulls$")
    assert await read_access(github) is HeadBranchAccess.IN_FORK


@asynchronous
async def test_only_a_classic_token_can_move_the_branch_of_a_fork_that_allows_edits(github: GithubEnvironment):
    open_from_fork(github)
    assert await read_access(github) is HeadBranchAccess.IN_FORK
    github.change().maintainer_can_modify = True
    assert await read_access(github) is HeadBranchAccess.MOVABLE
    assert await read_access(github, "github_pat_of_ada") is HeadBranchAccess.IN_FORK
    github.github.repositories["eve/app"].protections["topic"] = BranchProtection()
    assert await read_access(github) is HeadBranchAccess.PROTECTED


@asynchronous
async def test_an_app_cannot_move_the_branch_of_a_fork_and_asks_nothing_about_it(tmp_path: Path):
    with github_app_environment(tmp_path) as env:
        open_from_fork(env, maintainer_can_modify=True)
        async with env.host() as host:
            pull_request = await host.read_pull_request(env.repo, ONE)
            assert pull_request
            assert (pull_request.head_repo, pull_request.head_branch_access) == ("eve/app", HeadBranchAccess.IN_FORK)
        calls = env.github.faults.calls
        assert not any("topic" in call or "eve" in call or call.endswith("/pulls") for call in calls)


@asynchronous
async def test_the_default_branch_of_a_fork_is_shared(github: GithubEnvironment):
    fork = github.github.fork(github.acme, "eve/app")
    fork.push_commit("main", {"b.txt": "1"})
    github.acme.open_pull_request("main", fork=fork, author="eve", maintainer_can_modify=True)
    assert await read_access(github) is HeadBranchAccess.SHARED


@asynchronous
async def test_the_repository_of_the_head_is_named_only_for_a_fork(github: GithubEnvironment):
    github.open(1)
    github.acme.open_pull_request("topic-1", home="mallory/app")
    async with github.host() as host:
        found = [await host.read_pull_request(github.repo, number) for number in (ONE, TWO)]
        assert [each and each.head_repo for each in found] == ["", "mallory/app"]


# Pushes, as GitHub notices them


def push(github: GithubEnvironment, token: str, *refspecs: str, repository: str = "acme/app") -> str:
    """What `git push` prints when the server refuses it; empty when it succeeds."""
    address = github.github.web_url.replace("http://", f"http://x-access-token:{token}@")
    command = ["git", "-C", github.origin.url, "push", "--atomic", f"{address}/{repository}.git", *refspecs]
    result = subprocess.run(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT | {"LC_ALL": "C"}, check=False)
    return result.stderr if result.returncode else ""


def squash(github: GithubEnvironment, number: int = 1) -> Sha:
    """A commit with the changes of the pull request, on top of main."""
    tree = github.origin.merged_tree("main", github.change(number).head)
    arguments = ("commit-tree", str(tree), "-p", github.origin.tip("main"), "-m", f"Squashed (#{number})")
    return Sha(github.origin.run(*arguments).decode().strip())


def outcome(github: GithubEnvironment, number: int = 1) -> tuple[bool, bool]:
    """Whether it is open, and whether it is merged."""
    change = github.change(number)
    return change.open, change.merged is not None


@pytest.fixture
def classic(github: GithubEnvironment) -> str:
    github.github.add_token(CLASSIC, "ada")
    return CLASSIC


def test_a_head_that_moves_before_its_base_is_merged(github: GithubEnvironment, classic: str):
    github.open(1)
    commit = squash(github)
    assert push(github, classic, f"+{commit}:{TOPIC}") == ""
    assert outcome(github) == (True, False)
    assert push(github, classic, f"{commit}:refs/heads/main") == ""
    assert outcome(github) == (False, True)
    assert (github.change().merged, github.change().merged_by, github.change().title) == (commit, "ada", "A change")


def test_webhooks_report_the_moves_and_the_merge(github: GithubEnvironment, classic: str):
    github.open(1)
    events = ["push", "pull_request"]
    github.acme.hooks.append(Hook(url="http://127.0.0.1:9/", secret="", events=events))
    github.github.deliveries.drop_all = True
    commit = squash(github)
    push(github, classic, f"+{commit}:{TOPIC}")
    push(github, classic, f"{commit}:refs/heads/main")
    sent = [json.loads(record.delivery.body) for record in github.github.deliveries.log]
    shown = [each.get("ref") or (each["action"], each["pull_request"]["merged"]) for each in sent]
    assert shown == [("synchronize", False), TOPIC, ("closed", True), "refs/heads/main"]


def test_a_head_that_moves_after_its_base_is_closed_without_a_merge(github: GithubEnvironment, classic: str):
    github.open(1)
    commit = squash(github)
    assert push(github, classic, f"{commit}:refs/heads/main") == ""
    assert outcome(github) == (True, False)
    assert push(github, classic, f"+{commit}:{TOPIC}") == ""
    assert outcome(github) == (False, False)


@pytest.mark.parametrize("base_first", [True, False])
def test_one_push_of_head_and_base_merges_only_if_the_head_is_noticed_first(
    github: GithubEnvironment, classic: str, base_first: bool
):
    github.acme.notices_base_first = base_first
    github.open(1)
    commit = squash(github)
    assert push(github, classic, f"+{commit}:{TOPIC}", f"{commit}:refs/heads/main") == ""
    assert outcome(github) == (False, not base_first)
    assert github.make_host().moves_heads_first


@asynchronous
async def test_a_base_that_moves_before_github_shows_the_new_head_closes_the_pull_request(github: GithubEnvironment):
    """So the queue waits until GitHub shows the head."""
    github.github.add_token(CLASSIC, "ada")
    github.acme.head_shown_after_reads = 2
    commits = dict[int, Sha]()
    for number in (1, 2):
        github.open(number)
        commits[number] = squash(github, number)
        assert push(github, CLASSIC, f"+{commits[number]}:refs/heads/topic-{number}") == ""
    async with github.host() as host:
        shown = [await host.read_pull_request(github.repo, ONE, with_requirements=False) for _ in range(3)]
        assert [each is not None and each.head == commits[1] for each in shown] == [False, False, True]
        assert push(github, CLASSIC, f"{commits[1]}:refs/heads/main") == ""
        assert outcome(github) == (False, True)
        commits[2] = squash(github, 2)
        assert push(github, CLASSIC, f"+{commits[2]}:refs/heads/topic-2") == ""
        assert push(github, CLASSIC, f"{commits[2]}:refs/heads/main") == ""
        await host.read_pull_request(github.repo, TWO, with_requirements=False)
        assert outcome(github, 2) == (True, False)
        for _ in range(2):
            await host.read_pull_request(github.repo, TWO, with_requirements=False)
        assert outcome(github, 2) == (False, False)


def test_deleting_a_branch_closes_the_pull_requests_from_it_and_into_it(github: GithubEnvironment, classic: str):
    """Also if it was the head of a merged one."""
    for number in (1, 2):
        github.open(number)
    github.origin.branch("upper", base="topic-1", files={"u.txt": "1"})
    upper = github.acme.open_pull_request("upper", base="topic-1")
    github.land(1)
    assert push(github, classic, ":refs/heads/topic-1", ":refs/heads/topic-2") == ""
    assert (upper.open, upper.base, upper.merged) == (False, "topic-1", None)
    assert [outcome(github, number) for number in (1, 2)] == [(False, True), (False, False)]


def test_a_push_to_a_protected_head_branch_is_refused_with_all_other_refs(github: GithubEnvironment, classic: str):
    github.open(1)
    github.acme.add_ruleset("topics", [rule("non_fast_forward")], include=["refs/heads/topic-*"])
    commit, main = squash(github), github.origin.tip("main")
    output = push(github, classic, f"+{commit}:{TOPIC}", f"{commit}:refs/heads/main")
    assert f"GH013: Repository rule violations found for {TOPIC}." in output
    assert "topic-1 (push declined due to repository rule violations)" in output
    assert "main (atomic push failure)" in output
    assert (github.origin.tip("main"), outcome(github)) == (main, (True, False))


def test_a_fork_accepts_pushes_only_to_the_branch_that_its_author_opened(github: GithubEnvironment, classic: str):
    head = open_from_fork(github)
    fine_grained = "github_pat_of_ada"
    commit, fork = squash(github), github.github.repositories["eve/app"]
    move = f"+{commit}:refs/heads/topic"
    assert "403" in push(github, classic, move, repository="eve/app")
    github.change().maintainer_can_modify = True
    assert "403" in push(github, fine_grained, move, repository="eve/app")
    other = f"{commit}:refs/heads/other"
    assert "other (permission denied)" in push(github, classic, other, move, repository="eve/app")
    assert (fork.origin.tip("topic"), github.change().head) == (head, head)
    assert push(github, classic, move, repository="eve/app") == ""
    assert (fork.origin.tip("topic"), github.change().head) == (commit, commit)
    assert push(github, classic, f"{commit}:refs/heads/main") == ""
    assert outcome(github) == (False, True)


# Texts, addresses, and what happens after a merge


@asynchronous
async def test_the_text_of_a_pull_request_names_its_author_as_github_does(github: GithubEnvironment):
    github.open(1, title="Fix it", text="Because.", author="eve")
    github.github.auth.display_names["eve"] = "Eve Example"
    address = f"{to_account_id('eve')}+eve@users.noreply.127.0.0.1"
    expected = PullRequestText(title="Fix it", body="Because.", author_name="Eve Example", author_email=address)
    async with github.host() as host:
        assert await host.read_text(github.repo, ONE) == expected
        assert await host.read_text(github.repo, TWO) is None
        github.github.auth.missing_users.add("eve")
        text = await host.read_text(github.repo, ONE)
        assert text
        assert (text.author_name, text.author_email) == ("eve", address)


@asynchronous
async def test_the_text_of_a_pull_request_without_an_author_has_none(github: GithubEnvironment):
    github.open(1, author="ghost")
    async with github.host() as host:
        assert await host.read_text(github.repo, ONE) == PullRequestText(title="A change")
        github.github.faults.plan(RespondsWith(200, body=b'{"title": "t", "body": null, "user": null}'), "/pulls/1$")
        assert await host.read_text(github.repo, ONE) == PullRequestText(title="t")


@asynchronous
async def test_the_text_of_a_pull_request_is_bounded(github: GithubEnvironment):
    github.open(1, title="t" * 1000, text="é" * 100_000, author="eve")
    github.github.auth.display_names["eve"] = "E" * 1000
    async with github.host() as host:
        text = await host.read_text(github.repo, ONE)
        assert text
        assert (len(text.title), len(text.body.encode()), len(text.author_name)) == (300, 64 * 1024, 300)


@asynchronous
async def test_our_address_is_that_of_the_account_and_is_read_once(github: GithubEnvironment):
    async with github.host(web_url="https://git.example.com") as host:
        expected = f"{to_account_id('ada')}+ada@users.noreply.git.example.com"
        assert [await host.own_address(github.repo) for _ in range(2)] == [expected] * 2
    assert github.github.faults.calls == ["GET /api/v3/user", "GET /api/v3/users/ada"]


@asynchronous
async def test_our_address_is_that_of_the_bot_of_an_app(tmp_path: Path):
    with github_app_environment(tmp_path) as env:
        async with env.host() as host:
            bot = "mergeyard-test[bot]"
            assert await host.own_address(env.repo) == f"{to_account_id(bot)}+{bot}@users.noreply.127.0.0.1"


@pytest.mark.parametrize("status", [403, 404])
@asynchronous
async def test_there_is_no_address_if_github_does_not_show_the_account(github: GithubEnvironment, status: int):
    async with github.host() as host:
        github.github.faults.plan(RespondsWith(status), "/users/ada")
        assert await host.own_address(github.repo) is None
        assert await host.own_address(github.repo) is not None


@asynchronous
async def test_an_open_pull_request_is_closed_once(github: GithubEnvironment):
    github.open(1)
    async with github.host() as host:
        for _ in range(2):
            await host.close_pull_request(github.repo, ONE)
        await host.close_pull_request(github.repo, PullRequestNumber(9))
    assert outcome(github) == (False, False)
    assert sum(call.startswith("PATCH") for call in github.github.faults.calls) == 1


@asynchronous
async def test_open_pull_requests_into_a_branch_get_another_base(github: GithubEnvironment):
    github.open(1)
    github.origin.branch("upper", base="topic-1", files={"u.txt": "1"})
    upper = github.acme.open_pull_request("upper", base="topic-1")
    github.origin.branch("old", base="topic-1", files={"o.txt": "1"})
    old = github.acme.open_pull_request("old", base="topic-1")
    github.close(old.number)
    github.close(1)
    async with github.host() as host:
        await host.retarget_pull_requests(github.repo, "topic-1", "main")
    assert [upper.base, old.base, github.change().base] == ["main", "topic-1", "main"]


@asynchronous
async def test_a_refused_new_base_is_an_error_after_the_others_were_changed(github: GithubEnvironment):
    """The caller must not delete the branch then: GitHub would close the pull request."""
    github.open(1)
    for number in (2, 3):
        github.origin.branch(f"upper{number}", base="topic-1", files={f"{number}": "1"})
        github.acme.open_pull_request(f"upper{number}", base="topic-1")
    github.acme.open_pull_request("upper3", base="main")
    github.close(1)
    async with github.host() as host:
        with pytest.raises(HostRefused, match="already exists"):
            await host.retarget_pull_requests(github.repo, "topic-1", "main")
    assert [github.change(number).base for number in (2, 3)] == ["main", "topic-1"]


@asynchronous
async def test_a_branch_stays_if_it_is_the_head_of_another_pull_request(github: GithubEnvironment):
    github.open(1)
    github.origin.branch("upper", base="topic-1", files={"u.txt": "1"})
    upper = github.acme.open_pull_request("upper", base="topic-1")
    async with github.host() as host:
        with pytest.raises(HostRefused, match="the head of another open pull request"):
            await host.retarget_pull_requests(github.repo, "topic-1", "main")
    assert upper.base == "topic-1"


@pytest.mark.long
@asynchronous
async def test_more_pull_requests_than_one_call_can_retarget_are_an_error(github: GithubEnvironment):
    github.open(1)
    github.close(1)
    github.origin.branch("upper", base="topic-1", files={"u.txt": "1"})
    changes = [github.acme.open_pull_request("upper", base="topic-1", home=f"u{n}/app") for n in range(101)]
    async with github.host() as host:
        with pytest.raises(HostUnavailable, match="more pull requests") as error:
            await host.retarget_pull_requests(github.repo, "topic-1", "main")
        assert not isinstance(error.value, HostRefused)
        await host.retarget_pull_requests(github.repo, "topic-1", "main")
    assert {change.base for change in changes} == {"main"}


@asynchronous
async def test_a_fork_is_pushed_to_with_our_credentials(github: GithubEnvironment):
    async with github.host() as host:
        remote = await host.remote(Repo(NAME, "eve", "app"))
        assert remote.url == f"{github.github.web_url}/eve/app.git"
