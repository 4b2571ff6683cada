"""What an examination of a Gitea finds, and what it tells to do."""

from msgspec.structs import replace

from tests.contract.host.gitea_stage import GiteaStage
from tests.support.asynchronous import asynchronous

EVENTS = ("push", "status", "pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment")


@asynchronous
async def test_an_examination_finds_nothing_where_all_is_there(gitea: GiteaStage):
    gitea.project.send_news_to("http://127.0.0.1:9/hooks/gitea/gitea.local", "s", *EVENTS)
    async with gitea.host() as host:
        found = [*await host.examine(None), *await host.examine(gitea.repo)]
    assert [finding.words for finding in found if not finding.fine] == []
    assert len(found) > 5


@asynchronous
async def test_an_examination_names_every_setting_that_is_missing(gitea: GiteaStage):
    gitea.project.change({"has_pull_requests": True, "allow_manual_merge": False})
    gitea.project.protect("main", ["ci / *", "ci / unit (pull_request)"], enable_push=False)
    async with gitea.host(webhook_secret=None) as host:
        found = [*await host.examine(None), *await host.examine(gitea.repo)]
    words = "\n".join(finding.words for finding in found if not finding.fine)
    for named in (
        *("webhook_secret", "allow_manual_merge", "protected against pushes", "the pattern 'ci / *'"),
        *("createPrsForTestingBranches", "no active webhook"),
    ):
        assert named in words


@asynchronous
async def test_an_examination_names_the_scopes_and_the_role_that_are_missing(gitea: GiteaStage):
    token = gitea.people.token_of("ada", "read:repository", "read:issue", "read:user")
    async with gitea.host(token=token) as host:
        words = "\n".join(finding.words for finding in await host.examine(gitea.repo) if not finding.fine)
        assert "write:repository" in words
        assert "write:issue" in words
        assert "may not push" in words
        assert "permission admin" in words


@asynchronous
async def test_an_examination_tells_of_a_wrong_token_a_missing_scope_and_a_missing_repository(gitea: GiteaStage):
    async with gitea.host(token="0" * 40) as host:
        (finding,) = await host.examine(None)
        assert not finding.fine
        assert "make sure of its address, and of the token" in finding.words.lower()
    async with gitea.host(token=gitea.people.token_of("ada", "read:repository")) as host:
        first, *_, last = await host.examine(None)
        assert (first.fine, last.fine) == (True, False)
        assert "read:user" in last.words
    async with gitea.host() as host:
        (finding,) = await host.examine(replace(gitea.repo, name="elsewhere"))
        assert not finding.fine
