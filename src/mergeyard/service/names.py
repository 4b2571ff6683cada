"""Which names a repository and a branch may have."""

import re
from functools import lru_cache

from mergeyard.domain import ours

BRANCH_BYTES = 255
MOST_GROUPS = 21
"""A group, and the twenty levels below it that GitLab allows."""
A_PART_OF_A_REPOSITORY = re.compile(r"(?!-)[A-Za-z0-9._-]{1,100}")
NEVER_IN_A_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")


def is_part_of_a_repository(name: str) -> bool:
    return A_PART_OF_A_REPOSITORY.fullmatch(name) is not None and name not in (".", "..")


def is_owner(name: str) -> bool:
    """A person, an organization, or groups within groups; none of those hidden, and none a repository."""
    groups = name.split("/")
    if len(groups) == 1:
        return is_part_of_a_repository(name)
    return len(groups) <= MOST_GROUPS and all(_is_group(group) for group in groups)


def is_branch(name: str) -> bool:
    """What `git check-ref-format --branch` accepts."""
    if not name or name == "HEAD" or name.startswith("-") or name.endswith(("/", ".")):
        return False
    if NEVER_IN_A_BRANCH.search(name):
        return False
    return all(part and not part.startswith(".") and not part.endswith(".lock") for part in name.split("/"))


@lru_cache(maxsize=1024)
def is_target_branch(name: str) -> bool:
    """No queue may stand where the service makes its test branches, nor on a branch of that very name."""
    return is_branch(name) and len(name.encode()) <= BRANCH_BYTES and not f"{name}/".startswith(ours.BRANCHES)


def _is_group(name: str) -> bool:
    return is_part_of_a_repository(name) and not name.startswith(".") and not name.endswith(".git")
