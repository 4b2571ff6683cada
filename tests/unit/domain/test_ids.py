"""Ids of runs are derived from the queue's own counter; repositories and queues are named in one form."""

from uuid import RFC_4122, UUID

import pytest

from mergeyard.domain import ids
from mergeyard.domain.ids import (
    QueueId,
    QueueKey,
    Repo,
    SubmissionId,
    derive_run_id,
    derive_submission_uuid,
    object_format_of,
)


def test_the_same_run_of_the_same_queue_always_has_the_same_id():
    assert derive_run_id(QueueId("one"), 3) == derive_run_id(QueueId("one"), 3)


def test_another_run_of_the_same_queue_has_another_id():
    assert derive_run_id(QueueId("one"), 3) != derive_run_id(QueueId("one"), 4)


def test_the_same_run_of_another_queue_has_another_id():
    assert derive_run_id(QueueId("one"), 3) != derive_run_id(QueueId("two"), 3)


def test_a_run_id_is_a_uuid_of_version_8():
    name = UUID(derive_run_id(QueueId("one"), 3))
    assert (name.version, name.variant) == (8, RFC_4122)


def test_every_submission_has_its_own_uuid():
    names = {
        derive_submission_uuid(QueueId(queue), SubmissionId(submission_id))
        for queue in ("one", "two")
        for submission_id in (1, 2)
    }
    assert len(names | {derive_run_id(QueueId("one"), 1)}) == 5


REPO = Repo("git.local", "acme", "app")


def test_a_repository_is_named_by_host_owner_and_name():
    assert str(REPO) == "git.local/acme/app"


def test_a_queue_is_named_by_its_branch_and_repository():
    assert str(QueueKey(REPO, "main")) == "main of git.local/acme/app"


@pytest.mark.parametrize("owner", ["acme", "acme/tools", "acme/tools/inner"])
def test_the_name_of_a_repository_can_be_parsed_also_in_nested_groups(owner: str):
    repo = Repo("gitlab.com", owner, "app")
    assert Repo.parse(str(repo)) == repo


def test_a_host_is_the_same_however_it_is_written():
    assert Repo.parse("Git.Local/acme/app") == REPO


@pytest.mark.parametrize("text", ["", "app", "acme/app", "git.local//app", "git.local/acme/", "/acme/app"])
def test_what_lacks_a_part_names_no_repository(text: str):
    assert Repo.parse(text) is None


def test_the_prefix_of_test_branches_is_the_status_context():
    assert f"{ids.STATUS_CONTEXT}/" == ids.TEST_BRANCH_PREFIX


def test_the_length_of_a_name_shows_the_object_format():
    assert [object_format_of("a" * digits).name for digits in (40, 64)] == ["sha1", "sha256"]
