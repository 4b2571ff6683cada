"""Shows a pull request as the queue knows it."""

from mergeyard.adapters.forges.gitea.wire import Pull
from mergeyard.domain.ids import Sha
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.states import Mergeability


def as_shown(pull: Pull, mergeability: Mergeability) -> PullRequest:
    return PullRequest(
        number=pull.number,
        head=Sha(pull.head.sha),
        base=pull.base.label,
        branch=pull.head.label,
        title=pull.title,
        author=pull.user.login if pull.user else "",
        is_open=is_open(pull),
        draft=pull.draft,
        fork=is_strange(pull),
        mergeability=mergeability,
        merged_into=pull.base.label if pull.merged else None,
    )


def is_open(pull: Pull) -> bool:
    return pull.state == "open" and not pull.merged


def is_strange(pull: Pull) -> bool:
    """From another repository, or pushed to no branch at all, which everybody may do who can read."""
    return pull.head.repo_id != pull.base.repo_id or not pull.head.label
