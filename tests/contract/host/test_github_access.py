"""How GitHub lets us in: as an app with tokens that are renewed in time, with somebody's token, and over git."""

import base64
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.access import App
from mergeyard.adapters.forges.github.permissions import NEEDS
from mergeyard.adapters.git_cli.commits import Committer
from mergeyard.adapters.git_cli.opening import GitCli
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.instants import HOUR, MINUTE, SECOND, later
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Merge
from mergeyard.ports.git import GitTrouble, Mirror, Pushed, PushRefused, RefUpdate, Remote, Stale
from mergeyard.ports.host import HostTrouble
from tests.contract.host.github_stage import APP, INSTALLATION, NAME, TOKEN, GithubStage, github_app_stage, keys
from tests.contract.host.stage import ONE
from tests.support.asynchronous import asynchronous
from tests.support.clock import HandClock
from tests.support.forges.faults import Answers
from tests.support.forges.github.facts import AppFacts

TOKENS = f"POST /api/v3/app/installations/{INSTALLATION}/access_tokens"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def app(tmp_path: Path, clock: HandClock) -> Iterator[GithubStage]:
    with github_app_stage(tmp_path, clock) as stage:
        yield stage


def app_of(stage: GithubStage) -> AppFacts:
    assert stage.github.doors.app
    return stage.github.doors.app


# As an app


@asynchronous
async def test_an_app_asks_once_where_it_is_installed_and_once_for_a_token(app: GithubStage):
    app.open(1)
    async with app.host() as host:
        for _ in range(3):
            assert await host.pull(app.repo, ONE)
    calls = app.github.faults.calls
    assert calls.count(TOKENS) == 1
    assert calls.count("GET /api/v3/repos/acme/app/installation") == 1


@asynchronous
async def test_a_token_is_renewed_five_minutes_before_it_expires(app: GithubStage, clock: HandClock):
    app.open(1)
    async with app.host() as host:
        assert await host.pull(app.repo, ONE)
        clock.move_to(later(clock.now(), HOUR - 5 * MINUTE - 1))
        assert await host.pull(app.repo, ONE)
        assert app.github.faults.calls.count(TOKENS) == 1
        clock.move_to(later(clock.now(), 1))
        assert await host.pull(app.repo, ONE)
        assert app.github.faults.calls.count(TOKENS) == 2


@asynchronous
async def test_a_day_of_tokens_of_growing_length_opens_every_time(app: GithubStage, clock: HandClock):
    app.open(1)
    async with app.host() as host:
        for _ in range(24):
            assert await host.pull(app.repo, ONE)
            clock.move_to(later(clock.now(), HOUR))
    assert len(app.github.doors.given) == 24


@asynchronous
async def test_a_token_that_cannot_be_renewed_now_is_trouble_and_no_verdict(app: GithubStage):
    app.open(1)
    app.github.faults.plan(Answers(503), "access_tokens")
    async with app.host() as host:
        with pytest.raises(HostTrouble, match="503"):
            await host.pull(app.repo, ONE)
        assert await host.pull(app.repo, ONE)


@asynchronous
async def test_a_token_that_was_revoked_is_trouble_until_there_is_another(app: GithubStage):
    app.open(1)
    async with app.host() as host:
        assert await host.pull(app.repo, ONE)
        app.github.doors.revoke()
        with pytest.raises(HostTrouble, match="Bad credentials"):
            await host.pull(app.repo, ONE)
        assert await host.pull(app.repo, ONE)


@asynchronous
async def test_an_app_that_was_removed_and_installed_anew_is_found_as_soon_as_its_old_token_is_not_taken(
    app: GithubStage,
):
    app.open(1)
    async with app.host() as host:
        assert await host.pull(app.repo, ONE)
        app_of(app).installed_in["acme"] = INSTALLATION + 1
        app.github.doors.revoke()
        with pytest.raises(HostTrouble, match="Bad credentials"):
            await host.pull(app.repo, ONE)
        assert await host.pull(app.repo, ONE)


@asynchronous
async def test_an_app_that_was_installed_anew_is_found_under_its_new_number(app: GithubStage, clock: HandClock):
    app.open(1)
    async with app.host() as host:
        assert await host.pull(app.repo, ONE)
        app_of(app).installed_in["acme"] = INSTALLATION + 1
        clock.move_to(later(clock.now(), HOUR))
        assert await host.pull(app.repo, ONE)


@asynchronous
async def test_a_token_opens_only_the_repository_that_it_was_made_for(app: GithubStage, tmp_path: Path):
    app.open(1)
    other = app.github.repository("acme/other")
    async with app.host() as host:
        assert await host.pull(app.repo, ONE)
        assert await host.knows(Repo(NAME, "Acme", "Other"))
        remote = await host.remote(app.repo)
    of_app, of_other = (app.github.doors.visitor(token) for token in app.github.doors.given)
    assert of_app
    assert of_other
    assert (of_app.repositories, of_other.repositories) == (frozenset({"acme/app"}), frozenset({"acme/other"}))
    headers = {"authorization": f"Bearer {app.github.doors.given[0]}"}
    seen = [
        httpx.get(f"{app.github.api}/repos/acme/{name}", headers=headers, trust_env=False) for name in ("app", "other")
    ]
    assert [answer.status_code for answer in seen] == [200, 404]
    elsewhere = {**remote.environment, "GIT_CONFIG_KEY_0": "http.extraHeader"}
    url = f"{app.github.pages}/{other.name}.git"
    mirror = await mirrors(tmp_path).mirror("acme/other", Remote(url, elsewhere))
    with pytest.raises(GitTrouble):
        await mirror.fetch(["refs/heads/main"])


@asynchronous
async def test_a_token_allows_only_what_is_needed_and_granted(app: GithubStage, clock: HandClock):
    app.open(1)
    granted = app_of(app).permissions
    granted |= {"administration": "write", "repository_hooks": "write", "contents": "read"}
    del granted["workflows"]
    async with app.host() as host:
        assert await host.pull(app.repo, ONE)
        visitor = app.github.doors.visitor(app.github.doors.given[-1])
        assert visitor
        needed = {need.permission: need.level for need in NEEDS}
        del needed["workflows"]
        assert visitor.permissions == needed | {"contents": "read"}
        granted |= {"workflows": "write", "contents": "write"}
        clock.move_to(later(clock.now(), HOUR))
        assert await host.pull(app.repo, ONE)
        visitor = app.github.doors.visitor(app.github.doors.given[-1])
        assert visitor
        assert visitor.permissions == {need.permission: need.level for need in NEEDS}


@asynchronous
async def test_a_permission_that_is_taken_away_while_a_token_is_made_is_trouble_and_then_done_without(
    app: GithubStage,
):
    app.open(1)
    app.github.faults.plan(Answers(422), "access_tokens")
    async with app.host() as host:
        with pytest.raises(HostTrouble, match="gives no token for"):
            await host.pull(app.repo, ONE)
        assert await host.pull(app.repo, ONE)
    assert app.github.faults.calls.count("GET /api/v3/repos/acme/app/installation") == 2


@asynchronous
async def test_repositories_of_one_installation_share_its_limits(app: GithubStage):
    app.open(1)
    app.github.repository("acme/other")
    limited = {"retry-after": "30"}
    async with app.host() as host:
        assert await host.knows(Repo(NAME, "acme", "other"))
        app.github.faults.plan(Answers(429, limited), "/pulls/1$")
        with pytest.raises(HostTrouble):
            await host.pull(app.repo, ONE)
        with pytest.raises(HostTrouble, match="asks us to wait"):
            await host.knows(Repo(NAME, "acme", "other"))


@asynchronous
async def test_where_it_is_not_installed_it_knows_nothing_and_says_what_to_do(app: GithubStage):
    app_of(app).installed_in.clear()
    async with app.host() as host:
        assert not await host.knows(app.repo)
        with pytest.raises(HostTrouble, match="install it there"):
            await host.pull(app.repo, ONE)


@asynchronous
async def test_an_app_signs_for_less_than_ten_minutes_and_for_clocks_behind_ours(app: GithubStage, clock: HandClock):
    ahead = HandClock(later(clock.now(), 50 * SECOND))
    async with app.host(ahead) as host:
        assert await host.knows(app.repo)


@pytest.mark.parametrize("key", ["", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"])
@asynchronous
async def test_a_key_that_is_none_is_trouble_that_does_not_show_it(app: GithubStage, key: str):
    async with app.host(app=App(APP, key)) as host:
        with pytest.raises(HostTrouble, match="no RSA key") as trouble:
            await host.pull(app.repo, ONE)
        assert key not in str(trouble.value) or not key


@asynchronous
async def test_without_any_credentials_it_says_so(app: GithubStage):
    async with app.host(app=None) as host:
        with pytest.raises(HostTrouble, match="neither a token nor an app"):
            await host.pull(app.repo, ONE)


def test_secrets_are_not_shown(app: GithubStage):
    shown = repr(replace(app.access, token=TOKEN)) + repr(app.access.app)
    assert not any(secret in shown for secret in (TOKEN, keys()[0], "between us"))


# Over git


def mirrors(root: Path) -> GitCli:
    return GitCli(root / "mirrors", Committer("Mergeyard", "mergeyard@example.org"))


async def mirror_of(stage: GithubStage, root: Path) -> Mirror:
    async with stage.host() as host:
        return await mirrors(root).mirror("acme/app", await host.remote(stage.repo))


@asynchronous
async def test_credentials_are_in_neither_the_address_nor_on_disk(github: GithubStage, tmp_path: Path):
    async with github.host() as host:
        remote = await host.remote(github.repo)
    assert remote.url == f"{github.github.pages}/acme/app.git"
    header = remote.environment["GIT_CONFIG_VALUE_0"]
    assert base64.b64decode(header.removeprefix("Authorization: Basic ")) == f"x-access-token:{TOKEN}".encode()
    mirror = await mirrors(tmp_path).mirror("acme/app", remote)
    await mirror.fetch(["refs/heads/main"])
    files = [path.read_bytes() for path in (tmp_path / "mirrors").rglob("*") if path.is_file()]
    assert not any(TOKEN.encode() in content or header[-20:].encode() in content for content in files)


@pytest.mark.parametrize("stage", ["github", "github app"], indirect=True)
@asynchronous
async def test_heads_are_fetched_and_a_tested_commit_lands_over_git(stage: GithubStage, tmp_path: Path):
    head = stage.open(1)
    mirror = await mirror_of(stage, tmp_path)
    refs = await mirror.fetch(["refs/heads/main", "refs/pull/*/head"])
    assert refs["refs/pull/1/head"] == head
    tree = await mirror.merge(refs["refs/heads/main"], head)
    assert isinstance(tree, str)
    commit = await mirror.commit(tree, [refs["refs/heads/main"], head], "Merge #1")
    tested = RefUpdate("refs/heads/mergeyard/pr-1/x", None, commit)
    assert await mirror.push(tested) == Pushed()
    landing = RefUpdate("refs/heads/main", refs["refs/heads/main"], commit)
    assert await mirror.push(landing, RefUpdate(tested.ref, commit, None)) == Pushed()
    async with stage.host() as host:
        await host.mark_merged(stage.repo, ONE, head, commit)
        pull = await host.pull(stage.repo, ONE)
        assert pull
        assert pull.merged_into == "main"
        wanted = Merge(number=ONE, head=head, base="main", method=MergeMethod.MERGE_COMMIT, title="", message="")
        assert await host.merged_as(stage.repo, wanted) == commit


@asynchronous
async def test_a_target_that_moved_meanwhile_is_left_alone(github: GithubStage, tmp_path: Path):
    head, before = github.open(1), github.origin.tip("main")
    mirror = await mirror_of(github, tmp_path)
    await mirror.fetch(["refs/heads/main", "refs/pull/1/head"])
    moved = github.acme.commits("main", {"b.txt": "1"})
    assert await mirror.push(RefUpdate("refs/heads/main", before, head)) == Stale()
    assert github.origin.tip("main") == moved


@asynchronous
async def test_the_head_of_a_pull_request_cannot_be_pushed_to(github: GithubStage, tmp_path: Path):
    head = github.open(1)
    mirror = await mirror_of(github, tmp_path)
    refs = await mirror.fetch(["refs/heads/main", "refs/pull/1/head"])
    outcome = await mirror.push(RefUpdate("refs/pull/1/head", head, refs["refs/heads/main"]))
    assert isinstance(outcome, PushRefused | Stale)
    assert github.origin.tip("refs/pull/1/head") == head


@asynchronous
async def test_a_head_that_git_does_not_show_yet_is_absent(github: GithubStage, tmp_path: Path):
    head = github.open(1)
    mirror = await mirror_of(github, tmp_path)
    github.github.rooms.hidden.append("refs/pull/1")
    assert await mirror.fetch(["refs/pull/1/head"]) == {}
    github.github.rooms.hidden.clear()
    assert await mirror.fetch(["refs/pull/1/head"]) == {"refs/pull/1/head": head}


@asynchronous
async def test_a_token_that_git_does_not_take_is_trouble(github: GithubStage, tmp_path: Path):
    async with github.host(token="expired") as host:
        mirror = await mirrors(tmp_path).mirror("acme/app", await host.remote(github.repo))
    with pytest.raises(GitTrouble):
        await mirror.fetch(["refs/heads/main"])
