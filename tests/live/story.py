"""The story that runs at every Git host: from an empty repository to merged pull requests."""

from collections.abc import Iterator
from functools import partial

from tests.live.client import Reply
from tests.live.hosts import ADMIN, CHECK, SECOND
from tests.live.reviews import DECIDES, REVIEWS, SUBMISSION
from tests.live.stage import SETTINGS, UNFINISHED, Observation, Stage, Step, read_findings

SHOWN = "users see it"
LIST = "git ls-remote"
LIMITED_S = 3
"""How long a fake refuses requests."""


def protect(stage: Stage) -> Iterator[Observation]:
    """Where the plan has no rules, the queue itself requires the check. So it does on GitLab, where the rule is about
    the pipeline as a whole: what the kit reports is no result of a pipeline that ran."""
    host = stage.host
    reply = host.protect(host.required_approvals)
    host.is_protected = reply.succeeded
    yield stage.saw("a rule with a required check", reply, "protection", DECIDES)
    yield stage.saw("the rules of main", host.read_rules(), "rules", DECIDES)
    has_rule_for_check = reply.succeeded and host.kind != "gitlab"
    settings = {} if has_rule_for_check else {"requiredStatuses": [CHECK]}
    created = stage.queue.post("createQueue", **settings)
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
        found = stage.wait_for_reason(number, "waiting_for_review")
        yield stage.saw("its submission, not approved", found, asked=SUBMISSION)
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
    yield stage.saw("test branches that are left", left, asked=LIST, matters=SHOWN)


def fail(stage: Stage) -> Iterator[Observation]:
    number = stage.open("bad")
    stage.submit(number)
    yield stage.saw("a failed check", stage.test(number, "failure"), "check", DECIDES)
    stage.wait_for_state(number, "failed")
    yield stage.saw("its submission", stage.state_of(number), asked=SUBMISSION, matters=DECIDES)
    head = stage.host.origin.tip(stage.branch("bad"))
    own = stage.wait_at_host(lambda: _ended(stage.own_check(head)))
    yield stage.saw("the check of Mergeyard on the head", own, asked="the checks of the head", matters=SHOWN)
    yield stage.saw("the pull request", stage.read_settled(number), "pull_request", DECIDES)


def give_commands(stage: Stage) -> Iterator[Observation]:
    host, number, person = stage.host, stage.open("command"), SECOND if stage.host.has_second else ADMIN

    def command(words: str = "") -> Reply:
        return host.comment(number, f"{host.command} {words}".strip(), person).must_succeed()

    submit = command()
    yield stage.saw("the comment with the command", submit, "comment", DECIDES)
    stage.find_run(number)
    reactions = stage.wait_at_host(lambda: _some(host.list_reactions(number, submit.body["id"])))
    yield stage.saw("the reaction of Mergeyard", reactions, "reactions", SHOWN)
    asked = command("status").body["id"]
    reply = stage.wait_at_host(lambda: _find_reply(stage, number, asked))
    yield stage.saw("the reply to the command status", reply, asked="the comments", matters=SHOWN)
    command("cancel")
    stage.wait_for_state(number, "cancelled")
    yield stage.saw("its submission after the command cancel", stage.state_of(number), asked=SUBMISSION, matters=SHOWN)
    command()
    stage.test(number)
    merged = stage.wait_for_state(number, "merged")
    yield stage.saw("its submission after another command", {"state": merged["state"]}, asked=SUBMISSION, matters=SHOWN)


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
    found = stage.wait_for_reason(number, "not_mergeable", "merge_conflict")
    yield stage.saw("its submission", found, asked=SUBMISSION, matters=DECIDES)
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
    """GitHub and GitLab show a squashed or rebased pull request as merged, because Mergeyard moved its head branch.
    Afterwards the branch can be deleted, which must not change that."""
    host = stage.host
    for method, deletes in (("squash", False), ("rebase", True)):
        settings = {"mergeMethod": method, "headBranchFallback": "close", "deleteHeadBranches": deletes}
        stage.queue.post("updateQueue", **settings)
        topic = f"{method}-head"
        number, ref = stage.open(topic), f"refs/heads/{stage.branch(topic)}"
        stage.submit(number)
        stage.test(number)
        merged = stage.wait_for_state(number, "merged")
        stage.wait_at_host(partial(_if_merged, stage, number))
        if deletes:
            stage.wait_at_host(partial(_is_missing, stage, ref))
        case, refs = f"{method}, head branch {'deleted' if deletes else 'kept'}", host.refs()
        yield stage.saw(f"the merged pull request, {case}", host.read(number), "merged", DECIDES)
        names = {merged["mergedSha"]: "the merged commit", host.origin.tip(stage.branch(topic)): "the head as it was"}
        head = names.get(refs[ref], "another commit") if ref in refs else "deleted"
        same = refs["refs/heads/main"] == merged["mergedSha"]
        answer = {"is the reported commit": same, "the head branch": head}
        yield stage.saw(f"the commit on main, {case}", answer, asked=LIST, matters=DECIDES)
        yield stage.saw(f"the files that are shown as changed, {case}", host.list_files(number), "files", SHOWN)
    stage.queue.post("updateQueue", **SETTINGS)


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
    host = stage.host
    reply = host.read_repository().must_succeed()
    names = sorted(name for name in reply.headers if "ratelimit" in name.lower() or name.lower() == "retry-after")
    yield stage.saw("headers about limits", names, asked=reply.asked, matters="Mergeyard slows down by them")
    title, remaining = "requests that are left to the account of Mergeyard", host.read_remaining()
    if remaining:
        figures = {"at the start": stage.remaining_at_start, "now": remaining, "requests of the kit": host.budget.used}
        note = "Without an App, the kit uses the same account. GitHub renews the limit every hour"
        yield stage.saw(title, figures, asked=reply.asked, is_measured=True, note=note)
    else:
        yield stage.miss(title, "the Git host reports no limit")
    title, limiter = "Mergeyard beyond the limit", host.access.limiter
    if limiter is None:
        yield stage.miss(title, "the kit does not exhaust the limit of a Git host, and only a fake refuses on request")
        return
    number = stage.open("limited")
    stage.submit(number)
    stage.find_run(number)
    limiter.start(LIMITED_S)
    stage.test(number)
    state = stage.wait_for_state(number, "merged")["state"]
    late = limiter.count_late()
    answer = {"requests while it was told to wait": late, "state afterwards": state}
    expected = "no request while it was told to wait, then the merge"
    yield stage.saw(title, answer, asked=SUBMISSION, matters=DECIDES, expected=expected, holds=late == 0)


STORY: dict[str, tuple[str, Step]] = {
    "protect": ("Protect the branch and create the queue", protect),
    "check": ("Check the setup", check_setup),
    "merge": ("Merge the tested commit", merge_tested_commit),
    "fail": ("Fail a pull request", fail),
    "comment": ("Commands in comments", give_commands),
    "label": ("Submit by a label", submit_by_label),
    "conflict": ("Refuse a conflict", refuse_conflict),
    **REVIEWS,
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


def _is_missing(stage: Stage, ref: str) -> bool:
    return ref not in stage.host.refs()


def _find_reply(stage: Stage, number: int, comment: int) -> str | None:
    """What Mergeyard answered to a command; its first line names the comment with the command."""
    texts: list[str] = [one["body"] for one in stage.host.list_comments(number).must_succeed().body]
    lines = [text.partition("\n") for text in texts]
    return next((text.strip() for first, _, text in lines if first.endswith(f" answers {comment} -->")), None)


def _ended(state: str | None) -> str | None:
    return None if state in UNFINISHED else state


def _merged_comment(stage: Stage, number: int) -> str | None:
    text = stage.status_comment(number)
    return text if "Merged" in text else None


def _some(reply: Reply) -> Reply | None:
    return reply if reply.must_succeed().body else None
