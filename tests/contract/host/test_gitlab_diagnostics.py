"""What `host check` reports about GitLab, with advice."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from mergeyard.ports.forge import Finding
from tests.contract.host.gitlab_environment import GitlabEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import RespondsWith
from tests.support.forges.gitlab.fake import NAME, SECRET
from tests.support.forges.gitlab.world import BOT, DEVELOPER, TOKEN, Hook, Token


async def findings(gitlab: GitlabEnvironment) -> list[Finding]:
    async with gitlab.host() as host:
        return list(await host.diagnose(gitlab.repo))


def complete_setup(gitlab: GitlabEnvironment) -> None:
    gitlab.project.hooks.append(Hook(id=1, url=f"https://queue.test/hooks/gitlab/{NAME}", secret=SECRET))


def expires_in(gitlab: GitlabEnvironment, days: int) -> None:
    day = (datetime.now(UTC) + timedelta(days=days)).date().isoformat()
    gitlab.world.tokens[TOKEN] = Token(gitlab.world.user(BOT), expires_at=day)


@asynchronous
async def test_a_complete_setup_has_no_problems(gitlab: GitlabEnvironment):
    complete_setup(gitlab)
    expires_in(gitlab, 90)
    gitlab.project.pipelines_must_succeed = True
    found = await findings(gitlab)
    assert all(finding.ok for finding in found), found
    assert len(found) == 8


def lack_the_scope(gitlab: GitlabEnvironment) -> None:
    gitlab.world.tokens[TOKEN] = Token(gitlab.world.user(BOT), scopes=("read_api",))


def expire_soon(gitlab: GitlabEnvironment) -> None:
    expires_in(gitlab, 3)


def be_unknown(gitlab: GitlabEnvironment) -> None:
    gitlab.project.members.pop(BOT)


def only_report(gitlab: GitlabEnvironment) -> None:
    gitlab.project.members[BOT] = 20


def only_develop(gitlab: GitlabEnvironment) -> None:
    gitlab.project.members[BOT] = DEVELOPER


def protect_everything(gitlab: GitlabEnvironment) -> None:
    gitlab.project.protected["*"] = DEVELOPER


def have_no_webhook(gitlab: GitlabEnvironment) -> None:
    gitlab.project.hooks[0].url = "https://queue.test/hooks/gitlab/elsewhere"


def lack_comment_events(gitlab: GitlabEnvironment) -> None:
    gitlab.project.hooks[0].events -= {"note"}


def have_the_webhook_disabled(gitlab: GitlabEnvironment) -> None:
    gitlab.project.hooks[0].alert_status = "disabled"


def forget_the_token(gitlab: GitlabEnvironment) -> None:
    del gitlab.world.tokens[TOKEN]


@pytest.mark.parametrize(
    ("lack", "message"),
    [
        (lack_the_scope, "create a new one"),
        (expire_soon, "rotate it"),
        (forget_the_token, "401"),
        (be_unknown, "add its account to the members"),
        (only_report, "give it the role Developer or Maintainer"),
        (only_develop, "allowed to push and merge"),
        (protect_everything, "The rule * protects the test branches"),
        (have_no_webhook, "only by polling every 20 seconds: add one"),
        (lack_comment_events, "does not send Comments: select them"),
        (have_the_webhook_disabled, "disabled the webhook"),
    ],
)
@asynchronous
async def test_each_missing_setting_is_named_with_advice(
    gitlab: GitlabEnvironment, lack: Callable[[GitlabEnvironment], None], message: str
):
    complete_setup(gitlab)
    lack(gitlab)
    missing = [finding.message for finding in await findings(gitlab) if not finding.ok]
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
    missing = [finding.message for finding in await findings(gitlab) if not finding.ok]
    assert len(missing) == 1
    assert missing[0].startswith("The protected branches could not be checked")
