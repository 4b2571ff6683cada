"""What the documents of GitHub and GitLab do not say, and what Mergeyard relies on: measured, and compared with our
fakes."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from mergeyard.adapters.forges.github.auth import REQUIRED_PERMISSIONS
from tests.live.client import NotRun, Reply
from tests.live.github import LiveGithub, to_github
from tests.live.gitlab import to_gitlab
from tests.live.hosts import BOT, SECOND
from tests.live.reviews import DECIDES, SUBMISSION
from tests.live.stage import Observation, Stage, Step

MODES = {"always": "always", "exempt": "exempt", "not on the list": ""}
WORKFLOW = "on: workflow_dispatch\njobs: {a: {runs-on: ubuntu-latest, steps: [run: a]}}\n"
MERGES_IN_A_ROW = 5
READS_AFTER_CHANGE = 3
NOT_MODIFIED = 304
CLOSED = {"github": "pull_request closed", "gitlab": "merge_request merged"}
"""What the Git host calls the webhook about a merged pull request."""
OTHER_CHECKS = 10
REDUCED = (
    "Measured with one test run and few commit statuses, not with five runs of 100 jobs each: GitHub lets an account "
    "write 500 times an hour, of which the kit uses many, and 500 jobs of GitHub Actions can cost 500 minutes"
)
LIMITED = "limited"


def compare_accounts(stage: Stage) -> Iterator[Observation]:
    """Rules hide nothing from an account that can bypass them, or Mergeyard must look elsewhere."""
    host = to_github(stage)
    host.need_app()
    host.need_second("a pull request with and without an approval")
    host.need_rules("a bypass list")
    numbers = _open_situations(stage, host)
    for title, mode in MODES.items():
        host.write_ruleset(1, mode=mode).must_succeed()
        states = {name: _read_states(stage, number) for name, number in numbers.items()}
        yield stage.saw(f"mergeable_state, bypass mode {title}", states, asked="GET the pull requests", matters=DECIDES)
        decisions = {name: host.decide_reviews(numbers[name], BOT) for name in ("not approved", "ready")}
        yield stage.saw(
            f"reviewDecision for Mergeyard, bypass mode {title}",
            decisions,
            asked="GraphQL reviewDecision",
            matters=DECIDES,
            expected="REVIEW_REQUIRED without an approval and APPROVED with one, for every account",
            holds=decisions == {"not approved": "REVIEW_REQUIRED", "ready": "APPROVED"},
        )
    host.write_ruleset(1).must_succeed()


def _open_situations(stage: Stage, host: LiveGithub) -> dict[str, int]:
    numbers = {"not approved": stage.open("unapproved", is_approved=False)}
    host.report(host.origin.tip(stage.branch("unapproved")), "success").must_succeed()
    for name, state in (("ready", ""), ("pending", "pending"), ("failed", "failure")):
        numbers[name] = stage.open(f"state-{name}")
        if state:
            host.report(host.origin.tip(stage.branch(f"state-{name}")), state).must_succeed()
    numbers["edits a workflow"] = stage.open("edits", {".github/workflows/edits.yml": WORKFLOW})
    return numbers


def _read_states(stage: Stage, number: int) -> dict[str, str]:
    return {
        "Mergeyard": stage.read_settled(number, BOT).body["mergeable_state"],
        "another account": stage.read_settled(number, SECOND).body["mergeable_state"],
    }


def read_with_tags(stage: Stage) -> Iterator[Observation]:
    """An answer of 304 means that nothing changed."""
    host, number = to_github(stage), stage.open("tags", is_approved=False)
    head = host.origin.tip(stage.branch("tags"))
    changes: list[Callable[[], Any]] = [lambda: None]
    changes += [partial(host.report, head, state) for state in ("pending", "success")]
    changes += [partial(host.approve, number)] if host.has_second else []
    statuses, stale = read_conditionally(host, number, changes, stage.waits.settle_pause_s)
    yield stage.saw("answers to a known tag", statuses, asked="GET with if-none-match", is_measured=True)
    yield stage.saw(
        "answers of 304 although the pull request had changed",
        stale,
        asked="GET with if-none-match",
        matters=DECIDES,
        expected="none",
        holds=stale == 0,
    )


def read_conditionally(
    host: LiveGithub, number: int, changes: Sequence[Callable[[], Any]], pause_s: float
) -> tuple[list[int], int]:
    """Reads the pull request some times after each change. Returns the answers to the tag of the read before, and how
    many of them were 304 although the pull request had changed.

    GitHub determines the mergeability meanwhile, so a fresh read comes before the conditional one: what it shows is
    older than the answer. What changes and changes back between the two is no fault either, hence the read after it."""
    statuses, stale, known = list[int](), 0, host.read(number).must_succeed()
    for change in changes:
        change()
        for _ in range(READS_AFTER_CHANGE):
            fresh = host.read(number).must_succeed()
            path = f"{host.repo}/pulls/{number}"
            statuses.append(host.send("GET", path, **{"if-none-match": known.headers["etag"]}).status)
            if statuses[-1] == NOT_MODIFIED and _essence(fresh) != _essence(known):
                stale += _essence(host.read(number).must_succeed()) != _essence(known)
            known = fresh
            host.budget.wait(pause_s)
    return statuses, stale


def _essence(reply: Reply) -> list[Any]:
    return [reply.body.get(name) for name in ("state", "draft", "mergeable", "mergeable_state", "updated_at")]


def push_directly(stage: Stage) -> Iterator[Observation]:
    """The push with which Mergeyard merges passes the rules only with the right entry in the bypass list."""
    host = to_github(stage)
    host.need_rules("a bypass list")
    modes = {"always": "always", "for pull requests only": "pull_request", "not on the list": ""}
    for at, (title, mode) in enumerate(modes.items()):
        host.write_ruleset(host.required_approvals, mode=mode).must_succeed()
        result = host.push_to_main({f"direct-{at}.txt": stage.run_id})
        answer = {"accepted": result.succeeded, "messages": result.messages}
        expected = "accepted" if mode == "always" else "refused"
        yield stage.saw(
            f"a push to main, bypass mode {title}",
            answer,
            asked="git push",
            matters=DECIDES,
            expected=expected,
            holds=result.succeeded == (mode == "always"),
        )
    host.write_ruleset(host.required_approvals).must_succeed()
    host.protect_classic().must_succeed()
    result = host.push_to_main({"classic.txt": stage.run_id})
    host.unprotect_classic()
    answer = {"accepted": result.succeeded, "messages": result.messages}
    yield stage.saw("a push to main with classic protection too", answer, asked="git push", matters=DECIDES)
    yield from _land_without_bypass(stage, host)


def _land_without_bypass(stage: Stage, host: LiveGithub) -> Iterator[Observation]:
    number = stage.open("refused")
    host.write_ruleset(host.required_approvals, mode="").must_succeed()
    stage.submit(number)
    stage.test(number)

    def is_paused() -> bool:
        stage.read_submission(number)
        return stage.queue.post("getQueue")["state"] == "PAUSED"

    with suppress(TimeoutError):  # then the report shows what the queue does instead
        stage.wait(is_paused, "the pause of the queue")
    queue = stage.queue.post("getQueue")
    found = {"queue": queue["state"], "message": queue["stateReason"], "its submission": stage.state_of(number)}
    yield stage.saw(
        "a merge by Mergeyard without the bypass",
        found,
        asked="getQueue",
        matters=DECIDES,
        expected="the queue is PAUSED, and shows the words of GitHub",
        holds=queue["state"] == "PAUSED" and bool(queue["stateReason"]),
    )
    host.write_ruleset(host.required_approvals).must_succeed()
    stage.queue.post("updateQueue", state="RUNNING")
    state = stage.wait_for_state(number, "merged")["state"]
    title = "the same after the bypass is back and the queue resumed"
    yield stage.saw(title, {"state": state}, asked=SUBMISSION, matters=DECIDES)


def push_workflow(stage: Stage) -> Iterator[Observation]:
    host = to_github(stage)
    host.need_app()
    reply = host.issue_token(repositories=[host.name], permissions={"contents": "write"})
    host.use_token(LIMITED, reply.must_succeed().body["token"])
    branch = stage.branch("workflow")
    host.origin.branch(branch, base="start", files={".github/workflows/push.yml": WORKFLOW})
    result = host.push(branch, who=LIMITED)
    answer = {"accepted": result.succeeded, "messages": result.messages}
    yield stage.saw(
        "a push of a workflow file",
        answer,
        asked="git push",
        matters=DECIDES,
        expected="refused",
        holds=not result.succeeded,
    )


def time_merge(stage: Stage) -> Iterator[Observation]:
    """After the push that merges, the Git host shows the pull request as merged a moment later."""
    host, number = stage.host, stage.open("push")
    branch, before = stage.branch("push"), time.monotonic()
    pushed = host.push_to_main({"push.txt": stage.run_id}, merging=branch)
    started = time.monotonic()
    shown = stage.wait_at_host(lambda: host.is_merged(host.read(number).must_succeed()))
    seconds = round(time.monotonic() - started, 1)
    answer = {"pushed": pushed.succeeded, "merged": bool(shown)}
    yield stage.saw("a pull request whose head was pushed to main", answer, asked="git push", matters=DECIDES)
    yield stage.saw("seconds until it is shown as merged", seconds, asked="GET the pull request", is_measured=True)
    order, delays = "the order of the webhooks about it", "seconds until each webhook arrived"
    if stage.webhooks is None:
        for title in (order, delays):
            yield stage.miss(title, "needs --public-url, so that the Git host can send webhooks")
        return
    find = partial(stage.webhooks.find, before)
    probes = {
        "push": lambda: find("push", ref="refs/heads/main"),
        "closed": lambda: find(CLOSED[host.kind], number=number),
    }
    stage.wait_at_host(lambda: all(probe() for probe in probes.values()))
    arrived = {name: found.arrived_at for name, probe in probes.items() if (found := probe())}
    yield stage.saw(order, sorted(arrived, key=lambda name: arrived[name]), asked="git push")
    figures = {name: round(max(0.0, at - started), 1) for name, at in arrived.items()}
    yield stage.saw(delays, figures, asked="git push", is_measured=True)


def show_creator(stage: Stage) -> Iterator[Observation]:
    """A required check can be tied to an App, which Mergeyard finds by the creator of the status."""
    host = to_github(stage)
    host.need_app()
    head = host.commit(stage.branch("creator"), {"creator.txt": stage.run_id}, base="start")
    host.report(head, "success", check="by the App", who=BOT).must_succeed()
    reply = host.send("GET", f"{host.repo}/commits/{head}/statuses").must_succeed()
    creator = reply.body[0]["creator"]
    answer = {"type": creator["type"], "login": creator["login"]}
    yield stage.saw(
        "the creator of a status",
        answer,
        asked=reply.asked,
        matters=DECIDES,
        expected="a Bot whose login is the name of the App with [bot]",
        holds=answer == {"type": "Bot", "login": host.logins[BOT]},
    )
    picture = re.sub(r"\d+.*", "<number>", creator["avatar_url"].partition("//")[2].partition("/")[2])
    note = "An App with a picture has in/<number>. For one without, GitHub shows that of its owner, u/<number>"
    yield stage.saw("the path of its picture", picture, asked=reply.asked, is_measured=True, note=note)
    host.need_rules("a required check that is tied to the App")
    host.write_ruleset(host.required_approvals, is_tied=True).must_succeed()
    number = stage.open("tied")
    host.report(host.origin.tip(stage.branch("tied")), "success", who=BOT).must_succeed()
    stage.submit(number)
    stage.test(number, who=BOT)
    merged = stage.wait_for_state(number, "merged")
    yield stage.saw("its submission", {"state": merged["state"]}, asked=SUBMISSION, matters=DECIDES)
    host.write_ruleset(host.required_approvals).must_succeed()


def merge_in_a_row(stage: Stage) -> Iterator[Observation]:
    """Mergeyard repeats a merge that GitHub refuses for a moment, and gives up on one that it always refuses."""
    host = to_github(stage)
    numbers = [stage.open(f"row-{at}") for at in range(MERGES_IN_A_ROW)]
    replies = [host.merge(number) for number in numbers]
    answers = [{"status": one.status, "message": one.message} for one in replies]
    yield stage.saw(f"{MERGES_IN_A_ROW} merges in a row", answers, asked="PUT merge", matters=DECIDES)
    host.need_rules("a pull request that must be up to date")
    number = stage.open("behind")
    host.write_ruleset(host.required_approvals, mode="", strict=True).must_succeed()
    yield stage.saw("a pull request behind main", stage.read_settled(number), "pull_request", DECIDES)
    yield stage.saw("its merge, where it must be up to date", host.merge(number), "merge", DECIDES)
    host.write_ruleset(host.required_approvals).must_succeed()


def merge_stacked(stage: Stage) -> Iterator[Observation]:
    """GitHub merges stacked pull requests only with another call, which also merges those below."""
    host, bottom, top = to_github(stage), stage.open("bottom"), stage.branch("top")
    host.commit(top, {"top.txt": stage.run_id}, base=stage.branch("bottom"))
    above = host.number_of(host.open(top, "Change top", base=stage.branch("bottom")))
    reply = host.stack(bottom, above)
    answer = {"status": reply.status, "message": reply.message}
    yield stage.saw("a stack of two pull requests", answer, asked=reply.asked)
    title, shown = "the merge of the lower one", host.read(bottom).must_succeed().body.get("stack")
    if not shown:
        yield stage.miss(title, "needs stacks, which this Git host does not show")
        return
    reply = host.merge(bottom)
    answer = {"status": reply.status, "message": reply.message}
    yield stage.saw(title, answer, asked=reply.asked, matters=DECIDES, expected="refused", holds=not reply.succeeded)


def count_requests(stage: Stage) -> Iterator[Observation]:
    """What one test run costs of the limit, with some checks that are not required."""
    host, number = to_github(stage), stage.open("cost")
    before, own = _used(host), host.budget.used
    stage.submit(number)
    sha = stage.find_run(number)["testBranchSha"]
    for at in range(OTHER_CHECKS):
        host.report(sha, "success", check=f"other-{at}").must_succeed()
    stage.test(number)
    stage.wait_for_state(number, "merged")
    spent = _used(host) - before - (0 if host.has_app else host.budget.used - own)
    heard, note = "webhooks" if stage.webhooks else "polling", REDUCED
    if not stage.webhooks:
        note += ". Without --public-url this is the cost of polling: with webhooks, Mergeyard reads more often"
    figures = {"requests of Mergeyard": spent, "commit statuses": OTHER_CHECKS + 1, "Mergeyard hears of them by": heard}
    yield stage.saw("the cost of one test run", figures, asked="x-ratelimit-used", is_measured=True, note=note)


def _used(host: LiveGithub) -> int:
    return int(host.send("GET", host.repo, who=BOT).must_succeed().headers.get("x-ratelimit-used", "0"))


def issue_token(stage: Stage) -> Iterator[Observation]:
    host = to_github(stage)
    host.need_app()
    granted = {need.permission: need.level for need in REQUIRED_PERMISSIONS}
    reply = host.issue_token(repositories=[host.name], permissions=granted)
    if reply.succeeded:
        host.extra_secrets.append(reply.body["token"])
    answer = {"status": reply.status, "message": reply.message}
    yield stage.saw("a token with the permissions that Mergeyard needs", answer, asked=reply.asked, matters=DECIDES)


def use_other_case(stage: Stage) -> Iterator[Observation]:
    """People write the name of a repository in any case, and Mergeyard follows no redirect."""
    host = to_github(stage)
    result = host.git("ls-remote", "--quiet", who=BOT, path=host.path.swapcase())
    yield stage.saw(
        "git by the name in other case",
        {"succeeded": result.succeeded, "messages": result.messages},
        asked="git ls-remote",
        matters=DECIDES,
        expected="an answer without a redirect",
        holds=result.succeeded,
    )


def suspend_app(stage: Stage) -> Iterator[Observation]:
    """Nothing of this can be undone by the kit if it is stopped in between."""
    raise NotRun(
        "it would stop all users of the App. By hand, while Mergeyard runs: suspend the installation, then remove the "
        "repository from it, then take a permission away. Mergeyard must show the problem each time and recover"
    )
    yield stage.saw("", None)


# GitLab


def list_after_comment(stage: Stage) -> Iterator[Observation]:
    """GitLab does not show a comment in the list of merge requests within a minute. Mergeyard must not rely on it."""
    host = to_gitlab(stage)
    number = stage.open("list", is_approved=False)
    host.list_open().must_succeed()
    host.comment(number, "A comment.").must_succeed()
    listed = {one["iid"]: one["user_notes_count"] for one in host.list_open().must_succeed().body}
    answer = {"listed": listed.get(number), "comments": len(host.list_comments(number).must_succeed().body)}
    yield stage.saw("the number of comments, listed and real", answer, asked="GET the list", matters=DECIDES)
    reply = host.read_approvals(number)
    answer = {name: reply.body.get(name, "<absent>") for name in ("approved", "approvals_required", "approvals_left")}
    yield stage.saw("approvals without an approval", answer, asked=reply.asked, is_measured=True)


def merge_against_flag(stage: Stage) -> Iterator[Observation]:
    """The flag of the merge request decides whether it is squashed, whatever the merge call says."""
    host = to_gitlab(stage)
    number = stage.open("flag")
    host.set_squash(number).must_succeed()
    yield stage.saw("the merge request with the flag", stage.read_settled(number), "pull_request", DECIDES)
    reply = host.merge_without_squash(number)
    yield stage.saw("its merge without squash", reply, "merge", DECIDES)
    squashed = bool(reply.body.get("squash_commit_sha"))
    yield stage.saw("whether it was squashed", squashed, asked=reply.asked, matters=DECIDES)


def repeat_check(stage: Stage) -> Iterator[Observation]:
    """GitLab refuses a state that a check already has."""
    host = to_gitlab(stage)
    head = host.commit(stage.branch("repeat"), {"repeat.txt": stage.run_id}, base="start")
    answers = list[Any]()
    for state in ("pending", "pending", "running", "pending", "success", "success"):
        reply = host.report(head, state)
        answers.append({"state": state, "status": reply.status, "message": reply.message})
    yield stage.saw("states one after another", answers, asked="POST statuses", matters=DECIDES)
    reply = host.report("0" * 40, "success")
    answer = {"status": reply.status, "message": reply.message}
    yield stage.saw("a check on a commit that does not exist", answer, asked=reply.asked, matters=DECIDES)


GITHUB_STEPS: dict[str, tuple[str, Step]] = {
    "accounts": ("What each account sees of the rules", compare_accounts),
    "tags": ("Conditional requests", read_with_tags),
    "pushes": ("Pushes to a protected branch", push_directly),
    "workflow": ("A workflow file without the permission", push_workflow),
    "delay": ("From the push to the merged pull request", time_merge),
    "creator": ("Who reported a check", show_creator),
    "row": ("Merges in a row, and one that is behind", merge_in_a_row),
    "stack": ("A stacked pull request", merge_stacked),
    "cost": ("What a test run costs", count_requests),
    "app-token": ("The token of the App", issue_token),
    "case": ("Names in other case", use_other_case),
    "suspend": ("A suspended App", suspend_app),
}
GITLAB_STEPS: dict[str, tuple[str, Step]] = {
    "list": ("The list of merge requests", list_after_comment),
    "flag": ("The squash flag of a merge request", merge_against_flag),
    "repeat": ("The same state of a check again", repeat_check),
    "delay": GITHUB_STEPS["delay"],
}
