"""When a merge request of GitLab counts as mergeable."""

from collections.abc import Callable

import pytest

from mergeyard.domain.states import Mergeability
from tests.contract.host.gitlab_stage import GitlabStage
from tests.contract.host.stage import ONE
from tests.support.asynchronous import asynchronous


def conflict(gitlab: GitlabStage) -> None:
    gitlab.acts.commit(gitlab.project, "main", {"1.txt": "something else"})


def disapprove(gitlab: GitlabStage) -> None:
    gitlab.request().approved = False


def doubt(gitlab: GitlabStage) -> None:
    gitlab.project.discussions_must_be_resolved = gitlab.request().unresolved = True


def ask_for_pipelines(gitlab: GitlabStage) -> None:
    gitlab.project.pipelines_must_succeed = True


def fail_the_pipeline(gitlab: GitlabStage) -> None:
    ask_for_pipelines(gitlab)
    gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1", status="failed")


def run_the_pipeline(gitlab: GitlabStage) -> None:
    ask_for_pipelines(gitlab)
    gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1", status="running")


def fall_behind(gitlab: GitlabStage) -> None:
    gitlab.project.merge_method = "ff"
    gitlab.acts.commit(gitlab.project, "main", {"b.txt": "1"})


def make_a_draft(gitlab: GitlabStage) -> None:
    gitlab.request().title = "Draft: not yet"


def lock(gitlab: GitlabStage) -> None:
    gitlab.request().state = "locked"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([], Mergeability.MERGEABLE),
        ([conflict], Mergeability.NOT_MERGEABLE),
        ([disapprove], Mergeability.NOT_MERGEABLE),
        ([doubt], Mergeability.NOT_MERGEABLE),
        ([lock], Mergeability.CHECKING),
        # The queue itself brings up to date, and tests
        ([fall_behind], Mergeability.MERGEABLE),
        ([ask_for_pipelines], Mergeability.MERGEABLE),
        ([run_the_pipeline], Mergeability.MERGEABLE),
        ([fail_the_pipeline], Mergeability.MERGEABLE),
        ([make_a_draft], Mergeability.MERGEABLE),
        # GitLab names only the first obstacle
        ([fail_the_pipeline, disapprove], Mergeability.NOT_MERGEABLE),
        ([run_the_pipeline, conflict], Mergeability.NOT_MERGEABLE),
        ([make_a_draft, conflict], Mergeability.NOT_MERGEABLE),
        ([make_a_draft, doubt], Mergeability.NOT_MERGEABLE),
    ],
)
@asynchronous
async def test_what_stands_in_the_way_counts_unless_the_queue_sees_to_it(
    gitlab: GitlabStage, facts: list[Callable[[GitlabStage], None]], expected: Mergeability
):
    gitlab.open(1)
    for become_true in facts:
        become_true(gitlab)
    async with gitlab.host() as host:
        pull = await host.pull(gitlab.repo, ONE)
        assert pull
        assert (pull.mergeability, pull.is_open) == (expected, True)


@pytest.mark.parametrize("word", ["unchecked", "checking", "preparing", "approvals_syncing"])
@asynchronous
async def test_while_gitlab_is_still_thinking_we_wait(gitlab: GitlabStage, word: str):
    gitlab.open(1)
    gitlab.request().undecided = word
    async with gitlab.host() as host:
        pull = await host.pull(gitlab.repo, ONE)
        assert pull
        assert pull.mergeability is Mergeability.CHECKING
