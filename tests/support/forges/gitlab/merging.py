"""Merges a merge request in its real repository, by the method of its project."""

from mergeyard.domain.ids import Sha
from tests.support.forges.gitlab.nouns import MergeRequest, Project
from tests.support.repositories import Origin

GITLAB = ("-c", "user.name=GitLab", "-c", "user.email=gitlab@example.org")


def merge(project: Project, request: MergeRequest, words: str, squash_words: str | None) -> None:
    """With words for a squash, one commit takes the place of all; then comes a merge commit, or a fast-forward."""
    origin, target = project.origin, project.origin.tip(request.target_branch)
    head = Sha(str(request.head))
    if squash_words is not None:
        head = request.squash_commit = commit(origin, tree_of(origin, target, head), [target], squash_words)
    if project.merge_method == "ff":
        origin.set(request.target_branch, head)
    else:
        request.merge_commit = commit(origin, tree_of(origin, target, head), [target, head], words)
        origin.set(request.target_branch, request.merge_commit)


def tree_of(origin: Origin, onto: str, head: str) -> Sha:
    tree = origin.merged_tree(onto, head)
    assert tree, "it was found to merge a moment ago"
    return tree


def commit(origin: Origin, tree: Sha, parents: list[Sha], words: str) -> Sha:
    lines = [argument for parent in parents for argument in ("-p", parent)]
    return Sha(origin.run(*GITLAB, "commit-tree", tree, *lines, stdin=words.encode()).decode().strip())
