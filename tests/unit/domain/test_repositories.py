"""A repository and a queue are named as people write them."""

from mergeyard.domain.repositories import QueueKey, Repo

REPO = Repo("git.local", "acme", "app")


def test_a_repository_is_named_by_host_owner_and_name():
    assert str(REPO) == "git.local/acme/app"


def test_a_queue_is_named_by_its_branch_and_repository():
    assert str(QueueKey(REPO, "main")) == "main of git.local/acme/app"
