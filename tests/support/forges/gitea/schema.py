"""The part of Gitea's API description (`/swagger.v1.json`) that the fake implements.

`tests/forge/test_fake_gitea.py` compares it with a real server.
"""

from msgspec import Struct


class Operation(Struct, frozen=True):
    responses: dict[int, str]
    """By status: the shape of the body, or empty."""
    error_statuses: tuple[int, ...] = ()
    request_shape: str = ""


def _shape(fields: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in fields.split())


SETTINGS = (
    "default_branch:string archived:boolean has_pull_requests:boolean allow_merge_commits:boolean "
    "allow_squash_merge:boolean allow_rebase:boolean allow_manual_merge:boolean autodetect_manual_merge:boolean "
    "internal_tracker:InternalTracker"
)
RULE = (
    "rule_name:string enable_push:boolean enable_push_whitelist:boolean push_whitelist_usernames:[string] "
    "enable_merge_whitelist:boolean merge_whitelist_usernames:[string] enable_status_check:boolean "
    "status_check_contexts:[string] required_approvals:integer block_on_rejected_reviews:boolean "
    "block_on_official_review_requests:boolean ignore_stale_approvals:boolean push_whitelist_teams:[string] "
    "push_whitelist_deploy_keys:boolean merge_whitelist_teams:[string] enable_approvals_whitelist:boolean "
    "approvals_whitelist_username:[string] block_on_outdated_branch:boolean require_signed_commits:boolean "
    "protected_file_patterns:string unprotected_file_patterns:string block_admin_merge_override:boolean"
)
SHAPES = {
    "User": _shape("id:integer login:string full_name:string email:string is_admin:boolean"),
    "PublicKey": _shape("id:integer key:string fingerprint:string"),
    "GPGKey": _shape("id:integer key_id:string verified:boolean emails:[GPGKeyEmail] subkeys:[GPGKey]"),
    "GPGKeyEmail": _shape("email:string verified:boolean"),
    "CreateKeyOption": _shape("title:string key:string"),
    "PayloadCommitVerification": _shape("verified:boolean signature:string"),
    "CommitUser": _shape("email:string"),
    "RepoCommit": _shape("committer:CommitUser verification:PayloadCommitVerification"),
    "Commit": _shape("sha:string commit:RepoCommit"),
    "Label": _shape("id:integer name:string color:string description:string"),
    "Permission": _shape("admin:boolean push:boolean pull:boolean"),
    "Repository": _shape(
        "id:integer owner:User name:string full_name:string html_url:string clone_url:string permissions:Permission "
        + SETTINGS
    ),
    "PRBranchInfo": _shape("label:string ref:string sha:string repo_id:integer repo:Repository"),
    "PullRequest": _shape(
        "id:integer number:integer user:User title:string body:string labels:[Label] state:string "
        "draft:boolean comments:integer changed_files:integer html_url:string mergeable:boolean merged:boolean "
        "merge_commit_sha:string merge_base:string base:PRBranchInfo head:PRBranchInfo created_at:string "
        "updated_at:string"
    ),
    "InternalTracker": _shape("enable_issue_dependencies:boolean"),
    "GitObject": _shape("type:string sha:string"),
    "Reference": _shape("ref:string object:GitObject"),
    "PayloadCommit": _shape("id:string"),
    "Branch": _shape(
        "name:string commit:PayloadCommit protected:boolean required_approvals:integer "
        "enable_status_check:boolean status_check_contexts:[string] user_can_push:boolean "
        "user_can_merge:boolean effective_branch_protection_name:string"
    ),
    "BranchProtection": _shape(RULE),
    "CommitStatus": _shape(
        "id:integer status:string target_url:string description:string context:string "
        "creator:User created_at:string updated_at:string"
    ),
    "CombinedStatus": _shape("sha:string total_count:integer statuses:[CommitStatus]"),
    "RepositoryMeta": _shape("id:integer name:string owner:string full_name:string"),
    "Issue": _shape("id:integer number:integer user:User title:string state:string repository:RepositoryMeta"),
    "IssueMeta": _shape("index:integer owner:string repo:string"),
    "Comment": _shape("id:integer user:User body:string created_at:string updated_at:string"),
    "Reaction": _shape("user:User content:string"),
    "Team": _shape("name:string"),
    "PullReview": _shape(
        "id:integer user:User team:Team state:string body:string commit_id:string stale:boolean "
        "official:boolean dismissed:boolean"
    ),
    "ChangedFile": _shape("filename:string"),
    "DismissPullReviewOptions": _shape("message:string priors:boolean"),
    "PullReviewRequestOptions": _shape("reviewers:[string] team_reviewers:[string]"),
    "Hook": _shape("id:integer type:string config:object events:[string] active:boolean"),
    "TimelineComment": _shape("id:integer type:string"),
    "RepoCollaboratorPermission": _shape("permission:string role_name:string user:User"),
    "AccessToken": _shape("id:integer name:string sha1:string scopes:[string]"),
    "ServerVersion": _shape("version:string"),
    "CreateAccessTokenOption": _shape("name:string scopes:[string]"),
    "CreateUserOption": _shape("username:string email:string password:string must_change_password:boolean"),
    "CreateRepoOption": _shape("name:string default_branch:string auto_init:boolean"),
    "EditRepoOption": _shape(SETTINGS),
    "CreateForkOption": _shape("name:string"),
    "CreateBranchProtectionOption": _shape(RULE),
    "CreatePullRequestOption": _shape("head:string base:string title:string body:string"),
    "EditPullRequestOption": _shape("title:string body:string state:string base:string"),
    "MergePullRequestOption": _shape(
        "do:string merge_title_field:string merge_message_field:string merge_commit_id:string head_commit_id:string "
        "force_merge:boolean"
    ),
    "CreatePullReviewOptions": _shape("event:string body:string"),
    "CreateIssueCommentOption": _shape("body:string"),
    "EditIssueCommentOption": _shape("body:string"),
    "EditReactionOption": _shape("content:string"),
    "IssueLabelsOption": _shape("labels:array"),
    "CreateLabelOption": _shape("name:string color:string"),
    "CreateStatusOption": _shape("context:string state:string target_url:string description:string"),
    "AddCollaboratorOption": _shape("permission:string"),
    "CreateHookOption": _shape("type:string config:object events:[string] active:boolean"),
}
OPERATIONS = {
    "GET /version": Operation({200: "ServerVersion"}),
    "GET /user": Operation({200: "User"}),
    "GET /user/keys": Operation({200: "[PublicKey]"}),
    "POST /user/keys": Operation({201: "PublicKey"}, (422,), request_shape="CreateKeyOption"),
    "GET /user/gpg_keys": Operation({200: "[GPGKey]"}),
    "GET /users/{username}": Operation({200: "User"}, (404,)),
    "POST /users/{username}/tokens": Operation(
        {201: "AccessToken"}, (400, 403), request_shape="CreateAccessTokenOption"
    ),
    "POST /admin/users": Operation({201: "User"}, (400, 403, 422), request_shape="CreateUserOption"),
    "POST /user/repos": Operation({201: "Repository"}, (400, 409, 422), request_shape="CreateRepoOption"),
    "POST /repos/{owner}/{repo}/forks": Operation(
        {202: "Repository"}, (403, 404, 409, 422), request_shape="CreateForkOption"
    ),
    "GET /repos/{owner}/{repo}": Operation({200: "Repository"}, (404,)),
    "PATCH /repos/{owner}/{repo}": Operation({200: "Repository"}, (403, 404, 422), request_shape="EditRepoOption"),
    "GET /repos/{owner}/{repo}/branches/{branch}": Operation({200: "Branch"}, (404,)),
    "GET /repos/{owner}/{repo}/git/refs/{ref}": Operation({200: "[Reference]"}, (404,)),
    "GET /repos/{owner}/{repo}/git/commits/{sha}": Operation({200: "Commit"}, (404, 422)),
    "POST /repos/{owner}/{repo}/branch_protections": Operation(
        {201: "BranchProtection"}, (403, 404, 422, 423), request_shape="CreateBranchProtectionOption"
    ),
    "GET /repos/{owner}/{repo}/branch_protections": Operation({200: "[BranchProtection]"}),
    "GET /repos/{owner}/{repo}/branch_protections/{name}": Operation({200: "BranchProtection"}, (404,)),
    "PUT /repos/{owner}/{repo}/collaborators/{collaborator}": Operation(
        {204: ""}, (403, 404, 422), request_shape="AddCollaboratorOption"
    ),
    "GET /repos/{owner}/{repo}/collaborators/{collaborator}/permission": Operation(
        {200: "RepoCollaboratorPermission"}, (403, 404)
    ),
    "GET /repos/{owner}/{repo}/hooks": Operation({200: "[Hook]"}, (404,)),
    "POST /repos/{owner}/{repo}/hooks": Operation({201: "Hook"}, (404,), request_shape="CreateHookOption"),
    "GET /repos/{owner}/{repo}/pulls": Operation({200: "[PullRequest]"}, (404, 500)),
    "POST /repos/{owner}/{repo}/pulls": Operation(
        {201: "PullRequest"}, (403, 404, 409, 422, 423), request_shape="CreatePullRequestOption"
    ),
    "GET /repos/{owner}/{repo}/pulls/{index}": Operation({200: "PullRequest"}, (404,)),
    "PATCH /repos/{owner}/{repo}/pulls/{index}": Operation(
        {201: "PullRequest"}, (403, 404, 409, 412, 422), request_shape="EditPullRequestOption"
    ),
    "POST /repos/{owner}/{repo}/pulls/{index}/merge": Operation(
        {200: ""}, (403, 404, 405, 409, 423), request_shape="MergePullRequestOption"
    ),
    "GET /repos/{owner}/{repo}/pulls/{index}/reviews": Operation({200: "[PullReview]"}, (404,)),
    "POST /repos/{owner}/{repo}/pulls/{index}/reviews": Operation(
        {200: "PullReview"}, (404, 422), request_shape="CreatePullReviewOptions"
    ),
    "POST /repos/{owner}/{repo}/pulls/{index}/reviews/{id}/dismissals": Operation(
        {200: "PullReview"}, (403, 404, 422), request_shape="DismissPullReviewOptions"
    ),
    "POST /repos/{owner}/{repo}/pulls/{index}/reviews/{id}/undismissals": Operation(
        {200: "PullReview"}, (403, 404, 422)
    ),
    "POST /repos/{owner}/{repo}/pulls/{index}/requested_reviewers": Operation(
        {201: "[PullReview]"}, (404, 422), request_shape="PullReviewRequestOptions"
    ),
    "GET /repos/{owner}/{repo}/pulls/{index}/files": Operation({200: "[ChangedFile]"}, (404,)),
    "GET /repos/{owner}/{repo}/pulls/{index}/commits": Operation({200: "[Commit]"}, (404,)),
    "GET /repos/{owner}/{repo}/issues/{index}/timeline": Operation({200: "[TimelineComment]"}, (404,)),
    "POST /repos/{owner}/{repo}/statuses/{sha}": Operation(
        {201: "CommitStatus"}, (400, 404), request_shape="CreateStatusOption"
    ),
    "GET /repos/{owner}/{repo}/commits/{ref}/statuses": Operation({200: "[CommitStatus]"}, (400, 404)),
    "GET /repos/{owner}/{repo}/commits/{ref}/status": Operation({200: "CombinedStatus"}, (400, 404)),
    "GET /repos/{owner}/{repo}/issues/{index}/comments": Operation({200: "[Comment]"}, (404,)),
    "POST /repos/{owner}/{repo}/issues/{index}/comments": Operation(
        {201: "Comment"}, (403, 404, 423), request_shape="CreateIssueCommentOption"
    ),
    "PATCH /repos/{owner}/{repo}/issues/comments/{id}": Operation(
        {200: "Comment", 204: ""}, (403, 404, 423), request_shape="EditIssueCommentOption"
    ),
    "GET /repos/{owner}/{repo}/issues/comments/{id}/reactions": Operation({200: "[Reaction]"}, (403, 404)),
    "POST /repos/{owner}/{repo}/issues/comments/{id}/reactions": Operation(
        {200: "Reaction", 201: "Reaction"}, (403, 404), request_shape="EditReactionOption"
    ),
    "GET /repos/{owner}/{repo}/issues/{index}/dependencies": Operation({200: "[Issue]"}, (404,)),
    "POST /repos/{owner}/{repo}/issues/{index}/dependencies": Operation(
        {201: "Issue"}, (404, 423), request_shape="IssueMeta"
    ),
    "GET /repos/{owner}/{repo}/labels": Operation({200: "[Label]"}, (404,)),
    "POST /repos/{owner}/{repo}/labels": Operation({201: "Label"}, (404, 422), request_shape="CreateLabelOption"),
    "GET /repos/{owner}/{repo}/issues/{index}/labels": Operation({200: "[Label]"}, (404,)),
    "POST /repos/{owner}/{repo}/issues/{index}/labels": Operation(
        {200: "[Label]"}, (403, 404), request_shape="IssueLabelsOption"
    ),
    "DELETE /repos/{owner}/{repo}/issues/{index}/labels/{id}": Operation({204: ""}, (403, 404, 422)),
}
FORMER_NAMES = _shape("Do:string MergeTitleField:string MergeMessageField:string MergeCommitID:string")
"""The names in versions before 1.26 and in Forgejo; newer versions accept them but no longer describe them."""
SHAPES["MergePullRequestOption"] |= FORMER_NAMES
