"""Checks whether the token, the project and its webhook are configured as the queue needs them."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime

from mergeyard.adapters.forges.gitlab import wire
from mergeyard.adapters.forges.host import ForgeHost, ok, problem
from mergeyard.adapters.forges.http import ForgeClient, quote_segment
from mergeyard.domain import ids
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import SECOND
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


class Diagnostics(ForgeHost):
    async def diagnose(self, repo: Repo | None) -> Sequence[Finding]:
        found = await _run_check("The token", self._check_token)
        found.append(self._check_webhook_secret())
        if repo is None:
            return found
        return found + await _run_check(str(repo), lambda: self._check_project(repo))

    async def _check_token(self) -> list[Finding]:
        token = await self._client.get("/personal_access_tokens/self", wire.Token)
        if token is None:
            return [problem(f"GitLab does not know the token: create a new one with the scope {SCOPE}.")]
        if SCOPE not in token.scopes:
            return [problem(f"The token {token.name} lacks the scope {SCOPE}: create a new one that has it.")]
        return [ok(f"The token {token.name} has the scope {SCOPE}."), *self._check_expiry(token)]

    def _check_expiry(self, token: wire.Token) -> list[Finding]:
        if token.expires_at is None:
            return []
        today = datetime.fromtimestamp(self._clock.now() / SECOND, UTC).date()
        message = f"The token {token.name} expires on {token.expires_at}"
        is_far = (date.fromisoformat(token.expires_at) - today).days > MIN_TOKEN_DAYS_LEFT
        return [ok(f"{message}.") if is_far else problem(f"{message}: rotate it before that day.")]

    async def _check_project(self, repo: Repo) -> list[Finding]:
        client = await self._client_for(repo)
        project = await client.get("", wire.Project)
        if project is None:
            return [problem(f"The token cannot read {repo}: check its name, or add its account to the members.")]
        return [
            _check_role(project),
            *await _run_check("The target branch", lambda: _check_target_branch(client, project)),
            *await _run_check("The protected branches", lambda: _check_test_branches(client)),
            _check_required_pipeline(project),
            *await _run_check("The webhooks", lambda: self._check_webhook(client)),
        ]

    async def _check_webhook(self, client: ForgeClient) -> list[Finding]:
        path = f"/hooks/gitlab/{self.name}"
        hooks = await client.get_all("/hooks", list[wire.Hook], {"per_page": 100})
        hook = next((hook for hook in hooks if hook.url.endswith(path)), None)
        if hook is None:
            seconds = self.poll_interval_ms // SECOND
            message = (
                f"There is no webhook to {path}, so changes are found only by polling every {seconds} seconds: add one "
                f"(Settings > Webhooks) with {', '.join(EVENTS.values())}."
            )
            return [problem(message)]
        missing = [title for event, title in EVENTS.items() if not getattr(hook, event)]
        if missing:
            return [problem(f"The webhook does not send {', '.join(missing)}: select them (Settings > Webhooks).")]
        if hook.alert_status != "executable":
            return [problem("GitLab has disabled the webhook after failures: test it there (Settings > Webhooks).")]
        return [ok("The webhook sends all events that the queue uses.")]


async def _check_target_branch(client: ForgeClient, project: wire.Project) -> list[Finding]:
    name = project.default_branch
    if not name:
        return [problem("The project has no branch yet: push one.")]
    branch = await client.get(f"/repository/branches/{quote_segment(name)}", wire.Branch)
    if branch is not None and branch.can_push:
        return [ok(f"The account of the token can push to {name}.")]
    message = (
        f"The account of the token is not allowed to push to {name}: add its role to those allowed to push and merge "
        "(Settings > Repository > Protected branches)."
    )
    return [problem(message)]


async def _check_test_branches(client: ForgeClient) -> list[Finding]:
    protected = await client.get_all("/protected_branches", list[wire.ProtectedBranch], {"per_page": 100})
    matching = [rule.name for rule in protected if rule.protects(EXAMPLE_TEST_BRANCH)]
    if not matching:
        return [ok("The test branches are not protected.")]
    message = (
        f"The rule {matching[0]} protects the test branches, so Mergeyard cannot delete them: narrow it down "
        "(Settings > Repository > Protected branches)."
    )
    return [problem(message)]


async def _run_check(subject: str, check: Check) -> list[Finding]:
    try:
        return await check()
    except HostUnavailable as error:
        return [problem(f"{subject} could not be checked: {error}")]


def _check_role(project: wire.Project) -> Finding:
    if project.permissions.level >= wire.DEVELOPER_LEVEL:
        return ok("The account of the token can push branches.")
    return problem("The account of the token cannot push branches: give it the role Developer or Maintainer.")


def _check_required_pipeline(project: wire.Project) -> Finding:
    if project.only_allow_merge_if_pipeline_succeeds:
        return ok("The project requires successful pipelines: the check pipeline is required.")
    return ok(
        "The project does not require successful pipelines: name the required checks in .mergeyard.toml or in the "
        "queue's settings."
    )
