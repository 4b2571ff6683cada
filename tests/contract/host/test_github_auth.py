"""Authentication at GitHub: as an app with tokens that are renewed in time, with a user's token, and over git."""

import base64
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.github.auth import OPTIONAL_PERMISSIONS, REQUIRED_PERMISSIONS
from mergeyard.adapters.forges.http import App
from mergeyard.adapters.forges.rate_limits import WritePace
from mergeyard.adapters.git_cli.mirrors import GitCli
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import HOUR, MINUTE, SECOND, later
from mergeyard.ports.forge import HostAccessLost, HostUnavailable, Merge
from mergeyard.ports.git import GitError, Identity, Mirror, Pushed, PushRefused, RefUpdate, Remote, Stale
from tests.contract.host.environment import ONE
from tests.contract.host.github_environment import (
    APP,
    INSTALLATION,
    NAME,
    TOKEN,
    GithubEnvironment,
    github_app_environment,
    keys,
)
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.forges.faults import RespondsWith
from tests.support.forges.github.world import RegisteredApp

TOKENS = f"POST /api/v3/app/installations/{INSTALLATION}/access_tokens"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def app(tmp_path: Path, clock: ManualClock) -> Iterator[GithubEnvironment]:
    with github_app_environment(tmp_path, clock) as env:
        yield env


def app_of(env: GithubEnvironment) -> RegisteredApp:
    assert env.github.auth.app
    return env.github.auth.app


# As an app


@asynchronous
async def test_an_app_reads_its_installation_once_and_one_token(app: GithubEnvironment):
    app.open(1)
    async with app.host() as host:
        for _ in range(3):
            assert await host.read_pull_request(app.repo, ONE)
    calls = app.github.faults.calls
    assert calls.count(TOKENS) == 1
    assert calls.count("GET /api/v3/repos/acme/app/installation") == 1


@asynchronous
async def test_a_token_is_renewed_five_minutes_before_it_expires(app: GithubEnvironment, clock: ManualClock):
    app.open(1)
    async with app.host() as host:
        assert await host.read_pull_request(app.repo, ONE)
        clock.move_to(later(clock.now(), HOUR - 5 * MINUTE - 1))
        assert await host.read_pull_request(app.repo, ONE)
        assert app.github.faults.calls.count(TOKENS) == 1
        clock.move_to(later(clock.now(), 1))
        assert await host.read_pull_request(app.repo, ONE)
        assert app.github.faults.calls.count(TOKENS) == 2


@pytest.mark.long
@asynchronous
async def test_tokens_of_growing_length_work_for_a_day(app: GithubEnvironment, clock: ManualClock):
    app.open(1)
    async with app.host() as host:
        for _ in range(24):
            assert await host.read_pull_request(app.repo, ONE)
            clock.move_to(later(clock.now(), HOUR))
    assert len(app.github.auth.issued_tokens) == 24


@asynchronous
async def test_a_token_that_cannot_be_renewed_is_a_temporary_error(app: GithubEnvironment):
    app.open(1)
    app.github.faults.plan(RespondsWith(503), "access_tokens")
    async with app.host() as host:
        with pytest.raises(HostUnavailable, match="503"):
            await host.read_pull_request(app.repo, ONE)
        assert await host.read_pull_request(app.repo, ONE)


@asynchronous
async def test_a_revoked_token_is_an_error_until_it_is_renewed(app: GithubEnvironment):
    app.open(1)
    async with app.host() as host:
        assert await host.read_pull_request(app.repo, ONE)
        app.github.auth.revoke_installation_tokens()
        with pytest.raises(HostAccessLost, match="Bad credentials"):
            await host.read_pull_request(app.repo, ONE)
        assert await host.read_pull_request(app.repo, ONE)


@asynchronous
async def test_an_app_that_was_reinstalled_is_found_once_its_old_token_is_rejected(
    app: GithubEnvironment,
):
    app.open(1)
    async with app.host() as host:
        assert await host.read_pull_request(app.repo, ONE)
        app_of(app).installations["acme"] = INSTALLATION + 1
        app.github.auth.revoke_installation_tokens()
        with pytest.raises(HostAccessLost, match="Bad credentials"):
            await host.read_pull_request(app.repo, ONE)
        assert await host.read_pull_request(app.repo, ONE)


@asynchronous
async def test_an_app_that_was_reinstalled_is_found_by_its_new_installation_id(
    app: GithubEnvironment, clock: ManualClock
):
    app.open(1)
    async with app.host() as host:
        assert await host.read_pull_request(app.repo, ONE)
        app_of(app).installations["acme"] = INSTALLATION + 1
        clock.move_to(later(clock.now(), HOUR))
        assert await host.read_pull_request(app.repo, ONE)


@asynchronous
async def test_a_token_gives_access_only_to_its_repository(app: GithubEnvironment, tmp_path: Path):
    app.open(1)
    other = app.github.create_repository("acme/other")
    async with app.host() as host:
        assert await host.read_pull_request(app.repo, ONE)
        assert await host.has_repository(Repo(NAME, "Acme", "Other"))
        remote = await host.remote(app.repo)
    of_app, of_other = (app.github.auth.find_caller(token) for token in app.github.auth.issued_tokens)
    assert of_app
    assert of_other
    assert (of_app.repositories, of_other.repositories) == (frozenset({"acme/app"}), frozenset({"acme/other"}))
    headers = {"authorization": f"Bearer {app.github.auth.issued_tokens[0]}"}
    seen = [
        httpx2.get(f"{app.github.api_url}/repos/acme/{name}", headers=headers, trust_env=False)
        for name in ("app", "other")
    ]
    assert [answer.status_code for answer in seen] == [200, 404]
    elsewhere = {**remote.environment, "GIT_CONFIG_KEY_0": "http.extraHeader"}
    url = f"{app.github.web_url}/{other.name}.git"
    mirror = await mirrors(tmp_path).mirror("acme/other", Remote(url, elsewhere))
    with pytest.raises(GitError):
        await mirror.fetch(["refs/heads/main"])


@asynchronous
async def test_a_token_allows_only_what_is_needed_and_granted(app: GithubEnvironment, clock: ManualClock):
    app.open(1)
    granted = app_of(app).permissions
    granted |= {"administration": "write", "repository_hooks": "write", "contents": "read"}
    del granted["workflows"]
    async with app.host() as host:
        assert await host.read_pull_request(app.repo, ONE)
        visitor = app.github.auth.find_caller(app.github.auth.issued_tokens[-1])
        assert visitor
        needed = {need.permission: need.level for need in (*REQUIRED_PERMISSIONS, *OPTIONAL_PERMISSIONS)}
        everything = dict(needed)
        del needed["workflows"]
        assert visitor.permissions == needed | {"contents": "read"}
        granted |= {"workflows": "write", "contents": "write"}
        clock.move_to(later(clock.now(), HOUR))
        assert await host.read_pull_request(app.repo, ONE)
        visitor = app.github.auth.find_caller(app.github.auth.issued_tokens[-1])
        assert visitor
        assert visitor.permissions == everything


@asynchronous
async def test_a_permission_revoked_during_token_creation_is_an_error_and_then_left_out(
    app: GithubEnvironment,
):
    app.open(1)
    app.github.faults.plan(RespondsWith(422), "access_tokens")
    async with app.host() as host:
        with pytest.raises(HostAccessLost, match="gives no token for"):
            await host.read_pull_request(app.repo, ONE)
        assert await host.read_pull_request(app.repo, ONE)
    assert app.github.faults.calls.count("GET /api/v3/repos/acme/app/installation") == 2


@asynchronous
async def test_repositories_of_one_installation_share_its_limits(app: GithubEnvironment):
    app.open(1)
    app.github.create_repository("acme/other")
    limited = {"retry-after": "30"}
    async with app.host() as host:
        assert await host.has_repository(Repo(NAME, "acme", "other"))
        app.github.faults.plan(RespondsWith(429, limited), "/pulls/1$")
        with pytest.raises(HostUnavailable):
            await host.read_pull_request(app.repo, ONE)
        with pytest.raises(HostUnavailable, match="asks us to wait"):
            await host.has_repository(Repo(NAME, "acme", "other"))


@asynchronous
async def test_each_installation_has_its_own_limits_and_the_same_pace(app: GithubEnvironment):
    app.open(1)
    lib = app.github.create_repository("other/lib")
    lib.origin.branch("topic", base="main", files={"b.txt": "1"})
    assert lib.open_pull_request("topic").number == ONE
    app_of(app).installations["other"] = INSTALLATION + 1
    async with app.host(write_pace=WritePace(interval_ms=0, per_minute=60, per_hour=2)) as host:
        for repo in (app.repo, Repo(NAME, "other", "lib")):
            comment = await host.put_comment(repo, ONE, "Queued", None)
            await host.put_comment(repo, ONE, "Merged", comment)
            with pytest.raises(HostUnavailable, match="limits how much we write"):
                await host.put_comment(repo, ONE, "Again", comment)
        app.github.faults.plan(RespondsWith(429, {"retry-after": "30"}), "/app/pulls/1$")
        with pytest.raises(HostUnavailable, match="429"):
            await host.read_pull_request(app.repo, ONE)
        assert await host.read_pull_request(Repo(NAME, "other", "lib"), ONE)


@asynchronous
async def test_a_missing_installation_is_reported_with_advice(app: GithubEnvironment):
    app_of(app).installations.clear()
    async with app.host() as host:
        assert not await host.has_repository(app.repo)
        with pytest.raises(HostAccessLost, match="install it there"):
            await host.read_pull_request(app.repo, ONE)


@asynchronous
async def test_an_app_jwt_is_valid_for_less_than_ten_minutes_and_tolerates_clock_skew(
    app: GithubEnvironment, clock: ManualClock
):
    ahead = ManualClock(later(clock.now(), 50 * SECOND))
    async with app.host(ahead) as host:
        assert await host.has_repository(app.repo)


@pytest.mark.parametrize("key", ["", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"])
@asynchronous
async def test_an_invalid_key_is_an_error_that_does_not_show_the_key(app: GithubEnvironment, key: str):
    async with app.host(app=App(APP, key)) as host:
        with pytest.raises(HostUnavailable, match="no RSA key") as error:
            await host.read_pull_request(app.repo, ONE)
        assert key not in str(error.value) or not key


@asynchronous
async def test_missing_credentials_are_reported(app: GithubEnvironment):
    async with app.host(app=None) as host:
        with pytest.raises(HostUnavailable, match="neither a token nor an app"):
            await host.read_pull_request(app.repo, ONE)


def test_secrets_are_not_in_the_repr(app: GithubEnvironment):
    shown = repr(replace(app.access, token=TOKEN)) + repr(app.access.app)
    assert not any(secret in shown for secret in (TOKEN, keys()[0], "between us"))


# Over git


def mirrors(root: Path) -> GitCli:
    return GitCli(root / "mirrors", Identity("Mergeyard", "mergeyard@example.org"))


async def mirror_of(env: GithubEnvironment, root: Path) -> Mirror:
    async with env.host() as host:
        return await mirrors(root).mirror("acme/app", await host.remote(env.repo))


@asynchronous
async def test_credentials_are_in_neither_the_address_nor_on_disk(github: GithubEnvironment, tmp_path: Path):
    async with github.host() as host:
        remote = await host.remote(github.repo)
    assert remote.url == f"{github.github.web_url}/acme/app.git"
    header = remote.environment["GIT_CONFIG_VALUE_0"]
    assert base64.b64decode(header.removeprefix("Authorization: Basic ")) == f"x-access-token:{TOKEN}".encode()
    mirror = await mirrors(tmp_path).mirror("acme/app", remote)
    await mirror.fetch(["refs/heads/main"])
    files = [path.read_bytes() for path in (tmp_path / "mirrors").rglob("*") if path.is_file()]
    assert not any(TOKEN.encode() in content or header[-20:].encode() in content for content in files)


@pytest.mark.parametrize("env", ["github", "github app"], indirect=True)
@asynchronous
async def test_heads_are_fetched_and_a_tested_commit_lands_over_git(env: GithubEnvironment, tmp_path: Path):
    head = env.open(1)
    mirror = await mirror_of(env, tmp_path)
    refs = await mirror.fetch(["refs/heads/main", "refs/pull/*/head"])
    assert refs["refs/pull/1/head"] == head
    tree = await mirror.merge(refs["refs/heads/main"], head)
    assert isinstance(tree, str)
    commit = await mirror.commit(tree, [refs["refs/heads/main"], head], "Merge #1")
    tested = RefUpdate("refs/heads/mergeyard/pr-1/x", None, commit)
    assert await mirror.push(tested) == Pushed()
    landing = RefUpdate("refs/heads/main", refs["refs/heads/main"], commit)
    assert await mirror.push(landing, RefUpdate(tested.ref, commit, None)) == Pushed()
    async with env.host() as host:
        await host.mark_merged(env.repo, ONE, head, commit)
        pull_request = await host.read_pull_request(env.repo, ONE)
        assert pull_request
        assert pull_request.merged_into == "main"
        wanted = Merge(number=ONE, head=head, base_branch="main", method=MergeMethod.MERGE_COMMIT, title="", message="")
        assert await host.find_merge_commit(env.repo, wanted) == commit


@asynchronous
async def test_a_target_that_moved_meanwhile_is_left_alone(github: GithubEnvironment, tmp_path: Path):
    head, before = github.open(1), github.origin.tip("main")
    mirror = await mirror_of(github, tmp_path)
    await mirror.fetch(["refs/heads/main", "refs/pull/1/head"])
    moved = github.acme.push_commit("main", {"b.txt": "1"})
    assert await mirror.push(RefUpdate("refs/heads/main", before, head)) == Stale()
    assert github.origin.tip("main") == moved


@asynchronous
async def test_the_head_of_a_pull_request_cannot_be_pushed_to(github: GithubEnvironment, tmp_path: Path):
    head = github.open(1)
    mirror = await mirror_of(github, tmp_path)
    refs = await mirror.fetch(["refs/heads/main", "refs/pull/1/head"])
    outcome = await mirror.push(RefUpdate("refs/pull/1/head", head, refs["refs/heads/main"]))
    assert isinstance(outcome, PushRefused | Stale)
    assert github.origin.tip("refs/pull/1/head") == head


@asynchronous
async def test_a_head_that_git_does_not_show_yet_is_absent(github: GithubEnvironment, tmp_path: Path):
    head = github.open(1)
    mirror = await mirror_of(github, tmp_path)
    github.github.git_server.hidden_refs.append("refs/pull/1")
    assert await mirror.fetch(["refs/pull/1/head"]) == {}
    github.github.git_server.hidden_refs.clear()
    assert await mirror.fetch(["refs/pull/1/head"]) == {"refs/pull/1/head": head}


@asynchronous
async def test_a_token_that_git_rejects_is_an_error(github: GithubEnvironment, tmp_path: Path):
    async with github.host(token="expired") as host:
        mirror = await mirrors(tmp_path).mirror("acme/app", await host.remote(github.repo))
    with pytest.raises(GitError):
        await mirror.fetch(["refs/heads/main"])


@asynchronous
async def test_each_installation_shows_what_github_still_accepts_from_it(app: GithubEnvironment, clock: ManualClock):
    app.open(1)
    async with app.host() as host:
        assert host.list_budgets() == []
        await host.read_pull_request(app.repo, ONE)
        (budget,) = [each for each in host.list_budgets() if each.account == f"installation {INSTALLATION}"]
        assert (budget.api, budget.limit, budget.remaining < 5000) == ("rest", 5000, True)
        clock.move_to(later(clock.now(), HOUR))
        renewed = {each.account: each.remaining for each in host.list_budgets()}
        assert renewed[budget.account] == 5000
