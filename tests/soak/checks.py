"""Finds pull requests whose outcome does not match their contents."""

from collections.abc import Iterator
from pathlib import Path

from tests.soak.pull_requests import PullRequestKind
from tests.soak.traffic import QueueTraffic
from tests.support.evidence import SubmissionJson
from tests.support.host_log import TEST_BRANCH_PREFIX
from tests.support.repositories import Origin


def wrong_outcomes(track: QueueTraffic) -> Iterator[str]:
    submissions = {submission["prNumber"]: submission for submission in track.evidence.submissions.values()}
    for number, pull in track.pull_requests.items():
        submission, next_pull = submissions[number], track.pull_requests.get(number + 1)
        match pull.kind:
            case PullRequestKind.BAD if submission["state"] == "merged":
                yield f"{_shown(submission)} is a failing one"
            case PullRequestKind.GOOD | PullRequestKind.LEFT if next_pull and next_pull.kind in {
                PullRequestKind.TWIN,
                PullRequestKind.RIGHT,
            }:
                yield from _check_pair(pull.kind, submission, submissions[number + 1])
            case PullRequestKind.GOOD if submission["state"] != "merged" and number not in track.cancelled:
                yield f"{_shown(submission)} should have merged"
            case _:
                continue


def _check_pair(kind: PullRequestKind, one: SubmissionJson, other: SubmissionJson) -> Iterator[str]:
    """One of a pair can be removed for a conflict with an earlier pull request; then the other one is alone."""
    states = [one["state"], other["state"]]
    if states == ["merged", "merged"]:
        yield f"{_shown(one)} and {_shown(other)} both merged, but fail together"
    if states == ["failed", "failed"]:
        yield f"neither {_shown(one)} nor {_shown(other)} merged, but one of them could ({kind})"


def _shown(submission: SubmissionJson) -> str:
    return f"#{submission['prNumber']} ({submission['state']}, {submission['reason']['code']})"


TEMPORARY_PATTERNS = ("index-*", "tmp_*", "*.lock", ".new-*", "incoming-*", "*.tmp")


def find_leftovers(folder: Path, origins: list[Origin], temporary: Path) -> Iterator[str]:
    for origin in origins:
        yield from (f"the branch {ref} is left" for ref in origin.refs() if ref.startswith(TEST_BRANCH_PREFIX))
    mirrors = (folder / "data").rglob("*.git")
    for repository in (*mirrors, *(origin.path for origin in origins)):
        found = (path for pattern in TEMPORARY_PATTERNS for path in repository.rglob(pattern))
        yield from (f"{path.relative_to(folder)} is left" for path in found)
    yield from (f"{path.name} is left in the folder for temporary files" for path in temporary.iterdir())
