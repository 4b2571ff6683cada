"""How GitLab treats a head branch that the queue moves, and what the host reports about it."""

import json
from collections.abc import Callable
from subprocess import PIPE, CompletedProcess, run

import pytest

from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import HeadBranchAccess, PullRequest
from mergeyard.ports.forge import HostRefused, HostUnavailable, PullRequestText
from tests.contract.host.environment import ONE, TWO
from tests.contract.host.gitlab_environment import GitlabEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import ALWAYS, Fault, LosesResponse, RespondsWith
from tests.support.forges.gitlab.actions import commit_tree
from tests.support.forges.gitlab.world import BOT, DELETED, DEVELOPER, MAINTAINER, TOKEN, ApprovalRule, Project, User
from tests.support.repositories import ENVIRONMENT

THREE = PullRequestNumber(3)


def squash(gitlab: GitlabEnvironment, number: int = 1) -> Sha:
    """The commit that the queue tests: all changes of the head in one commit on the target branch."""
    return commit_tree(gitlab.origin, Sha(f"{gitlab.head(number)}^{{tree}}"), [gitlab.origin.tip("main")], "Squashed")


def push(gitlab: GitlabEnvironment, *refspecs: str, to: Project | None = None) -> CompletedProcess[str]:
    """A push with the token of our account, over HTTP."""
    url = f"{gitlab.world.web_url.replace('//', f'//oauth2:{TOKEN}@')}/{(to or gitlab.project).path}.git"
    command = ["git", "-C", gitlab.origin.path, "push", "--atomic", url, *refspecs]
    return run(command, env=ENVIRONMENT, stderr=PIPE, text=True, check=False)


def push_head(gitlab: GitlabEnvironment, commit: Sha, *, to: Project | None = None) -> CompletedProcess[str]:
    return push(gitlab, f"+{commit}:refs/heads/topic-1", to=to)


def open_from_fork(gitlab: GitlabEnvironment, visibility: str = "public") -> Project:
    gitlab.project.visibility = visibility
    fork = gitlab.world.add_fork(gitlab.gitlab.git_server, gitlab.project, "eve/app", "eve")
    fork.origin.branch("topic-1", base="main", files={"1.txt": "1"})
    gitlab.acts.open_merge_request(gitlab.project, "topic-1", by="eve", source=fork)
    return fork


async def read(gitlab: GitlabEnvironment, number: PullRequestNumber = ONE, *, fully: bool = True) -> PullRequest:
    async with gitlab.host() as host:
        found = await host.read_pull_request(gitlab.repo, number, with_requirements=fully)
    assert found is not None
    return found


# Which order of pushes GitLab shows as a merge: `MergeRequests::RefreshService`


def test_a_head_that_moves_in_one_push_with_its_target_branch_stays_open(gitlab: GitlabEnvironment):
    gitlab.open(1)
    commit = squash(gitlab)
    assert push(gitlab, f"{commit}:refs/heads/main", f"+{commit}:refs/heads/topic-1").returncode == 0
    assert (gitlab.request().state, gitlab.head()) == ("opened", commit)
    assert gitlab.request().has_empty_diff


@pytest.mark.parametrize("branch", ["a-topic", "topic"])
def test_the_order_in_which_gitlab_looks_at_the_refs_of_one_push_does_not_matter(
    gitlab: GitlabEnvironment, branch: str
):
    gitlab.origin.branch(branch, base="main", files={"1.txt": "1"})
    request = gitlab.acts.open_merge_request(gitlab.project, branch)
    commit = squash(gitlab)
    assert push(gitlab, f"{commit}:refs/heads/main", f"+{commit}:refs/heads/{branch}").returncode == 0
    assert request.state == "opened"


@asynchronous
async def test_a_head_that_gitlab_has_recorded_before_the_target_branch_moves_is_merged(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    gitlab.world.reads_before_recording = 2
    commit = squash(gitlab)
    assert push_head(gitlab, commit).returncode == 0
    assert [(await read(gitlab, fully=False)).head for _ in range(3)] == [head, head, commit]
    assert push(gitlab, f"{commit}:refs/heads/main").returncode == 0
    async with gitlab.host() as host:
        assert host.moves_heads_first
        assert await host.mark_merged(gitlab.repo, ONE, head, commit)
    assert gitlab.call("GET", "/merge_requests/1").json()["merge_commit_sha"] == commit
    assert not gitlab.request().has_empty_diff


@asynchronous
async def test_a_head_that_gitlab_has_not_recorded_before_the_target_branch_moves_stays_open(
    gitlab: GitlabEnvironment,
):
    head = gitlab.open(1)
    gitlab.world.reads_before_recording = 1
    commit = squash(gitlab)
    push_head(gitlab, commit)
    assert push(gitlab, f"{commit}:refs/heads/main").returncode == 0
    async with gitlab.host() as host:
        shown = [await host.mark_merged(gitlab.repo, ONE, head, commit) for _ in range(3)]
    assert shown == [False, False, False]
    assert gitlab.request().has_empty_diff


@asynchronous
async def test_several_heads_are_merged_by_one_push_of_their_commits(gitlab: GitlabEnvironment):
    heads = {number: gitlab.open(number) for number in (1, 2)}
    first = squash(gitlab, 1)
    tree = gitlab.origin.merged_tree(first, heads[2])
    assert tree
    second = commit_tree(gitlab.origin, tree, [first], "Squashed")
    push(gitlab, f"+{first}:refs/heads/topic-1", f"+{second}:refs/heads/topic-2")
    push(gitlab, f"{second}:refs/heads/main")
    assert [(await read(gitlab, number)).merged_into for number in (ONE, TWO)] == ["main", "main"]
    assert [gitlab.request(number).merge_commit for number in (1, 2)] == [first, second]


@asynchronous
async def test_approvals_that_our_own_push_resets_do_not_prevent_the_merge(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.require_approvals(gitlab.project, ApprovalRule(name="owners", users=("bob",)))
    gitlab.acts.approve(gitlab.project, gitlab.request(), "bob")
    commit = squash(gitlab)
    push_head(gitlab, commit)
    assert (gitlab.request().approvals, (await read(gitlab)).is_mergeable) == ([], False)
    push(gitlab, f"{commit}:refs/heads/main")
    assert (await read(gitlab)).merged_into == "main"


def test_a_head_that_is_moved_back_has_its_changes_again(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    for commit in (squash(gitlab), head):
        push_head(gitlab, commit)
    assert (gitlab.head(), gitlab.request().has_empty_diff) == (head, False)
    gitlab.land(1)
    assert gitlab.request().state == "merged"


# Who can push where


def test_a_fork_takes_our_push_only_to_the_branch_of_a_merge_request_that_allows_it(gitlab: GitlabEnvironment):
    fork = open_from_fork(gitlab)
    commit = squash(gitlab)
    gitlab.request().wants_collaboration = False
    assert "403" in push_head(gitlab, commit, to=fork).stderr
    gitlab.request().wants_collaboration = True
    refused = push(gitlab, f"{commit}:refs/heads/main", to=fork)
    assert "GitLab: You are not allowed to push code to protected branches on this project." in refused.stderr
    refused = push(gitlab, f"{commit}:refs/heads/another", to=fork)
    assert "GitLab: You are not allowed to push code to this project." in refused.stderr
    assert push_head(gitlab, commit, to=fork).returncode == 0
    assert gitlab.head() == commit
    push(gitlab, f"{commit}:refs/heads/main")
    assert gitlab.request().state == "merged"


def test_a_merged_merge_request_no_longer_lets_us_push_to_the_fork(gitlab: GitlabEnvironment):
    fork = open_from_fork(gitlab)
    gitlab.land(1)
    assert "403" in push_head(gitlab, gitlab.origin.tip("main"), to=fork).stderr


def protect(gitlab: GitlabEnvironment, level: int) -> None:
    gitlab.project.protected["topic-*"] = level


@pytest.mark.parametrize(
    ("level", "refspec", "refusal"),
    [
        (0, "{}:refs/heads/topic-1", "You are not allowed to push code to protected branches on this project."),
        (MAINTAINER, "+{}:refs/heads/topic-1", "You are not allowed to force push code to a protected branch on this"),
        (MAINTAINER, ":refs/heads/topic-1", "You can only delete protected branches using the web interface."),
    ],
)
def test_a_protected_branch_refuses_the_whole_push(gitlab: GitlabEnvironment, level: int, refspec: str, refusal: str):
    """GitLab decides in one hook for all refs: its answer does not say which of them it refuses."""
    head = gitlab.open(1)
    protect(gitlab, level)
    commit = gitlab.origin.branch("elsewhere", base=head, files={"2.txt": "1"}) if level == 0 else squash(gitlab)
    answer = push(gitlab, refspec.format(commit), f"{gitlab.origin.tip('main')}:refs/heads/new")
    assert f"remote: GitLab: {refusal}" in answer.stderr
    assert answer.stderr.count("(pre-receive hook declined)") == 2
    assert (gitlab.origin.ref("topic-1"), gitlab.origin.ref("new")) == (head, None)


def test_a_rule_can_allow_to_force_a_push(gitlab: GitlabEnvironment):
    gitlab.open(1)
    protect(gitlab, MAINTAINER)
    gitlab.project.force_pushable.add("topic-*")
    assert push_head(gitlab, squash(gitlab)).returncode == 0


# What the host reports about the head branch


def leave(gitlab: GitlabEnvironment) -> None: ...


def protect_for_maintainers(gitlab: GitlabEnvironment) -> None:
    protect(gitlab, MAINTAINER)


def protect_from_us(gitlab: GitlabEnvironment) -> None:
    protect(gitlab, 0)
    gitlab.project.force_pushable.add("topic-*")


def let_force(gitlab: GitlabEnvironment) -> None:
    protect(gitlab, MAINTAINER)
    gitlab.project.protected["topic-1"] = MAINTAINER
    gitlab.project.force_pushable.add("topic-*")


def use_twice(gitlab: GitlabEnvironment) -> None:
    gitlab.origin.branch("production", base="main")
    gitlab.acts.open_merge_request(gitlab.project, "topic-1", base="production")


def use_once_more(gitlab: GitlabEnvironment) -> None:
    use_twice(gitlab)
    gitlab.close(2)


def use_same_name_in_fork(gitlab: GitlabEnvironment) -> None:
    fork = gitlab.world.add_fork(gitlab.gitlab.git_server, gitlab.project, "eve/app", "eve")
    gitlab.acts.open_merge_request(gitlab.project, "topic-1", by="eve", source=fork)


def delete_quietly(gitlab: GitlabEnvironment) -> None:
    gitlab.origin.delete_ref("topic-1")


def move_quietly(gitlab: GitlabEnvironment) -> None:
    gitlab.world.reads_before_recording = 9
    gitlab.push(1)


def demote(gitlab: GitlabEnvironment) -> None:
    gitlab.project.members[BOT] = 20


@pytest.mark.parametrize(
    ("become_true", "access"),
    [
        (leave, HeadBranchAccess.MOVABLE),
        (protect_for_maintainers, HeadBranchAccess.PROTECTED),
        (protect_from_us, HeadBranchAccess.PROTECTED),
        (let_force, HeadBranchAccess.PROTECTED),
        (demote, HeadBranchAccess.PROTECTED),
        (use_twice, HeadBranchAccess.SHARED),
        (use_once_more, HeadBranchAccess.MOVABLE),
        (use_same_name_in_fork, HeadBranchAccess.MOVABLE),
        (delete_quietly, HeadBranchAccess.GONE),
        (move_quietly, HeadBranchAccess.GONE),
    ],
)
@asynchronous
async def test_the_host_reports_whether_a_head_branch_can_be_moved(
    gitlab: GitlabEnvironment, become_true: Callable[[GitlabEnvironment], None], access: HeadBranchAccess
):
    gitlab.open(1)
    become_true(gitlab)
    found = await read(gitlab)
    assert (found.head_branch_access, found.head_repo, found.is_merged_by_head) == (access, "", True)


@asynchronous
async def test_the_default_branch_is_never_moved(gitlab: GitlabEnvironment):
    gitlab.origin.branch("production", base="main")
    gitlab.acts.commit(gitlab.project, "main", {"1.txt": "1"})
    gitlab.acts.open_merge_request(gitlab.project, "main", base="production")
    gitlab.project.force_pushable.add("main")
    assert (await read(gitlab)).head_branch_access is HeadBranchAccess.SHARED


def refuse_collaboration(gitlab: GitlabEnvironment) -> None:
    gitlab.request().wants_collaboration = False


def take_the_right_to_merge(gitlab: GitlabEnvironment) -> None:
    gitlab.project.members[BOT] = DEVELOPER


def protect_in_fork(gitlab: GitlabEnvironment) -> None:
    gitlab.world.projects["eve/app"].protected["topic-*"] = MAINTAINER


def hide_fork(gitlab: GitlabEnvironment) -> None:
    gitlab.world.projects["eve/app"].visibility = "private"


def forbid_fork(gitlab: GitlabEnvironment) -> None:
    fork = gitlab.world.projects["eve/app"]
    gitlab.gitlab.faults.plan(RespondsWith(403), f"/projects/{fork.id}$", times=ALWAYS)


def use_fork_twice(gitlab: GitlabEnvironment) -> None:
    gitlab.origin.branch("production", base="main")
    fork = gitlab.world.projects["eve/app"]
    gitlab.acts.open_merge_request(gitlab.project, "topic-1", by="eve", base="production", source=fork)


def delete_in_fork(gitlab: GitlabEnvironment) -> None:
    gitlab.world.projects["eve/app"].origin.delete_ref("topic-1")


def move_quietly_in_fork(gitlab: GitlabEnvironment) -> None:
    gitlab.world.projects["eve/app"].origin.commit("topic-1", {"2.txt": "1"})


@pytest.mark.parametrize(
    ("become_true", "fork", "access"),
    [
        (leave, "eve/app", HeadBranchAccess.MOVABLE),
        (refuse_collaboration, "eve/app", HeadBranchAccess.IN_FORK),
        (take_the_right_to_merge, "eve/app", HeadBranchAccess.IN_FORK),
        (protect_in_fork, "eve/app", HeadBranchAccess.IN_FORK),
        (use_fork_twice, "eve/app", HeadBranchAccess.SHARED),
        (delete_in_fork, "eve/app", HeadBranchAccess.IN_FORK),
        (move_quietly_in_fork, "eve/app", HeadBranchAccess.GONE),
        (hide_fork, "", HeadBranchAccess.IN_FORK),
        (forbid_fork, "", HeadBranchAccess.IN_FORK),
    ],
)
@asynchronous
async def test_a_branch_of_a_fork_can_be_moved_if_its_merge_request_allows_it(
    gitlab: GitlabEnvironment,
    become_true: Callable[[GitlabEnvironment], None],
    fork: str,
    access: HeadBranchAccess,
):
    open_from_fork(gitlab)
    become_true(gitlab)
    found = await read(gitlab)
    assert (found.fork, found.head_repo, found.head_branch_access) == (True, fork, access)


UNUSABLE = [
    *(RespondsWith(status) for status in (401, 403, 404, 410, 429, 451, 500, 503)),
    RespondsWith(301, {"location": "/elsewhere"}),
    RespondsWith(200, body=b"[]"),
    LosesResponse(),
]


@pytest.mark.parametrize(("path", "fork"), [("", ""), ("/repository/branches/topic-1", "eve/app")])
@pytest.mark.parametrize("fault", UNUSABLE)
@asynchronous
async def test_a_fork_without_a_usable_answer_does_not_make_the_read_fail(
    gitlab: GitlabEnvironment, fault: Fault, path: str, fork: str
):
    project = open_from_fork(gitlab)
    gitlab.gitlab.faults.plan(fault, f"/projects/{project.id}{path}$")
    found = [await read(gitlab), await read(gitlab)]
    assert [(each.head_repo, each.head_branch_access) for each in found] == [
        (fork, HeadBranchAccess.IN_FORK),
        ("eve/app", HeadBranchAccess.MOVABLE),
    ]


@asynchronous
async def test_a_fork_counts_as_closed_to_us_if_we_cannot_list_its_merge_requests(gitlab: GitlabEnvironment):
    open_from_fork(gitlab)
    gitlab.gitlab.faults.plan(RespondsWith(403), "/merge_requests$")
    assert (await read(gitlab)).head_branch_access is HeadBranchAccess.IN_FORK


@asynchronous
async def test_a_rule_of_our_project_opens_no_branch_of_a_fork(gitlab: GitlabEnvironment):
    fork = open_from_fork(gitlab)
    let_force(gitlab)
    branch = {"name": "topic-1", "commit": {"id": gitlab.head()}, "protected": True, "can_push": True}
    body = json.dumps(branch).encode()
    gitlab.gitlab.faults.plan(RespondsWith(200, body=body), f"/projects/{fork.id}/repository/branches/topic-1$")
    assert (await read(gitlab)).head_branch_access is HeadBranchAccess.IN_FORK


@pytest.mark.parametrize("path", ["/repository/branches/topic-1$", "/merge_requests$"])
@asynchronous
async def test_a_head_branch_that_gitlab_does_not_show_us_counts_as_protected(gitlab: GitlabEnvironment, path: str):
    gitlab.open(1)
    let_force(gitlab)
    gitlab.gitlab.faults.plan(RespondsWith(403), path)
    assert (await read(gitlab)).head_branch_access is HeadBranchAccess.PROTECTED
    gitlab.gitlab.faults.plan(RespondsWith(503), path)
    with pytest.raises(HostUnavailable, match="503"):
        await read(gitlab)


@asynchronous
async def test_a_list_that_gitlab_does_not_show_now_is_not_taken_for_an_empty_one(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.gitlab.faults.plan(RespondsWith(404), "/merge_requests$", times=2)
    with pytest.raises(HostUnavailable, match="does not show /merge_requests now"):
        await read(gitlab)
    async with gitlab.host() as host:
        with pytest.raises(HostUnavailable, match="does not show /merge_requests now"):
            await host.retarget_pull_requests(gitlab.repo, "topic-1", "main")


@pytest.mark.parametrize("state", ["opened", "locked"])
@pytest.mark.parametrize("skipped", ["with_requirements", "with_head_branch"])
@asynchronous
async def test_the_branch_of_a_fork_is_movable_only_if_the_fork_is_known(
    gitlab: GitlabEnvironment, skipped: str, state: str
):
    open_from_fork(gitlab)
    gitlab.request().state = state
    async with gitlab.host() as host:
        found = await host.read_pull_request(gitlab.repo, ONE, **{skipped: state != "opened"})
    assert found
    assert (found.head_repo, found.head_branch_access) == ("", HeadBranchAccess.IN_FORK)
    assert not [call for call in gitlab.gitlab.faults.calls if "/repository/branches/" in call]


@asynchronous
async def test_nothing_else_is_read_of_a_fork_that_does_not_take_our_pushes(gitlab: GitlabEnvironment):
    open_from_fork(gitlab)
    refuse_collaboration(gitlab)
    await read(gitlab)
    assert not [call for call in gitlab.gitlab.faults.calls if "/repository/branches/" in call]


@asynchronous
async def test_a_fork_that_was_deleted_is_gone(gitlab: GitlabEnvironment):
    open_from_fork(gitlab)
    gitlab.request().source_project = None
    found = await read(gitlab)
    assert (found.fork, found.head_repo, found.head_branch_access) == (True, "", HeadBranchAccess.GONE)


@pytest.mark.parametrize(
    ("become_true", "skipped", "count"),
    [
        (leave, {}, 4),
        (leave, {"with_head_branch": False}, 2),
        (leave, {"with_requirements": False}, 1),
        (GitlabEnvironment.close, {}, 1),
    ],
)
@asynchronous
async def test_the_head_branch_is_read_with_two_requests_where_it_matters(
    gitlab: GitlabEnvironment, become_true: Callable[..., None], skipped: dict[str, bool], count: int
):
    """In addition to the merge request and the push rules. The latter are not read again for a minute."""
    gitlab.project.premium = True
    gitlab.open(1)
    become_true(gitlab, 1) if become_true is GitlabEnvironment.close else become_true(gitlab)
    async with gitlab.host() as host:
        for expected in (count, max(count - 1, 1)):
            before = len(gitlab.gitlab.faults.calls)
            await host.read_pull_request(gitlab.repo, ONE, **skipped)
            assert len(gitlab.gitlab.faults.calls) - before == expected


# After the merge


@pytest.mark.parametrize("state", ["opened", "closed", "merged"])
@asynchronous
async def test_only_an_open_merge_request_is_closed(gitlab: GitlabEnvironment, state: str):
    gitlab.open(1)
    gitlab.request().state = state
    before = len(gitlab.gitlab.faults.calls)
    async with gitlab.host() as host:
        await host.close_pull_request(gitlab.repo, ONE)
        await host.close_pull_request(gitlab.repo, TWO)
    assert gitlab.request().state == ("closed" if state == "opened" else state)
    writes = [call for call in gitlab.gitlab.faults.calls[before:] if str(call).startswith("PUT")]
    assert len(writes) == (state == "opened")


@asynchronous
async def test_open_merge_requests_into_a_branch_are_retargeted(gitlab: GitlabEnvironment):
    gitlab.open(1)
    for number in (2, 3):
        gitlab.open(number, base="topic-1")
    gitlab.close(3)
    gitlab.close(1)
    async with gitlab.host() as host:
        await host.retarget_pull_requests(gitlab.repo, "topic-1", "main")
    assert [gitlab.request(number).target_branch for number in (1, 2, 3)] == ["main", "main", "topic-1"]


@asynchronous
async def test_a_merge_request_that_cannot_be_retargeted_raises(gitlab: GitlabEnvironment):
    """Then the branch must not be deleted."""
    gitlab.open(1)
    gitlab.open(2)
    gitlab.acts.open_merge_request(gitlab.project, "topic-2", base="topic-1")
    gitlab.close(1)
    async with gitlab.host() as host:
        with pytest.raises(HostRefused, match="already exists"):
            await host.retarget_pull_requests(gitlab.repo, "topic-1", "main")
    assert gitlab.request(3).target_branch == "topic-1"


@asynchronous
async def test_a_branch_stays_if_it_is_the_source_of_another_merge_request(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.open(2, base="topic-1")
    async with gitlab.host() as host:
        with pytest.raises(HostRefused, match="the source branch of another open merge request"):
            await host.retarget_pull_requests(gitlab.repo, "topic-1", "main")
    assert gitlab.request(2).target_branch == "topic-1"


@asynchronous
async def test_more_merge_requests_than_can_be_retargeted_raise(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.open(2, base="topic-1")
    page = gitlab.call("GET", "/merge_requests", target_branch="topic-1").json() * 100
    gitlab.close(1)
    gitlab.gitlab.faults.plan(RespondsWith(200, body=b"[]"), "/merge_requests$")
    gitlab.gitlab.faults.plan(RespondsWith(200, body=json.dumps(page).encode()), "/merge_requests$")
    gitlab.gitlab.faults.plan(RespondsWith(404), "/merge_requests/2$", times=99)
    async with gitlab.host() as host:
        with pytest.raises(HostRefused, match="change their target branches"):
            await host.retarget_pull_requests(gitlab.repo, "topic-1", "main")
    assert gitlab.request(2).target_branch == "main"


# Commit messages


@asynchronous
async def test_the_text_of_a_merge_request_is_read(gitlab: GitlabEnvironment):
    gitlab.open(1, title="Add a file")
    gitlab.request().description = "Because.\n\nCloses #7"
    async with gitlab.host() as host:
        ada = gitlab.world.user("ada")
        assert await host.read_text(gitlab.repo, ONE) == PullRequestText(
            title="Add a file",
            body="Because.\n\nCloses #7",
            author_name="Ada",
            author_email=f"{ada.id}-ada@users.noreply.127.0.0.1",
        )
        assert await host.read_text(gitlab.repo, TWO) is None


@asynchronous
async def test_the_address_that_an_author_shows_is_taken(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.request().author = User(7, "ada", public_email="ada@example.org")
    async with gitlab.host() as host:
        text = await host.read_text(gitlab.repo, ONE)
    assert text is not None
    assert text.author_email == "ada@example.org"


@asynchronous
async def test_a_deleted_author_has_no_name(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.request().author = User(7, "eve", state=DELETED)
    async with gitlab.host() as host:
        text = await host.read_text(gitlab.repo, ONE)
    assert text is not None
    assert (text.author_name, text.author_email) == ("", "")


@asynchronous
async def test_a_long_text_is_cut(gitlab: GitlabEnvironment):
    gitlab.open(1, title="t" * 1000)
    gitlab.request().description = "b" * 100_000
    async with gitlab.host() as host:
        text = await host.read_text(gitlab.repo, ONE)
    assert text is not None
    assert (len(text.title), len(text.body)) == (255, 64 * 1024)


@pytest.mark.parametrize("address", ["", "bot@example.org"])
@asynchronous
async def test_our_own_address_is_read_once(gitlab: GitlabEnvironment, address: str):
    bot = gitlab.world.tokens[TOKEN].user
    account = User(bot.id, BOT, commit_email=address)
    gitlab.world.tokens[TOKEN] = type(gitlab.world.tokens[TOKEN])(account)
    async with gitlab.host() as host:
        found = {await host.own_address(gitlab.repo) for _ in range(2)}
    assert found == {address or f"{bot.id}-{BOT}@users.noreply.127.0.0.1"}
    assert len(gitlab.gitlab.faults.calls) == 1
