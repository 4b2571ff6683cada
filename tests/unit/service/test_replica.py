"""Which repositories a replica has at hand is read off the names of its mirrors."""

import pytest

from mergeyard.domain.repositories import Repo
from mergeyard.service.replica import repo_named


@pytest.mark.parametrize("owner", ["acme", "acme/tools", "acme/tools/inner"])
def test_the_name_of_a_mirror_tells_the_repository_also_in_nested_groups(owner: str):
    repo = Repo("gitlab.com", owner, "app")
    assert repo_named(str(repo)) == repo
