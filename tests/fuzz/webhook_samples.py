"""Samples of webhooks: each fake forge sends every event that the product handles, once."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from tests.contract.host import gitea_environment as gitea
from tests.contract.host import github_environment as github
from tests.contract.host import gitlab_environment as gitlab
from tests.support.forges.deliveries import Deliveries
from tests.support.forges.github.world import Hook as GithubHook
from tests.support.forges.gitlab.fake import SECRET as GITLAB_SECRET
from tests.support.forges.gitlab.world import Hook as GitlabHook

UNUSED_URL = "http://127.0.0.1:9/"
GITEA_EVENTS = ("push", "delete", "status", "pull_request", "pull_request_comment", "pull_request_review")


class WebhookSample(Struct, frozen=True):
    event: str
    """The value of the event header."""
    message: dict[str, Any]


def _to_samples(deliveries: Deliveries, header: str) -> list[WebhookSample]:
    samples = (delivered.delivery for delivered in deliveries.log)
    return [WebhookSample(sample.headers[header], json.loads(sample.body)) for sample in samples]


@cache
def from_github() -> list[WebhookSample]:
    with TemporaryDirectory() as folder, github.github_environment(Path(folder)) as stage:
        stage.github.deliveries.drop_all = True
        stage.acme.hooks.append(GithubHook(url=UNUSED_URL, secret=github.SECRET, events=github.EVENTS))
        head = stage.open(1)
        stage.push(1)
        stage.acme.add_review(1, "ada", "APPROVED")
        stage.acme.add_comment(1, "ada", "/merge")
        stage.acme.report_status(head, "unit", "success")
        stage.acme.add_check_run(head, "unit", conclusion="success")
        stage.close(1)
        return _to_samples(stage.github.deliveries, "x-github-event")


@cache
def from_gitlab() -> list[WebhookSample]:
    with TemporaryDirectory() as folder, gitlab.gitlab_environment(Path(folder)) as stage:
        stage.gitlab.deliveries.drop_all = True
        stage.project.hooks.append(GitlabHook(id=1, url=UNUSED_URL, secret=GITLAB_SECRET))
        stage.open(1)
        stage.acts.add_note(stage.project, stage.request(), "!merge", by="ada")
        pushed = stage.push(1)
        stage.acts.add_job(stage.project, stage.acts.add_pipeline(stage.project, pushed, "main"), "unit", "success")
        stage.close(1)
        return _to_samples(stage.gitlab.deliveries, "x-gitlab-event")


@cache
def from_gitea() -> list[WebhookSample]:
    with (
        TemporaryDirectory() as folder,
        gitea.FakeGitea(Path(folder)) as fake,
        gitea.environment_on(fake, Path(folder)) as stage,
    ):
        fake.deliveries.drop_all = True
        stage.project.add_webhook(UNUSED_URL, gitea.SECRET, *GITEA_EVENTS)
        head = stage.open(1)
        stage.project.comment(1, "ada", "/merge")
        stage.project.report(head, "unit", "success")
        stage.close(1)
        stage.project.remove("topic-1")
        return _to_samples(fake.deliveries, "x-gitea-event")
