"""Looks whether all is there that the service needs, and says in plain words what to do about what is not."""

from collections.abc import AsyncIterator, Iterator, Sequence

from msgspec import Struct

from mergeyard.adapters.forges.access import Access
from mergeyard.adapters.forges.calling import Caller, words_of
from mergeyard.adapters.forges.gitea.places import path_of, place_of
from mergeyard.adapters.forges.gitea.protection import branch_of, required
from mergeyard.adapters.forges.gitea.wire import Branch, Hook, Repository, User, allows
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Finding
from mergeyard.ports.host import HostTrouble

PROBES = {
    "write:repository": ("POST", "pulls/0/merge", {"Do": "merge"}),
    "write:issue": ("PATCH", "issues/comments/0", {"body": "."}),
}
"""Nothing has the number 0: what is asked of it changes nothing, but shows whether it may be asked."""
SCOPES = "write:repository, write:issue and read:user"
FORBIDDEN = 403
PATTERN = frozenset("*?[]{}!")
ON_PULLS = "(pull_request)"
HEARD = ("push", "status", "pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment")


class Version(Struct, frozen=True):
    version: str


class Examining:
    def __init__(self, access: Access, caller: Caller) -> None:
        self._access = access
        self._caller = caller

    async def examine(self, repo: Repo | None) -> Sequence[Finding]:
        return [finding async for finding in self._until_trouble(repo)]

    async def _until_trouble(self, repo: Repo | None) -> AsyncIterator[Finding]:
        """What was found before it is told too."""
        try:
            async for finding in self._of_host() if repo is None else self._of_repository(repo):
                yield finding
        except HostTrouble as trouble:
            yield _lacking(f"{trouble}. Make sure of its address, and of the token: it needs the scopes {SCOPES}.")

    async def _of_host(self) -> AsyncIterator[Finding]:
        answer = await self._caller.get("/version", Version)
        if answer is None:
            yield _lacking(
                f"{self._access.api} is no Gitea or Forgejo: set api_url to the address that ends in /api/v1."
            )
            return
        yield _fine(f"{self._access.pages} answers, version {answer.version}.")
        user = await self._caller.get("/user", User)
        if user:
            yield _fine(f"The token is that of {user.login}.")
        if self._access.webhook_secret:
            yield _fine("Webhooks are checked with a secret.")
        else:
            yield _lacking(
                "`webhook_secret_file` is not set, so no webhook is believed and changes are seen only by polling: "
                "set it, and the same secret in the webhook."
            )

    async def _of_repository(self, repo: Repo) -> AsyncIterator[Finding]:
        found = await self._caller.get(place_of(repo), Repository)
        if found is None:
            yield _lacking(f"{repo} is not there, or hidden from the token's account: add it as a collaborator.")
            return
        if not found.html_url.startswith(f"{self._access.pages}/"):
            own = found.html_url.removesuffix(f"/{path_of(repo)}")
            yield _lacking(
                f"It calls itself {own} (its ROOT_URL): configure it under that url, or long lists stay unread."
            )
        for finding in _about_repository(found):
            yield finding
        async for finding in self._of_scopes(repo):
            yield finding
        branch = await branch_of(self._caller, repo, found.default_branch)
        if branch:
            for finding in _about_branch(found.default_branch, branch):
                yield finding
        if found.permissions.admin:
            yield await self._of_webhook(repo)

    async def _of_scopes(self, repo: Repo) -> AsyncIterator[Finding]:
        for scope, (method, path, body) in PROBES.items():
            reply = await self._caller.send(method, f"{place_of(repo)}/{path}", body)
            if reply.status == FORBIDDEN:
                yield _lacking(f"Make a token with the scope {scope}: {words_of(reply.body)}")
            else:
                yield _fine(f"The token has the scope {scope}.")

    async def _of_webhook(self, repo: Repo) -> Finding:
        hooks = await self._caller.every(f"{place_of(repo)}/hooks", list[Hook], {"limit": 50})
        ending = f"/hooks/gitea/{self._access.name}"
        ours = [hook for hook in hooks if hook.active and hook.config.url.endswith(ending)]
        if not ours:
            return _lacking(
                f"There is no active webhook to <public_url>{ending}: add one of type Gitea or Forgejo, with content "
                "type application/json, the secret and all events; until then changes are seen only by polling."
            )
        if ours[0].config.content_type != "json":
            return _lacking(f"Set the content type of the webhook to {ours[0].config.url} to application/json.")
        unheard = [event for event in HEARD if event not in ours[0].events]
        if unheard:
            return _lacking(f"Let the webhook to {ours[0].config.url} also send: {', '.join(unheard)}.")
        return _fine(f"The webhook to {ours[0].config.url} sends all that is needed.")


def _about_repository(found: Repository) -> Iterator[Finding]:
    if found.archived:
        yield _lacking("The repository is archived: nothing can be merged.")
    if not found.has_pull_requests:
        yield _lacking("Pull requests are switched off: enable them in the repository's settings.")
    if found.permissions.push:
        yield _fine("The account may push.")
    else:
        yield _lacking("The account may not push: make it a collaborator with write permission.")
    if found.permissions.admin:
        yield _fine("The account may ask for people's roles, webhooks and rules of protection.")
    else:
        yield _lacking(
            "The account does not administer the repository, so people's roles are hidden from it and no command in a "
            "comment is obeyed: give it the permission admin."
        )
    yield from _about_merging(found)


def _about_merging(found: Repository) -> Iterator[Finding]:
    if found.allow_manual_merge:
        yield _fine("What was pushed can be marked as merged.")
    else:
        yield _lacking(
            "What was pushed cannot be marked as merged: in the settings, under pull requests, enable "
            '"Mark pull request as manually merged" (API: allow_manual_merge).'
        )
    if not found.autodetect_manual_merge:
        yield _fine('"Autodetect manual merge" is off; with it on, merge commits are marked even without our help.')
    missing = [method.value for method in MergeMethod if not allows(found, method)]
    if missing:
        yield _fine(f"With landing = provider_merge these methods are not allowed here: {', '.join(missing)}.")


def _about_branch(name: str, branch: Branch) -> Iterator[Finding]:
    if branch.user_can_push:
        yield _fine(f"The account may push to {name}.")
    else:
        yield _lacking(
            f"{name} is protected against pushes of the account: in its protection rule enable pushes for allow-listed "
            "users and add the account, or set landing to provider_merge."
        )
    if not branch.user_can_merge:
        yield _lacking(f"The account may not merge into {name}: add it to the merge allow-list of its protection rule.")
    names = required(branch)
    for context in names:
        if PATTERN & set(context):
            yield _lacking(
                f"{name} requires the pattern {context!r}, and no status has that name: set the queue's "
                "requiredStatuses, or name each status in the protection rule."
            )
        elif context.endswith(ON_PULLS):
            yield _lacking(
                f"{name} requires {context!r}, which is reported only for pull requests: set the queue's "
                "createPrsForTestingBranches, or require what a push to mergeyard/** reports."
            )
    if branch.enable_status_check and not names:
        yield _lacking(f"{name} requires statuses but names none: set the queue's requiredStatuses.")


def _fine(words: str) -> Finding:
    return Finding(fine=True, words=words)


def _lacking(words: str) -> Finding:
    return Finding(fine=False, words=words)
