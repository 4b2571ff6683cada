"""Mergeability and requirements: what the rules of a GitLab project require of a merge request."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import PullRequest
from mergeyard.domain.states import Mergeability, Reason
from mergeyard.domain.timestamps import MINUTE
from mergeyard.ports.forge import HostUnavailable
from tests.contract.host.environment import ONE
from tests.contract.host.gitlab_environment import GitlabEnvironment, SigningKey
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import ALWAYS, RespondsWith
from tests.support.forges.gitlab.actions import commit_tree
from tests.support.forges.gitlab.payloads import Payloads
from tests.support.forges.gitlab.world import BOT, DEVELOPER, MAINTAINER, TOKEN, ApprovalRule
from tests.support.repositories import ENVIRONMENT

Happening = Callable[[GitlabEnvironment], None]

# Facts


def conflict(gitlab: GitlabEnvironment) -> None:
    gitlab.acts.commit(gitlab.project, "main", {"1.txt": "something else"})


def doubt(gitlab: GitlabEnvironment) -> None:
    gitlab.project.discussions_must_be_resolved, gitlab.request().unresolved = True, 3


def ask_for_pipelines(gitlab: GitlabEnvironment) -> None:
    gitlab.project.pipelines_must_succeed = True


def fail_the_pipeline(gitlab: GitlabEnvironment) -> None:
    ask_for_pipelines(gitlab)
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1", status="failed")


def run_the_pipeline(gitlab: GitlabEnvironment) -> None:
    ask_for_pipelines(gitlab)
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1", status="running")


def fall_behind(gitlab: GitlabEnvironment) -> None:
    gitlab.project.merge_method = "ff"
    gitlab.acts.commit(gitlab.project, "main", {"b.txt": "1"})


def make_a_draft(gitlab: GitlabEnvironment) -> None:
    gitlab.request().title = "Draft: not yet"


def lock(gitlab: GitlabEnvironment) -> None:
    gitlab.request().state = "locked"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([], Mergeability.MERGEABLE),
        ([conflict], Mergeability.NOT_MERGEABLE),
        ([lock], Mergeability.CHECKING),
        # The queue itself updates and tests merge requests
        ([fall_behind], Mergeability.MERGEABLE),
        ([ask_for_pipelines], Mergeability.MERGEABLE),
        ([run_the_pipeline], Mergeability.MERGEABLE),
        ([fail_the_pipeline], Mergeability.MERGEABLE),
        ([make_a_draft], Mergeability.MERGEABLE),
        # GitLab names only the first obstacle
        ([run_the_pipeline, conflict], Mergeability.NOT_MERGEABLE),
        ([make_a_draft, conflict], Mergeability.NOT_MERGEABLE),
        ([doubt, conflict], Mergeability.NOT_MERGEABLE),
    ],
)
@asynchronous
async def test_only_conflicts_make_a_merge_request_not_mergeable(
    gitlab: GitlabEnvironment, facts: list[Happening], expected: Mergeability
):
    gitlab.open(1)
    for become_true in facts:
        become_true(gitlab)
    pull_request = await read(gitlab)
    assert (pull_request.mergeability, pull_request.is_open) == (expected, True)


@pytest.mark.parametrize("status", ["unchecked", "checking", "preparing", "approvals_syncing"])
@asynchronous
async def test_mergeability_is_checking_while_gitlab_computes_it(gitlab: GitlabEnvironment, status: str):
    gitlab.open(1)
    gitlab.request().undecided = status
    assert (await read(gitlab)).mergeability is Mergeability.CHECKING


# What the rules of the project require


ANYONE = ApprovalRule(name="All Members", rule_type="any_approver")
DATABASE = ApprovalRule(name="Database", needed=2, users=("bob",), groups={"acme/db": ("carol", "dave")})
OWNERS = ApprovalRule(name="*.sql", rule_type="code_owner", users=("bob", "carol"))


async def read(gitlab: GitlabEnvironment, **access: Any) -> PullRequest:
    async with gitlab.host(**access) as host:
        pull_request = await host.read_pull_request(gitlab.repo, ONE)
    assert pull_request
    return pull_request


async def read_unmet(gitlab: GitlabEnvironment, **access: Any) -> list[tuple[Reason, tuple[str, ...], int | None, int]]:
    unmet = (await read(gitlab, **access)).unmet_requirements
    return [(each.reason, each.names, each.given, each.needed) for each in unmet]


@pytest.mark.parametrize("premium", [False, True])
@asynchronous
async def test_no_approval_is_needed_without_a_rule(gitlab: GitlabEnvironment, premium: bool):
    gitlab.open(1)
    gitlab.project.premium = premium
    gitlab.request().title = "Draft: so that approvals are read"
    assert await read_unmet(gitlab) == []
    gitlab.acts.approve(gitlab.project, gitlab.request(), "bob")
    assert await read_unmet(gitlab) == []


@asynchronous
async def test_a_rule_names_who_is_missing_until_enough_of_its_approvers_approve(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.require_approvals(gitlab.project, DATABASE)
    assert await read_unmet(gitlab) == [(Reason.WAITING_FOR_REVIEW, ("@acme/db", "@bob"), 0, 2)]
    gitlab.acts.approve(gitlab.project, gitlab.request(), "bob", "eve")
    assert await read_unmet(gitlab) == [(Reason.WAITING_FOR_REVIEW, ("@acme/db",), 1, 2)]
    gitlab.acts.approve(gitlab.project, gitlab.request(), "carol")
    assert (await read(gitlab)).is_mergeable
    gitlab.acts.unapprove(gitlab.project, gitlab.request(), "bob")
    assert await read_unmet(gitlab) == [(Reason.WAITING_FOR_REVIEW, ("@acme/db", "@bob"), 1, 2)]


@asynchronous
async def test_each_unmet_rule_is_a_requirement_of_its_own_and_code_owners_have_a_reason(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.require_approvals(gitlab.project, ANYONE, DATABASE, OWNERS)
    gitlab.acts.approve(gitlab.project, gitlab.request(), "dave")
    assert await read_unmet(gitlab) == [
        (Reason.WAITING_FOR_REVIEW, (), 0, 1),
        (Reason.WAITING_FOR_REVIEW, ("@acme/db", "@bob"), 1, 2),
        (Reason.WAITING_FOR_CODE_OWNER, ("@bob", "@carol"), 0, 1),
    ]


@asynchronous
async def test_a_rule_without_visible_approvers_is_shown_with_its_name(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.require_approvals(gitlab.project, ApprovalRule(name="Hidden", groups={"acme/secret": ("bob",)}))
    hidden = b"""{"rules": [{"id": 1, "name": "Hidden", "rule_type": "regular", "approvals_required": 1,
        "users": [], "groups": [], "contains_hidden_groups": true, "approved_by": [], "approved": false}]}"""
    gitlab.gitlab.faults.plan(RespondsWith(200, body=hidden), "/approval_state$")
    assert await read_unmet(gitlab) == [(Reason.WAITING_FOR_REVIEW, ("Hidden",), 0, 1)]


@asynchronous
async def test_a_rule_with_too_few_approvers_does_not_block_as_on_gitlab(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.require_approvals(gitlab.project, ApprovalRule(name="Ops", needed=2, users=("bob",)), OWNERS)
    assert [names for _, names, _, _ in await read_unmet(gitlab)] == [("@bob", "@carol")]
    gitlab.acts.approve(gitlab.project, gitlab.request(), "carol")
    assert (await read(gitlab)).is_mergeable


@asynchronous
async def test_a_push_takes_the_approvals_away(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.require_approvals(gitlab.project, OWNERS)
    gitlab.acts.approve(gitlab.project, gitlab.request(), "bob")
    assert (await read(gitlab)).is_mergeable
    gitlab.push(1)
    assert [reason for reason, *_ in await read_unmet(gitlab)] == [Reason.WAITING_FOR_CODE_OWNER]


@pytest.mark.parametrize("facts", [[doubt], [make_a_draft], [conflict], [fail_the_pipeline], [fall_behind]])
@pytest.mark.parametrize("status", [None, "checking"])
@asynchronous
async def test_a_missing_approval_is_found_whatever_else_is_wrong(
    gitlab: GitlabEnvironment, facts: list[Happening], status: str | None
):
    gitlab.open(1)
    for become_true in facts:
        become_true(gitlab)
    gitlab.acts.require_approvals(gitlab.project, OWNERS)
    gitlab.request().undecided = status
    assert Reason.WAITING_FOR_CODE_OWNER in [reason for reason, *_ in await read_unmet(gitlab)]


def be_a_developer(gitlab: GitlabEnvironment) -> None:
    gitlab.project.members[BOT] = DEVELOPER


def be_a_maintainer(gitlab: GitlabEnvironment) -> None:
    gitlab.project.members[BOT] = MAINTAINER


def be_an_owner(gitlab: GitlabEnvironment) -> None:
    gitlab.project.members[BOT] = 50


def be_the_only_one_who_can_push(gitlab: GitlabEnvironment) -> None:
    gitlab.project.merge_access["main"] = [{"access_level": 0}]
    gitlab.project.push_access["main"] = [{"user_id": gitlab.world.user(BOT).id}]


def need_no_protection(gitlab: GitlabEnvironment) -> None:
    gitlab.project.protected.clear()


@pytest.mark.parametrize(
    "become", [be_a_developer, be_a_maintainer, be_an_owner, be_the_only_one_who_can_push, need_no_protection]
)
@asynchronous
async def test_an_unapproved_merge_request_is_not_ready_whatever_our_account_can_do(
    gitlab: GitlabEnvironment, become: Happening
):
    gitlab.open(1)
    become(gitlab)
    gitlab.acts.require_approvals(gitlab.project, OWNERS)
    unapproved = await read(gitlab)
    gitlab.acts.approve(gitlab.project, gitlab.request(), "bob")
    assert unapproved.mergeability is Mergeability.MERGEABLE
    assert (unapproved.is_mergeable, (await read(gitlab)).is_mergeable) == (False, True)


@asynchronous
async def test_requested_changes_block_with_the_names_of_the_reviewers_only_in_premium(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.approve(gitlab.project, gitlab.request(), "bob")
    gitlab.acts.request_changes(gitlab.project, gitlab.request(), "carol")
    assert (await read(gitlab)).is_mergeable
    gitlab.project.premium = True
    assert await read_unmet(gitlab) == [(Reason.CHANGES_REQUESTED, ("@carol",), 0, 1)]
    gitlab.request().changes_requested_by.clear()
    assert (await read(gitlab)).is_mergeable


@asynchronous
async def test_unresolved_threads_are_counted_if_the_project_requires_that_they_are_resolved(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.request().unresolved = 3
    assert (await read(gitlab)).is_mergeable
    gitlab.project.discussions_must_be_resolved = True
    assert await read_unmet(gitlab) == [(Reason.WAITING_FOR_CONVERSATIONS, (), 0, 3)]
    gitlab.request().unresolved = 0
    assert (await read(gitlab)).is_mergeable


@pytest.mark.parametrize("answer", [RespondsWith(403), RespondsWith(404), RespondsWith(500)])
@asynchronous
async def test_unresolved_threads_block_also_if_they_cannot_be_counted(gitlab: GitlabEnvironment, answer: RespondsWith):
    gitlab.open(1)
    doubt(gitlab)
    gitlab.gitlab.faults.plan(answer, "/discussions$")
    assert await read_unmet(gitlab) == [(Reason.WAITING_FOR_CONVERSATIONS, (), 0, 1)]


@asynchronous
async def test_checks_of_other_services_block_with_their_names(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.request().external_checks = {"license": "failed", "scan": "pending", "spelling": "passed"}
    assert await read_unmet(gitlab) == [
        (Reason.HEAD_CHECKS_FAILED, ("license",), 0, 1),
        (Reason.WAITING_FOR_HEAD_CHECKS, ("scan",), 0, 1),
    ]
    gitlab.request().external_checks = {"scan": "passed"}
    assert (await read(gitlab)).is_mergeable


@pytest.mark.parametrize(
    ("status", "name"),
    [
        ("merge_request_blocked", "merge request dependencies"),
        ("jira_association_missing", "a Jira issue in the title or description"),
        ("locked_paths", "paths that another user locked"),
        ("security_policy_violations", "security policies"),
        ("merge_time", "the time before which it must not merge"),
        ("title_regex", "the pattern for titles"),
        # Older versions, and one that does not exist yet
        ("blocked_status", "merge request dependencies"),
        ("policies_denied", "license policies"),
        ("full_moon_required", "full moon required"),
    ],
)
@asynchronous
async def test_every_other_obstacle_blocks_with_a_readable_name(gitlab: GitlabEnvironment, status: str, name: str):
    gitlab.open(1)
    payload = Payloads("http://gitlab.test", gitlab.world.user(BOT)).merge_request(gitlab.project, gitlab.request())
    body = json.dumps(payload | {"detailed_merge_status": status}).encode()
    gitlab.gitlab.faults.plan(RespondsWith(200, body=body), "/merge_requests/1$")
    assert await read_unmet(gitlab) == [(Reason.BLOCKED_BY_HOST_RULE, (name,), 0, 1)]


@pytest.mark.parametrize(
    ("members", "mergeability", "reasons"),
    [
        # GitLab before 15.6 names no obstacle, and later versions had one word for two of them
        ({"detailed_merge_status": ""}, Mergeability.MERGEABLE, [Reason.WAITING_FOR_CODE_OWNER]),
        (
            {"detailed_merge_status": "broken_status", "merge_status": "cannot_be_merged"},
            Mergeability.NOT_MERGEABLE,
            [Reason.WAITING_FOR_CODE_OWNER],
        ),
        (
            {"detailed_merge_status": "broken_status"},
            Mergeability.MERGEABLE,
            [Reason.WAITING_FOR_CODE_OWNER, Reason.BLOCKED_BY_HOST_RULE],
        ),
        # Rules that GitLab looks at later can be unmet, too
        (
            {"detailed_merge_status": "security_policy_pipeline_check"},
            Mergeability.MERGEABLE,
            [Reason.WAITING_FOR_CODE_OWNER, Reason.BLOCKED_BY_HOST_RULE],
        ),
        ({"detailed_merge_status": "need_rebase", "merge_status": "cannot_be_merged"}, Mergeability.NOT_MERGEABLE, []),
    ],
)
@asynchronous
async def test_other_versions_of_gitlab_are_understood(
    gitlab: GitlabEnvironment, members: dict[str, str], mergeability: Mergeability, reasons: list[Reason]
):
    gitlab.open(1)
    gitlab.acts.require_approvals(gitlab.project, OWNERS)
    payload = Payloads("http://gitlab.test", gitlab.world.user(BOT)).merge_request(gitlab.project, gitlab.request())
    body = json.dumps(payload | members).encode()
    gitlab.gitlab.faults.plan(RespondsWith(200, body=body), "/merge_requests/1$")
    pull_request = await read(gitlab)
    unmet = [each.reason for each in pull_request.unmet_requirements]
    assert (pull_request.mergeability, unmet) == (mergeability, reasons)


@pytest.mark.parametrize("blocks", [True, False])
@asynchronous
async def test_what_stands_behind_a_security_policy_pipeline_is_unknown(gitlab: GitlabEnvironment, blocks: bool):
    gitlab.open(1)
    gitlab.request().obstacle = "security_policy_pipeline_check"
    async with gitlab.host(unreadable_rules_block=blocks) as host:
        found = await host.read_pull_request(gitlab.repo, ONE)
    assert found
    (requirement,) = found.requirements
    assert (requirement.reason, requirement.given) == (Reason.BLOCKED_BY_HOST_RULE, None)
    assert found.is_mergeable is not blocks


@asynchronous
async def test_without_the_rules_the_number_of_missing_approvals_is_shown(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.require_approvals(gitlab.project, DATABASE)
    gitlab.acts.approve(gitlab.project, gitlab.request(), "bob")
    for answer in (RespondsWith(404), RespondsWith(403)):
        gitlab.gitlab.faults.plan(answer, "/approval_state$")
        assert await read_unmet(gitlab) == [(Reason.WAITING_FOR_REVIEW, (), 1, 2)]


@asynchronous
async def test_rules_that_cannot_be_read_name_the_permission_and_block_as_configured(gitlab: GitlabEnvironment):
    gitlab.open(1)
    make_a_draft(gitlab)
    gitlab.gitlab.faults.plan(RespondsWith(403), "/approvals$", times=ALWAYS)
    (unreadable,) = await read_unmet(gitlab)
    assert (unreadable[0], unreadable[2]) == (Reason.HOST_RULE_UNREADABLE, None)
    assert "the scope api" in unreadable[1][0]
    assert await read_unmet(gitlab, unreadable_rules_block=False) == []


@pytest.mark.parametrize("status", [None, "checking"])
@asynchronous
async def test_approvals_that_gitlab_does_not_show_now_are_not_taken_for_none(
    gitlab: GitlabEnvironment, status: str | None
):
    """Every edition has this call."""
    gitlab.open(1)
    make_a_draft(gitlab)
    gitlab.request().undecided = status
    gitlab.gitlab.faults.plan(RespondsWith(404), "/approvals$")
    with pytest.raises(HostUnavailable, match="does not show /merge_requests/1/approvals now"):
        await read(gitlab, unreadable_rules_block=False)


@asynchronous
async def test_a_merge_request_that_is_known_to_lack_approvals_waits_also_if_unreadable_rules_are_ignored(
    gitlab: GitlabEnvironment,
):
    gitlab.open(1)
    gitlab.acts.require_approvals(gitlab.project, DATABASE)
    gitlab.gitlab.faults.plan(RespondsWith(403), "/approvals$", times=ALWAYS)
    assert await read_unmet(gitlab, unreadable_rules_block=False) == [(Reason.WAITING_FOR_REVIEW, (), 0, 1)]


@asynchronous
async def test_names_and_rules_are_bounded(gitlab: GitlabEnvironment):
    gitlab.open(1)
    many = [ApprovalRule(name=f"rule {number}", users=("x" * 300,)) for number in range(40)]
    gitlab.acts.require_approvals(gitlab.project, *many)
    found = await read_unmet(gitlab)
    assert len(found) == 20
    assert len(found[0][1][0]) == 100


@pytest.mark.parametrize("facts", [[], [fall_behind], [run_the_pipeline], [fail_the_pipeline]])
@asynchronous
async def test_a_merge_request_that_lacks_nothing_needs_no_request_about_its_approvals(
    gitlab: GitlabEnvironment, facts: list[Happening]
):
    gitlab.open(1)
    for become_true in facts:
        become_true(gitlab)
    gitlab.acts.require_approvals(gitlab.project, OWNERS)
    gitlab.acts.approve(gitlab.project, gitlab.request(), "bob")
    before = len(gitlab.gitlab.faults.calls)
    assert (await read(gitlab)).is_mergeable
    asked = [call.rpartition("/")[2].partition("?")[0] for call in gitlab.gitlab.faults.calls[before:]]
    assert asked == ["1", "topic-1", "merge_requests", "push_rule"]


# Signatures


def reject_unsigned_commits(gitlab: GitlabEnvironment) -> None:
    gitlab.project.premium, gitlab.project.push_rule = True, {"reject_unsigned_commits": True}


def sign(gitlab: GitlabEnvironment, commit: Sha) -> Sha:
    """The same commit with a signature. GitLab only looks whether there is one."""
    head, _, message = gitlab.origin.run("cat-file", "commit", commit).partition(b"\n\n")
    signature = b"gpgsig -----BEGIN SSH SIGNATURE-----\n AAAA\n -----END SSH SIGNATURE-----"
    signed = head + b"\n" + signature + b"\n\n" + message
    return Sha(gitlab.origin.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=signed).decode().strip())


@asynchronous
async def test_a_queue_with_any_signing_key_can_merge_where_unsigned_commits_are_rejected(gitlab: GitlabEnvironment):
    """GitLab accepts a signature of a key that it does not know (gitlab-org/gitlab#463844), and does not judge commits
    that it has already."""
    gitlab.open(1)
    reject_unsigned_commits(gitlab)
    assert await read_unmet(gitlab, signer=SigningKey()) == []


@asynchronous
async def test_a_queue_without_a_signing_key_cannot_merge_where_unsigned_commits_are_rejected(
    gitlab: GitlabEnvironment,
):
    gitlab.open(1)
    reject_unsigned_commits(gitlab)
    missing = (Reason.SIGNING_KEY_NOT_ACCEPTED, ("signing_key_file is not set for gitlab.test",), 0, 1)
    assert await read_unmet(gitlab) == [missing]


@asynchronous
async def test_an_expired_key_cannot_merge_where_unsigned_commits_are_rejected(gitlab: GitlabEnvironment):
    gitlab.open(1)
    reject_unsigned_commits(gitlab)
    signer = SigningKey()
    signer.expires_at = 0
    missing = (Reason.SIGNING_KEY_NOT_ACCEPTED, (f"{signer.fingerprint}, which has expired",), 0, 1)
    assert await read_unmet(gitlab, signer=signer) == [missing]


@pytest.mark.parametrize("level", [DEVELOPER, MAINTAINER])
@asynchronous
async def test_push_rules_that_gitlab_does_not_show_block_nothing(gitlab: GitlabEnvironment, level: int):
    """A plan without push rules answers like a role that cannot read them."""
    gitlab.open(1)
    reject_unsigned_commits(gitlab)
    gitlab.project.premium, gitlab.project.members[BOT] = level == DEVELOPER, level
    assert await read_unmet(gitlab) == []


@asynchronous
async def test_a_changed_push_rule_is_noticed_within_a_minute(gitlab: GitlabEnvironment):
    gitlab.open(1)
    reject_unsigned_commits(gitlab)
    async with gitlab.host() as host:
        for is_unmet, milliseconds in ((True, 0), (True, MINUTE // 2), (False, MINUTE // 2)):
            gitlab.clock.move(milliseconds)
            found = await host.read_pull_request(gitlab.repo, ONE)
            assert found is not None
            assert bool(found.unmet_requirements) is is_unmet
            gitlab.project.push_rule = None


def test_a_push_of_unsigned_commits_is_refused_if_no_ref_has_them(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    reject_unsigned_commits(gitlab)
    url = f"{gitlab.world.web_url.replace('//', f'//oauth2:{TOKEN}@')}/acme/app.git"
    merge = commit_tree(gitlab.origin, Sha(f"{head}^{{tree}}"), [gitlab.origin.tip("main"), head], "Merge")
    answers = list[str]()
    for commit in (merge, sign(gitlab, merge)):
        command = ["git", "-C", gitlab.origin.path, "push", url, f"{commit}:refs/heads/main"]
        answers.append(subprocess.run(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, check=False).stderr)
    assert "remote: GitLab: Commit must be signed with a GPG key" in answers[0]
    assert "(pre-receive hook declined)" in answers[0]
    assert "rejected" not in answers[1]
    assert gitlab.request().state == "merged"
