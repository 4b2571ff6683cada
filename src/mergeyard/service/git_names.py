"""Names on the Git host: valid names, test branches, and the trailers of our commits."""

import re
from functools import lru_cache

from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha
from mergeyard.domain.runs import Run, RunKind

MAX_BRANCH_BYTES = 255
MAX_OWNER_GROUPS = 21
"""A top-level group, and the 20 levels of subgroups that GitLab allows."""
REPOSITORY_NAME = re.compile(r"(?!-)[A-Za-z0-9._-]{1,100}")
FORBIDDEN_IN_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")


def is_repository_name(name: str) -> bool:
    """Whether it can be a repository's name, or an owner without groups."""
    return REPOSITORY_NAME.fullmatch(name) is not None and name not in (".", "..")


def is_owner(name: str) -> bool:
    """A user, an organization, or nested groups (`group/subgroup`)."""
    groups = name.split("/")
    if len(groups) == 1:
        return is_repository_name(name)
    return len(groups) <= MAX_OWNER_GROUPS and all(map(_is_group, groups))


def is_branch(name: str) -> bool:
    """Whether `git check-ref-format --branch` accepts the name."""
    if not name or name == "HEAD" or name.startswith("-") or name.endswith(("/", ".")):
        return False
    if FORBIDDEN_IN_BRANCH.search(name):
        return False
    return all(part and not part.startswith(".") and not part.endswith(".lock") for part in name.split("/"))


@lru_cache(maxsize=1024)
def is_target_branch(name: str) -> bool:
    """Excludes the prefix of the test branches, and the branch with exactly that name: Git cannot have `mergeyard` and
    `mergeyard/…` at the same time."""
    return (
        is_branch(name) and len(name.encode()) <= MAX_BRANCH_BYTES and not f"{name}/".startswith(ids.TEST_BRANCH_PREFIX)
    )


def _is_group(name: str) -> bool:
    """One of several nested groups: not a hidden folder, and not the folder of a bare repository."""
    return is_repository_name(name) and not name.startswith(".") and not name.endswith(".git")


BISECTION_SUFFIX = "-bisection"
_TEST_BRANCH_REF = re.compile(rf"refs/heads/{ids.TEST_BRANCH_PREFIX}.+/([0-9a-f-]{{36}})(?:{BISECTION_SUFFIX})?")


def branch_ref(branch: str) -> str:
    return f"refs/heads/{branch}"


TEST_BRANCH_REF_PATTERN = branch_ref(f"{ids.TEST_BRANCH_PREFIX}*")


def name_test_branch(run: Run) -> str:
    """`mergeyard/pr-<first tested pull request>/<run id>`. A base run tests no pull request and names none."""
    if run.kind is RunKind.BASE:
        return f"{ids.TEST_BRANCH_PREFIX}base/{run.id}"
    suffix = BISECTION_SUFFIX if run.kind is RunKind.BISECTION else ""
    return f"{ids.TEST_BRANCH_PREFIX}pr-{run.tested_members[0].number}/{run.id}{suffix}"


def run_id_from_ref(ref: str) -> RunId | None:
    """None if the ref is not a test branch."""
    found = _TEST_BRANCH_REF.fullmatch(ref)
    return None if found is None else RunId(found[1])


RUN_TRAILER = "Mergeyard-Run"
PULL_REQUEST_TRAILER = "Mergeyard-Pull-Request"
HEAD_TRAILER = "Mergeyard-Head"
OWN_TRAILER_LINE = re.compile(rf"\s*(?:{RUN_TRAILER}|{PULL_REQUEST_TRAILER}|{HEAD_TRAILER})\s*:", re.IGNORECASE)
"""The start of a line that only the queue writes."""
SYNTHETIC_PARENT_MESSAGE = "Synthetic parent for a merge; never pushed"

_PULL_REQUEST_LINE = re.compile(rf"^{PULL_REQUEST_TRAILER}: ([1-9][0-9]{{0,9}})$", re.MULTILINE)
_HEAD_LINE = re.compile(rf"^{HEAD_TRAILER}: ({ids.SHA_PATTERN})$", re.MULTILINE)
_RUN_LINE = re.compile(rf"^{RUN_TRAILER}: ([0-9a-f-]{{36}})$", re.MULTILINE)


def format_trailers(number: PullRequestNumber, run: str, head: Sha | None = None) -> str:
    """`head` is that of a squashed or rebased pull request."""
    head_trailer = "" if head is None else f"{HEAD_TRAILER}: {head}\n"
    return f"{PULL_REQUEST_TRAILER}: {number}\n{RUN_TRAILER}: {run}\n{head_trailer}"


def parse_pull_request_trailer(message: str) -> PullRequestNumber | None:
    """The last trailer counts: Mergeyard appends its trailers after the text of the pull request."""
    found = _PULL_REQUEST_LINE.findall(message)
    return PullRequestNumber(int(found[-1])) if found else None


def parse_head_trailer(message: str) -> Sha | None:
    """The head that was squashed or rebased into this commit, which does not contain it."""
    found = _HEAD_LINE.findall(message)
    return Sha(found[-1]) if found else None


def parse_run_trailer(message: str) -> RunId | None:
    """The run that built this commit. The last trailer counts."""
    found = _RUN_LINE.findall(message)
    return RunId(found[-1]) if found else None


def has_trailers_of(message: str, number: PullRequestNumber, run: RunId | None) -> bool:
    """Whether the message has the trailers of this pull request in this run."""
    return run is not None and format_trailers(number, run).strip() in message
