"""What `host check` reports about GitLab, with advice."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mergeyard.adapters.forges.gitlab.diagnostics import BASE_RUN_SUBJECT, EXAMPLE_SUBJECT
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import RunId
from mergeyard.ports.forge import Finding, QueueSetup
from mergeyard.service.commit_messages import base_run_message, merge_message
from tests.contract.host.environment import ONE
from tests.contract.host.gitlab_environment import GitlabEnvironment, SigningKey
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import RespondsWith
from tests.support.forges.gitlab.fake import NAME, SECRET
from tests.support.forges.gitlab.world import BOT, DEVELOPER, MAINTAINER, TOKEN, Hook, SshKey, Token, User

SERVER = "https://queue.test"
NO_ONE = [{"access_level": 0}]
MAINTAINERS = [{"access_level": 40}]
ONLY_WE_PUSH = (
    "choose *Allowed to merge: No one* and *Allowed to push and merge: mergeyard-bot* "
    "(Settings > Repository > Protected branches)."
)
ONLY_WE_MERGE = (
    "choose *Allowed to merge: mergeyard-bot* and *Allowed to push and merge: No one* "
    "(Settings > Repository > Protected branches)."
)
BY_GITLAB = QueueSetup(branch="main", landing=LandingMethod.PROVIDER_MERGE)

Happening = Callable[[GitlabEnvironment], None]


async def findings(
    gitlab: GitlabEnvironment, *queues: QueueSetup, public_url: str | None = SERVER, **access: Any
) -> list[Finding]:
    async with gitlab.host(public_url=public_url, **access) as host:
        return list(await host.diagnose(gitlab.repo, queues))


async def problems(gitlab: GitlabEnvironment, *queues: QueueSetup, **access: Any) -> list[str]:
    return [finding.message for finding in await findings(gitlab, *queues, **access) if not finding.ok]


async def messages(gitlab: GitlabEnvironment, *queues: QueueSetup, **access: Any) -> str:
    return "\n".join(finding.message for finding in await findings(gitlab, *queues, **access) if finding.ok)


def complete_setup(gitlab: GitlabEnvironment) -> None:
    gitlab.project.hooks.append(Hook(id=1, url=f"{SERVER}/hooks/gitlab/{NAME}", secret=SECRET))
    gitlab.project.premium = gitlab.project.pipelines_must_succeed = True
    gitlab.project.merge_access["main"] = NO_ONE
    gitlab.project.push_access["main"] = [{"user_id": gitlab.world.user(BOT).id}]


def expires_in(gitlab: GitlabEnvironment, days: int) -> None:
    day = (datetime.now(UTC) + timedelta(days=days)).date().isoformat()
    gitlab.world.tokens[TOKEN] = Token(gitlab.world.user(BOT), expires_at=day)


@asynchronous
async def test_a_complete_setup_has_no_problems(gitlab: GitlabEnvironment):
    complete_setup(gitlab)
    expires_in(gitlab, 90)
    found = await findings(gitlab)
    assert all(finding.ok for finding in found), found
    assert len(found) == 10
    text = await messages(gitlab)
    assert "Only mergeyard-bot can push to main or merge into it, so the queue is mandatory." in text
    assert "GitLab requires no approvals for a push: the queue checks them itself before each merge." in text


def lack_the_scope(gitlab: GitlabEnvironment) -> None:
    gitlab.world.tokens[TOKEN] = Token(gitlab.world.user(BOT), scopes=("read_api",))


def expire_soon(gitlab: GitlabEnvironment) -> None:
    expires_in(gitlab, 3)


def be_unknown(gitlab: GitlabEnvironment) -> None:
    gitlab.project.members.pop(BOT)


def be_archived(gitlab: GitlabEnvironment) -> None:
    gitlab.project.archived = True


def only_report(gitlab: GitlabEnvironment) -> None:
    gitlab.project.members[BOT] = 20


def only_develop(gitlab: GitlabEnvironment) -> None:
    gitlab.project.members[BOT] = DEVELOPER


def keep_us_out(gitlab: GitlabEnvironment) -> None:
    gitlab.project.push_access["main"] = NO_ONE


def protect_everything(gitlab: GitlabEnvironment) -> None:
    gitlab.project.protected["*"] = DEVELOPER


def have_no_webhook(gitlab: GitlabEnvironment) -> None:
    gitlab.project.hooks[0].url = f"{SERVER}/hooks/gitlab/elsewhere"


def have_the_webhook_of_another_server(gitlab: GitlabEnvironment) -> None:
    gitlab.project.hooks[0].url = f"https://old.test/hooks/gitlab/{NAME}"


def lack_comment_events(gitlab: GitlabEnvironment) -> None:
    gitlab.project.hooks[0].events -= {"note"}


def have_the_webhook_disabled(gitlab: GitlabEnvironment) -> None:
    gitlab.project.hooks[0].alert_status = "disabled"


def forget_the_token(gitlab: GitlabEnvironment) -> None:
    del gitlab.world.tokens[TOKEN]


def require_signatures(gitlab: GitlabEnvironment) -> None:
    gitlab.project.push_rule = {"reject_unsigned_commits": True}


def require_sign_offs(gitlab: GitlabEnvironment) -> None:
    gitlab.project.push_rule = {"reject_non_dco_commits": True}


@pytest.mark.parametrize(
    ("lack", "message"),
    [
        (lack_the_scope, "create a new one"),
        (expire_soon, "rotate it"),
        (forget_the_token, "401"),
        (be_unknown, "add its account to the members"),
        (be_unknown, "the proxy in front of GitLab does not decode %2F"),
        (be_archived, "acme/app is archived, so the queue cannot change it: unarchive it (Settings > General)."),
        (only_report, "give it the role Developer or Maintainer"),
        (only_report, "The token cannot read the protected branches: give its account the role Developer or"),
        (only_develop, "The token cannot read the webhooks: give its account the role Maintainer"),
        (only_develop, "The token cannot read the push rules: give its account the role Maintainer"),
        (keep_us_out, "mergeyard-bot cannot push to main: add it to those allowed to push and merge"),
        (protect_everything, "The rule * protects the test branches"),
        (have_no_webhook, f"no webhook to {SERVER}/hooks/gitlab/{NAME}, so changes are found only by polling every 20"),
        (have_no_webhook, "with the secret of `webhook_secret_file`"),
        (have_no_webhook, "If its group has such a webhook, which GitLab does not show here, add none"),
        (have_the_webhook_of_another_server, f"goes to https://old.test/hooks/gitlab/{NAME}, not to this server"),
        (lack_comment_events, "does not send Comments: select them"),
        (have_the_webhook_disabled, "disabled the webhook"),
        (require_signatures, "*Reject unsigned commits* refuses the test branches"),
        (require_signatures, "set `signing_key_file` of this Git host, or clear the rule"),
        (require_sign_offs, "DCO sign-offs refuses the test branches"),
    ],
)
@asynchronous
async def test_each_missing_setting_is_named_with_advice(gitlab: GitlabEnvironment, lack: Happening, message: str):
    complete_setup(gitlab)
    lack(gitlab)
    missing = await problems(gitlab)
    assert any(message in one for one in missing), missing
    assert TOKEN not in str(missing)


@asynchronous
async def test_a_missing_webhook_secret_is_reported(gitlab: GitlabEnvironment):
    async with gitlab.host(webhook_secret=None) as host:
        missing = [finding.message for finding in await host.diagnose(None) if not finding.ok]
    assert ["set `webhook_secret_file`" in message for message in missing] == [True]


@asynchronous
async def test_a_failed_check_is_reported_and_the_others_still_run(gitlab: GitlabEnvironment):
    complete_setup(gitlab)
    gitlab.gitlab.faults.plan(RespondsWith(503), "/protected_branches$")
    missing = await problems(gitlab)
    assert len(missing) == 1
    assert missing[0].startswith("The protected branches could not be checked")


@asynchronous
async def test_without_the_address_of_our_server_each_server_with_our_path_counts_and_is_shown(
    gitlab: GitlabEnvironment,
):
    complete_setup(gitlab)
    have_the_webhook_of_another_server(gitlab)
    assert await problems(gitlab, public_url=None) == []
    assert (
        "old.test/hooks/gitlab/gitlab.test sends all events that the queue uses. Check that this server answers there"
        in (await messages(gitlab, public_url=None))
    )
    have_no_webhook(gitlab)
    assert "no webhook to <public_url>/hooks/gitlab/gitlab.test" in str(await problems(gitlab, public_url=None))


@asynchronous
async def test_the_role_counts_also_through_a_group_that_was_invited(gitlab: GitlabEnvironment):
    complete_setup(gitlab)
    gitlab.project.invited[BOT] = gitlab.project.members.pop(BOT)
    assert await problems(gitlab) == []


# A mandatory queue


@pytest.mark.parametrize(
    ("queue", "pushers", "mergers", "message"),
    [
        (
            QueueSetup(branch="main"),
            None,
            MAINTAINERS,
            "Maintainers can merge into main. For a mandatory queue, choose *Allowed to merge: No",
        ),
        (
            QueueSetup(branch="main"),
            MAINTAINERS,
            NO_ONE,
            "Maintainers can push to main. For a mandatory queue, choose *Allowed to merge: No",
        ),
        (
            QueueSetup(branch="main"),
            [{"access_level": 30}],
            [{"group_id": 5}],
            "Developers + Maintainers can push to main and Group 5 can merge into main.",
        ),
        (QueueSetup(branch="main"), [{"user_id": 301}, {"access_level": 0}], NO_ONE, "grace can push to main"),
        (
            QueueSetup(branch="main"),
            [{"access_level": 40, "deploy_key_id": 1}],
            NO_ONE,
            f"Deploy key can push to main. For a mandatory queue, {ONLY_WE_PUSH}",
        ),
        (
            BY_GITLAB,
            NO_ONE,
            MAINTAINERS,
            f"Maintainers can merge into main. For a mandatory queue, {ONLY_WE_MERGE}",
        ),
        (BY_GITLAB, MAINTAINERS, None, "Maintainers can push to main"),
    ],
)
@asynchronous
async def test_everyone_who_can_go_around_the_queue_is_named(
    gitlab: GitlabEnvironment,
    queue: QueueSetup,
    pushers: list[dict[str, int]] | None,
    mergers: list[dict[str, int]] | None,
    message: str,
):
    complete_setup(gitlab)
    ours = {"user_id": gitlab.world.user(BOT).id}
    gitlab.world.users["grace"] = User(301, "grace")
    gitlab.project.push_access["main"] = [ours, *(pushers or [])]
    gitlab.project.merge_access["main"] = [ours, *(mergers or [])]
    assert await problems(gitlab, queue) == []
    assert f"Without the queue, {message}" in await messages(gitlab, queue)


@asynchronous
async def test_a_queue_that_lets_gitlab_merge_is_mandatory_if_only_our_account_can_merge(gitlab: GitlabEnvironment):
    complete_setup(gitlab)
    gitlab.project.push_access["main"] = NO_ONE
    assert "mergeyard-bot cannot merge into main: add it to those allowed to merge" in str(
        await problems(gitlab, BY_GITLAB)
    )
    gitlab.project.merge_access["main"] = [{"user_id": gitlab.world.user(BOT).id}]
    assert await problems(gitlab, BY_GITLAB) == []
    assert "the queue is mandatory" in await messages(gitlab, BY_GITLAB)


@pytest.mark.parametrize(
    ("pushers", "mergers", "is_enough"),
    [(MAINTAINERS, NO_ONE, True), (MAINTAINERS, MAINTAINERS, False), ([{"access_level": 30}], NO_ONE, False)],
)
@asynchronous
async def test_a_plan_without_single_accounts_is_held_to_the_narrowest_role(
    gitlab: GitlabEnvironment, pushers: list[dict[str, int]], mergers: list[dict[str, int]], is_enough: bool
):
    complete_setup(gitlab)
    gitlab.project.premium = False
    gitlab.project.push_access["main"], gitlab.project.merge_access["main"] = pushers, mergers
    expected = "Only Maintainers can change main without" if is_enough else "mergeyard-bot* or *Maintainers*"
    assert await problems(gitlab) == []
    assert expected in await messages(gitlab)


@asynchronous
async def test_every_queue_is_checked_and_a_branch_that_is_gone_is_a_problem(
    gitlab: GitlabEnvironment,
):
    complete_setup(gitlab)
    gitlab.origin.branch("next", base="main")
    queues = [QueueSetup(branch=branch) for branch in ("main", "next", "gone")]
    assert [message.partition(",")[0] for message in await problems(gitlab, *queues)] == [
        "The project has no branch gone: push it"
    ]
    assert "No rule protects next" in await messages(gitlab, *queues)


@asynchronous
async def test_the_group_of_a_project_can_require_pipelines_unseen(gitlab: GitlabEnvironment):
    complete_setup(gitlab)
    gitlab.project.pipelines_must_succeed = False
    assert "(the same setting of its group is not visible)" in await messages(gitlab)


@pytest.mark.parametrize(
    ("reported", "is_missing"), [(None, False), (frozenset({"pipeline", "unit"}), False), (frozenset({"unit"}), True)]
)
@asynchronous
async def test_a_pipeline_that_never_ran_on_a_test_branch_is_reported(
    gitlab: GitlabEnvironment, reported: frozenset[str] | None, is_missing: bool
):
    complete_setup(gitlab)
    missing = await problems(gitlab, QueueSetup(branch="main", reported_checks=reported))
    assert ["none ran on the last test branches of main" in message for message in missing] == [True] * is_missing


# Push rules


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({}, "The push rules accept what the queue pushes."),
        ({"branch_name_regex": r"(a*)*b"}, "((a*)*b) must accept the test branches, such as mergeyard/pr-1"),
        (
            {"commit_message_regex": r"Fixes"},
            "must accept the queue's commits, such as 'Merge request 1: A change' and, after a failed test, 'Test the ",
        ),
        (
            {"commit_message_negative_regex": "^Merge"},
            "(^Merge) must not match the queue's commits, such as 'Merge request 1: A change'",
        ),
        (
            {"author_email_regex": "@example.com$"},
            "set `committer_email` to an address that it accepts, or change the pattern (Settings",
        ),
        (
            {"member_check": True},
            "leave `committer_email` unset, or set it to a verified address of mergeyard-bot, or clear the rule",
        ),
    ],
)
@asynchronous
async def test_push_rules_that_can_refuse_commits_are_shown_with_advice(
    gitlab: GitlabEnvironment, rule: dict[str, str | bool], message: str
):
    complete_setup(gitlab)
    gitlab.project.push_rule = rule
    assert await problems(gitlab) == []
    found = await messages(gitlab)
    assert message in found
    assert ("The push rules accept" in found) is (not rule)


def test_the_shown_subjects_are_those_that_the_queue_writes():
    written = (merge_message(ONE, "A change", "run", "!"), base_run_message(RunId("run")))
    assert [message.partition("\n")[0] for message in written] == [EXAMPLE_SUBJECT, BASE_RUN_SUBJECT]


@asynchronous
async def test_a_rule_about_committers_is_mentioned_with_the_settings_that_satisfy_it(gitlab: GitlabEnvironment):
    complete_setup(gitlab)
    gitlab.project.push_rule = {"commit_committer_check": True}
    assert "leave `committer_email` unset, and set `committer_name` to the name of mergeyard-bot" in await messages(
        gitlab
    )


@asynchronous
async def test_a_plan_without_push_rules_has_no_problem(gitlab: GitlabEnvironment):
    complete_setup(gitlab)
    assert gitlab.project.members[BOT] == MAINTAINER
    for answer in (403, 404):
        gitlab.gitlab.faults.plan(RespondsWith(answer), "/push_rule$")
        assert "GitLab shows no push rules of this project." in await messages(gitlab)


# Signing


ARMORED = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n{}\nmDMEZours\nAAAA\n=ab12\n-----END PGP PUBLIC KEY BLOCK-----\n"


@asynchronous
async def test_a_signing_key_satisfies_the_rule_about_unsigned_commits(gitlab: GitlabEnvironment):
    complete_setup(gitlab)
    require_signatures(gitlab)
    assert await problems(gitlab, signer=SigningKey()) == []
    assert "The push rules accept what the queue pushes." in await messages(gitlab, signer=SigningKey())


@pytest.mark.parametrize(
    ("ours", "theirs", "is_known"),
    [
        ("ssh-ed25519 AAAA", SshKey("ssh-ed25519 AAAA bot@queue"), True),
        ("ssh-ed25519 AAAA", SshKey("ssh-ed25519 AAAA", "signing"), True),
        ("ssh-ed25519 AAAA", SshKey("ssh-ed25519 AAAA", "auth"), False),
        ("ssh-ed25519 AAAA", SshKey("ssh-ed25519 AAAB"), False),
        (ARMORED.format(""), ARMORED.format("Comment: a key\n"), True),
        (ARMORED.format(""), ARMORED.format("").replace("ours", "other"), False),
    ],
)
@asynchronous
async def test_a_signing_key_that_gitlab_does_not_know_is_mentioned(
    gitlab: GitlabEnvironment, ours: str, theirs: SshKey | str, is_known: bool
):
    complete_setup(gitlab)
    if isinstance(theirs, SshKey):
        gitlab.world.ssh_keys[BOT] = [SshKey("ssh-rsa BBBB"), theirs]
    else:
        gitlab.world.gpg_keys[BOT] = [theirs]
    found = await findings(gitlab, signer=SigningKey(ours))
    matching = [one for one in found if "`signing_key_file`" in one.message]
    assert [(one.ok, one.advice) for one in matching] == [(True, not is_known)]
    assert ("as unverified" in matching[0].message) is not is_known


@pytest.mark.parametrize(
    ("option", "queue", "is_mentioned"),
    [
        ("never", QueueSetup(branch="main", merge_method=MergeMethod.SQUASH), True),
        ("default_off", QueueSetup(branch="main", merge_method=MergeMethod.SQUASH), False),
        ("never", QueueSetup(branch="main"), False),
    ],
)
@asynchronous
async def test_a_project_that_never_squashes_cannot_merge_where_the_queue_cannot_move_a_branch(
    gitlab: GitlabEnvironment, option: str, queue: QueueSetup, is_mentioned: bool
):
    complete_setup(gitlab)
    gitlab.project.squash_option = option
    assert ("set `headBranchFallback` to `close`" in await messages(gitlab, queue)) is is_mentioned


@pytest.mark.parametrize(
    ("changes", "method", "expected"),
    [
        ({"merge_method": "ff"}, MergeMethod.MERGE_COMMIT, "merges by fast-forward only"),
        ({"merge_method": "rebase_merge"}, MergeMethod.SQUASH, "merges only a head that contains the tip"),
        ({"squash_option": "always"}, MergeMethod.MERGE_COMMIT, "GitLab squashes every merge request"),
        ({"squash_option": "never"}, MergeMethod.SQUASH, "GitLab does not allow squashing"),
    ],
)
@asynchronous
async def test_a_project_whose_settings_refuse_the_merges_of_a_queue_is_a_problem_only_if_gitlab_merges(
    gitlab: GitlabEnvironment, changes: dict[str, str], method: MergeMethod, expected: str
):
    """GitLab's documentation: `user/project/merge_requests/methods` and `.../squash_and_merge`."""
    complete_setup(gitlab)
    for name, value in changes.items():
        setattr(gitlab.project, name, value)
    by_gitlab = QueueSetup(branch="main", merge_method=method, landing=LandingMethod.PROVIDER_MERGE)
    pushed = QueueSetup(branch="main", merge_method=method)
    assert expected in " ".join(await problems(gitlab, by_gitlab))
    assert expected not in " ".join(await problems(gitlab, pushed))
