"""Finds out what the service needs at GitHub and does not have, and says in plain words what to do."""

from mergeyard.adapters.forges.access import Access
from mergeyard.adapters.forges.calling import Caller, Reply, words_of
from mergeyard.adapters.forges.github import protection, wire
from mergeyard.adapters.forges.github.callers import Callers, Identity
from mergeyard.adapters.forges.github.installations import NotInstalled
from mergeyard.adapters.forges.github.names import place, segment
from mergeyard.adapters.forges.github.permissions import NEEDS, of_app, of_events
from mergeyard.adapters.forges.github.protection import Bypass
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Finding
from mergeyard.ports.host import HostTrouble

ON_THE_APPS_PAGE = "on the app's page under Permissions & events"
ACCEPT = "on the app's page, and have whoever installed it accept the change"


async def findings(callers: Callers, access: Access, repo: Repo | None) -> list[Finding]:
    """Stops where nothing further can be known."""
    found = [_secret(access)]
    try:
        found += await (_app(callers) if access.app else _owner_of_token(callers))
        if repo is not None:
            found += await (_installation(callers, repo) if access.app else _reach_of_token(callers.own, repo))
            found += await _repository(callers, repo)
    except HostTrouble as trouble:
        found.append(Finding(False, str(trouble)))
    return found


def _secret(access: Access) -> Finding:
    if access.webhook_secret:
        return Finding(True, "the secret of webhooks is set")
    words = "no webhook is believed without a secret: put the same long random text into that file and at GitHub"
    return Finding(False, f"`webhook_secret_file` is not set, and {words}")


# As an app.


async def _app(callers: Callers) -> list[Finding]:
    page = await callers.own.get_now("/app", wire.AppPage)
    if page is None:
        return [Finding(False, "GitHub knows no app with this id and key: check the id on the app's page")]
    signed_in = Finding(True, f"signed in as the app {page.name}")
    events = of_events(page.events, ON_THE_APPS_PAGE)
    return [signed_in, *of_app(page.permissions, ON_THE_APPS_PAGE), events, await _hook_of_app(callers.own)]


async def _hook_of_app(app: Caller) -> Finding:
    config = await app.get_now("/app/hook/config", wire.HookConfig)
    if config is None or not config.url:
        words = "set its URL on the app's page to <public_url>/hooks/github/<name of this host>"
        return Finding(False, f"the app has no webhook: {words}")
    return _content_type(config)


async def _installation(callers: Callers, repo: Repo) -> list[Finding]:
    installation = await callers.own.get_now(f"{place(repo)}/installation", wire.Installation)
    if installation is None:
        raise NotInstalled(f"the app is not installed in {repo}: install it there, or add the repository to it")
    if installation.suspended_at:
        return [Finding(False, f"the installation for {repo.owner} is suspended: unsuspend it in the settings there")]
    lacking = [finding for finding in of_app(installation.permissions, ACCEPT) if not finding.fine]
    return [Finding(True, f"the app is installed in {repo}"), *lacking]


# With a token.


async def _owner_of_token(callers: Callers) -> list[Finding]:
    return [Finding(True, f"signed in as {await callers.name()}")]


async def _reach_of_token(caller: Caller, repo: Repo) -> list[Finding]:
    """What it may write cannot be tried without writing: of that GitHub tells only the role of its owner."""
    page = await caller.get_now(place(repo), wire.Repository)
    if page is None:
        return [Finding(False, f"the token does not see {repo}: add the repository to those that it may access")]
    found = [_may_push(page)]
    branch = segment(page.default_branch)
    for title, path in (
        ("Pull requests", "/pulls?per_page=1"),
        ("Issues", "/issues?per_page=1"),
        ("Commit statuses", f"/commits/{branch}/status"),
        ("Checks", f"/commits/{branch}/check-runs"),
        ("Administration", f"/branches/{branch}/protection"),
    ):
        found.append(_readable(title, await caller.send("GET", place(repo) + path)))
    return [*found, await _hook_of_repository(caller, repo)]


def _may_push(page: wire.Repository) -> Finding:
    needed = ", ".join(need.title for need in NEEDS)
    if page.permissions.get("push"):
        return Finding(
            True, f"its owner may push; whether the token may as well GitHub does not tell, it needs {needed}"
        )
    return Finding(False, "the owner of the token may not push here: give them the role Write, or take another token")


def _readable(title: str, reply: Reply) -> Finding:
    if reply.fine or reply.status == 404:
        return Finding(True, f"{title} can be read")
    needed = reply.headers.get("x-accepted-github-permissions", "")
    words = f"{title} cannot be read ({words_of(reply.body)}): grant it to the token"
    return Finding(False, f"{words} ({needed})" if needed else words)


async def _hook_of_repository(caller: Caller, repo: Repo) -> Finding:
    reply = await caller.send("GET", f"{place(repo)}/hooks?per_page=100")
    if not reply.fine:
        words = (
            "see yourself under Settings, Webhooks that there is one to <public_url>/hooks/github/<name of this host>"
        )
        return Finding(True, f"the token may not see the webhooks: {words}")
    hooks = [hook for hook in reply.read(list[wire.Hook]) if hook.active and "/hooks/github/" in hook.config.url]
    if not hooks:
        words = "add one under Settings, Webhooks with the URL <public_url>/hooks/github/<name of this host>"
        return Finding(
            False, f"no active webhook leads to us: {words}, the content type application/json and the secret"
        )
    wrong = next((hook.config for hook in hooks if hook.config.content_type != "json"), None)
    return _content_type(wrong) if wrong else of_events(hooks[0].events, "under Settings, Webhooks")


def _content_type(config: wire.HookConfig) -> Finding:
    if config.content_type == "json":
        return Finding(True, f"webhooks are sent to {config.url}")
    return Finding(False, f"webhooks to {config.url} are sent as forms: set their content type to application/json")


# Either way.


async def _repository(callers: Callers, repo: Repo) -> list[Finding]:
    caller = await callers.of(repo)
    page = await caller.get_now(place(repo), wire.Repository)
    if page is None:
        return []
    branch = page.default_branch
    return [_merge_methods(page), await _required(caller, repo, branch), *await _reviews(callers, repo, branch)]


def _merge_methods(page: wire.Repository) -> Finding:
    ways = {
        "merge_commit": page.allow_merge_commit,
        "squash": page.allow_squash_merge,
        "rebase": page.allow_rebase_merge,
    }
    allowed = ", ".join(way for way, may in ways.items() if may)
    return Finding(True, f"GitHub merges here by {allowed}; others it refuses when `landing` is `provider_merge`")


async def _required(caller: Caller, repo: Repo, branch: str) -> Finding:
    required = protection.contexts(await protection.required_checks(caller, repo, branch))
    if required:
        return Finding(True, f"{branch} requires {', '.join(required)}")
    words = "require status checks there, or name them in .mergeyard.toml or in the queue's requiredStatuses"
    return Finding(
        False, f"nothing that protects {branch} names a required status, and nothing merges untested: {words}"
    )


async def branch_warnings(callers: Callers, repo: Repo, branch: str) -> list[str]:
    """The review rules of the branch that we are known to be able to bypass."""
    return [finding.words for finding in await _reviews(callers, repo, branch) if not finding.fine]


async def _reviews(callers: Callers, repo: Repo, branch: str) -> list[Finding]:
    us = await callers.identity()
    bypasses = await protection.review_bypasses(await callers.of(repo), repo, branch, us)
    return [_bypass(bypass, branch, us) for bypass in bypasses]


def _bypass(bypass: Bypass, branch: str, us: Identity) -> Finding:
    who = f"the account {us.login}" if us.app_id is None else f"the app {us.login.removesuffix('[bot]')}"
    if not bypass.is_certain:
        words = f"GitHub does not show whether {who} can bypass {bypass.rule} of {branch}"
        return Finding(
            True, f"{words}: see to it that it is not on that rule's bypass list if the rule requires reviews"
        )
    if bypass.as_admin:
        what = f"{who} administers the repository, so {bypass.rule} of {branch}, which requires reviews, does not apply"
        remedy = "give the account the role Write, or enable *Do not allow bypassing the above settings* in that rule"
    else:
        what = f"{who} can bypass {bypass.rule}, which requires reviews on {branch}"
        remedy = (
            "set `landing` to `provider_merge`, so that GitHub merges and the queue needs no bypass, "
            f"and remove {who} from the bypass list of {bypass.rule}"
        )
    follows = "GitHub may show it an unapproved pull request as mergeable, and the queue would admit and merge that"
    return Finding(False, f"{what}: {follows}. To have approvals enforced, {remedy}")
