"""One repository of the fake, and the actions of users and GitHub on it; each sends its webhooks."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.external import Clock
from tests.support.forges.deliveries import Deliveries
from tests.support.forges.git_server import RefUpdates
from tests.support.forges.github.rulesets import (
    Organization,
    RuleData,
    Ruleset,
    from_short_form,
    from_update_short_form,
    is_owned,
)
from tests.support.forges.github.webhooks import ZERO_SHA, Webhooks
from tests.support.forges.github.world import (
    Activity,
    BranchProtection,
    CheckRun,
    CheckSuite,
    Comment,
    CommitStatus,
    Deployment,
    Hook,
    LateHead,
    PullRequest,
    Review,
    ReviewRequest,
    ReviewThread,
    StackPlace,
)
from tests.support.repositories import Files, Origin

BRANCH_PREFIX = "refs/heads/"


class FakeRepository:
    def __init__(
        self,
        name: str,
        origin: Origin,
        clock: Clock,
        hooks: list[Hook],
        deliveries: Deliveries,
        organization: Organization,
    ) -> None:
        """The webhooks can be those of an app, which repositories share."""
        self.name = name
        self.id = 0
        """Set by the fake. Stays the same when the repository is renamed."""
        self.organization = organization
        self.origin = origin
        self.clock = clock
        self.hooks = hooks
        self.webhooks = Webhooks(name, hooks, deliveries)
        self.pull_requests: dict[int, PullRequest] = {}
        self.comments: dict[int, Comment] = {}
        self.statuses: dict[str, dict[str, CommitStatus]] = {}
        """The latest per commit and context."""
        self.status_history: dict[str, list[CommitStatus]] = {}
        """All per commit, oldest first."""
        self.check_runs: dict[str, list[CheckRun]] = {}
        self.suites_without_runs: dict[str, list[CheckSuite]] = {}
        self.protections: dict[str, BranchProtection] = {}
        """Classic protection by branch."""
        self.rulesets: dict[str, BranchProtection] = {}
        """Short forms of rulesets, by branch; `add_ruleset` has all that GitHub has."""
        self.update_rulesets: dict[str, BranchProtection] = {}
        """Short forms of rulesets that only restrict updates, by branch; only their bypass list is used."""
        self.own_rulesets: list[Ruleset] = []
        self.renamed_branches: dict[str, str] = {}
        """By former name, until a branch has it again."""
        self.always_looks_clean = True
        """Whether `mergeable_state` hides violations from a viewer with the bypass mode `always`."""
        self.decision_counts_required_reviewers = False
        self.only_admins_read_protection = True
        """Whether classic protection is hidden from a user's token, whatever its permissions, unless the user
        administers the repository, as on GitHub."""
        self.satisfied_rules: set[str] = set()
        """Kinds of rules, and parameters of the rule `pull_request`, that the fake cannot judge and that are met."""
        self.commits_are_signed = False
        """All of them. Otherwise those in `verified_commits`, and those with a key of the committer."""
        self.verified_commits: set[str] = set()
        self.code_owners: dict[str, list[str]] = {}
        """Patterns with users and teams (`@grace`, `@acme/db`), as in a CODEOWNERS file: the last match counts."""
        self.deployments: list[Deployment] = []
        self.activities: list[Activity] = []
        """Oldest first."""
        self.roles: dict[str, str] = {}
        """Role by user: admin, maintain, write, triage or read."""
        self.role_names: dict[str, str] = {}
        """Name of the custom role by user; `roles` has the role that it is built on."""
        self.is_private = False
        """In a private repository a user without a role has no permission, otherwise `read`."""
        self.drafts_supported = True
        """False: a private repository on a plan without draft pull requests."""
        self.unknown_reads_after_move = 1
        """For how many reads the mergeability of a pull request is unknown after its base or its head moved."""
        self.notices_base_first = False
        """Whether GitHub notices that a base moved before it notices the heads of the same push."""
        self.head_shown_after_reads = 0
        """For how many reads a pull request still shows its old head after a push. Until then GitHub does not know the
        new one, also when the base moves."""
        self.upstream: FakeRepository | None = None
        """Of a fork."""
        self.merge_methods = {"merge", "squash", "rebase"}
        self.ids = count(1001)
        self._changed: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        self._ruleset_ids = count(101)
        self._numbers = count(1)
        self._suites: dict[tuple[str, str], int] = {}
        """Check suite by commit and app."""
        self._known_commits: set[str] = set()
        self._contained: dict[tuple[Sha, Sha], bool] = {}

    @property
    def owner(self) -> str:
        return self.name.partition("/")[0]

    # Actions of users and CI.

    def open_pull_request(self, branch: str, **facts: Any) -> PullRequest:
        """Opens a pull request of a branch. `home` is the full name of a fork: a real one, or one that does not exist
        and whose branch is here."""
        number, fork = next(self._numbers), facts.pop("fork", None)
        if fork is not None:
            self.origin.run("fetch", "--quiet", fork.origin.url, BRANCH_PREFIX + branch)
            facts["home"] = fork.name
        head = (fork or self).origin.tip(branch)
        defaults: dict[str, Any] = {"title": "A change", "author": "ada", "base": "main", "home": self.name}
        change = PullRequest(number=number, branch=branch, head=head, at=self.clock.now(), **(defaults | facts))
        change.last_pusher = change.last_pusher or change.author
        self.pull_requests[number] = change
        self._show_head(change)
        if change.home == self.name and not any(one.ref == BRANCH_PREFIX + branch for one in self.activities):
            self._record(BRANCH_PREFIX + branch, None, head, change.last_pusher)
        self._request_code_owners(change)
        self.send_pull_request_event(change, "opened")
        return change

    def push_commit(self, branch: str, files: Files, merging: str | None = None, by: str = "ada") -> Sha:
        """A user pushes a commit to a branch. No rule refuses it; rules are for pushes with git."""
        before = self.origin.ref(branch)
        after = self.origin.commit(branch, files, merging=merging)
        self.on_push({BRANCH_PREFIX + branch: (before, after)}, by)
        return after

    def edit(self, number: int, action: str = "edited", **facts: Any) -> None:
        change = self.pull_requests[number]
        for name, fact in facts.items():
            setattr(change, name, fact)
        self.send_pull_request_event(change, action)

    def close(self, number: int) -> None:
        self.edit(number, "closed", open=False)

    def stack(self, *numbers: int) -> None:
        """Makes a stack of pull requests, the bottom first."""
        number, base = next(self.ids), self.pull_requests[numbers[0]].base
        for position, member in enumerate(numbers, 1):
            place = StackPlace(number=number, base=base, size=len(numbers), position=position)
            self.pull_requests[member].stack = place
            self.touch(self.pull_requests[member])

    def rename(self, name: str, origin: Origin) -> None:
        """Called by the fake, which also renames the repository for git and redirects the old name."""
        for change in self.pull_requests.values():
            change.home = name if change.home == self.name else change.home
        for ruleset in self.own_rulesets:
            ruleset.source = name
        self.name, self.origin.path, self.webhooks.repository = name, origin.path, name

    def add_label(self, number: int, label: str) -> None:
        self.pull_requests[number].labels.append(label)
        self.send_pull_request_event(self.pull_requests[number], "labeled")

    def remove_label(self, number: int, label: str) -> None:
        self.pull_requests[number].labels.remove(label)
        self.send_pull_request_event(self.pull_requests[number], "unlabeled")

    def add_review(self, number: int, person: str, opinion: str) -> Review:
        """Ends the user's review requests and those of the user's teams. Other code owners stay requested. An author
        can only comment on the own pull request."""
        change = self.pull_requests[number]
        state = "COMMENTED" if person == change.author else opinion
        asked = [one for one in change.review_requests if person in self.organization.members_of(one.reviewer)]
        teams = {name for name in [*self._find_owners(change), *(one.reviewer for one in asked)] if "/" in name}
        behalf = tuple(sorted(team for team in teams if person in self.organization.members_of(team)))
        review = Review(
            id=next(self.ids), user=person, state=state, commit=change.head, at=self.clock.now(), on_behalf_of=behalf
        )
        change.reviews.append(review)
        change.review_requests = [one for one in change.review_requests if one not in asked]
        self.touch(change)
        self.webhooks.send_review(change, person, "submitted")
        return review

    def dismiss(self, number: int, person: str) -> None:
        """Dismisses the last opinion of a user."""
        change = self.pull_requests[number]
        given = [one for one in change.reviews if one.user == person and one.state in ("APPROVED", "CHANGES_REQUESTED")]
        given[-1].state = "DISMISSED"
        self.touch(change)
        self.webhooks.send_review(change, person, "dismissed")

    def request_review(self, number: int, reviewer: str, *, as_code_owner: bool = False) -> None:
        """The reviewer is a user or a team: `grace` or `acme/db`."""
        change, request = self.pull_requests[number], ReviewRequest(reviewer, as_code_owner)
        if request not in change.review_requests:
            change.review_requests.append(request)
        self.touch(change)

    def add_thread(self, number: int) -> ReviewThread:
        """Starts a conversation about a line of the pull request."""
        thread = ReviewThread()
        self.pull_requests[number].threads.append(thread)
        self.touch(self.pull_requests[number])
        return thread

    def resolve_thread(self, number: int, index: int = 0, *, resolved: bool = True) -> None:
        change = self.pull_requests[number]
        change.threads[index].is_resolved = resolved
        self.touch(change)
        self.webhooks.send_thread(change, resolved=resolved)

    def deploy(self, sha: str, environment: str, state: str = "success") -> Deployment:
        """A new deployment, or a new state of the last one of this commit and environment."""
        found = [one for one in self.deployments if (one.sha, one.environment) == (sha, environment)]
        if not found:
            found = [Deployment(id=next(self.ids), sha=sha, environment=environment, states=[])]
            self.deployments += found
        found[-1].states.append(state)
        return found[-1]

    def add_ruleset(self, name: str, rules: Sequence[RuleData], **facts: Any) -> Ruleset:
        ruleset = Ruleset(id=next(self._ruleset_ids), name=name, rules=list(rules), source=self.name, **facts)
        self.own_rulesets.append(ruleset)
        return ruleset

    @property
    def all_rulesets(self) -> list[Ruleset]:
        """Those of the repository, short forms included, then those of the organization."""
        auth = self.organization.auth
        updates = [from_update_short_form(one, branch, self.name, auth) for branch, one in self.update_rulesets.items()]
        reviews = [from_short_form(one, branch, self.name, auth) for branch, one in self.rulesets.items()]
        return [*updates, *reviews, *self.own_rulesets, *self.organization.rulesets]

    def find_rulesets(self, branch: str) -> list[Ruleset]:
        """Those in force over a branch, which need not exist."""
        return [ruleset for ruleset in self.all_rulesets if ruleset.applies_to(branch)]

    def find_code_owners(self, path: str) -> list[str]:
        matching = [owners for pattern, owners in self.code_owners.items() if is_owned(pattern, path)]
        return matching[-1] if matching else []

    def _find_owners(self, change: PullRequest) -> set[str]:
        """All code owners of the changed files, without `@`."""
        paths = self.changed_paths(change) if self.code_owners else []
        return {owner.removeprefix("@") for path in paths for owner in self.find_code_owners(path)}

    def changed_files(self, change: PullRequest) -> list[tuple[str, str, str]]:
        """The status, path and old path of each file that the pull request changes. Cached."""
        key = (self.origin.tip(change.base), change.head)
        if key not in self._changed:
            base = self.origin.run("merge-base", *key).decode().strip()
            words = self.origin.run("diff", "--name-status", "-z", "-M", base, change.head).decode().split("\0")[:-1]
            self._changed[key] = [*_parse_changes(words)]
        return self._changed[key]

    def list_commits(self, change: PullRequest) -> list[str]:
        """Oldest first."""
        return self.origin.run("rev-list", "--reverse", change.head, f"^{change.base}").decode().split()

    def list_associated(self, commit: Sha) -> list[PullRequest]:
        """The pull requests that GitHub associates with a commit: those with a head branch here that add it, or, if the
        default branch contains it, only those that are merged."""
        if self.contains(self.origin.tip("main"), commit):
            return [each for each in self.pull_requests.values() if each.merged and each.head == commit]
        own = [each for each in self.pull_requests.values() if each.home == self.name and self.origin.ref(each.base)]
        return [
            each
            for each in own
            if self.contains(each.head, commit) and not self.contains(self.origin.tip(each.base), commit)
        ]

    def list_tree(self, commit: Sha, folder: str) -> list[tuple[str, str]]:
        """The path and the blob of each file in a folder."""
        lines = self.origin.run("ls-tree", "-r", "-z", commit, folder).decode().split("\0")[:-1]
        return [(path, facts.split()[2]) for facts, _, path in (line.partition("\t") for line in lines)]

    def changed_paths(self, change: PullRequest) -> list[str]:
        """With the old paths of renamed files."""
        return [path for _, *paths in self.changed_files(change) for path in paths if path]

    def add_comment(self, number: int, author: str, text: str) -> Comment:
        now = self.clock.now()
        comment = Comment(
            id=next(self.ids),
            number=number,
            author=author,
            body=text,
            posted_body=text,
            created_at=now,
            updated_at=now,
        )
        self.comments[comment.id] = comment
        self.touch(self.pull_requests[number])
        self.webhooks.send_comment(comment, "created")
        return comment

    def edit_comment(self, comment: Comment, text: str) -> None:
        """Everyone with write access can."""
        comment.body = text
        comment.updated_at = self.clock.now()
        self.webhooks.send_comment(comment, "edited")

    def report_status(self, sha: str, context: str, state: str, url: str | None = None, **facts: Any) -> CommitStatus:
        status = CommitStatus(id=next(self.ids), context=context, state=state, at=self.clock.now(), url=url, **facts)
        self.statuses.setdefault(sha, {})[context] = status
        self.status_history.setdefault(sha, []).append(status)
        self.webhooks.send_status(sha, status)
        return status

    def add_check_run(
        self, sha: Sha, name: str, status: str = "completed", conclusion: str | None = None, **facts: Any
    ) -> CheckRun:
        now = self.clock.now()
        defaults: dict[str, Any] = {
            "started_at": None if status == "queued" else now,
            "completed_at": now if status == "completed" else None,
            "suite": self._suites.setdefault((sha, facts.get("app", "")), len(self._suites) + 1),
        }
        run = CheckRun(id=next(self.ids), name=name, status=status, conclusion=conclusion, **(defaults | facts))
        self.check_runs.setdefault(sha, []).append(run)
        self.webhooks.send_check_run(sha, run)
        return run

    def fail_startup(self, sha: Sha, conclusion: str = "startup_failure", **facts: Any) -> CheckSuite:
        """A workflow file is not valid: the app completes a check suite that has no check runs."""
        return self.add_check_suite(sha, "completed", conclusion, **facts)

    def add_check_suite(self, sha: Sha, status: str, conclusion: str | None = None, **facts: Any) -> CheckSuite:
        """A suite without check runs, of GitHub Actions unless `app` and `app_id` say otherwise."""
        number = self._suites.setdefault((sha, f"without runs {next(self.ids)}"), len(self._suites) + 1)
        suite = CheckSuite(id=number, at=self.clock.now(), status=status, conclusion=conclusion, **facts)
        self.suites_without_runs.setdefault(sha, []).append(suite)
        self.webhooks.send_check_suite(sha, suite)
        return suite

    def check_suites(self, sha: str) -> list[CheckSuite]:
        by_suite = dict[int, list[CheckRun]]()
        for run in self.latest_check_runs(sha):
            by_suite.setdefault(run.suite, []).append(run)
        return [*map(_summarize, by_suite.values()), *self.suites_without_runs.get(sha, [])]

    def has_commit(self, sha: str) -> bool:
        """Whether there is such a commit, or a test reported results for it."""
        if sha not in self._known_commits:
            is_reported = sha in self.statuses or sha in self.check_runs or sha in self.suites_without_runs
            found = is_reported or b" commit " in self.origin.run("cat-file", "--batch-check", stdin=sha.encode())
            self._known_commits |= {sha} if found else set()
        return sha in self._known_commits

    def latest_check_runs(self, sha: str) -> list[CheckRun]:
        """The latest check run per suite and name."""
        return list({(run.suite, run.name): run for run in self.check_runs.get(sha, [])}.values())

    # Reactions of GitHub.

    def touch(self, change: PullRequest) -> None:
        change.at = self.clock.now()

    def send_pull_request_event(self, change: PullRequest, action: str) -> None:
        self.touch(change)
        self.webhooks.send_pull_request(change, action)

    def rename_branch(self, old: str, new: str) -> None:
        self.origin.set_ref(new, self.origin.tip(old))
        self.origin.delete_ref(f"{BRANCH_PREFIX}{old}")
        self.renamed_branches[old] = new

    def on_push(self, updates: RefUpdates, by: str = "ada") -> None:
        """Moves the heads of pull requests, and marks those as merged whose head the base branch now contains. No
        document says which ref of a push GitHub notices first: `notices_base_first` chooses. Deleted branches are
        noticed last."""
        tips = {ref.removeprefix(BRANCH_PREFIX): tip for ref, tip in updates.items() if ref.startswith(BRANCH_PREFIX)}
        for branch, (before, after) in sorted(tips.items()):
            self._record(BRANCH_PREFIX + branch, before, after, by)
        moved = {branch: (before, after) for branch, (before, after) in sorted(tips.items()) if after is not None}
        if self.notices_base_first:
            self._notice_bases(moved, by)
        for repository in filter(None, (self, self.upstream)):
            repository.notice_heads(self, moved, by)
        if not self.notices_base_first:
            self._notice_bases(moved, by)
        for branch in sorted(tips.keys() - moved.keys()):
            self._notice_deletion(branch)
        for branch, (before, after) in sorted(tips.items()):
            self.webhooks.send_push(BRANCH_PREFIX + branch, before, after)

    def _record(self, ref: str, before: Sha | None, after: Sha | None, by: str) -> None:
        kind = "branch_creation" if before is None else "branch_deletion" if after is None else "push"
        shas = {"before": before or ZERO_SHA, "after": after or ZERO_SHA}
        self.activities.append(Activity(id=next(self.ids), kind=kind, ref=ref, actor=by, at=self.clock.now(), **shas))

    def notice_heads(self, home: "FakeRepository", moved: Mapping[str, tuple[Sha | None, Sha]], by: str) -> None:
        """Branches of `home` moved, which is this repository or a fork of it. A head that moves together with its base
        is compared with where the base was, unless the base was noticed first."""
        for change in [change for change in self.pull_requests.values() if change.open and change.home == home.name]:
            if change.branch not in moved:
                continue
            tip = moved[change.branch][1]
            if home is not self:
                self.origin.run("fetch", "--quiet", home.origin.url, BRANCH_PREFIX + change.branch)
            moves_together = home is self and not self.notices_base_first and change.base in moved
            base = moved[change.base][0] if moves_together else self.origin.ref(change.base)
            if self.head_shown_after_reads:
                change.late_head = LateHead(tip, by, self.head_shown_after_reads)
            else:
                self._move_head(change, tip, by, base)

    def count_read(self, change: PullRequest) -> None:
        """A read of a pull request. After the last one of `head_shown_after_reads`, GitHub notices its new head."""
        late = change.late_head
        if late is not None and late.reads == 0:
            change.late_head = None
            self._move_head(change, late.tip, late.by, self.origin.ref(change.base))
        elif late is not None:
            change.late_head = replace(late, reads=late.reads - 1)

    def _notice_bases(self, moved: Mapping[str, tuple[Sha | None, Sha]], by: str) -> None:
        for change in [change for change in self.pull_requests.values() if change.open and change.base in moved]:
            tip = moved[change.base][1]
            if self.contains(tip, change.head):
                self.mark_merged(change, tip, by)
            else:
                self._forget_mergeability(change)

    def _notice_deletion(self, branch: str) -> None:
        """Closes the pull requests from and into the branch. Only the button on GitHub's pages changes the base of
        those into the head branch of a merged one; a deletion with git or with the API does not (cli/cli#14223)."""
        for change in [each for each in self.pull_requests.values() if each.open]:
            if change.base == branch or (change.home, change.branch) == (self.name, branch):
                self.close(change.number)

    def _forget_mergeability(self, change: PullRequest) -> None:
        """GitHub computes it again when the pull request is read, and that read does not wait for it."""
        change.being_checked = max(change.being_checked, self.unknown_reads_after_move)

    def _move_head(self, change: PullRequest, tip: Sha, by: str, base: Sha | None) -> None:
        """A head that the base branch already contains adds nothing: GitHub closes the pull request, and does not show
        it as merged (nodejs/node#23007, status-im/status-legacy#13372, Avarok-Cybersecurity/atlas#952). Others saw it
        marked as merged in this case (uber/submitqueue#542), so a queue can rely on neither."""
        change.head, change.last_pusher = tip, by
        self._show_head(change)
        if base is not None and self.contains(base, tip):
            return self.close(change.number)
        self._forget_mergeability(change)
        self._dismiss_stale_approvals(change)
        self._request_code_owners(change)
        return self.send_pull_request_event(change, "synchronize")

    def _dismiss_stale_approvals(self, change: PullRequest) -> None:
        """Only where a rule of the base branch says so."""
        classic = self.protections.get(change.base, BranchProtection()).reviews.get("dismiss_stale_reviews")
        rules = [rule for ruleset in self.find_rulesets(change.base) for rule in ruleset.rules]
        if classic or any(rule.get("parameters", {}).get("dismiss_stale_reviews_on_push") for rule in rules):
            approving = [one.user for one in change.reviews if one.state == "APPROVED"]
            for person in approving:
                self.dismiss(change.number, person)

    def _request_code_owners(self, change: PullRequest) -> None:
        """All owners of the changed files that have not been asked and have not reviewed; none for a draft."""
        if change.draft:
            return
        owners = self._find_owners(change)
        reviewed = {one.user for one in change.reviews} | {team for one in change.reviews for team in one.on_behalf_of}
        for owner in sorted(owners - reviewed - {change.author} - {one.reviewer for one in change.review_requests}):
            change.review_requests.append(ReviewRequest(owner, as_code_owner=True))

    def mark_merged(self, change: PullRequest, commit: Sha, by: str) -> None:
        change.open, change.merged, change.merged_by = False, commit, by
        self.send_pull_request_event(change, "closed")

    def contains(self, commit: Sha, ancestor: Sha) -> bool:
        """Cached."""
        key = (commit, ancestor)
        if commit == ancestor:
            return True
        if key not in self._contained:
            self._contained[key] = not self.origin.run("rev-list", "-n1", ancestor, f"^{commit}")
        return self._contained[key]

    def _show_head(self, change: PullRequest) -> None:
        self.origin.set_ref(f"refs/pull/{change.number}/head", change.head)


def _parse_changes(words: list[str]) -> list[tuple[str, str, str]]:
    """The output of `git diff --name-status -z`: a status, then one path, or two for a renamed file."""
    found, rest = list[tuple[str, str, str]](), iter(words)
    for status in rest:
        old = next(rest) if status.startswith("R") else ""
        found.append((STATUSES[status[0]], next(rest), old))
    return found


def _summarize(runs: list[CheckRun]) -> CheckSuite:
    """The suite of check runs: the worst conclusion, when all are completed."""
    is_completed = all(run.status == "completed" for run in runs)
    ranked = sorted((run.conclusion or "" for run in runs), key=lambda one: one in PASSED_CONCLUSIONS)
    return CheckSuite(
        id=runs[0].suite,
        at=max(run.completed_at or run.started_at or Instant(0) for run in runs),
        status="completed" if is_completed else "in_progress",
        conclusion=ranked[0] if is_completed else None,
        app=runs[0].app,
        app_id=runs[0].app_id,
        runs=len(runs),
    )


PASSED_CONCLUSIONS = ("success", "neutral", "skipped")
STATUSES = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "T": "changed"}
