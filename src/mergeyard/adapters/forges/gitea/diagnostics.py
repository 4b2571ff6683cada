"""Checks whether Gitea, the token, the repository and its webhook are configured as the queue needs them."""

from collections.abc import AsyncIterator, Iterator, Sequence

from msgspec import Struct

from mergeyard.adapters.forges.gitea import wire
from mergeyard.adapters.forges.gitea.pull_requests import (
    ADMIN_PERMISSION,
    SSH_FINGERPRINT_START,
    PullRequests,
    read_branch,
    read_rule,
    select_required_contexts,
)
from mergeyard.adapters.forges.host import advise, ok, problem
from mergeyard.adapters.forges.http import ForgeClient
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import TEST_BRANCH_PREFIX, Repo
from mergeyard.ports.forge import Finding, HostError, QueueSetup

PROBES = {
    "write:repository": ("POST", "/pulls/0/merge", {"Do": "merge"}),
    "write:issue": ("PATCH", "/issues/comments/0", {"body": "."}),
}
"""Requests that change nothing, because no pull request or comment has the number 0. Only a missing scope gives 403."""
SCOPES = "write:repository, write:issue and read:user"
FORBIDDEN = 403
PATTERN_CHARS = frozenset("*?[]{}!")
PULL_REQUEST_SUFFIX = "(pull_request)"
EVENTS = (
    *("push", "status", "pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment"),
    *("pull_request_review", "pull_request_review_request"),
)
REVIEW_EVENT = "pull_request_review_approved"
"""A webhook for all events lists this part of `pull_request_review` instead."""
TEST_BRANCH = f"{TEST_BRANCH_PREFIX}pr-1/0"
WRITERS = "every account with write access"
MAX_NAMES = 5
MAX_PATTERN_CHARS = 100


class Version(Struct, frozen=True):
    version: str


class Diagnostics(PullRequests):
    async def diagnose(self, repo: Repo | None, queues: Sequence[QueueSetup] = ()) -> Sequence[Finding]:
        """An error becomes the last finding, after those that were found before it."""
        found = list[Finding]()
        try:
            async for finding in self._check_host() if repo is None else self._check_repository(repo, queues):
                found.append(finding)
        except HostError as error:
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

    async def _check_repository(self, repo: Repo, queues: Sequence[QueueSetup]) -> AsyncIterator[Finding]:
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
        yield self._check_webhook_secret()
        for finding in (*_check_settings(repository), *_check_methods(repository, queues)):
            yield finding
        async for finding in _check_scopes(client):
            yield finding
        if repository.permissions.admin:
            hooks = await client.get_all("/hooks", list[wire.Hook], {"limit": 50})
            yield self._check_webhook(hooks)
            for finding in _check_test_branches(await client.get_all("/branch_protections", list[wire.Rule])):
                yield finding
        for queue in queues or (QueueSetup(branch=repository.default_branch),):
            async for finding in self._check_queue(client, queue):
                yield finding

    async def _check_queue(self, client: ForgeClient, queue: QueueSetup) -> AsyncIterator[Finding]:
        branch = await read_branch(client, queue.branch)
        if branch is None:
            yield problem(f"The repository has no branch {queue.branch}: push it, or delete its queue.")
            return
        for finding in (*_check_access(queue, branch), *_check_contexts(queue, branch)):
            yield finding
        if not branch.protected:
            yield advise(
                f"{queue.branch} has no protection rule, so {WRITERS} can change it without the queue. For a mandatory "
                "queue, add a rule that lets only the account of the queue push and merge (API: "
                "push_whitelist_usernames, merge_whitelist_usernames)."
            )
            return
        rule = await read_rule(client, branch)
        if rule is None:
            yield problem(
                f"The account cannot read the protection rule of {queue.branch}, so its pull requests wait, or with "
                f"`unreadable_rules` set to `unknown` the rule is ignored: give the account {ADMIN_PERMISSION}."
            )
            return
        for finding in _check_rule(queue, rule, await self._read_own_login()):
            yield finding
        if queue.landing is LandingMethod.TESTED_COMMIT and rule.require_signed_commits:
            yield await self._check_signing(queue, rule)

    async def _check_signing(self, queue: QueueSetup, rule: wire.Rule) -> Finding:
        signer, missing = self._config.signer, await self.find_missing_key()
        if signer is None or missing:
            return problem(
                f"{queue.branch} requires signed commits, and Gitea does not accept the signatures of the queue "
                f"({missing}): set `signing_key_file` and add its public key to the account of the queue, or in the "
                f"protection rule {rule.rule_name} turn off *Require Signed Commits* (API: require_signed_commits), or "
                "set `landing` to `provider_merge` and let Gitea sign merges."
            )
        if not signer.fingerprint.startswith(SSH_FINGERPRINT_START):
            return ok(f"{queue.branch} requires signed commits, and the account has the key {signer.fingerprint}.")
        return advise(
            f"{queue.branch} requires signed commits, and the account has the key {signer.fingerprint}. Gitea accepts "
            "it only if it is verified, which Gitea does not report: check that in the account's settings, under SSH "
            "keys."
        )

    def _check_webhook(self, hooks: Sequence[wire.Hook]) -> Finding:
        """Without a configured address of our server, any server with our path counts."""
        path, server = f"/hooks/gitea/{self.name}", (self._config.public_url or "").rstrip("/")
        address = f"{server or '<public_url>'}{path}"
        ours = [hook for hook in hooks if hook.active and hook.config.url.endswith(path)]
        hook = next((hook for hook in ours if not server or hook.config.url == address), None)
        if hook is None and ours:
            return problem(
                f"The webhook goes to {ours[0].config.url}, not to this server: set its address to {address}."
            )
        if hook is None:
            return problem(
                f"There is no active webhook to {address}: add one of type Gitea or Forgejo, with content type "
                "application/json, the secret of `webhook_secret_file` and all events. Until then changes are found "
                "only by polling."
            )
        if hook.config.content_type != "json":
            return problem(f"Set the content type of the webhook to {hook.config.url} to application/json.")
        sent = {*hook.events, *(["pull_request_review"] if REVIEW_EVENT in hook.events else [])}
        missing = [event for event in EVENTS if event not in sent]
        if missing:
            return problem(f"Let the webhook to {hook.config.url} also send: {', '.join(missing)}.")
        message = f"The webhook to {hook.config.url} sends all events that the queue uses."
        return ok(message if server else f"{message} Check that this is our server: `public_url` is not set.")


async def _check_scopes(client: ForgeClient) -> AsyncIterator[Finding]:
    for scope, (method, path, body) in PROBES.items():
        reply = await client.send(method, path, body)
        if reply.status == FORBIDDEN:
            detail = reply.detail
            yield problem(f"The token lacks the scope {scope}: create one that has it ({detail}).")
        else:
            yield ok(f"The token has the scope {scope}.")


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
            "The account does not administer the repository, so users' roles, webhooks and protection rules are "
            f"hidden from it and commands in comments are ignored: give it {ADMIN_PERMISSION}."
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


def _check_methods(repository: wire.Repository, queues: Sequence[QueueSetup]) -> Iterator[Finding]:
    """Gitea merges only for queues with `provider_merge`. Before the first queue, that is only advice."""
    refused = [method for method in MergeMethod if not wire.allows_method(repository, method)]
    if refused and not queues:
        yield advise(f"The repository refuses {_join(refused)}, which matters if `landing` is set to `provider_merge`.")
    for queue in queues:
        if queue.landing is LandingMethod.PROVIDER_MERGE and queue.merge_method in refused:
            yield problem(
                f"The repository refuses {queue.merge_method}, with which the queue merges into {queue.branch}: allow "
                "it in the settings, under pull requests."
            )


def _check_access(queue: QueueSetup, branch: wire.Branch) -> Iterator[Finding]:
    if branch.user_can_push:
        yield ok(f"The account can push to {queue.branch}.")
    elif queue.landing is LandingMethod.TESTED_COMMIT:
        yield problem(
            f"{queue.branch} is protected against pushes of the account: in its protection rule enable pushes for "
            "allow-listed users and add the account, or set `landing` to `provider_merge`."
        )
    if not branch.user_can_merge:
        yield problem(
            f"The account is not allowed to merge into {queue.branch}: add it to the merge allow-list of its "
            "protection rule."
        )


def _check_contexts(queue: QueueSetup, branch: wire.Branch) -> Iterator[Finding]:
    contexts, name = select_required_contexts(branch), queue.branch
    for context in contexts:
        if context in (queue.reported_checks or ()):
            continue
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
        elif queue.reported_checks is not None:
            yield problem(
                f"{name} requires {context!r}, and CI reported no such check on the last test branches: let CI report "
                "it for pushes to mergeyard/**, or set the queue's required checks."
            )
    if branch.enable_status_check and not contexts:
        yield problem(f"{name} requires checks but names none: name some there, or set the queue's required checks.")


def _check_rule(queue: QueueSetup, rule: wire.Rule, login: str) -> Iterator[Finding]:
    branch, place = queue.branch, f"in the protection rule {rule.rule_name}"
    pushers, mergers = _list_other_pushers(rule, login), _list_other_mergers(rule, login)
    if pushers:
        yield advise(
            f"Without the queue, {_join(pushers)} can push to {branch}. For a mandatory queue, {place} choose "
            f"*Allowlist Restricted Push* with {login} alone (API: enable_push_whitelist, push_whitelist_usernames)."
        )
    if rule.unprotected_file_patterns:
        yield advise(
            f"Without the queue, {WRITERS} can push changes of {_shorten(rule.unprotected_file_patterns)} to {branch}. "
            f"For a mandatory queue, {place} clear the unprotected file patterns (API: unprotected_file_patterns)."
        )
    if mergers:
        yield advise(
            f"Without the queue, {_join(mergers)} can merge into {branch}. For a mandatory queue, {place} choose "
            f"*Enable Merge Allowlist* with {login} alone (API: enable_merge_whitelist, merge_whitelist_usernames)."
        )
    if mergers and not rule.block_admin_merge_override:
        yield advise(
            f"An administrator who can merge into {branch} can merge without approvals and checks. To prevent that, "
            f"{place} choose *Administrators must follow branch protection rules* (API: block_admin_merge_override)."
        )
    if not (pushers or mergers or rule.unprotected_file_patterns):
        yield ok(
            f"Only {login} can push to {branch} and merge into it, so the queue is mandatory. Administrators can "
            "change that rule, but not override it."
        )
    yield from _check_rule_for_landing(queue, rule, place)


def _check_rule_for_landing(queue: QueueSetup, rule: wire.Rule, place: str) -> Iterator[Finding]:
    if queue.landing is LandingMethod.PROVIDER_MERGE and rule.block_on_outdated_branch:
        yield problem(
            f"Gitea refuses each pull request that lacks the newest commit of {queue.branch}: {place} turn off *Block "
            "merge if pull request is outdated* (API: block_on_outdated_branch). The queue tests with it anyway."
        )
    if rule.protected_file_patterns:
        yield ok(
            f"Pull requests that change {_shorten(rule.protected_file_patterns)} are never ready, because the rule "
            "protects these files (API: protected_file_patterns)."
        )


def _list_other_pushers(rule: wire.Rule, login: str) -> list[str]:
    if not rule.enable_push:
        return []
    if not rule.enable_push_whitelist:
        return [WRITERS]
    keys = ["each deploy key with write access"] if rule.push_whitelist_deploy_keys else []
    return [*_list_others(rule.push_whitelist_usernames, rule.push_whitelist_teams, login), *keys]


def _list_other_mergers(rule: wire.Rule, login: str) -> list[str]:
    if not rule.enable_merge_whitelist:
        return [WRITERS]
    return _list_others(rule.merge_whitelist_usernames, rule.merge_whitelist_teams, login)


def _list_others(users: Sequence[str] | None, teams: Sequence[str] | None, login: str) -> list[str]:
    others = [user for user in users or () if user.lower() != login.lower()]
    return [*others, *(f"the team {team}" for team in teams or ())]


def _join(names: Sequence[str]) -> str:
    hidden = len(names) - MAX_NAMES
    return ", ".join([*names[:MAX_NAMES], *([f"{hidden} more"] if hidden > 0 else [])])


def _shorten(patterns: str) -> str:
    return patterns if len(patterns) <= MAX_PATTERN_CHARS else f"{patterns[:MAX_PATTERN_CHARS]}…"


def _check_test_branches(rules: Sequence[wire.Rule]) -> Iterator[Finding]:
    """Gitea deletes no branch that a rule matches, whatever the rule allows."""
    for rule in rules:
        if wire.matches(rule.rule_name, TEST_BRANCH, "/"):
            yield problem(
                f"The protection rule {rule.rule_name} also protects the test branches {TEST_BRANCH_PREFIX}**, so "
                "Gitea refuses to delete them: give the rule a pattern that does not match them."
            )
