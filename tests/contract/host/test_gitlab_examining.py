"""What GitLab lacks is told in words that say what to do."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from mergeyard.ports.forge import Finding
from tests.contract.host.gitlab_stage import GitlabStage
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import Answers
from tests.support.forges.gitlab.fake import NAME, SECRET
from tests.support.forges.gitlab.nouns import DEVELOPER, Hook, Token
from tests.support.forges.gitlab.world import OURS, TOKEN


async def findings(gitlab: GitlabStage) -> list[Finding]:
    async with gitlab.host() as host:
        return list(await host.examine(gitlab.repo))


def settle_in(gitlab: GitlabStage) -> None:
    gitlab.project.hooks.append(Hook(id=1, url=f"https://queue.test/hooks/gitlab/{NAME}", secret=SECRET))


def expires_in(gitlab: GitlabStage, days: int) -> None:
    day = (datetime.now(UTC) + timedelta(days=days)).date().isoformat()
    gitlab.world.tokens[TOKEN] = Token(gitlab.world.person(OURS), expires_at=day)


@asynchronous
async def test_where_everything_is_there_everything_is_fine(gitlab: GitlabStage):
    settle_in(gitlab)
    expires_in(gitlab, 90)
    gitlab.project.pipelines_must_succeed = True
    found = await findings(gitlab)
    assert all(finding.fine for finding in found), found
    assert len(found) == 8


def lack_the_scope(gitlab: GitlabStage) -> None:
    gitlab.world.tokens[TOKEN] = Token(gitlab.world.person(OURS), scopes=("read_api",))


def expire_soon(gitlab: GitlabStage) -> None:
    expires_in(gitlab, 3)


def be_unknown(gitlab: GitlabStage) -> None:
    gitlab.project.members.pop(OURS)


def only_report(gitlab: GitlabStage) -> None:
    gitlab.project.members[OURS] = 20


def only_develop(gitlab: GitlabStage) -> None:
    gitlab.project.members[OURS] = DEVELOPER


def protect_everything(gitlab: GitlabStage) -> None:
    gitlab.project.protected["*"] = DEVELOPER


def have_no_webhook(gitlab: GitlabStage) -> None:
    gitlab.project.hooks[0].url = "https://queue.test/hooks/gitlab/elsewhere"


def hear_no_comments(gitlab: GitlabStage) -> None:
    gitlab.project.hooks[0].events -= {"note"}


def have_the_webhook_disabled(gitlab: GitlabStage) -> None:
    gitlab.project.hooks[0].alert_status = "disabled"


def forget_the_token(gitlab: GitlabStage) -> None:
    del gitlab.world.tokens[TOKEN]


@pytest.mark.parametrize(
    ("lack", "words"),
    [
        (lack_the_scope, "make a new one"),
        (expire_soon, "rotate it"),
        (forget_the_token, "401"),
        (be_unknown, "add our account to its members"),
        (only_report, "give it the role Developer or Maintainer"),
        (only_develop, "allowed to push and merge"),
        (protect_everything, "The rule * protects our test branches"),
        (have_no_webhook, "only every 20 seconds: add one"),
        (hear_no_comments, "does not send Comments: tick them"),
        (have_the_webhook_disabled, "disabled the webhook"),
    ],
)
@asynchronous
async def test_what_is_missing_is_named_with_what_to_do(
    gitlab: GitlabStage, lack: Callable[[GitlabStage], None], words: str
):
    settle_in(gitlab)
    lack(gitlab)
    missing = [finding.words for finding in await findings(gitlab) if not finding.fine]
    assert any(words in one for one in missing), missing
    assert TOKEN not in str(missing)


@asynchronous
async def test_without_a_secret_for_webhooks_it_says_so(gitlab: GitlabStage):
    async with gitlab.host(webhook_secret=None) as host:
        missing = [finding.words for finding in await host.examine(None) if not finding.fine]
    assert ["set `webhook_secret_file`" in words for words in missing] == [True]


@asynchronous
async def test_what_could_not_be_examined_is_told_and_the_rest_is_examined(gitlab: GitlabStage):
    settle_in(gitlab)
    gitlab.gitlab.faults.plan(Answers(503), "/protected_branches$")
    missing = [finding.words for finding in await findings(gitlab) if not finding.fine]
    assert len(missing) == 1
    assert missing[0].startswith("The protected branches could not be examined")
