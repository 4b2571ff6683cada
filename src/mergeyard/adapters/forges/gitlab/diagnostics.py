"""Checks whether the token, the project and its webhook are configured as the queue needs them."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase

from mergeyard.adapters.forges.gitlab import wire
from mergeyard.adapters.forges.gitlab.comments import DEVELOPER_LEVEL
from mergeyard.adapters.forges.http import ForgeClient, ForgeConfig
from mergeyard.domain import ids
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import SECOND
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import Finding, HostUnavailable

SCOPE = "api"
MIN_TOKEN_DAYS_LEFT = 14
EXAMPLE_TEST_BRANCH = f"{ids.TEST_BRANCH_PREFIX}pr-1/0"
EVENTS = {
    "push_events": "Push events",
    "note_events": "Comments",
    "merge_requests_events": "Merge request events",
    "job_events": "Job events",
    "pipeline_events": "Pipeline events",
}

Check = Callable[[], Awaitable[list[Finding]]]


class Diagnostics:
    def __init__(self, access: ForgeConfig, client: ForgeClient, clock: Clock) -> None:
        self._access = access
        self._client = client
        self._clock = clock

    async def diagnose(self, repo: Repo | None) -> Sequence[Finding]:
        found = await _run_check("The token", self._check_token)
        found.append(self._check_webhook_secret())
        if repo is None:
            return found
        return found + await _run_check(str(repo), lambda: self._check_project(repo))

    async def _check_token(self) -> list[Finding]:
        token = await self._client.get("/personal_access_tokens/self", wire.Token)
        if token is None:
            message = f"GitLab does not know the token: make a new one with the scope {SCOPE}."
            return [Finding(ok=False, message=message)]
        if SCOPE not in token.scopes:
            message = f"The token {token.name} lacks the scope {SCOPE}: make a new one that has it."
            return [Finding(ok=False, message=message)]
        found = Finding(ok=True, message=f"The token {token.name} has the scope {SCOPE}.")
        return [found, *self._check_expiry(token)]

    def _check_expiry(self, token: wire.Token) -> list[Finding]:
        if token.expires_at is None:
            return []
        today = datetime.fromtimestamp(self._clock.now() / SECOND, UTC).date()
        is_far = (date.fromisoformat(token.expires_at) - today).days > MIN_TOKEN_DAYS_LEFT
        message = f"The token {token.name} expires on {token.expires_at}"
        return [Finding(ok=is_far, message=f"{message}." if is_far else f"{message}: rotate it before that day.")]

    def _check_webhook_secret(self) -> Finding:
        if self._access.webhook_secret:
            return Finding(ok=True, message="The webhook secret is set.")
        message = (
            "No webhook secret is configured, so all webhooks are rejected: set `webhook_secret_file`, and the same "
            "secret in the webhook on GitLab."
        )
        return Finding(ok=False, message=message)

    async def _check_project(self, repo: Repo) -> list[Finding]:
        project = await self._client.get(wire.repo_api_path(repo), wire.Project)
        if project is None:
            message = f"{repo} is not visible to us: check its name, or add our account to its members."
            return [Finding(ok=False, message=message)]
        return [
            _check_role(project),
            *await _run_check("The target branch", lambda: self._check_target_branch(repo, project)),
            *await _run_check("The protected branches", lambda: self._check_test_branches(repo)),
            _check_required_pipeline(project),
            *await _run_check("The webhooks", lambda: self._check_webhook(repo)),
        ]

    async def _check_target_branch(self, repo: Repo, project: wire.Project) -> list[Finding]:
        name = project.default_branch
        if not name:
            return [Finding(ok=False, message="The project has no branch yet: push one.")]
        branch = await self._client.get(
            f"{wire.repo_api_path(repo)}/repository/branches/{wire.quote_segment(name)}", wire.Branch
        )
        if branch is not None and branch.can_push:
            return [Finding(ok=True, message=f"Our account can push to {name}.")]
        message = (
            f"Our account is not allowed to push to {name}: add our role to those allowed to push and merge "
            "(Settings > Repository > Protected branches)."
        )
        return [Finding(ok=False, message=message)]

    async def _check_test_branches(self, repo: Repo) -> list[Finding]:
        query = {"per_page": 100}
        protected = await self._client.get_all(
            f"{wire.repo_api_path(repo)}/protected_branches", list[wire.ProtectedBranch], query
        )
        matching = [rule.name for rule in protected if fnmatchcase(EXAMPLE_TEST_BRANCH, rule.name)]
        if not matching:
            return [Finding(ok=True, message="Our test branches are not protected.")]
        message = (
            f"The rule {matching[0]} protects our test branches, so we cannot delete them: narrow it down "
            "(Settings > Repository > Protected branches)."
        )
        return [Finding(ok=False, message=message)]

    async def _check_webhook(self, repo: Repo) -> list[Finding]:
        path = f"/hooks/gitlab/{self._access.name}"
        hooks = await self._client.get_all(f"{wire.repo_api_path(repo)}/hooks", list[wire.Hook], {"per_page": 100})
        hook = next((hook for hook in hooks if hook.url.endswith(path)), None)
        if hook is None:
            seconds = self._access.poll_interval_ms // SECOND
            message = (
                f"There is no webhook to {path}, so changes are found only by polling every {seconds} seconds: add one "
                f"(Settings > Webhooks) with {', '.join(EVENTS.values())}."
            )
            return [Finding(ok=False, message=message)]
        missing = [title for event, title in EVENTS.items() if not getattr(hook, event)]
        if missing:
            return [Finding(ok=False, message=f"The webhook does not send {', '.join(missing)}: tick them.")]
        if hook.alert_status != "executable":
            return [Finding(ok=False, message="GitLab has disabled the webhook after failures: test it there.")]
        return [Finding(ok=True, message="The webhook sends all events that the queue uses.")]


async def _run_check(subject: str, check: Check) -> list[Finding]:
    try:
        return await check()
    except HostUnavailable as error:
        return [Finding(ok=False, message=f"{subject} could not be checked: {error}")]


def _check_role(project: wire.Project) -> Finding:
    if project.permissions.level >= DEVELOPER_LEVEL:
        return Finding(ok=True, message="Our account can push branches.")
    return Finding(ok=False, message="Our account cannot push branches: give it the role Developer or Maintainer.")


def _check_required_pipeline(project: wire.Project) -> Finding:
    if project.only_allow_merge_if_pipeline_succeeds:
        return Finding(ok=True, message="The project requires successful pipelines: the check pipeline is required.")
    message = (
        "The project does not require successful pipelines: name the required checks in .mergeyard.toml or in the "
        "queue's requiredStatuses."
    )
    return Finding(ok=True, message=message)
