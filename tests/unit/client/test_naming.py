"""Names of repositories and queues, as people write them."""

import pytest

from mergeyard.client import QueueName, RepoName


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("GitHub.com/acme/app", ("github.com", "acme", "app")),
        ("gitlab.com/acme/tools/app", ("gitlab.com", "acme/tools", "app")),
        ("git.local:8080/a/b", ("git.local:8080", "a", "b")),
    ],
)
def test_a_repository_is_a_host_an_owner_and_a_name(text: str, parts: tuple[str, str, str]):
    assert RepoName.parse(text) == RepoName(*parts)


@pytest.mark.parametrize("text", ["", "app", "acme/app", "/acme/app", "git.local/acme/", "git.local//app"])
def test_whatever_lacks_one_of_them_is_none(text: str):
    with pytest.raises(ValueError, match="write host/owner/name"):
        RepoName.parse(text)


def test_a_queue_is_said_as_a_branch_of_a_repository():
    assert str(QueueName.of("git.local/acme/app", "main")) == "main of git.local/acme/app"
