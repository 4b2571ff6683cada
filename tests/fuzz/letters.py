"""What forges really send: each of them is made to tell of everything that we listen to, once."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from tests.contract.host import gitea_stage as gitea
from tests.contract.host import github_stage as github
from tests.contract.host import gitlab_stage as gitlab
from tests.support.forges.deliveries import Deliveries
from tests.support.forges.github.facts import Hook as GithubHook
from tests.support.forges.gitlab.fake import SECRET as GITLAB_SECRET
from tests.support.forges.gitlab.nouns import Hook as GitlabHook

NOWHERE = "http://127.0.0.1:9/"
GITEA_EVENTS = ("push", "delete", "status", "pull_request", "pull_request_comment", "pull_request_review")


class Letter(Struct, frozen=True):
    event: str
    """As the header names it."""
    message: dict[str, Any]


def _kept(deliveries: Deliveries, header: str) -> list[Letter]:
    letters = (delivered.letter for delivered in deliveries.log)
    return [Letter(letter.headers[header], json.loads(letter.body)) for letter in letters]


@cache
def from_github() -> list[Letter]:
    with TemporaryDirectory() as folder, github.github_stage(Path(folder)) as stage:
        stage.github.deliveries.losing = True
        stage.acme.hooks.append(GithubHook(address=NOWHERE, secret=github.SECRET, events=github.EVENTS))
        head = stage.open(1)
        stage.push(1)
        stage.acme.reviews(1, "ada", "APPROVED")
        stage.acme.says(1, "ada", "/merge")
        stage.acme.reports(head, "unit", "success")
        stage.acme.runs(head, "unit", conclusion="success")
        stage.close(1)
        return _kept(stage.github.deliveries, "x-github-event")


@cache
def from_gitlab() -> list[Letter]:
    with TemporaryDirectory() as folder, gitlab.gitlab_stage(Path(folder)) as stage:
        stage.gitlab.deliveries.losing = True
        stage.project.hooks.append(GitlabHook(id=1, url=NOWHERE, secret=GITLAB_SECRET))
        stage.open(1)
        stage.acts.say(stage.project, stage.request(), "!merge", by="ada")
        pushed = stage.push(1)
        stage.acts.job(stage.project, stage.acts.pipeline(stage.project, pushed, "main"), "unit", "success")
        stage.close(1)
        return _kept(stage.gitlab.deliveries, "x-gitlab-event")


@cache
def from_gitea() -> list[Letter]:
    with (
        TemporaryDirectory() as folder,
        gitea.FakeGitea(Path(folder)) as fake,
        gitea.staged(fake, Path(folder)) as stage,
    ):
        fake.deliveries.losing = True
        stage.project.send_news_to(NOWHERE, gitea.SECRET, *GITEA_EVENTS)
        head = stage.open(1)
        stage.project.comment(1, "ada", "/merge")
        stage.project.report(head, "unit", "success")
        stage.close(1)
        stage.project.remove("topic-1")
        return _kept(fake.deliveries, "x-gitea-event")
