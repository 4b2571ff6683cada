"""The steps of the pages for GitHub, GitLab and Gitea lead to a merge on a fake of that Git host."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mergeyard.adapters.clock import WallClock
from mergeyard.cli import app
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import StatusState
from mergeyard.domain.timestamps import SECOND, Instant, later
from tests.project.test_forge_docs import DOCS, blocks, settings_file, shell_commands
from tests.support.forge_drivers.driver import BOT, MAINTAINER, SECRET, ForgeDriver
from tests.support.forge_drivers.gitea import GiteaDriver
from tests.support.forge_drivers.github import GithubDriver
from tests.support.forge_drivers.gitlab import GitlabDriver
from tests.support.forges.github.rulesets import BypassActor, pull_request_rule, required_checks_rule, rule
from tests.support.polling import eventually
from tests.support.server import Server

DRIVERS = {"github": GithubDriver, "gitlab": GitlabDriver, "gitea": GiteaDriver}
ADDRESS = "https://queue.example.com"


class ForgeClock(WallClock):
    """Ahead of ours: GitHub and Gitea cut the time of a comment to seconds, and comments that seem older than the queue
    are no commands."""

    def now(self) -> Instant:
        return later(super().now(), SECOND)


class Steps:
    """Follows the page of one Git host, with the fake as that host."""

    def __init__(self, name: str, folder: Path) -> None:
        self.page = DOCS / "start" / f"{name}.md"
        self.forge: ForgeDriver = DRIVERS[name](folder / "forge", ForgeClock())
        self.server = Server(folder)
        self.host = self._configure(name, folder)
        self.check = self._protect_branch(name)

    def start(self) -> None:
        self.server.start()
        self.forge.add_webhook(f"{self.server.url}/hooks/{self.page.stem}/{self.host}")

    def _configure(self, name: str, folder: Path) -> str:
        """The settings of the page, for the address and the token of the fake."""
        text = re.sub("(?m)^(public_url|url|app_id|private_key_file|token_file) .*\n", "", settings_file(name))
        more = f'url = "{self.forge.settings.url}"\napi_url = "{self.forge.settings.api_url}"\ntoken_file = "token"\n'
        self.server.config.write_text(text + more)
        (folder / "token").write_text(self.forge.settings.token or "")
        (folder / "secrets").mkdir()
        (folder / "secrets" / f"{name}.hook").write_text(SECRET)
        (host,) = re.findall(r'^\[hosts\."(.+)"\]$', text, re.MULTILINE)
        return host

    def _protect_branch(self, name: str) -> str:
        """As the page does it, so that only the queue can merge. Returns the check that the page requires."""
        match self.forge:
            case GithubDriver(acme=repository):
                queue = BypassActor("Team", repository.organization.add_team("queue", BOT).id, "exempt")
                only_queue = [rule("update"), rule("deletion"), rule("non_fast_forward")]
                repository.add_ruleset("only the queue updates the branch", only_queue, bypass=[queue])
                reviews = [pull_request_rule(1), required_checks_rule("test")]
                repository.add_ruleset("reviews and checks", reviews, bypass=[queue])
                return "test"
            case GitlabDriver(project=project):
                project.merge_access["main"] = [{"access_level": 0}]
                project.push_access["main"] = [{"user_id": self.forge.gitlab.world.user(BOT).id}]
                return self.forge.protect_main()
            case _:
                (text,) = [block for block in blocks(name, "toml") if "required_statuses" in block]
                self.forge.push_to_main({".mergeyard.toml": text})
                (check,) = re.findall(r'\["(.+)"\]', text)
                return check

    def run(self, *arguments: str, stdin: str = "") -> str:
        result = CliRunner().invoke(app, arguments, input=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    def approve(self) -> None:
        """Only the page of GitHub requires an approval."""
        if isinstance(self.forge, GithubDriver):
            self.forge.approve(1, MAINTAINER)

    def pass_check(self, commit: Sha) -> None:
        if isinstance(self.forge, GitlabDriver):
            self.forge.satisfy_protection(commit)
        else:
            self.forge.report(commit, self.check, StatusState.SUCCESS)

    def test_branch(self) -> Sha | None:
        refs = self.forge.origin.run("for-each-ref", "--format=%(objectname)", "refs/heads/mergeyard").decode().split()
        return Sha(refs[0]) if refs else None

    def close(self) -> None:
        if self.server.alive:
            self.server.stop()
        self.forge.close()


@pytest.fixture
def steps(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Steps]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    steps = Steps(request.param, tmp_path)
    try:
        steps.start()
        yield steps
    finally:
        steps.close()


@pytest.mark.parametrize("steps", DRIVERS, indirect=True)
def test_steps_of_the_page_lead_to_the_first_merge(steps: Steps):
    token = steps.run("token", "create", "--name", "me", "--scope", "admin")
    for arguments in shell_commands(steps.page):
        here = [argument.replace(ADDRESS, steps.server.url) for argument in arguments]
        is_login = here[0] == "login"
        steps.run(*here, *(["--token-file", "-"] if is_login else []), stdin=token if is_login else "")
    steps.forge.open(1, {"greeting": "hello"}, "main")
    *_, comment = blocks(steps.page.stem, "text")
    steps.forge.comment(1, "ada", comment.strip())
    steps.approve()
    steps.pass_check(steps.forge.head(1))
    steps.pass_check(eventually(steps.test_branch))
    eventually(lambda: steps.forge.is_merged(1))
    eventually(lambda: steps.test_branch() is None)
