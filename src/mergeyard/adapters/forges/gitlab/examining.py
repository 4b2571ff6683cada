"""Examines whether the token, the project and its webhook are as the service needs them."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase

from mergeyard.adapters.forges.access import Access
from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitlab.naming import project_of, segment
from mergeyard.adapters.forges.gitlab.people import DEVELOPER
from mergeyard.adapters.forges.gitlab.wire import Branch, Hook, Project, ProtectedBranch, Token
from mergeyard.domain import ours
from mergeyard.domain.instants import SECOND
from mergeyard.domain.repositories import Repo
from mergeyard.ports.clock import Clock
from mergeyard.ports.forge import Finding
from mergeyard.ports.host import HostTrouble

SCOPE = "api"
SOON = 14
"""Days in which somebody should renew a token that expires."""
A_TEST_BRANCH = f"{ours.BRANCHES}pr-1/0"
EVENTS = {
    "push_events": "Push events",
    "note_events": "Comments",
    "merge_requests_events": "Merge request events",
    "job_events": "Job events",
    "pipeline_events": "Pipeline events",
}

Question = Callable[[], Awaitable[list[Finding]]]


class Examiner:
    def __init__(self, access: Access, caller: Caller, clock: Clock) -> None:
        self._access = access
        self._caller = caller
        self._clock = clock

    async def examine(self, repo: Repo | None) -> Sequence[Finding]:
        found = await _answered("The token", self._token)
        found.append(self._secret())
        if repo is None:
            return found
        return found + await _answered(str(repo), lambda: self._project(repo))

    async def _token(self) -> list[Finding]:
        token = await self._caller.get("/personal_access_tokens/self", Token)
        if token is None:
            return [Finding(fine=False, words="GitLab does not know the token: make a new one with the scope api.")]
        if SCOPE not in token.scopes:
            words = f"The token {token.name} lacks the scope {SCOPE}: make a new one that has it."
            return [Finding(fine=False, words=words)]
        return [Finding(fine=True, words=f"The token {token.name} has the scope {SCOPE}."), *self._expiry(token)]

    def _expiry(self, token: Token) -> list[Finding]:
        if token.expires_at is None:
            return []
        today = datetime.fromtimestamp(self._clock.now() / SECOND, UTC).date()
        lasts = (date.fromisoformat(token.expires_at) - today).days > SOON
        words = f"The token {token.name} expires on {token.expires_at}"
        return [Finding(fine=lasts, words=f"{words}." if lasts else f"{words}: rotate it before that day.")]

    def _secret(self) -> Finding:
        if self._access.webhook_secret:
            return Finding(fine=True, words="A secret for webhooks is configured.")
        words = "so none is believed: set `webhook_secret_file`, and the same secret at GitLab."
        return Finding(fine=False, words=f"No secret for webhooks is configured, {words}")

    async def _project(self, repo: Repo) -> list[Finding]:
        project = await self._caller.get(project_of(repo), Project)
        if project is None:
            words = f"{repo} is not there, or not for us: check its name, or add our account to its members."
            return [Finding(fine=False, words=words)]
        return [
            _role(project),
            *await _answered("The target branch", lambda: self._target(repo, project)),
            *await _answered("The protected branches", lambda: self._test_branches(repo)),
            _requirement(project),
            *await _answered("The webhooks", lambda: self._webhook(repo)),
        ]

    async def _target(self, repo: Repo, project: Project) -> list[Finding]:
        name = project.default_branch
        if not name:
            return [Finding(fine=False, words="The project has no branch yet: push one.")]
        branch = await self._caller.get(f"{project_of(repo)}/repository/branches/{segment(name)}", Branch)
        if branch is not None and branch.can_push:
            return [Finding(fine=True, words=f"We may push to {name}.")]
        words = f"We may not push to {name}: add our role to those allowed to push and merge"
        return [Finding(fine=False, words=f"{words} (Settings > Repository > Protected branches).")]

    async def _test_branches(self, repo: Repo) -> list[Finding]:
        query = {"per_page": 100}
        protected = await self._caller.every(f"{project_of(repo)}/protected_branches", list[ProtectedBranch], query)
        found = [rule.name for rule in protected if fnmatchcase(A_TEST_BRANCH, rule.name)]
        if not found:
            return [Finding(fine=True, words="Our test branches are not protected.")]
        words = f"The rule {found[0]} protects our test branches, which then cannot be removed: narrow it down"
        return [Finding(fine=False, words=f"{words} (Settings > Repository > Protected branches).")]

    async def _webhook(self, repo: Repo) -> list[Finding]:
        address = f"/hooks/gitlab/{self._access.name}"
        hooks = await self._caller.every(f"{project_of(repo)}/hooks", list[Hook], {"per_page": 100})
        hook = next((hook for hook in hooks if hook.url.endswith(address)), None)
        if hook is None:
            seconds = self._access.look_every // SECOND
            words = f"There is no webhook to {address}, so changes are seen only every {seconds} seconds: add one"
            return [Finding(fine=False, words=f"{words} (Settings > Webhooks) with {', '.join(EVENTS.values())}.")]
        missing = [words for event, words in EVENTS.items() if not getattr(hook, event)]
        if missing:
            return [Finding(fine=False, words=f"The webhook does not send {', '.join(missing)}: tick them.")]
        if hook.alert_status != "executable":
            return [Finding(fine=False, words="GitLab has disabled the webhook after failures: test it there.")]
        return [Finding(fine=True, words="The webhook sends all that we need.")]


async def _answered(subject: str, ask: Question) -> list[Finding]:
    try:
        return await ask()
    except HostTrouble as trouble:
        return [Finding(fine=False, words=f"{subject} could not be examined: {trouble}")]


def _role(project: Project) -> Finding:
    if project.permissions.level >= DEVELOPER:
        return Finding(fine=True, words="Our account may push branches.")
    return Finding(fine=False, words="Our account may not push branches: give it the role Developer or Maintainer.")


def _requirement(project: Project) -> Finding:
    if project.only_allow_merge_if_pipeline_succeeds:
        return Finding(fine=True, words="The project wants pipelines to succeed: the status pipeline is required.")
    words = "The project does not want pipelines to succeed: name what is required in .mergeyard.toml or in the queue."
    return Finding(fine=True, words=words)
