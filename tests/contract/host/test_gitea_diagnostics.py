"""What `host check` reports about a Gitea, with advice."""

from msgspec.structs import replace

from tests.contract.host.gitea_environment import GiteaEnvironment
from tests.support.asynchronous import asynchronous

EVENTS = ("push", "status", "pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment")


@asynchronous
async def test_a_complete_setup_has_no_findings(gitea: GiteaEnvironment):
    gitea.project.add_webhook("http://127.0.0.1:9/hooks/gitea/gitea.local", "s", *EVENTS)
    async with gitea.host() as host:
        found = [*await host.diagnose(None), *await host.diagnose(gitea.repo)]
    assert [finding.message for finding in found if not finding.ok] == []
    assert len(found) > 5


@asynchronous
async def test_every_missing_setting_is_reported(gitea: GiteaEnvironment):
    gitea.project.update_settings({"has_pull_requests": True, "allow_manual_merge": False})
    gitea.project.protect("main", ["ci / *", "ci / unit (pull_request)"], enable_push=False)
    async with gitea.host(webhook_secret=None) as host:
        found = [*await host.diagnose(None), *await host.diagnose(gitea.repo)]
    messages = "\n".join(finding.message for finding in found if not finding.ok)
    for named in (
        *("webhook_secret", "allow_manual_merge", "protected against pushes", "the pattern 'ci / *'"),
        *("createPrsForTestingBranches", "no active webhook"),
    ):
        assert named in messages


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
