"""Who can push and merge in a project, and whether it is configured as the queue needs it. Each finding has advice."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime

from mergeyard.adapters.forges.gitlab import merging, wire
from mergeyard.adapters.forges.gitlab.checks import PIPELINE
from mergeyard.adapters.forges.gitlab.merge_requests import PAGE_QUERY, PUSH_RULE, read_rules
from mergeyard.adapters.forges.host import ForgeHost, advise, ok, problem
from mergeyard.adapters.forges.http import ForgeClient, quote_segment
from mergeyard.domain import ids
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import SECOND
from mergeyard.ports.forge import Finding, HostError, HostRefused, HostUnavailable, QueueSetup

SCOPE = "api"
MIN_TOKEN_DAYS_LEFT = 14
EXAMPLE_RUN = "01234567-89ab-4cde-8f01-23456789abcd"
EXAMPLE_TEST_BRANCH = f"{ids.TEST_BRANCH_PREFIX}pr-1/{EXAMPLE_RUN}"
EXAMPLE_SUBJECT = "Merge request 1: A change"
BASE_RUN_SUBJECT = "Test the target branch itself"
PROTECTED_BRANCHES = "(Settings > Repository > Protected branches)"
PUSH_RULES = "(Settings > Repository > Push rules)"
WEBHOOKS = "(Settings > Webhooks)"
GIVE_ROLE = "give its account the role"
NO_ONE = "No one"
MAX_NAMES = 5
MAX_TEXT_CHARS = 100
EVENTS = {
    "push_events": "Push events",
    "note_events": "Comments",
    "merge_requests_events": "Merge request events",
    "job_events": "Job events",
    "pipeline_events": "Pipeline events",
}

Check = Callable[[], Awaitable[list[Finding]]]


class Diagnostics(ForgeHost):
    _account: wire.User | None = None

    async def _read_account(self) -> wire.User:
        """Our own account. Cached indefinitely: a token belongs to one account."""
        if self._account is None:
            self._account = await self._client.get("/user", wire.User)
        if self._account is None:
            raise HostUnavailable(f"{self.forge_name} does not report the account of our token")
        return self._account

    async def diagnose(self, repo: Repo | None, queues: Sequence[QueueSetup] = ()) -> Sequence[Finding]:
        found = await _run_check("The token", self._check_token)
        found.append(self._check_webhook_secret())
        if repo is None:
            return found
        return found + await _run_check(str(repo), lambda: self._check_project(repo, queues))

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

    async def _check_project(self, repo: Repo, queues: Sequence[QueueSetup]) -> list[Finding]:
        client = await self._client_for(repo)
        project = await client.get("", wire.Project)
        if project is None:
            message = (
                f"The token cannot read {repo}: check its name, or add its account to the members. If that is so for "
                "every project, check that the proxy in front of GitLab does not decode %2F in addresses."
            )
            return [problem(message)]
        if project.archived:
            return [problem(f"{repo} is archived, so the queue cannot change it: unarchive it (Settings > General).")]
        account = await self._read_account()
        member = await read_member(client, account, project)
        found = [_check_role(member)]
        if not queues and project.default_branch:
            queues = [QueueSetup(branch=project.default_branch)]
        if not queues:
            found.append(problem("The project has no branch yet: push one."))
        found += [
            *(_check_required_pipeline(project, queue) for queue in queues),
            *(finding for queue in queues for finding in _check_merging(project, queue)),
            *await _run_check("The protected branches", lambda: self._check_branches(client, queues, member)),
            *await _run_check("The push rules", lambda: self._check_push_rules(client, member)),
            *await _run_check("The signing key", lambda: self._check_signing_key(account)),
            *await _run_check("The webhooks", lambda: self._check_webhook(client)),
        ]
        return list(dict.fromkeys(found))

    async def _check_branches(
        self, client: ForgeClient, queues: Sequence[QueueSetup], member: wire.Member
    ) -> list[Finding]:
        try:
            rules = await read_rules(client)
        except HostRefused:
            return [problem(f"The token cannot read the protected branches: {GIVE_ROLE} Developer or Maintainer.")]
        found = [_check_test_branches(rules)]
        for queue in queues:
            matching = [rule for rule in rules if rule.protects(queue.branch)]
            found += await self._check_queue(client, queue, matching, member)
        return found

    async def _check_queue(
        self, client: ForgeClient, queue: QueueSetup, rules: Sequence[wire.ProtectedBranch], member: wire.Member
    ) -> list[Finding]:
        branch = await client.get(f"/repository/branches/{quote_segment(queue.branch)}", wire.Branch)
        if branch is None:
            return [problem(f"The project has no branch {queue.branch}: push it, or delete its queue.")]
        if queue.landing is LandingMethod.TESTED_COMMIT:
            ours = _check_push_right(queue, branch, member)
        else:
            is_granted = not rules or await can_merge(self._client, rules, member)
            ours = _check_merge_right(queue, member, is_granted=is_granted)
        return [ours, _check_others(queue, rules, member)]

    async def _check_push_rules(self, client: ForgeClient, member: wire.Member) -> list[Finding]:
        try:
            rule = await client.get("/push_rule", PUSH_RULE)
        except HostRefused:
            if member.access_level < wire.MAINTAINER_LEVEL:
                return [problem(f"The token cannot read the push rules: {GIVE_ROLE} Maintainer.")]
            rule = None
        if rule is None:
            return [ok("GitLab shows no push rules of this project. Plans below Premium have none.")]
        found = list(_judge_push_rule(rule, member, signs=not self._find_key_problem()))
        return found or [ok("The push rules accept what the queue pushes.")]

    async def _check_signing_key(self, account: wire.User) -> list[Finding]:
        """GitLab accepts a signature of any key. It shows a commit as verified only if it knows the key."""
        if self._config.signer is None:
            return []
        ours = normalize_key(self._config.signer.public_key)
        keys = await self._client.get("/user/keys", list[wire.SshKey], PAGE_QUERY) or []
        others = await self._client.get("/user/gpg_keys", list[wire.GpgKey], PAGE_QUERY) or []
        signing = [key.key for key in keys if "signing" in key.usage_type] + [key.key for key in others]
        if ours in map(normalize_key, signing):
            return [ok(f"GitLab has the public key of `signing_key_file` for {account.username}.")]
        return [
            advise(
                f"{account.username} has no signing key on GitLab that is exactly the public key of "
                "`signing_key_file`, so GitLab shows the queue's commits as unverified: add it to the SSH keys of this "
                "account with the usage type Signing, or to its GPG keys."
            )
        ]

    async def _check_webhook(self, client: ForgeClient) -> list[Finding]:
        """Without a configured address of our server, any server with our path counts."""
        path, server = f"/hooks/gitlab/{self.name}", (self._config.public_url or "").rstrip("/")
        address = f"{server or '<public_url>'}{path}"
        try:
            hooks = await client.get_all("/hooks", list[wire.Hook], {"per_page": 100})
        except HostRefused:
            return [problem(f"The token cannot read the webhooks: {GIVE_ROLE} Maintainer.")]
        ours = [hook for hook in hooks if hook.url.endswith(path)]
        hook = next((hook for hook in ours if not server or hook.url == address), None)
        if hook is None and ours:
            return [problem(f"The webhook goes to {_cut(ours[0].url)}, not to this server: change it to {address}.")]
        if hook is None:
            seconds = self.poll_interval_ms // SECOND
            message = (
                f"The project has no webhook to {address}, so changes are found only by polling every {seconds} "
                f"seconds: add one {WEBHOOKS} with the secret of `webhook_secret_file` and {', '.join(EVENTS.values())}"
                ". If its group has such a webhook, which GitLab does not show here, add none."
            )
            return [problem(message)]
        missing = [title for event, title in EVENTS.items() if not getattr(hook, event)]
        if missing:
            return [problem(f"The webhook does not send {', '.join(missing)}: select them {WEBHOOKS}.")]
        if hook.alert_status != "executable":
            return [problem(f"GitLab has disabled the webhook after failures: test it there {WEBHOOKS}.")]
        message = f"The webhook to {_cut(hook.url)} sends all events that the queue uses."
        return [ok(message if server else f"{message} Check that this server answers there: `public_url` is not set.")]


# The rights of accounts


async def read_member(client: ForgeClient, account: wire.User, project: wire.Project) -> wire.Member:
    """The role of our account, also through a group that was invited to the project. An administrator of the instance
    does not have to be a member: then the project shows the role."""
    member = await client.get(f"/members/all/{account.id}", wire.Member)
    levels = (project.permissions.level, member.access_level if member else 0)
    return wire.Member(id=account.id, username=account.username, state="active", access_level=max(levels))


async def find_member(client: ForgeClient, user: str) -> wire.Member | None:
    """The membership with the highest role, if the user is a member through several groups."""
    if not user:
        return None
    found = await _search_members(client, "/members/all", user)
    matching = [member for member in found if member.username.lower() == user.lower() and member.state == "active"]
    return max(matching, key=lambda member: member.access_level, default=None)


async def can_merge(client: ForgeClient, rules: Iterable[wire.ProtectedBranch], member: wire.Member) -> bool:
    """GitLab applies the most permissive of several rules, and an account that can push can also merge."""
    levels = [level for rule in rules for level in (*rule.merge_access_levels, *rule.push_access_levels)]
    return any([await _grants(client, access, member) for access in levels])


def grants_merging_to_others(rules: Iterable[wire.ProtectedBranch], account: wire.User) -> bool:
    """Whether any rule lets other accounts than ours merge with GitLab's own button, without being able to push."""
    levels = [access for rule in rules for access in rule.merge_access_levels]
    return any(not access.is_no_one and access.user_id != account.id for access in levels)


async def _search_members(client: ForgeClient, path: str, user: str) -> list[wire.Member]:
    return await client.get_all(path, list[wire.Member], {"query": user, "per_page": 100})


async def _grants(client: ForgeClient, access: wire.BranchAccess, member: wire.Member) -> bool:
    """Level 0 means no one. Level 60 means instance administrators, which the API does not identify: never granted."""
    if access.deploy_key_id is not None:
        return False
    if access.user_id:
        return access.user_id == member.id
    if access.group_id is not None:
        return await _is_in_group(client, access.group_id, member)
    return 0 < (access.access_level or 0) <= member.access_level


async def _is_in_group(client: ForgeClient, group: int, member: wire.Member) -> bool:
    """Also False if the members of the group are not visible to us."""
    try:
        found = await _search_members(client, f"/groups/{group}/members/all", member.username)
    except HostRefused:
        return False
    return any(one.id == member.id and one.state == "active" for one in found)


# Findings


def _check_role(member: wire.Member) -> Finding:
    if member.access_level >= wire.DEVELOPER_LEVEL:
        return ok(f"The account of the token, {member.username}, can push branches.")
    return problem("The account of the token cannot push branches: give it the role Developer or Maintainer.")


def _check_push_right(queue: QueueSetup, branch: wire.Branch, member: wire.Member) -> Finding:
    if branch.can_push:
        return ok(
            f"{member.username} can push to {queue.branch}. GitLab requires no approvals for a push: the queue checks "
            "them itself before each merge."
        )
    return problem(
        f"{member.username} cannot push to {queue.branch}: add it to those allowed to push and merge "
        f"{PROTECTED_BRANCHES}, or set `landing` to `provider_merge`."
    )


def _check_merge_right(queue: QueueSetup, member: wire.Member, *, is_granted: bool) -> Finding:
    if is_granted and member.access_level >= wire.DEVELOPER_LEVEL:
        return ok(f"{member.username} can merge into {queue.branch}. GitLab checks the approvals, as the queue does.")
    return problem(
        f"{member.username} cannot merge into {queue.branch}: add it to those allowed to merge {PROTECTED_BRANCHES}."
    )


def _check_others(queue: QueueSetup, rules: Sequence[wire.ProtectedBranch], member: wire.Member) -> Finding:
    """Whether all merges have to go through the queue. A plan that cannot name single accounts allows less: there the
    role Maintainer is the narrowest choice for the right that our account needs."""
    is_push, branch = queue.landing is LandingMethod.TESTED_COMMIT, queue.branch
    names_accounts = any(rule.names_accounts for rule in rules)
    ours = member.username if names_accounts else f"{member.username}* or *Maintainers"
    advice = (
        f"For a mandatory queue, choose *Allowed to merge: {NO_ONE if is_push else ours}* and *Allowed to push and "
        f"merge: {ours if is_push else NO_ONE}* {PROTECTED_BRANCHES}."
    )
    if not rules:
        return advise(f"No rule protects {branch}, so every Developer can change it without the queue. {advice}")
    pushers = _list_others((access for rule in rules for access in rule.push_access_levels), member)
    mergers = _list_others((access for rule in rules for access in rule.merge_access_levels), member)
    needed = pushers if is_push else mergers
    tolerated = [] if names_accounts else [access for access in needed if access.is_for_maintainers]
    needed[:] = [access for access in needed if access not in tolerated]
    gaps = [
        *([f"{_join(pushers)} can push to {branch}"] if pushers else []),
        *([f"{_join(mergers)} can merge into {branch}"] if mergers else []),
    ]
    if gaps:
        return advise(f"Without the queue, {' and '.join(gaps)}. {advice}")
    if tolerated:
        return advise(
            f"Only {_join(tolerated)} can change {branch} without the queue. This plan of GitLab cannot name single "
            "accounts: give few people that role."
        )
    return ok(f"Only {member.username} can push to {branch} or merge into it, so the queue is mandatory.")


def _list_others(levels: Iterable[wire.BranchAccess], member: wire.Member) -> list[wire.BranchAccess]:
    return [access for access in levels if not access.is_no_one and access.user_id != member.id]


def _join(levels: Iterable[wire.BranchAccess]) -> str:
    names = list(dict.fromkeys(_cut(access.name) for access in levels))
    hidden = len(names) - MAX_NAMES
    return ", ".join([*names[:MAX_NAMES], *([f"{hidden} more"] if hidden > 0 else [])])


def _check_required_pipeline(project: wire.Project, queue: QueueSetup) -> Finding:
    if not project.only_allow_merge_if_pipeline_succeeds:
        return ok(
            "The project does not require successful pipelines (the same setting of its group is not visible): name "
            "the required checks in .mergeyard.toml or in the queue's settings."
        )
    if queue.reported_checks is None or PIPELINE in queue.reported_checks:
        return ok(f"The project requires successful pipelines: the check {PIPELINE} is required.")
    return problem(
        f"The project requires successful pipelines, and none ran on the last test branches of {queue.branch}: let "
        f".gitlab-ci.yml run one for each branch {ids.TEST_BRANCH_PREFIX}** (see its rules and workflow)."
    )


def _check_merging(project: wire.Project, queue: QueueSetup) -> Iterator[Finding]:
    """What the project says about merges by GitLab."""
    is_pushed, is_squash = queue.landing is LandingMethod.TESTED_COMMIT, queue.merge_method is MergeMethod.SQUASH
    if is_pushed and is_squash and project.squash_option == "never":
        yield advise(
            "The project does not allow squashing, so GitLab cannot merge a merge request into "
            f"{queue.branch} whose source branch the queue cannot move: allow it (Settings > Merge requests > Squash "
            "commits when merging), or set `headBranchFallback` to `close`."
        )
    refusals = {
        merging.ONLY_FAST_FORWARD: project.merge_method == "ff" and not is_squash,
        merging.NOT_ON_TIP: project.merge_method in ("rebase_merge", "ff"),
        merging.NEVER_SQUASHED: is_squash and project.squash_option == "never",
        merging.ALWAYS_SQUASHED: not is_squash and project.squash_option == "always",
    }
    for refusal in () if is_pushed else (text for text, is_expected in refusals.items() if is_expected):
        yield problem(f"Merges into {queue.branch}: {refusal}")


def _check_test_branches(rules: Iterable[wire.ProtectedBranch]) -> Finding:
    matching = [_cut(rule.name) for rule in rules if rule.protects(EXAMPLE_TEST_BRANCH)]
    if not matching:
        return ok("The test branches are not protected.")
    return problem(
        f"The rule {matching[0]} protects the test branches, so Mergeyard cannot delete them: narrow it down "
        f"{PROTECTED_BRANCHES}."
    )


def _judge_push_rule(rule: wire.PushRule, member: wire.Member, *, signs: bool) -> Iterator[Finding]:
    """What the queue pushes: branches with its prefix, and commits of its own, signed if it has a key."""
    branches = f"the test branches, such as {EXAMPLE_TEST_BRANCH}"
    commits = f"the queue's commits, such as {EXAMPLE_SUBJECT!r} and, after a failed test, {BASE_RUN_SUBJECT!r}"
    addresses = "the address of the queue, and of authors whose pull requests it squashes"
    set_address = "set `committer_email` to an address that it accepts, or change the pattern"
    yield from _check_pattern("Branch name", rule.branch_name_regex, f"accept {branches}")
    yield from _check_pattern("Require expression in commit messages", rule.commit_message_regex, f"accept {commits}")
    yield from _check_pattern(
        "Reject expression in commit messages", rule.commit_message_negative_regex, f"not match {commits}"
    )
    yield from _check_pattern("Commit author's email", rule.author_email_regex, f"accept {addresses}", set_address)
    if rule.reject_unsigned_commits and not signs:
        yield problem(
            f"The push rule *Reject unsigned commits* refuses {branches}: set `signing_key_file` of this Git host, or "
            f"clear the rule {PUSH_RULES}."
        )
    if rule.reject_non_dco_commits:
        yield problem(f"The push rule that asks for DCO sign-offs refuses {branches}: clear it {PUSH_RULES}.")
    if rule.commit_committer_check or rule.commit_committer_name_check:
        yield advise(
            f"A push rule compares the committer with the account that pushes: leave `committer_email` unset, and set "
            f"`committer_name` to the name of {member.username}, or clear the rule {PUSH_RULES}."
        )
    if rule.member_check:
        yield advise(
            "The push rule *Check whether the commit author is a GitLab user* refuses commits with an address of no "
            f"account: leave `committer_email` unset, or set it to a verified address of {member.username}, or clear "
            f"the rule {PUSH_RULES}."
        )


def _check_pattern(
    title: str, pattern: str | None, demand: str, remedy: str = "check the pattern"
) -> Iterator[Finding]:
    """The pattern is shown and not tried out: GitLab reads it in another way than Python, and it could take long."""
    if pattern:
        yield advise(f"The push rule *{title}* ({_cut(pattern)}) must {demand}: {remedy} {PUSH_RULES}.")


def normalize_key(key: str) -> str:
    """An SSH key without its comment, or an OpenPGP key without its armor."""
    if not key.lstrip().startswith("-----BEGIN"):
        return " ".join(key.split(maxsplit=2)[:2])
    lines = [line.strip() for line in key.strip().splitlines()[1:]]
    content = lines[lines.index("") :] if "" in lines else lines
    return "".join(line for line in content if not line.startswith(("=", "-----")))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]}…"


async def _run_check(subject: str, check: Check) -> list[Finding]:
    try:
        return await check()
    except HostError as error:
        return [problem(f"{subject} could not be checked: {error}")]
