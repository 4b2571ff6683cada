"""Understands what the webhooks of GitLab are about."""

from typing import assert_never

from msgspec import Struct
from msgspec.json import Decoder

from mergeyard.adapters.forges.gitlab.naming import is_name, repo_at
from mergeyard.adapters.forges.heard import Commit, Number, read
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.ports.forge import BranchNews, CommitNews, News, PullNews

BRANCHES = "refs/heads/"


class Where(Struct, frozen=True):
    path_with_namespace: str


class Numbered(Struct, frozen=True):
    iid: Number


class Hashed(Struct, frozen=True):
    sha: Commit


class MergeRequestHook(Struct, frozen=True, tag="merge_request", tag_field="object_kind"):
    project: Where
    object_attributes: Numbered


class NoteHook(Struct, frozen=True, tag="note", tag_field="object_kind"):
    project: Where
    merge_request: Numbered | None = None
    """None: somebody spoke about an issue or a commit."""


class PushHook(Struct, frozen=True, tag="push", tag_field="object_kind"):
    project: Where
    ref: str


class PipelineHook(Struct, frozen=True, tag="pipeline", tag_field="object_kind"):
    project: Where
    object_attributes: Hashed


class JobHook(Struct, frozen=True, tag="build", tag_field="object_kind"):
    project: Where
    sha: Commit


Hook = MergeRequestHook | NoteHook | PushHook | PipelineHook | JobHook
HOOK = Decoder[Hook](Hook)


def news_in(host: str, body: bytes) -> tuple[News, ...]:
    """Of other kinds of messages, and of those that make no sense, there is none."""
    hook = read(body, HOOK)
    news = None if hook is None else _news(host, hook)
    return (news,) if news is not None and is_name(news.repo) else ()


def _news(host: str, hook: Hook) -> News | None:
    repo = repo_at(host, hook.project.path_with_namespace)
    match hook:
        case MergeRequestHook():
            return PullNews(repo, PrNumber(hook.object_attributes.iid))
        case NoteHook():
            return None if hook.merge_request is None else PullNews(repo, PrNumber(hook.merge_request.iid))
        case PushHook():
            is_branch = hook.ref.startswith(BRANCHES)
            return BranchNews(repo, hook.ref.removeprefix(BRANCHES)) if is_branch else None
        case PipelineHook():
            return CommitNews(repo, Sha(hook.object_attributes.sha))
        case JobHook():
            return CommitNews(repo, Sha(hook.sha))
        case _:
            assert_never(hook)
