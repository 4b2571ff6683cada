"""Checks whether the queue has all that it needs on GitHub. Each finding says what to do."""

from mergeyard.adapters.forges.github import auth, rules, wire
from mergeyard.adapters.forges.github.rules import Bypass
from mergeyard.adapters.forges.github.wire import quote_segment, repo_api_path
from mergeyard.adapters.forges.http import ForgeClient, ForgeConfig, Reply, extract_error_detail
from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import Finding, HostUnavailable

ON_APP_PAGE = "on the app's page under Permissions & events"
ON_APP_PAGE_AND_ACCEPT = "on the app's page, and have the owner of the installation accept the change"


async def diagnose(clients: auth.GithubClients, access: ForgeConfig, repo: Repo | None) -> list[Finding]:
    """Stops at the first error, because the following checks depend on it."""
    found = [_check_webhook_secret(access)]
    try:
        found += await (_check_app(clients) if access.app else _check_token_owner(clients))
        if repo is not None:
            found += await (
                _check_installation(clients, repo) if access.app else _check_token_access(clients.own_client, repo)
            )
            found += await _check_repository(clients, repo)
    except HostUnavailable as error:
        found.append(Finding(False, str(error)))
    return found


def _check_webhook_secret(access: ForgeConfig) -> Finding:
    if access.webhook_secret:
        return Finding(True, "the webhook secret is set")
    return Finding(
        False,
        "`webhook_secret_file` is not set, so all webhooks are rejected: put the same long random text into that file "
        "and into the webhook on GitHub",
    )


# Authenticated as an app.


async def _check_app(clients: auth.GithubClients) -> list[Finding]:
    app = await clients.own_client.get_urgent("/app", wire.AppDetails)
    if app is None:
        return [Finding(False, "GitHub does not know an app with this id and key: check the id on the app's page")]
    signed_in = Finding(True, f"signed in as the app {app.name}")
    events = auth.check_events(app.events, ON_APP_PAGE)
    return [
        signed_in,
        *auth.check_permissions(app.permissions, ON_APP_PAGE),
        events,
        await _check_app_webhook(clients.own_client),
    ]


async def _check_app_webhook(client: ForgeClient) -> Finding:
    config = await client.get_urgent("/app/hook/config", wire.HookConfig)
    if config is None or not config.url:
        return Finding(
            False,
            "the app has no webhook: set its URL on the app's page to <public_url>/hooks/github/<name of this host>",
        )
    return _check_content_type(config)


async def _check_installation(clients: auth.GithubClients, repo: Repo) -> list[Finding]:
    installation = await clients.own_client.get_urgent(f"{repo_api_path(repo)}/installation", wire.Installation)
    if installation is None:
        raise auth.AppNotInstalled(f"the app is not installed in {repo}: install it there, or add the repository to it")
    if installation.suspended_at:
        return [Finding(False, f"the installation for {repo.owner} is suspended: unsuspend it in the settings there")]
    missing = [
        finding
        for finding in auth.check_permissions(installation.permissions, ON_APP_PAGE_AND_ACCEPT)
        if not finding.ok
    ]
    return [Finding(True, f"the app is installed in {repo}"), *missing]


# Authenticated with a token.


async def _check_token_owner(clients: auth.GithubClients) -> list[Finding]:
    return [Finding(True, f"signed in as {await clients.read_login()}")]


async def _check_token_access(client: ForgeClient, repo: Repo) -> list[Finding]:
    """Write permissions cannot be tested without writing: GitHub reveals only the role of the token's owner."""
    repository = await client.get_urgent(repo_api_path(repo), wire.Repository)
    if repository is None:
        return [Finding(False, f"the token does not see {repo}: add the repository to those that it can access")]
    found = [_check_push(repository)]
    branch = quote_segment(repository.default_branch)
    for title, path in (
        ("Pull requests", "/pulls?per_page=1"),
        ("Issues", "/issues?per_page=1"),
        ("Commit statuses", f"/commits/{branch}/status"),
        ("Checks", f"/commits/{branch}/check-runs"),
        ("Administration", f"/branches/{branch}/protection"),
    ):
        found.append(_check_readable(title, await client.send("GET", repo_api_path(repo) + path)))
    return [*found, await _check_repository_webhook(client, repo)]


def _check_push(repository: wire.Repository) -> Finding:
    needed = ", ".join(need.title for need in auth.REQUIRED_PERMISSIONS)
    if repository.permissions.get("push"):
        return Finding(
            True,
            "the owner of the token can push; GitHub does not show whether the token can as well, which needs "
            f"{needed}",
        )
    return Finding(False, "the owner of the token cannot push here: give them the role Write, or use another token")


def _check_readable(title: str, reply: Reply) -> Finding:
    if reply.is_success or reply.status == 404:
        return Finding(True, f"{title} can be read")
    needed = reply.headers.get("x-accepted-github-permissions", "")
    message = f"{title} cannot be read ({extract_error_detail(reply.body)}): grant it to the token"
    return Finding(False, f"{message} ({needed})" if needed else message)


async def _check_repository_webhook(client: ForgeClient, repo: Repo) -> Finding:
    reply = await client.send("GET", f"{repo_api_path(repo)}/hooks?per_page=100")
    if not reply.is_success:
        return Finding(
            True,
            "the token is not allowed to read the webhooks: check under Settings, Webhooks that there is one to "
            "<public_url>/hooks/github/<name of this host>",
        )
    hooks = [hook for hook in reply.decode(list[wire.Hook]) if hook.active and "/hooks/github/" in hook.config.url]
    if not hooks:
        return Finding(
            False,
            "no active webhook leads to us: add one under Settings, Webhooks with the URL "
            "<public_url>/hooks/github/<name of this host>, the content type application/json and the secret",
        )
    wrong = next((hook.config for hook in hooks if hook.config.content_type != "json"), None)
    return _check_content_type(wrong) if wrong else auth.check_events(hooks[0].events, "under Settings, Webhooks")


def _check_content_type(config: wire.HookConfig) -> Finding:
    if config.content_type == "json":
        return Finding(True, f"webhooks are sent to {config.url}")
    return Finding(False, f"webhooks to {config.url} are sent as forms: set their content type to application/json")


# For both.


async def _check_repository(clients: auth.GithubClients, repo: Repo) -> list[Finding]:
    client = await clients.for_repo(repo)
    repository = await client.get_urgent(repo_api_path(repo), wire.Repository)
    if repository is None:
        return []
    branch = repository.default_branch
    required = await _check_required_checks(client, repo, branch)
    return [_list_merge_methods(repository), required, *await _check_review_bypasses(clients, repo, branch)]


def _list_merge_methods(repository: wire.Repository) -> Finding:
    methods = {
        "merge_commit": repository.allow_merge_commit,
        "squash": repository.allow_squash_merge,
        "rebase": repository.allow_rebase_merge,
    }
    allowed = ", ".join(method for method, is_allowed in methods.items() if is_allowed)
    return Finding(True, f"GitHub merges here by {allowed}; others it refuses when `landing` is `provider_merge`")


async def _check_required_checks(client: ForgeClient, repo: Repo, branch: str) -> Finding:
    required = rules.select_required_contexts(await rules.read_required_checks(client, repo, branch))
    if required:
        return Finding(True, f"{branch} requires {', '.join(required)}")
    return Finding(
        False,
        f"no rule of {branch} names a required check, and nothing merges untested: require status checks there, or "
        "name them in .mergeyard.toml or in the queue's requiredStatuses",
    )


async def find_branch_warnings(clients: auth.GithubClients, repo: Repo, branch: str) -> list[str]:
    """The review rules of the branch that our account is known to be able to bypass."""
    return [finding.message for finding in await _check_review_bypasses(clients, repo, branch) if not finding.ok]


async def _check_review_bypasses(clients: auth.GithubClients, repo: Repo, branch: str) -> list[Finding]:
    identity = await clients.read_identity()
    bypasses = await rules.find_review_bypasses(await clients.for_repo(repo), repo, branch, identity)
    return [_describe_bypass(bypass, branch, identity) for bypass in bypasses]


def _describe_bypass(bypass: Bypass, branch: str, identity: auth.Identity) -> Finding:
    is_app = identity.app_id is not None
    account = f"the app {identity.login.removesuffix('[bot]')}" if is_app else f"the account {identity.login}"
    if not bypass.is_certain:
        return Finding(
            True,
            f"GitHub does not show whether {account} can bypass {bypass.rule} of {branch}: if that rule requires "
            "reviews, make sure that the account is not on its bypass list",
        )
    if bypass.as_admin:
        problem = (
            f"{account} administers the repository, so {bypass.rule} of {branch}, which requires reviews, does not "
            "apply to it"
        )
        remedy = "give the account the role Write, or enable *Do not allow bypassing the above settings* in that rule"
    else:
        problem = f"{account} can bypass {bypass.rule}, which requires reviews on {branch}"
        remedy = (
            "set `landing` to `provider_merge`, so that GitHub merges and the queue needs no bypass, "
            f"and remove {account} from the bypass list of {bypass.rule}"
        )
    consequence = (
        "GitHub may report an unapproved pull request as mergeable, and the queue would then admit and merge it"
    )
    return Finding(False, f"{problem}: {consequence}. To enforce approvals, {remedy}")
