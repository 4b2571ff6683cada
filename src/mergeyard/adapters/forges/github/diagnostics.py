"""Checks whether the queue has all that it needs on GitHub. Each finding says what to do."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.adapters.forges.github import auth, rules, wire
from mergeyard.adapters.forges.github.checks import Checks
from mergeyard.adapters.forges.github.rules import (
    CLASSIC_RULE,
    MAX_CHARS,
    PUSH_BYPASSES,
    SIGNATURES_TYPE,
    Account,
    AppliedRuleset,
    BypassActor,
    Rule,
)
from mergeyard.adapters.forges.host import advise, ok, problem
from mergeyard.adapters.forges.http import ForgeClient, Reply, quote_segment
from mergeyard.domain import ids
from mergeyard.domain.config import HeadBranchFallback, LandingMethod, MergeMethod
from mergeyard.domain.ids import Repo, Sha
from mergeyard.ports.forge import Finding, HostError, HostRefused, QueueSetup

ON_APP_PAGE = "on the app's page under Permissions & events"
ON_APP_PAGE_AND_ACCEPT = "on the app's page, and have the owner of the installation accept the change"
IN_SETTINGS = "under Settings, Webhooks"
TEST_BRANCH = f"{ids.TEST_BRANCH_PREFIX}pr-1/a0b1c2d3-0000-4000-8000-000000000000"
IGNORE_RULES = "set `unreadable_rules` of the Git host to `unknown`"
MAX_LISTED = 10
MAX_READ_COMMITS = 5
"""Of the target branch. CI does not run every check for every push, such as with filters for paths."""
NO_RULES_ON_PLAN = (
    "GitHub's plan for this private repository has no branch rules and no draft pull requests. Name the required "
    "checks in .mergeyard.toml or in the queue. With `createPrsForTestingBranches`, the queue opens ordinary pull "
    "requests for its test branches."
)
TITLES = {
    "creation": "*Restrict creations*",
    "update": "*Restrict updates*",
    "deletion": "*Restrict deletions*",
    "non_fast_forward": "*Block force pushes*",
    "merge_queue": "*Require merge queue*",
    "pull_request": "*Require a pull request before merging*",
    SIGNATURES_TYPE: "*Require signed commits*",
    "required_linear_history": "*Require linear history*",
    "required_status_checks": "*Require status checks to pass*",
}
"""As on GitHub's pages. Of other rules, the type is shown."""
PUSH_REFUSING_TYPES = frozenset({"pull_request", "update", "workflows"})
PULL_REQUEST_TYPES = frozenset({"workflows", "code_scanning", "code_quality", "code_coverage"})
"""GitHub runs what these require only for pull requests."""
PATTERN_TYPES = frozenset({"commit_message_pattern", "commit_author_email_pattern", "committer_email_pattern"})
COMMIT_TYPES = PATTERN_TYPES | PULL_REQUEST_TYPES | {"required_status_checks", "required_deployments"}
"""Whether these refuse a push depends on the commit."""
CREATION_TYPES = frozenset({"creation", "branch_name_pattern", SIGNATURES_TYPE, "required_status_checks", "workflows"})
TEST_BRANCH_TYPES = CREATION_TYPES | PUSH_REFUSING_TYPES | {"deletion", "non_fast_forward", "merge_queue"}
"""The queue creates and deletes test branches, and moves one when it gives up a landing."""
PATTERN_OPERATORS = {"starts_with": str.startswith, "ends_with": str.endswith, "contains": str.__contains__}
ACTOR_TITLES = {"Integration": "app {}", "Team": "team {}", "User": "user {}", "RepositoryRole": "repository role {}"}
FALLBACK_CASE = "GitHub merges the pull requests whose head branch the queue cannot move, such as from forks"
MERGE_BYPASSES = (*PUSH_BYPASSES, "pull_requests_only")


class Target(Struct, frozen=True):
    branch: str
    rulesets: tuple[AppliedRuleset, ...]
    is_classic_readable: bool
    checks: frozenset[str]


class SigningKey(Struct, frozen=True):
    fingerprint: str = ""
    """Empty: none is configured."""
    missing: str = ""
    """What our account lacks; empty if GitHub accepts the key, or no rule requires one."""

    def describe_remedy(self, ruleset: AppliedRuleset, account: Account) -> str:
        if account.app_id is not None and ruleset.name == CLASSIC_RULE:
            return f"GitHub accepts no keys of apps. Use a ruleset for this that {account.name} can bypass"
        if account.app_id is not None:
            return f"GitHub accepts no keys of apps, so {ruleset.describe_remedy(account)}"
        if self.missing.startswith((auth.IDENTITY_START, auth.FOREIGN_START)):
            return f"change the key or `committer_email` (not found: {self.missing})"
        setting = "" if self.fingerprint else "set `signing_key_file`, and "
        key = f"the signing key {self.fingerprint}" if self.fingerprint else "its public key"
        return f"{setting}add {key} to {account.name} under Settings, SSH and GPG keys"


class Diagnostics(auth.Authentication, Checks):
    async def diagnose(self, repo: Repo | None, queues: Sequence[QueueSetup] = ()) -> list[Finding]:
        """Stops at the first error, because the following checks depend on it."""
        found = [self._check_webhook_secret()]
        try:
            found += (
                await self._check_app() if self._config.app else [ok(f"Signed in as {await self._read_own_login()}.")]
            )
            if repo is not None:
                found += await (self._check_installation(repo) if self._config.app else self._check_token_access(repo))
                found += await self._check_repository(repo, queues)
        except HostError as error:
            found.append(problem(str(error)))
        return list(dict.fromkeys(found))

    async def branch_warnings(self, repo: Repo, queue: QueueSetup) -> list[str]:
        """Why the queue cannot merge into its target branch, or merges without what a rule requires."""
        account = await self._read_account(client := await self._client_for(repo))
        target = await self._read_target(client, queue.branch, account)
        return [
            finding.message for finding in await self._check_landing(client, queue, target, account) if not finding.ok
        ]

    async def _check_app(self) -> list[Finding]:
        app = await self._client.get("/app", wire.AppDetails, urgent=True)
        if app is None:
            return [problem("GitHub does not know an app with this id and key: check the id on the app's page.")]
        hook = await self._client.get("/app/hook/config", wire.HookConfig, urgent=True)
        return [
            ok(f"Signed in as the app {app.name}."),
            *auth.check_permissions(app.permissions, ON_APP_PAGE),
            auth.check_events(app.events, ON_APP_PAGE),
            self._check_hook(hook or wire.HookConfig(), "on the app's page"),
        ]

    async def _check_installation(self, repo: Repo) -> list[Finding]:
        """Reads the installation again: a cached one can have been suspended since."""
        installation = await self._client.get(f"{self._api_path(repo)}/installation", wire.Installation, urgent=True)
        if installation is None:
            raise auth.AppNotInstalled(repo)
        if installation.suspended_at:
            return [problem(f"The installation for {repo.owner} is suspended: unsuspend it in the settings there.")]
        permissions = auth.check_permissions(installation.permissions, ON_APP_PAGE_AND_ACCEPT)
        found = [ok(f"The app is installed in {repo}."), *(finding for finding in permissions if not finding.ok)]
        lacking = [each for each in auth.OPTIONAL_PERMISSIONS if each.permission not in installation.permissions]
        return found + [advise(f"{each.title} is not granted. It is needed only {each.purpose}.") for each in lacking]

    async def _list_lacking_permissions(self, repo: Repo) -> set[str]:
        """What an app lacks; what a token lacks is not known."""
        if self._installations is None:
            return set()
        installation = await self._installations.get_installation(self.canonical_repo(repo), self._api_path(repo))
        return {each.permission for each in auth.OPTIONAL_PERMISSIONS} - installation.permissions.keys()

    async def _check_token_access(self, repo: Repo) -> list[Finding]:
        """Write permissions cannot be tested without writing: GitHub reveals only the role of the token's owner."""
        client = await self._client_for(repo)
        repository = await client.get("", wire.Repository, urgent=True)
        if repository is None:
            return [problem(f"The token cannot read {repo}: add the repository to those that it can access.")]
        tip = f"/commits/{quote_segment(repository.default_branch)}"
        paths = {"Pull requests": "/pulls?per_page=1", "Issues": "/issues?per_page=1"}
        paths |= {"Commit statuses": f"{tip}/status", "Checks": f"{tip}/check-runs"}
        readable = [_check_readable(title, await client.send("GET", path)) for title, path in paths.items()]
        return [_check_push(repository), *readable, *await self._check_repository_webhook(client)]

    @property
    def _hook_url(self) -> str:
        return f"{self._config.public_url or '<public_url>'}/hooks/github/{self.name}"

    def _is_ours(self, url: str) -> bool:
        return url == self._hook_url if self._config.public_url else url.endswith(f"/hooks/github/{self.name}")

    async def _check_repository_webhook(self, client: ForgeClient) -> list[Finding]:
        reply = await client.send("GET", "/hooks?per_page=100")
        if not reply.is_success:
            return [
                advise(f"The token lacks Webhooks: Read-only. Check {IN_SETTINGS} that one points at {self._hook_url}.")
            ]
        hooks = [hook for hook in reply.decode(list[wire.Hook]) if self._is_ours(hook.config.url)]
        if not hooks:
            return [self._check_hook(wire.HookConfig(), IN_SETTINGS)]
        hook = max(hooks, key=lambda hook: hook.active)
        if not hook.active:
            return [problem(f"The webhook to {self._hook_url} is switched off: make it active {IN_SETTINGS}.")]
        return [self._check_hook(hook.config, IN_SETTINGS), auth.check_events(hook.events, IN_SETTINGS)]

    def _check_hook(self, config: wire.HookConfig, where: str) -> Finding:
        url = config.url[:MAX_CHARS]
        if not self._is_ours(config.url) or config.content_type != "json":
            actual = f"The webhook points at {url} and sends {config.content_type}" if url else "There is no webhook"
            return problem(
                f"{actual}: {where}, set its URL to {self._hook_url}, its content type to application/json, and its "
                "secret to the text in `webhook_secret_file`."
            )
        if self._config.public_url is None:
            return advise(
                f"Webhooks are sent to {url}. Set `public_url`, so that this address can be compared with it."
            )
        return ok(f"Webhooks are sent to this server: {url}.")

    async def _check_repository(self, repo: Repo, queues: Sequence[QueueSetup]) -> list[Finding]:
        """Without a queue, the default branch is checked, and what each kind of landing would need is only advice."""
        client, found = await self._client_for(repo), list[Finding]()
        lacking = await self._list_lacking_permissions(repo)
        repository = await client.read_repository(wire.Repository, urgent=True)
        planned = [QueueSetup(branch=repository.default_branch, landing=landing) for landing in LandingMethod]
        setups, account = sorted(queues, key=lambda queue: queue.branch) or planned, await self._read_account(client)
        targets = await asyncio.gather(*(self._read_target(client, setup.branch, account) for setup in setups))
        allowed = (repository.allow_merge_commit, repository.allow_squash_merge, repository.allow_rebase_merge)
        methods = dict(zip(MergeMethod, allowed, strict=True))
        for setup, target in zip(setups, targets, strict=True):
            landing = await self._check_landing(client, setup, target, account)
            landing += judge_permissions(target, lacking)
            landing += _check_method(setup, is_allowed=methods[setup.merge_method])
            advice = f"Before you create a queue with `landing` set to `{setup.landing}`: "
            found += landing if queues else [advise(advice + each.message) for each in landing if not each.ok]
            found.append(_check_required_checks(target, setup.reported_checks))
            found += await self._check_push_checks(client, setup, target)
            found += judge_target(target, account)
        return found + await self._check_test_branches(client, account)

    async def _check_push_checks(self, client: ForgeClient, queue: QueueSetup, target: Target) -> list[Finding]:
        """GitHub requires a check by its name, whatever event it runs for. One that runs only for pull requests is
        never reported on a test branch. The last commits of the target branch were pushed, as test branches are, so
        they show that before the first run."""
        required = _list_required(target)
        if not required or not queue.needs_push_checks or queue.reported_checks is not None:
            return []
        reported = await self._read_last_checks(client, queue.branch)
        if reported is None:
            return []
        missing = [name for name in required if name.lower() not in reported]
        return [_describe_pull_request_checks(queue.branch, missing)] if missing else []

    async def _read_last_checks(self, client: ForgeClient, branch: str) -> set[str] | None:
        """The names in lower case; None where GitHub does not show them."""
        query = {"sha": branch, "per_page": MAX_READ_COMMITS}
        found = set[str]()
        try:
            commits = await client.get("/commits", list[wire.ListedCommit], query)
            for commit in commits or ():
                reports = await self._read_reports(client, Sha(commit.sha), ())
                found |= {report.status.context.lower() for report in reports}
        except HostRefused:
            return None  # without a commit GitHub answers 409; another finding names a missing permission
        return found

    async def _check_landing(
        self, client: ForgeClient, queue: QueueSetup, target: Target, account: Account
    ) -> list[Finding]:
        key = await self._read_key(client, target.rulesets)
        found = [*judge_landing(queue, target, account, key)]
        found += judge_unreadable(target, account, blocks=self._config.unreadable_rules_block)
        if _can_fall_back(queue):
            found += judge_fallback(queue, target, account, key)
        if _moves_heads(queue) and not self._can_push_to_forks:
            reason = f"{_start(account.name)} cannot move branches of forks, because only a classic token can"
            found.append(advise(f"{reason}: choose with `headBranchFallback` how pull requests from forks merge."))
        return found

    async def _read_key(self, client: ForgeClient, found: Iterable[AppliedRuleset]) -> SigningKey:
        """Asks GitHub only if a rule requires signatures."""
        is_needed = any(SIGNATURES_TYPE in ruleset.types for ruleset in found)
        missing = await self._find_missing_key(client) if is_needed else ""
        fingerprint = self._config.signer.fingerprint if self._config.signer else ""
        return SigningKey(fingerprint, missing)

    async def _read_account(self, client: ForgeClient) -> Account:
        identity = await self._read_identity()
        if identity.app_id is not None:
            return Account(f"the app {identity.login.removesuffix('[bot]')}", identity.login, identity.app_id)
        is_admin = bool((await client.read_repository(wire.Repository, urgent=True)).permissions.get("admin"))
        name = f"the account {identity.login}"
        return Account(name, identity.login, is_admin=is_admin, user_id=identity.user_id)

    async def _read_target(self, client: ForgeClient, branch: str, account: Account) -> Target:
        classic = await rules.read_classic_protection(client, branch, rules.ClassicRule)
        rulesets = await self._apply_rulesets(client, await rules.read_rules(client, branch))
        checks = frozenset(check.context for check in await rules.read_required_checks(client, branch))
        applied = rules.apply_classic(classic or rules.ClassicRule(), account)
        return Target(branch, (*applied, *rulesets), classic is not None, checks)

    async def _check_test_branches(self, client: ForgeClient, account: Account) -> list[Finding]:
        payloads = await rules.list_rule_payloads(client, TEST_BRANCH)
        if payloads is None:
            return [advise(NO_RULES_ON_PLAN)]
        refusing = filter(None, map(_find_refusing_rule, payloads))
        applied = await self._apply_rulesets(client, refusing)
        return judge_test_branches(applied, account, await self._read_key(client, applied))

    async def _apply_rulesets(self, client: ForgeClient, found: Iterable[Rule]) -> list[AppliedRuleset]:
        return await rules.apply_rulesets(client, found, (await self._read_identity()).app_id)


def _check_push(repository: wire.Repository) -> Finding:
    needed = ", ".join(need.title for need in auth.REQUIRED_PERMISSIONS)
    if repository.permissions.get("push"):
        return ok(f"The owner of the token can push. GitHub does not show whether the token can: it needs {needed}.")
    return problem("The owner of the token cannot push here: give them the role Write, or use another token.")


def _check_readable(title: str, reply: Reply) -> Finding:
    """GitHub answers 403 or 404 to a token without the permission, 410 where issues are turned off, and 409 or 422
    while the repository has no commit."""
    if reply.is_success:
        return ok(f"{title} can be read.")
    if reply.status in (409, 410, 422):
        cause = "Issues are turned off" if reply.status == 410 else "There is no commit yet"
        return advise(f"{cause}, so GitHub does not show whether the token can read {title}. The queue needs that.")
    needed = reply.headers.get("x-accepted-github-permissions", "")
    message = f"{title} cannot be read ({reply.detail}): grant it to the token"
    return problem(f"{message} ({needed})." if needed else f"{message}.")


def _find_refusing_rule(payload: rules.RulePayload) -> Rule | None:
    """The rule, if it can refuse test branches. A regular expression is shown instead of evaluated."""
    kind, given = payload.type, payload.parameters or {}
    is_satisfied, pattern = bool(given.get("do_not_enforce_on_create")), str(given.get("pattern"))
    if kind == "branch_name_pattern":
        matches = PATTERN_OPERATORS.get(str(given.get("operator")))
        is_satisfied = matches is not None and matches(TEST_BRANCH, pattern) is not bool(given.get("negate"))
        kind = kind if matches else f"{kind} {pattern}"
    return None if is_satisfied else Rule(kind, ruleset_id=payload.ruleset_id, ruleset_source=payload.ruleset_source)


def _moves_heads(queue: QueueSetup) -> bool:
    return queue.landing is LandingMethod.TESTED_COMMIT and queue.merge_method is not MergeMethod.MERGE_COMMIT


def _can_fall_back(queue: QueueSetup) -> bool:
    """Whether GitHub merges the pull requests whose head branch the queue cannot move."""
    return _moves_heads(queue) and queue.head_branch_fallback is HeadBranchFallback.PROVIDER_MERGE


def _check_method(queue: QueueSetup, *, is_allowed: bool) -> list[Finding]:
    refused, allow = f"The repository refuses {queue.merge_method}", "allow it under Settings, General"
    if not is_allowed and queue.landing is LandingMethod.PROVIDER_MERGE:
        return [problem(f"{refused}: {allow}.")]
    if is_allowed or not _can_fall_back(queue):
        return []
    case = f"GitHub cannot merge pull requests into {queue.branch} whose head branch cannot be moved"
    return [advise(f"{refused}, so {case}: {allow}, or set `headBranchFallback` to `close`.")]


def judge_fallback(queue: QueueSetup, target: Target, account: Account, key: SigningKey) -> Iterator[Finding]:
    """What GitHub refuses, or can refuse, where it merges instead of the queue. All other pull requests merge without
    that, so it is only advice."""
    told = {finding.message for finding in judge_landing(queue, target, account, key)}
    merges = replace(queue, landing=LandingMethod.PROVIDER_MERGE)
    for finding in judge_landing(merges, target, account, key, otherwise="`headBranchFallback` to `close`"):
        if finding.message not in told:
            yield advise(f"{FALLBACK_CASE}: {finding.message}")


def judge_landing(
    queue: QueueSetup,
    target: Target,
    account: Account,
    key: SigningKey,
    otherwise: str = "`landing` to `tested_commit`",
) -> Iterator[Finding]:
    """What GitHub refuses to the queue, or can refuse. `otherwise` is the setting with which the queue needs no merge
    of GitHub."""
    pushes = queue.landing is LandingMethod.TESTED_COMMIT
    what = "push to" if pushes else f"merges by {queue.merge_method} into"
    action = f"the queue's {what} {queue.branch}"
    bypasses, refusing = (PUSH_BYPASSES, set(PUSH_REFUSING_TYPES)) if pushes else (MERGE_BYPASSES, {"update"})
    unsigned = set[str]() if pushes else {SIGNATURES_TYPE}  # GitHub documents that it does not sign what it rebases
    by_method = {MergeMethod.MERGE_COMMIT: {"required_linear_history"}, MergeMethod.REBASE: unsigned}
    refusing |= by_method.get(queue.merge_method, set[str]())
    for ruleset in target.rulesets:
        name, remedy = _start(ruleset.name), ruleset.describe_remedy(account)
        parameters = [rule.parameters for rule in ruleset.rules]
        if "merge_queue" in ruleset.types:
            yield problem(f"{name} requires GitHub's own merge queue on {queue.branch}: turn this rule off.")
        if types := ruleset.types & PULL_REQUEST_TYPES:
            advice = "set `createPrsForTestingBranches`, and it runs for test branches too"
            yield advise(f"GitHub runs what {ruleset.name} requires ({_list(types)}) only for pull requests: {advice}.")
        if ruleset.bypass in bypasses:
            continue
        if pushes and SIGNATURES_TYPE in ruleset.types and key.missing:
            sign = f"{key.describe_remedy(ruleset, account)}, or set `landing` to `provider_merge`"
            yield _describe_refusal(ruleset, f"{action} ({TITLES[SIGNATURES_TYPE]})", sign, account)
        if not pushes and queue.merge_method is MergeMethod.SQUASH and SIGNATURES_TYPE in ruleset.types:
            limit = (
                "GitHub documents that only the author of a pull request can squash it there. Users report that apps "
                "can, and that unsigned commits block it"
            )
            way = f"If GitHub refuses, {remedy}, or set {otherwise}"
            yield advise(f"{name} can refuse {action} ({TITLES[SIGNATURES_TYPE]}): {limit}. {way}.")
        if types := ruleset.types & refusing:
            way = ", or set `landing` to `provider_merge`" if types <= PUSH_REFUSING_TYPES - {"update"} else ""
            way = f", or set {otherwise}" if types <= {SIGNATURES_TYPE} else way
            yield _describe_refusal(ruleset, f"{action} ({_list(types)})", remedy + way, account)
        contexts = {check.context.lower() for each in parameters for check in each.required_status_checks}
        if pushes and ids.STATUS_CONTEXT in contexts:
            reason = "The queue reports it only on the heads of pull requests: remove it there"
            yield problem(f"{name} requires the check {ids.STATUS_CONTEXT}, and so refuses {action}. {reason}.")
        elif pushes and (types := ruleset.types & COMMIT_TYPES - refusing):
            example = "such as the untested commits of parallel mode and of direct merges"
            yield advise(f"{name} can refuse {action} for some commits ({_list(types)}), {example}: {remedy}.")
        if not pushes and any(each.strict_required_status_checks_policy for each in parameters):
            setting = "*Require branches to be up to date before merging*"
            way = f"turn {setting} off there, or set {otherwise}"
            yield problem(f"{name} refuses pull requests without the tip of {queue.branch}: {way}.")
        allowed = [each.allowed_merge_methods for each in parameters if each.allowed_merge_methods]
        if not pushes and any(queue.merge_method.removesuffix("_commit") not in each for each in allowed):
            yield problem(f"{name} refuses the merge method {queue.merge_method}: allow it there, or choose another.")


def _describe_refusal(ruleset: AppliedRuleset, refused: str, remedy: str, account: Account) -> Finding:
    if ruleset.bypass is None:
        unknown = f"GitHub does not show whether {account.name} can bypass {ruleset.name}"
        return advise(f"{unknown}. If not, it refuses {refused}: {remedy}.")
    hint = "" if ruleset.bypass == "never" else ". A bypass for pull requests only does not allow a push"
    return problem(f"{_start(ruleset.name)} refuses {refused}: {remedy}{hint}.")


def judge_unreadable(target: Target, account: Account, *, blocks: bool) -> Iterator[Finding]:
    """Rules that the queue cannot read or judge. GitHub enforces them only if our account cannot bypass them."""
    follows = "Until then, pull requests wait" if blocks else "Until then, the queue merges without them"
    if not target.is_classic_readable:
        grant = "Administration: Read-only to the app" if account.app_id else f"the role Admin to {account.name}"
        yield problem(f"{_start(CLASSIC_RULE)} of {target.branch} cannot be read: grant {grant}. {follows}.")
    for ruleset in (ruleset for ruleset in target.rulesets if ruleset.name != CLASSIC_RULE):
        unjudged = {name for rule in ruleset.rules for name in rule.unjudged}
        if unjudged and ruleset.bypass != "never":
            remedy = f"move them to a ruleset that {account.name} cannot bypass, or remove them"
            remedy += f", or {IGNORE_RULES}" if blocks else ""
            yield problem(f"The queue cannot check rules of {ruleset.name} ({_list(unjudged)}): {remedy}. {follows}.")


def judge_permissions(target: Target, lacking: Collection[str]) -> Iterator[Finding]:
    """Optional permissions that a rule of this branch makes necessary."""
    parameters = [rule.parameters for ruleset in target.rulesets for rule in ruleset.rules]
    needed = {
        "members": any(each.required_reviewers for each in parameters),
        "deployments": any(each.required_deployment_environments for each in parameters),
    }
    for permission in auth.OPTIONAL_PERMISSIONS:
        if permission.permission in lacking and needed[permission.permission]:
            grant = f"grant {permission.title} {ON_APP_PAGE_AND_ACCEPT}"
            yield problem(f"The queue cannot read what a rule of {target.branch} requires: {grant}.")


def judge_target(target: Target, account: Account) -> Iterator[Finding]:
    """Who can bypass the rules of the branch, and whether people can merge without the queue."""
    for ruleset in target.rulesets:
        name, actors = ruleset.name, [_describe_actor(each, account) for each in ruleset.actors or ()]
        if ruleset.actors is None:
            own = f"look under Settings, Rules, Rulesets. Bypass of {account.name}: {ruleset.bypass or 'unknown'}"
            yield advise(f"GitHub shows who can bypass {name} only to accounts that can edit it: {own}.")
        else:
            yield ok(f"{_start(name)} ({_list(ruleset.types)}) can be bypassed by {_join(actors) or 'no account'}.")
        if ruleset.bypass in MERGE_BYPASSES and any(rule.requires_reviews for rule in ruleset.rules):
            yield ok(
                f"{_start(account.name)} can bypass the reviews that {name} requires. The queue reads the reviews "
                "itself, and merges without them only what is forced."
            )
    restricting = [ruleset for ruleset in target.rulesets if "update" in ruleset.types]
    name = restricting[0].name if restricting else "a new ruleset with *Restrict updates*"
    advice = f"have only {account.on_list} on the bypass list of {name}"
    if any(each.actors and all(map(account.is_actor, each.actors)) for each in restricting):
        yield ok(f"No account but the queue's can merge into {target.branch}.")
    elif any(each.actors is None for each in restricting):
        yield advise(f"GitHub does not show whether only the queue can merge into {target.branch}. For that, {advice}.")
    elif restricting:
        yield advise(f"All who can bypass {name} can merge into {target.branch}. For a mandatory queue, {advice}.")
    elif target.is_classic_readable:
        yield advise(f"Others can merge into {target.branch} without the queue. To prevent that, {advice}.")


def judge_test_branches(rulesets: Iterable[AppliedRuleset], account: Account, key: SigningKey) -> list[Finding]:
    """Also with an accepted key, a merge commit contains the commits of the pull request, signed or not."""
    found, refusing = list[Finding](), TEST_BRANCH_TYPES - (set[str]() if key.missing else {SIGNATURES_TYPE})
    for ruleset in (ruleset for ruleset in rulesets if ruleset.bypass not in PUSH_BYPASSES):
        remedy = f"exclude `{ids.TEST_BRANCH_PREFIX}**/*` there, or {ruleset.describe_remedy(account)}"
        if types := ruleset.types & refusing:
            found.append(_describe_refusal(ruleset, f"test branches ({_list(types)})", remedy, account))
        if types := {each for each in ruleset.types - refusing if "_pattern" in each or each == SIGNATURES_TYPE}:
            found.append(advise(f"{_start(ruleset.name)} can refuse test branches ({_list(types)}): if so, {remedy}."))
    return found or [ok("No ruleset refuses test branches. GitHub does not show classic rules that cover them.")]


def _list_required(target: Target) -> list[str]:
    """Without our own status. GitHub ignores the case of names."""
    return sorted(name for name in target.checks if name.lower() != ids.STATUS_CONTEXT)


def _describe_pull_request_checks(branch: str, missing: Sequence[str]) -> Finding:
    event = f"let CI run it on pushes to `{ids.TEST_BRANCH_PREFIX}**`"
    names = "name the checks of test branches in `requiredStatuses`"
    return advise(
        f"CI reported no {_join(missing)} on the last commits of {branch}. A check that runs only for pull requests is "
        f"never reported on a test branch: {event}, set `createPrsForTestingBranches`, or {names}."
    )


def _check_required_checks(target: Target, reported: Collection[str] | None) -> Finding:
    required = _list_required(target)
    known = {name.lower() for name in reported or ()}
    missing = [name for name in required if reported is not None and name.lower() not in known]
    if missing:
        remedy = f"run CI on pushes to `{ids.TEST_BRANCH_PREFIX}**`, or correct the names in the rule"
        return problem(f"CI did not report {_join(missing)} on the last test branches of {target.branch}: {remedy}.")
    if required:
        return ok(f"The branch {target.branch} requires {_join(required)}.")
    return problem(
        f"No rule of the branch {target.branch} names a required check, and nothing merges untested: require status "
        "checks there, or name them in .mergeyard.toml or in the queue's required checks."
    )


def _describe_actor(actor: BypassActor, account: Account) -> str:
    title = ACTOR_TITLES.get(actor.actor_type)
    other = actor.actor_type[:MAX_CHARS] if title is None else title.format(actor.actor_id)
    mode = actor.bypass_mode.replace("pull_request", "for pull requests only")
    return f"{account.name if account.is_actor(actor) else other} ({mode})"


def _list(types: Iterable[str]) -> str:
    return _join([TITLES.get(each, each[:MAX_CHARS]) for each in sorted(types)])


def _join(names: Sequence[str]) -> str:
    hidden = len(names) - MAX_LISTED
    shown = [*names[:MAX_LISTED], f"{hidden} more"] if hidden > 0 else names
    return auth.join_with_and(shown) if shown else ""


def _start(text: str) -> str:
    return text[:1].upper() + text[1:]
