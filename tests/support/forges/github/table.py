"""Every request that the fake understands: what it needs, who answers it, and how GitHub describes both."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from tests.support.forges.github import changing, reading
from tests.support.forges.github.calls import Handler
from tests.support.forges.github.description import models as m

REPO = "/repos/{owner}/{repo}"
RULES = (
    m.RepositoryRuleDetailedOneof1
    | m.RepositoryRuleDetailedOneof6
    | m.RepositoryRuleDetailedOneof7
    | m.RepositoryRuleDetailedOneof8
)


class Row(Struct, frozen=True):
    method: str
    path: str
    permission: str
    """`contents:read`; empty where none is needed."""
    handler: Handler
    says: Any
    takes: Any = None

    def words(self, method: str, raw_path: str) -> Mapping[str, str] | None:
        found = re.fullmatch(pattern_of(self.path), raw_path) if method == self.method else None
        return found and {name: unquote(word) for name, word in found.groupdict().items()}


def pattern_of(path: str) -> str:
    """A word in braces is one part of the path; with dots behind it, all the rest."""
    return re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", re.sub(r"\{(\w+)\.\.\.\}", r"(?P<\1>.+)", path))


TABLE = (
    Row("GET", "/app", "", reading.app, m.Integration),
    Row("GET", "/app/hook/config", "", reading.app_hook, m.WebhookConfig),
    Row(
        "POST", "/app/installations/{installation}/access_tokens", "",
        changing.give_token, m.InstallationToken, m.AppInstallationsInstallationIdAccessTokensPostBody,
    ),
    Row("GET", "/user", "", reading.user, m.PublicUser),
    Row("GET", f"{REPO}/installation", "", reading.installation, m.Installation),
    Row("GET", REPO, "metadata:read", reading.repository, m.FullRepository),
    Row("GET", f"{REPO}/hooks", "repository_hooks:read", reading.hooks, list[m.Hook]),
    Row("GET", f"{REPO}/issues", "issues:read", reading.issues, list[m.Issue]),
    Row(
        "GET", f"{REPO}/collaborators/{{person}}/permission", "metadata:read",
        reading.permission, m.RepositoryCollaboratorPermission,
    ),
    # Branches.
    Row("GET", f"{REPO}/git/ref/heads/{{branch...}}", "contents:read", reading.ref, m.GitRef),
    Row("GET", f"{REPO}/branches/{{branch}}", "contents:read", reading.branch, m.BranchWithProtection),
    Row("GET", f"{REPO}/rules/branches/{{branch}}", "metadata:read", reading.rules, list[RULES]),
    Row("GET", f"{REPO}/rulesets/{{ruleset}}", "metadata:read", reading.ruleset, m.RepositoryRuleset),
    Row(
        "GET", f"{REPO}/branches/{{branch}}/protection", "administration:read",
        reading.protection, m.BranchProtection,
    ),
    # Commits.
    Row("GET", f"{REPO}/commits/{{sha}}/status", "statuses:read", reading.combined_status, m.CombinedCommitStatus),
    Row(
        "GET", f"{REPO}/commits/{{sha}}/check-runs", "checks:read",
        reading.check_runs, m.ReposOwnerRepoCommitsRefCheckRunsGetResponse200,
    ),
    Row(
        "POST", f"{REPO}/statuses/{{sha}}", "statuses:write",
        changing.report, m.Status, m.ReposOwnerRepoStatusesShaPostBody,
    ),
    # Pull requests.
    Row("GET", f"{REPO}/pulls", "pull_requests:read", reading.pulls, list[m.PullRequestSimple]),
    Row(
        "POST", f"{REPO}/pulls", "pull_requests:write",
        changing.open_pull, m.PullRequest, m.ReposOwnerRepoPullsPostBody,
    ),
    Row("GET", f"{REPO}/pulls/{{number}}", "pull_requests:read", reading.pull, m.PullRequest),
    Row(
        "PATCH", f"{REPO}/pulls/{{number}}", "pull_requests:write",
        changing.change_pull, m.PullRequest, m.ReposOwnerRepoPullsPullNumberPatchBody,
    ),
    Row("GET", f"{REPO}/pulls/{{number}}/reviews", "pull_requests:read", reading.reviews, list[m.PullRequestReview]),
    Row(
        "PUT", f"{REPO}/pulls/{{number}}/merge", "contents:write",
        changing.merge, m.PullRequestMergeResult, m.ReposOwnerRepoPullsPullNumberMergePutBody,
    ),
    # What is said on them.
    Row("DELETE", f"{REPO}/issues/{{number}}/labels/{{label}}", "issues:write", changing.unlabel, list[m.Label]),
    Row("GET", f"{REPO}/issues/{{number}}/comments", "issues:read", reading.comments, list[m.IssueComment]),
    Row(
        "POST", f"{REPO}/issues/{{number}}/comments", "issues:write",
        changing.comment, m.IssueComment, m.ReposOwnerRepoIssuesIssueNumberCommentsPostBody,
    ),
    Row(
        "PATCH", f"{REPO}/issues/comments/{{comment}}", "issues:write",
        changing.change_comment, m.IssueComment, m.ReposOwnerRepoIssuesCommentsCommentIdPatchBody,
    ),
    Row(
        "POST", f"{REPO}/issues/comments/{{comment}}/reactions", "issues:write",
        changing.react, m.Reaction, m.ReposOwnerRepoIssuesCommentsCommentIdReactionsPostBody,
    ),
)  # fmt: skip
