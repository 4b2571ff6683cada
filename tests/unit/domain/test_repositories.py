"""A repository and a queue are named as people write them."""

import pytest

from mergeyard.domain.repositories import QueueKey, Repo

REPO = Repo("git.local", "acme", "app")


def test_a_repository_is_named_by_host_owner_and_name():
    assert str(REPO) == "git.local/acme/app"


def test_a_queue_is_named_by_its_branch_and_repository():
    assert str(QueueKey(REPO, "main")) == "main of git.local/acme/app"


@pytest.mark.parametrize("owner", ["acme", "acme/tools", "acme/tools/inner"])
def test_its_name_tells_the_repository_also_in_nested_groups(owner: str):
    repo = Repo("gitlab.com", owner, "app")
    assert Repo.parse(str(repo)) == repo


def test_a_host_is_the_same_however_it_is_written():
    assert Repo.parse("Git.Local/acme/app") == REPO


@pytest.mark.parametrize("text", ["", "app", "acme/app", "git.local//app", "git.local/acme/", "/acme/app"])
def test_what_lacks_a_part_names_no_repository(text: str):
    assert Repo.parse(text) is None
