"""Checks whether the queue has all that it needs on GitHub. Each finding says what to do."""

from mergeyard.adapters.forges.github import auth, rules, wire
from mergeyard.adapters.forges.github.rules import Bypass
from mergeyard.adapters.forges.host import ok, problem
from mergeyard.adapters.forges.http import ForgeClient, Reply, extract_error_detail, quote_segment
from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import Finding, HostUnavailable

ON_APP_PAGE = "on the app's page under Permissions & events"
ON_APP_PAGE_AND_ACCEPT = "on the app's page, and have the owner of the installation accept the change"


class Diagnostics(auth.Authentication):
    async def diagnose(self, repo: Repo | None) -> list[Finding]:
        """Stops at the first error, because the following checks depend on it."""
        found = [self._check_webhook_secret()]
        try:
            found += await (self._check_app() if self._config.app else self._check_token_owner())
            if repo is not None:
                found += await (self._check_installation(repo) if self._config.app else self._check_token_access(repo))
                found += await self._check_repository(repo)
        except HostUnavailable as error:
            found.append(problem(str(error)))
        return found

    async def branch_warnings(self, repo: Repo, branch: str) -> list[str]:
        """The review rules of the branch that our account is known to be able to bypass."""
        found = await self._check_review_bypasses(await self._client_for(repo), branch)
        return [finding.message for finding in found if not finding.ok]

    # Authenticated as an app.

    async def _check_app(self) -> list[Finding]:
        app = await self._client.get("/app", wire.AppDetails, urgent=True)
        if app is None:
            return [problem("GitHub does not know an app with this id and key: check the id on the app's page.")]
        return [
            ok(f"Signed in as the app {app.name}."),
            *auth.check_permissions(app.permissions, ON_APP_PAGE),
            auth.check_events(app.events, ON_APP_PAGE),
            await self._check_app_webhook(),
        ]

    async def _check_app_webhook(self) -> Finding:
        config = await self._client.get("/app/hook/config", wire.HookConfig, urgent=True)
        if config is None or not config.url:
            return problem(
                "The app has no webhook: on the app's page, set its URL to "
                "<public_url>/hooks/github/<name of this host>."
            )
        return _check_content_type(config)

    async def _check_installation(self, repo: Repo) -> list[Finding]:
        """Reads the installation again: a cached one can have been suspended since."""
        path = f"{self._api_path(repo)}/installation"
        installation = await self._client.get(path, wire.Installation, urgent=True)
        if installation is None:
            raise auth.AppNotInstalled(repo)
        if installation.suspended_at:
            return [problem(f"The installation for {repo.owner} is suspended: unsuspend it in the settings there.")]
        permissions = auth.check_permissions(installation.permissions, ON_APP_PAGE_AND_ACCEPT)
        return [ok(f"The app is installed in {repo}."), *(finding for finding in permissions if not finding.ok)]

    # Authenticated with a token.

    async def _check_token_owner(self) -> list[Finding]:
        return [ok(f"Signed in as {await self._read_own_login()}.")]

    async def _check_token_access(self, repo: Repo) -> list[Finding]:
        """Write permissions cannot be tested without writing: GitHub reveals only the role of the token's owner."""
        client = await self._client_for(repo)
        repository = await client.get("", wire.Repository, urgent=True)
        if repository is None:
            return [problem(f"The token cannot read {repo}: add the repository to those that it can access.")]
        found = [_check_push(repository)]
        branch = quote_segment(repository.default_branch)
        for title, path in (
            ("Pull requests", "/pulls?per_page=1"),
            ("Issues", "/issues?per_page=1"),
            ("Commit statuses", f"/commits/{branch}/status"),
            ("Checks", f"/commits/{branch}/check-runs"),
            ("Administration", f"/branches/{branch}/protection"),
        ):
            found.append(_check_readable(title, await client.send("GET", path)))
        return [*found, await _check_repository_webhook(client)]

    # For both.

    async def _check_repository(self, repo: Repo) -> list[Finding]:
        client = await self._client_for(repo)
        repository = await client.get("", wire.Repository, urgent=True)
        if repository is None:
            return []
        branch = repository.default_branch
        required = await _check_required_checks(client, branch)
        return [_list_merge_methods(repository), required, *await self._check_review_bypasses(client, branch)]

    async def _check_review_bypasses(self, client: ForgeClient, branch: str) -> list[Finding]:
        identity = await self._read_identity()
        bypasses = await rules.find_review_bypasses(client, branch, identity)
        return [_describe_bypass(bypass, branch, identity) for bypass in bypasses]


def _check_push(repository: wire.Repository) -> Finding:
    needed = ", ".join(need.title for need in auth.REQUIRED_PERMISSIONS)
    if repository.permissions.get("push"):
        return ok(
            f"The owner of the token can push. GitHub does not show whether the token itself can: it needs {needed}."
        )
    return problem("The owner of the token cannot push here: give them the role Write, or use another token.")


def _check_readable(title: str, reply: Reply) -> Finding:
    if reply.is_success or reply.status == 404:
        return ok(f"{title} can be read.")
    needed = reply.headers.get("x-accepted-github-permissions", "")
    message = f"{title} cannot be read ({extract_error_detail(reply.body)}): grant it to the token"
    return problem(f"{message} ({needed})." if needed else f"{message}.")


async def _check_repository_webhook(client: ForgeClient) -> Finding:
    reply = await client.send("GET", "/hooks?per_page=100")
    if not reply.is_success:
        return ok(
            "The token is not allowed to read the webhooks: check under Settings, Webhooks that there is one to "
            "<public_url>/hooks/github/<name of this host>."
        )
    hooks = [hook for hook in reply.decode(list[wire.Hook]) if hook.active and "/hooks/github/" in hook.config.url]
    if not hooks:
        return problem(
            "No active webhook sends events to Mergeyard: add one under Settings, Webhooks with the URL "
            "<public_url>/hooks/github/<name of this host>, the content type application/json and the secret."
        )
    wrong = next((hook.config for hook in hooks if hook.config.content_type != "json"), None)
    return _check_content_type(wrong) if wrong else auth.check_events(hooks[0].events, "under Settings, Webhooks")


def _check_content_type(config: wire.HookConfig) -> Finding:
    if config.content_type == "json":
        return ok(f"Webhooks are sent to {config.url}: this must be the address of this server.")
    return problem(f"Webhooks to {config.url} are sent as forms: set their content type to application/json.")


def _list_merge_methods(repository: wire.Repository) -> Finding:
    methods = {
        "merge_commit": repository.allow_merge_commit,
        "squash": repository.allow_squash_merge,
        "rebase": repository.allow_rebase_merge,
    }
    allowed = ", ".join(method for method, is_allowed in methods.items() if is_allowed)
    return ok(f"The repository allows {allowed}. With `landing` set to `provider_merge`, GitHub refuses other methods.")


async def _check_required_checks(client: ForgeClient, branch: str) -> Finding:
    required = rules.select_required_contexts(await rules.read_required_checks(client, branch))
    if required:
        return ok(f"The branch {branch} requires {', '.join(required)}.")
    return problem(
        f"No rule of the branch {branch} names a required check, and nothing merges untested: require status checks "
        "there, or name them in .mergeyard.toml or in the queue's required checks."
    )


def _describe_bypass(bypass: Bypass, branch: str, identity: auth.Identity) -> Finding:
    is_app = identity.app_id is not None
    name = f"the app {identity.login.removesuffix('[bot]')}" if is_app else f"the account {identity.login}"
    account = f"T{name[1:]}"
    if not bypass.is_certain:
        return ok(
            f"GitHub does not show whether {name} can bypass {bypass.rule} of {branch}: if that rule "
            "requires reviews, make sure that the account is not on its bypass list."
        )
    if bypass.as_admin:
        situation = (
            f"{account} administers the repository, so {bypass.rule} of {branch}, which requires reviews, does not "
            "apply to it"
        )
        remedy = "give the account the role Write, or enable *Do not allow bypassing the above settings* in that rule"
    else:
        situation = f"{account} can bypass {bypass.rule}, which requires reviews on {branch}"
        remedy = (
            "set `landing` to `provider_merge`, so that GitHub merges and the queue needs no bypass, "
            f"and remove {name} from the bypass list of {bypass.rule}"
        )
    consequence = (
        "GitHub may report an unapproved pull request as mergeable, and the queue would then admit and merge it"
    )
    return problem(f"{situation}: {consequence}. To enforce approvals, {remedy}.")
