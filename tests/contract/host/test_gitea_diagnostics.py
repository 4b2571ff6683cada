"""What `host check` reports about a Gitea, with advice."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.ports.forge import QueueSetup
from tests.contract.host.gitea_environment import GiteaEnvironment
from tests.forge.gitea_admin import BOT
from tests.support.asynchronous import asynchronous

HOOK = "http://127.0.0.1:9/hooks/gitea/gitea.local"
BY_GITEA, TESTED_COMMIT = LandingMethod.PROVIDER_MERGE, LandingMethod.TESTED_COMMIT
ONLY_QUEUE: dict[str, Any] = {
    "enable_push_whitelist": True,
    "push_whitelist_usernames": [BOT],
    "enable_merge_whitelist": True,
    "merge_whitelist_usernames": [BOT],
}


async def list_problems(gitea: GiteaEnvironment, *queues: QueueSetup, **access: Any) -> list[str]:
    async with gitea.host(**access) as host:
        found = await host.diagnose(gitea.repo, queues)
    return [finding.message for finding in found if not finding.ok]


@pytest.mark.parametrize("public_url", [None, "http://127.0.0.1:9"])
@asynchronous
async def test_a_complete_setup_has_no_findings(gitea: GiteaEnvironment, public_url: str | None):
    gitea.project.add_webhook(HOOK, "s", "push", "status", "pull_request")
    gitea.project.protect("main", **ONLY_QUEUE)
    async with gitea.host(public_url=public_url) as host:
        found = [*await host.diagnose(None), *await host.diagnose(gitea.repo)]
    assert [finding.message for finding in found if not finding.ok] == []
    messages = "\n".join(finding.message for finding in found)
    assert f"Only {BOT} can push to main and merge into it, so the queue is mandatory." in messages
    assert ("`public_url` is not set" in messages) is (public_url is None)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"enable_push_whitelist": False}, "every account with write access can push to main. .*enable_push_whitelist"),
        ({"push_whitelist_usernames": [BOT, "ada"]}, "the queue, ada can push to main. .*push_whitelist_usernames"),
        ({"push_whitelist_deploy_keys": True}, "each deploy key with write access can push to main"),
        (
            {"unprotected_file_patterns": "docs/**"},
            "can push changes of docs/.*unprotected_file_patterns",
        ),
        ({"enable_merge_whitelist": False}, "every account with write access can merge into .*enable_merge_whitelist"),
        (
            {"merge_whitelist_usernames": ["ada", BOT]},
            "the queue, ada can merge into .*merge_whitelist_usernames",
        ),
        ({"merge_whitelist_usernames": ["ada", BOT]}, "An administrator who .*block_admin_merge_override"),
        ({"require_signed_commits": True}, "requires signed commits, .*require_signed_commits"),
    ],
)
@asynchronous
async def test_each_way_around_the_queue_is_reported_with_the_setting_that_closes_it(
    gitea: GiteaEnvironment, options: dict[str, Any], expected: str
):
    gitea.project.add_collaborator("ada", "write")
    gitea.project.add_webhook(HOOK, "s", "push", "status", "pull_request")
    gitea.project.protect("main", **(ONLY_QUEUE | options))
    async with gitea.host() as host:
        assert re.search(expected, "\n".join(finding.message for finding in await host.diagnose(gitea.repo)))


@asynchronous
async def test_administrators_who_follow_the_rule_are_not_reported(gitea: GiteaEnvironment):
    options = {"enable_merge_whitelist": False, "block_admin_merge_override": True}
    gitea.project.protect("main", **(ONLY_QUEUE | options))
    async with gitea.host() as host:
        messages = "\n".join(finding.message for finding in await host.diagnose(gitea.repo))
    assert "An administrator" not in messages
    assert "so the queue is mandatory" not in messages


@asynchronous
async def test_each_queue_is_checked_for_its_own_branch_and_landing(gitea: GiteaEnvironment):
    gitea.project.commit("release", {"r.txt": "1"}, base="main")
    gitea.project.protect(
        "release",
        **ONLY_QUEUE | {"push_whitelist_usernames": ["acme"]},
        require_signed_commits=True,
        block_on_outdated_branch=True,
    )
    pushed, merged = QueueSetup(branch="release"), QueueSetup(branch="release", landing=BY_GITEA)
    messages = "\n".join(await list_problems(gitea, pushed))
    assert "release is protected against pushes" in messages
    assert "release requires signed commits" in messages
    assert "behind" not in messages
    assert "main" not in messages
    messages = "\n".join(await list_problems(gitea, merged, QueueSetup(branch="main"), QueueSetup(branch="gone")))
    assert "commit of release: in the protection rule release turn off" in messages
    assert "protected against pushes" not in messages
    assert "signed commits" not in messages
    assert "The repository has no branch gone" in messages


@pytest.mark.parametrize(("pattern", "is_covered"), [("**", True), ("mergeyard/**", True), ("mergeyard/*", False)])
@asynchronous
async def test_a_rule_over_test_branches_is_reported(gitea: GiteaEnvironment, pattern: str, is_covered: bool):
    gitea.project.protect(pattern)
    found = f"The protection rule {pattern} also protects the test branches" in "\n".join(await list_problems(gitea))
    assert found is is_covered


@asynchronous
async def test_a_required_check_that_no_test_branch_has_is_reported(gitea: GiteaEnvironment):
    gitea.project.protect("main", ["unit", "lint", "ui (pull_request)"])
    reported = QueueSetup(branch="main", reported_checks=frozenset({"unit", "ui (pull_request)"}))
    messages = "\n".join(await list_problems(gitea, reported))
    assert "requires 'lint', and CI reported no such check on the last test branches" in messages
    assert "'unit'" not in messages
    assert "'ui" not in messages
    assert "reported no such check" not in "\n".join(await list_problems(gitea))


@asynchronous
async def test_a_webhook_to_another_server_or_without_reviews_is_reported(gitea: GiteaEnvironment):
    gitea.project.add_webhook(HOOK, "s", "push", "status", "pull_request_only", "pull_request_comment")
    ours = "\n".join(await list_problems(gitea, public_url="http://127.0.0.1:9/"))
    assert f"Let the webhook to {HOOK} also send: " in ours
    assert "pull_request_review, pull_request_review_request." in ours
    expected = "http://queue.example.com/hooks/gitea/gitea.local"
    others = "\n".join(await list_problems(gitea, public_url="http://queue.example.com"))
    assert f"The webhook goes to {HOOK}, not to this server: set its address to {expected}." in others


@asynchronous
async def test_every_missing_setting_is_reported(gitea: GiteaEnvironment):
    gitea.project.update_settings({"has_pull_requests": True, "allow_manual_merge": False})
    gitea.project.protect("main", ["ci / *", "ci / unit (pull_request)"], enable_push=False)
    async with gitea.host(webhook_secret=None) as host:
        found = [*await host.diagnose(None), *await host.diagnose(gitea.repo)]
    messages = "\n".join(finding.message for finding in found if not finding.ok)
    for named in (
        *("webhook_secret_file", "allow_manual_merge", "protected against pushes", "the pattern 'ci / *'"),
        *("createPrsForTestingBranches", "no active webhook to <public_url>/hooks/gitea/gitea.local"),
    ):
        assert named in messages


@asynchronous
async def test_a_check_of_a_repository_alone_reports_a_missing_webhook_secret(gitea: GiteaEnvironment):
    assert "`webhook_secret_file` is not set" in "\n".join(await list_problems(gitea, webhook_secret=None))
    assert "`webhook_secret_file` is not set" not in "\n".join(await list_problems(gitea))


@asynchronous
async def test_a_merge_method_that_a_queue_needs_and_the_repository_refuses_is_reported(gitea: GiteaEnvironment):
    gitea.project.update_settings({"has_pull_requests": True, "allow_rebase": False})
    refused = "The repository refuses rebase, with which the queue merges into main: allow it"
    merged = QueueSetup(branch="main", landing=BY_GITEA, merge_method=MergeMethod.REBASE)
    assert refused in "\n".join(await list_problems(gitea, merged))
    for queue in (replace(merged, merge_method=MergeMethod.SQUASH), replace(merged, landing=TESTED_COMMIT)):
        assert "The repository refuses" not in "\n".join(await list_problems(gitea, queue))
    async with gitea.host() as host:
        findings = await host.diagnose(gitea.repo)
    (advice,) = (each for each in findings if "The repository refuses rebase, which matters" in each.message)
    assert advice.advice


@asynchronous
async def test_missing_scopes_and_a_missing_role_are_reported(gitea: GiteaEnvironment):
    token = gitea.people.token_of("ada", "read:repository", "read:issue", "read:user")
    async with gitea.host(token=token) as host:
        messages = "\n".join(finding.message for finding in await host.diagnose(gitea.repo) if not finding.ok)
        assert "write:repository" in messages
        assert "write:issue" in messages
        assert "cannot push" in messages
        assert "permission admin" in messages


@asynchronous
async def test_a_rule_that_the_account_cannot_read_is_reported_with_the_permission(gitea: GiteaEnvironment):
    gitea.project.add_collaborator("ada", "write")
    gitea.project.protect("main")
    token = gitea.people.token_of("ada", "write:repository", "write:issue", "read:user")
    messages = "\n".join(await list_problems(gitea, token=token))
    assert "The account cannot read the protection rule of main" in messages
    assert messages.count("give the account the permission admin in the repository") == 1


@asynchronous
async def test_a_wrong_token_a_missing_scope_and_a_missing_repository_are_reported(gitea: GiteaEnvironment):
    async with gitea.host(token="0" * 40) as host:
        (finding,) = await host.diagnose(None)
        assert not finding.ok
        assert "Check the address of Gitea, and the token" in finding.message
    async with gitea.host(token=gitea.people.token_of("ada", "read:repository")) as host:
        first, *_, last = await host.diagnose(None)
        assert (first.ok, last.ok) == (True, False)
        assert "read:user" in last.message
    async with gitea.host() as host:
        (finding,) = await host.diagnose(replace(gitea.repo, name="elsewhere"))
        assert not finding.ok
