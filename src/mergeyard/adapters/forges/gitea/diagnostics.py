"""Checks whether Gitea, the token, the repository and its webhook are configured as the queue needs them."""

from collections.abc import AsyncIterator, Iterator, Sequence

from msgspec import Struct

from mergeyard.adapters.forges.gitea import wire
from mergeyard.adapters.forges.gitea.pull_requests import read_branch, select_required_contexts
from mergeyard.adapters.forges.host import ForgeHost, ok, problem
from mergeyard.adapters.forges.http import ForgeClient, extract_error_detail
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import Finding, HostUnavailable

PROBES = {
    "write:repository": ("POST", "/pulls/0/merge", {"Do": "merge"}),
    "write:issue": ("PATCH", "/issues/comments/0", {"body": "."}),
}
"""Requests that change nothing, because no pull request or comment has the number 0. Only a missing scope gives 403."""
SCOPES = "write:repository, write:issue and read:user"
FORBIDDEN = 403
PATTERN_CHARS = frozenset("*?[]{}!")
PULL_REQUEST_SUFFIX = "(pull_request)"
EVENTS = ("push", "status", "pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment")


class Version(Struct, frozen=True):
    version: str


class Diagnostics(ForgeHost):
    async def diagnose(self, repo: Repo | None) -> Sequence[Finding]:
        """An error becomes the last finding, after those that were found before it."""
        found = list[Finding]()
        try:
            async for finding in self._check_host() if repo is None else self._check_repository(repo):
                found.append(finding)
        except HostUnavailable as error:
            found.append(problem(f"{error}. Check the address of Gitea, and the token: it needs the scopes {SCOPES}."))
        return found

    async def _check_host(self) -> AsyncIterator[Finding]:
        found = await self._client.get("/version", Version)
        if found is None:
            yield problem(
                f"{self._config.api_url} is not the address of a Gitea or Forgejo API: set `api_url` to the one that "
                "ends in /api/v1."
            )
            return
        yield ok(f"{self._config.web_url} responds, version {found.version}.")
        user = await self._client.get("/user", wire.User)
        if user:
            yield ok(f"The token belongs to {user.login}.")
        yield self._check_webhook_secret()

    async def _check_repository(self, repo: Repo) -> AsyncIterator[Finding]:
        client = await self._client_for(repo)
        repository = await client.get("", wire.Repository)
        if repository is None:
            yield problem(f"{repo} is not visible to the account of the token: add the account as a collaborator.")
            return
        if not repository.html_url.startswith(f"{self._config.web_url}/"):
            root_url = repository.html_url.removesuffix(f"/{self._full_name(repo)}")
            yield problem(
                f"Gitea uses the address {root_url} for itself (its ROOT_URL): configure that address as `url`. "
                "Otherwise lists of several pages cannot be read."
            )
        for finding in _check_settings(repository):
            yield finding
        async for finding in _check_scopes(client):
            yield finding
        branch = await read_branch(client, repository.default_branch)
        if branch:
            for finding in _check_branch(repository.default_branch, branch):
                yield finding
        if repository.permissions.admin:
            hooks = await client.get_all("/hooks", list[wire.Hook], {"limit": 50})
            yield _check_webhook(hooks, f"/hooks/gitea/{self.name}")


async def _check_scopes(client: ForgeClient) -> AsyncIterator[Finding]:
    for scope, (method, path, body) in PROBES.items():
        reply = await client.send(method, path, body)
        if reply.status == FORBIDDEN:
            detail = extract_error_detail(reply.body)
            yield problem(f"The token lacks the scope {scope}: create one that has it ({detail}).")
        else:
            yield ok(f"The token has the scope {scope}.")


def _check_webhook(hooks: Sequence[wire.Hook], path: str) -> Finding:
    hook = next((hook for hook in hooks if hook.active and hook.config.url.endswith(path)), None)
    if hook is None:
        return problem(
            f"There is no active webhook to <public_url>{path}: add one of type Gitea or Forgejo, with content "
            "type application/json, the secret and all events. Until then changes are found only by polling."
        )
    if hook.config.content_type != "json":
        return problem(f"Set the content type of the webhook to {hook.config.url} to application/json.")
    missing = [event for event in EVENTS if event not in hook.events]
    if missing:
        return problem(f"Let the webhook to {hook.config.url} also send: {', '.join(missing)}.")
    return ok(f"The webhook to {hook.config.url} sends all events that the queue uses.")


def _check_settings(repository: wire.Repository) -> Iterator[Finding]:
    if repository.archived:
        yield problem("The repository is archived, so nothing can be merged: unarchive it in its settings.")
    if not repository.has_pull_requests:
        yield problem("Pull requests are disabled: enable them in the repository's settings.")
    if repository.permissions.push:
        yield ok("The account can push.")
    else:
        yield problem("The account cannot push: make it a collaborator with write permission.")
    if repository.permissions.admin:
        yield ok("The account can read users' roles, webhooks and branch protection.")
    else:
        yield problem(
            "The account does not administer the repository, so users' roles are hidden from it and commands in "
            "comments are ignored: give it the permission admin."
        )
    yield from _check_merge_settings(repository)


def _check_merge_settings(repository: wire.Repository) -> Iterator[Finding]:
    if repository.allow_manual_merge:
        yield ok("Pushed pull requests can be marked as merged.")
    else:
        yield problem(
            "Pushed pull requests cannot be marked as merged: in the settings, under pull requests, enable "
            '"Mark pull request as manually merged" (API: allow_manual_merge).'
        )
    if not repository.autodetect_manual_merge:
        yield ok('"Autodetect manual merge" is off; when it is on, Gitea itself marks merge commits as merged.')
    missing = [method.value for method in MergeMethod if not wire.allows_method(repository, method)]
    if missing:
        yield ok(f"With `landing` set to `provider_merge` these methods are not allowed here: {', '.join(missing)}.")


def _check_branch(name: str, branch: wire.Branch) -> Iterator[Finding]:
    if branch.user_can_push:
        yield ok(f"The account can push to {name}.")
    else:
        yield problem(
            f"{name} is protected against pushes of the account: in its protection rule enable pushes for allow-listed "
            "users and add the account, or set `landing` to `provider_merge`."
        )
    if not branch.user_can_merge:
        yield problem(
            f"The account is not allowed to merge into {name}: add it to the merge allow-list of its protection rule."
        )
    contexts = select_required_contexts(branch)
    for context in contexts:
        if PATTERN_CHARS & set(context):
            yield problem(
                f"{name} requires the pattern {context!r}, and no check has that name: set the queue's "
                "required checks, or name each check in the protection rule."
            )
        elif context.endswith(PULL_REQUEST_SUFFIX):
            yield problem(
                f"{name} requires {context!r}, which is reported only for pull requests: set the queue's "
                "createPrsForTestingBranches, or require a check that is reported for pushes to mergeyard/**."
            )
    if branch.enable_status_check and not contexts:
        yield problem(f"{name} requires checks but names none: name some there, or set the queue's required checks.")
