"""The story that runs at every Git host: from an empty repository to merged pull requests."""

from collections.abc import Iterator
from functools import partial

from tests.live.client import Reply
from tests.live.hosts import ADMIN, CHECK, SECOND
from tests.live.stage import UNFINISHED, Observation, Stage, Step, read_findings

DECIDES = "Mergeyard decides by it"
SHOWN = "users see it"


def protect(stage: Stage) -> Iterator[Observation]:
    """Where the plan has no rules, the queue itself requires the check."""
    host = stage.host
    reply = host.protect(host.required_approvals)
    host.is_protected = reply.succeeded
    yield stage.saw("a rule with a required check", reply, "protection", DECIDES)
    yield stage.saw("the rules of main", host.read_rules(), "rules", DECIDES)
    created = stage.queue.post("createQueue", **({} if reply.succeeded else {"requiredStatuses": [CHECK]}))
    yield stage.saw("the queue", {"state": created["state"]}, asked="createQueue", matters=DECIDES)


def check_setup(stage: Stage) -> Iterator[Observation]:
    found = read_findings(stage)
    yield stage.saw("what host check finds", found, asked="mergeyard host check", matters=SHOWN)


def merge_tested_commit(stage: Stage) -> Iterator[Observation]:
    host, files = stage.host, {"a.txt": f"{stage.run_id} one"}
    number = stage.open("one", files, is_approved=False)
    yield stage.saw("the pull request, not approved", stage.read_settled(number), "pull_request", DECIDES)
    stage.submit(number)
    if host.can_require_approvals:
        stage.wait(lambda: stage.state_of(number)["reason"] == "waiting_for_review", "the reason waiting_for_review")
        yield stage.saw("its submission, not approved", stage.state_of(number), asked="getSubmittedPullRequest")
        yield stage.saw("the approval", host.approve(number), "review", DECIDES)
    head = host.origin.tip(stage.branch("one"))
    yield stage.saw("a passed check on the head", host.report(head, "success"), "check", DECIDES)
    stage.wait_at_host(lambda: stage.own_check(head))
    yield stage.saw("the pull request, ready", stage.read_settled(number), "pull_request", DECIDES)
    pending = stage.test(number, "pending")
    yield stage.saw("a pending check", pending, "check", DECIDES)
    yield stage.saw("a passed check", stage.test(number, "success"), "check", DECIDES)
    merged = stage.wait_for_state(number, "merged")
    yield stage.saw("the merged pull request", stage.read_merged(number, head), "pull_request", DECIDES)
    tip = host.fetch("main")
    same = {"main is the reported commit": tip == merged["mergedSha"]}
    yield stage.saw("the commit on main", same, asked="git fetch main", matters=DECIDES)
    own = stage.own_check(head)
    yield stage.saw("the check of Mergeyard on the head", own, asked="the checks of the head", matters=SHOWN)
    text = stage.wait_at_host(lambda: _merged_comment(stage, number)) or stage.status_comment(number)
    yield stage.saw("the comment of Mergeyard", text, asked="the comments", matters=SHOWN)
    left = [ref for ref in host.refs() if ref.startswith("refs/heads/mergeyard/")]
    yield stage.saw("test branches that are left", left, asked="git ls-remote", matters=SHOWN)


def fail(stage: Stage) -> Iterator[Observation]:
    number = stage.open("bad")
    stage.submit(number)
    yield stage.saw("a failed check", stage.test(number, "failure"), "check", DECIDES)
    stage.wait_for_state(number, "failed")
    yield stage.saw("its submission", stage.state_of(number), asked="getSubmittedPullRequest", matters=DECIDES)
    head = stage.host.origin.tip(stage.branch("bad"))
    own = stage.wait_at_host(lambda: _ended(stage.own_check(head)))
    yield stage.saw("the check of Mergeyard on the head", own, asked="the checks of the head", matters=SHOWN)
    yield stage.saw("the pull request", stage.read_settled(number), "pull_request", DECIDES)


def submit_by_comment(stage: Stage) -> Iterator[Observation]:
    host, number = stage.host, stage.open("command")
    reply = host.comment(number, host.command, SECOND if host.has_second else ADMIN).must_succeed()
    yield stage.saw("the comment with the command", reply, "comment", DECIDES)
    stage.test(number)
    stage.wait_for_state(number, "merged")
    reactions = stage.wait_at_host(lambda: _some(host.list_reactions(number, reply.body["id"])))
    yield stage.saw("the reaction of Mergeyard", reactions, "reactions", SHOWN)


def submit_by_label(stage: Stage) -> Iterator[Observation]:
    host, number = stage.host, stage.open("label")
    yield stage.saw("the label", host.label(number).must_succeed(), "labels", DECIDES)
    stage.test(number)
    stage.wait_for_state(number, "merged")
    left = stage.wait_at_host(lambda: "none" if not host.labels(number) else None)
    yield stage.saw("labels that are left", left, asked="the labels", matters=SHOWN)


def refuse_conflict(stage: Stage) -> Iterator[Observation]:
    number = stage.open("two", {"a.txt": f"{stage.run_id} two"})
    yield stage.saw("the pull request", stage.read_settled(number), "pull_request", DECIDES)
    stage.submit(number)
    codes = ("not_mergeable", "merge_conflict")
    stage.wait(lambda: stage.state_of(number)["reason"] in codes, "the reason of the conflict")
    yield stage.saw("its submission", stage.state_of(number), asked="getSubmittedPullRequest", matters=DECIDES)
    stage.queue.post("cancelPullRequest", pr={"number": number})


def open_drafts(stage: Stage) -> Iterator[Observation]:
    host = stage.host
    stage.queue.post("updateQueue", createPrsForTestingBranches=True)
    number = stage.open("draft")
    stage.submit(number)
    branch = stage.find_run(number)["testBranch"]
    draft = stage.wait_at_host(lambda: _some(host.list_by_branch(branch)))
    yield stage.saw("the draft of the test branch", draft, "pull_requests", DECIDES)
    stage.test(number)
    stage.wait_for_state(number, "merged")
    stage.wait_at_host(lambda: _if_merged(stage, number))
    yield stage.saw("how the draft ends", host.list_by_branch(branch), "pull_requests", SHOWN)
    stage.queue.post("updateQueue", createPrsForTestingBranches=False)


def squash_by_host(stage: Stage) -> Iterator[Observation]:
    host = stage.host
    stage.queue.post("updateQueue", landing="provider_merge", mergeMethod="squash")
    number = stage.open("squash")
    stage.submit(number)
    stage.test(number)
    merged = stage.wait_for_state(number, "merged")
    head = host.origin.tip(stage.branch("squash"))
    yield stage.saw("the merged pull request", stage.read_merged(number, head), "pull_request", DECIDES)
    tip = host.fetch("main")
    parents = host.origin.run("rev-list", "--parents", "-n1", tip).decode().split()[1:]
    same = {"main is the reported commit": tip == merged["mergedSha"], "parents": len(parents)}
    yield stage.saw("the commit on main", same, asked="git fetch main", matters=DECIDES)
    stage.queue.post("updateQueue", landing="tested_commit", mergeMethod="merge_commit")


def move_heads(stage: Stage) -> Iterator[Observation]:
    """GitHub and GitLab show a squashed or rebased pull request as merged, because Mergeyard moved its head branch."""
    host = stage.host
    for method in ("squash", "rebase"):
        stage.queue.post("updateQueue", mergeMethod=method, headBranchFallback="close")
        branch = stage.branch(method + "ed")
        number = stage.open(method + "ed")
        stage.submit(number)
        stage.test(number)
        merged = stage.wait_for_state(number, "merged")
        reply = stage.wait_at_host(partial(_if_merged, stage, number)) or host.read(number)
        yield stage.saw(f"the merged pull request, {method}", reply, "merged", DECIDES)
        tip, head = host.fetch("main"), host.fetch(branch)
        same = {"main is the reported commit": tip == merged["mergedSha"], "the head branch is there": head == tip}
        yield stage.saw(f"the commit on main, {method}", same, asked="git fetch", matters=DECIDES)
    stage.queue.post("updateQueue", mergeMethod="merge_commit", headBranchFallback="provider_merge")


def merge_fork(stage: Stage) -> Iterator[Observation]:
    host = stage.host
    host.need_second("a fork")
    yield stage.saw("the fork", host.fork(), "repository")
    stage.wait_at_host(host.is_fork_ready)
    branch = stage.branch("fork")
    head = host.commit(branch, {"fork.txt": stage.run_id}, base="start", who=SECOND, path=host.fork_path)
    number = host.number_of(host.open(branch, "Change fork", who=SECOND, from_fork=True))
    yield stage.saw("the pull request", stage.read_settled(number), "pull_request", DECIDES)
    fetched = host.git("fetch", "--quiet", f"+{host.pull_ref.format(number)}:refs/heads/kit-fetched")
    same = {"succeeded": fetched.succeeded, "is its head": host.origin.ref("kit-fetched") == head}
    yield stage.saw("its head in the repository", same, asked=f"git fetch {host.pull_ref}", matters=DECIDES)
    yield stage.saw("a check on its head", host.report(head, "success"), "check", DECIDES)
    if host.can_require_approvals:
        yield stage.saw("the approval", host.approve(number, ADMIN), "review", DECIDES)
    stage.submit(number, head)
    stage.test(number)
    stage.wait_for_state(number, "merged")
    reply = stage.wait_at_host(lambda: _if_merged(stage, number)) or host.read(number)
    yield stage.saw("the merged pull request", reply, "merged", DECIDES)


def rename(stage: Stage) -> Iterator[Observation]:
    host, old = stage.host, stage.host.name
    path = host.path
    reply = host.rename(f"{old}-renamed").must_succeed()
    yield stage.saw("the new name", reply, "repository")
    host.name = f"{old}-renamed"
    try:
        moved = host.read_repository(path)
        location = "present" if moved.headers.get("location") else "absent"
        answer = {"status": moved.status, "location": location}
        yield stage.saw("a read by the old name", answer, asked="the repository by its old name", matters=DECIDES)
        result = host.git("ls-remote", "--heads", path=path)
        answer = {"succeeded": result.succeeded, "messages": result.messages}
        yield stage.saw("git by the old name", answer, asked="git ls-remote by the old name", matters=DECIDES)
        found = read_findings(stage, path)
        yield stage.saw(
            "what host check finds by the old name",
            found,
            asked="mergeyard host check",
            matters=SHOWN,
            expected="the new name; with an App, only that the repository was renamed",
            holds=host.path in str(found) or (host.has_app and "was renamed" in str(found)),
        )
    finally:
        host.rename(old).must_succeed()
        host.name = old


def read_limits(stage: Stage) -> Iterator[Observation]:
    reply = stage.host.read_repository().must_succeed()
    names = sorted(name for name in reply.headers if "ratelimit" in name.lower() or name.lower() == "retry-after")
    yield stage.saw("headers about limits", names, asked=reply.asked, matters="Mergeyard slows down by them")
    figures = {name: reply.headers[name] for name in names if not name.lower().endswith("reset")}
    figures["requests of the kit"] = str(stage.host.budget.used)
    yield stage.saw("what is left", figures, asked=reply.asked, is_measured=True)


STORY: dict[str, tuple[str, Step]] = {
    "protect": ("Protect the branch and create the queue", protect),
    "check": ("Check the setup", check_setup),
    "merge": ("Merge the tested commit", merge_tested_commit),
    "fail": ("Fail a pull request", fail),
    "comment": ("Submit by a comment", submit_by_comment),
    "label": ("Submit by a label", submit_by_label),
    "conflict": ("Refuse a conflict", refuse_conflict),
    "drafts": ("Open drafts for test branches", open_drafts),
    "squash": ("Squash by the Git host", squash_by_host),
    "heads": ("Squash and rebase the tested commit", move_heads),
    "fork": ("Merge a pull request of a fork", merge_fork),
    "rename": ("Rename the repository", rename),
    "limits": ("Limits of requests", read_limits),
}


def _if_merged(stage: Stage, number: int) -> Reply | None:
    reply = stage.host.read(number).must_succeed()
    return reply if stage.host.is_merged(reply) else None


def _ended(state: str | None) -> str | None:
    return None if state in UNFINISHED else state


def _merged_comment(stage: Stage, number: int) -> str | None:
    text = stage.status_comment(number)
    return text if "Merged" in text else None


def _some(reply: Reply) -> Reply | None:
    return reply if reply.must_succeed().body else None
