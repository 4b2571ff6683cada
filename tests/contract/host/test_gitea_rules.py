"""Protection rules of Gitea that need organizations or many files: on the fake alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec.structs import replace

from mergeyard.adapters.forges.gitea.wire import GpgKey, KeyAddress, matches
from mergeyard.adapters.signing import parse_signing_key
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import HeadBranchAccess
from mergeyard.domain.states import Reason
from mergeyard.ports.forge import HostRefused, HostUnavailable
from mergeyard.ports.git import Signer
from tests.contract.host.environment import ONE
from tests.contract.host.gitea_environment import GiteaEnvironment, environment_on
from tests.forge.gitea_admin import BOT
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import RespondsWith
from tests.support.forges.gitea.fake import FakeGitea
from tests.support.forges.gitea.world import Key, Rule


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeGitea]:
    with FakeGitea(tmp_path) as fake:
        yield fake


@pytest.fixture
def gitea(fake: FakeGitea, tmp_path: Path) -> Iterator[GiteaEnvironment]:
    with environment_on(fake, tmp_path) as env:
        yield env


def protect(fake: FakeGitea, rule: Rule) -> None:
    fake.world.repositories["acme/app"].rules.append(rule)


@asynchronous
async def test_a_requested_team_is_named(fake: FakeGitea, gitea: GiteaEnvironment):
    gitea.open(1)
    protect(fake, Rule("main", required_approvals=2))
    fake.actions.request_team_review(fake.pull_request("acme/app", 1), "db")
    async with gitea.host() as host:
        assert await gitea.unmet(host, ONE) == ["Waiting for a review from @acme/db (0 of 2 approvals)."]


@asynchronous
async def test_teams_that_can_push_or_merge_are_reported(fake: FakeGitea, gitea: GiteaEnvironment):
    rule = Rule("main", enable_push=True, enable_push_whitelist=True, enable_merge_whitelist=True)
    rule.push_whitelist_usernames = rule.merge_whitelist_usernames = [BOT]
    rule.push_whitelist_teams, rule.merge_whitelist_teams = ["core"], ["db"]
    protect(fake, rule)
    async with gitea.host() as host:
        messages = "\n".join(finding.message for finding in await host.diagnose(gitea.repo))
    assert "Without the queue, the team core can push to main" in messages
    assert "Without the queue, the team db can merge into main" in messages


@asynchronous
async def test_files_of_later_pages_are_protected_too(fake: FakeGitea, gitea: GiteaEnvironment):
    gitea.open(1, files={f"f{number:03}.txt": "1" for number in range(60)} | {"z.lock": "1"})
    protect(fake, Rule("main", protected_file_patterns="*.LOCK"))
    async with gitea.host() as host:
        (message,) = await gitea.unmet(host, ONE)
        assert "protected file z.lock" in message


@asynchronous
async def test_files_that_are_too_many_to_compare_block(fake: FakeGitea, gitea: GiteaEnvironment):
    gitea.open(1)
    protect(fake, Rule("main", protected_file_patterns=f"*.lock;{'x' * 2_000_000}"))
    async with gitea.host() as host:
        (message,) = await gitea.unmet(host, ONE)
        assert "too many files to compare them" in message


@asynchronous
async def test_files_that_gitea_does_not_list_block(fake: FakeGitea, gitea: GiteaEnvironment):
    gitea.open(1)
    protect(fake, Rule("main", protected_file_patterns="*.lock"))
    fake.faults.plan(RespondsWith(200, body=b"[]"), "/pulls/1/files")
    async with gitea.host() as host:
        (message,) = await gitea.unmet(host, ONE)
        assert "too many files to compare them" in message
        assert await gitea.unmet(host, ONE) == []


@asynchronous
async def test_a_head_branch_that_is_not_at_the_head_is_gone(fake: FakeGitea, gitea: GiteaEnvironment):
    gitea.open(1)
    origin = fake.world.repositories["acme/app"].origin
    async with gitea.host() as host:
        for change in (lambda: origin.commit("topic-1", {"b.txt": "1"}), lambda: origin.run("branch", "-D", "topic-1")):
            change()
            pull_request = await host.read_pull_request(gitea.repo, ONE)
            assert pull_request
            assert pull_request.head_branch_access is HeadBranchAccess.GONE


@pytest.mark.long
@asynchronous
async def test_a_branch_stays_that_is_the_base_of_too_many_pull_requests(fake: FakeGitea, gitea: GiteaEnvironment):
    gitea.open(1, base="release")
    pull_requests = fake.world.repositories["acme/app"].pull_requests
    for number in range(2, 102):
        pull_requests[number] = replace(pull_requests[1], number=number, head_branch=f"topic-{number}")
    async with gitea.host() as host:
        with pytest.raises(HostRefused, match="the base of more than 100"):
            await host.retarget_pull_requests(gitea.repo, "release", "main")
        pull_requests[101].state = "closed"
        await host.retarget_pull_requests(gitea.repo, "release", "main")
        assert {pull_requests[number].base for number in range(1, 101)} == {"main"}


# Signed commits


@pytest.fixture
def signer() -> Signer:
    return parse_signing_key(SSH_KEY.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))


SSH_KEY = Ed25519PrivateKey.generate()
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIL8TqZ47D7pZZlTdApuGjo1ZdqPzJ/gO8IODpSWH++sT"
OWN_ADDRESS = f"{BOT}@example.org"
SIGNED = Rule("main", enable_push=True, require_signed_commits=True)


def add_key(fake: FakeGitea, login: str, content: str) -> None:
    fake.world.account(login).keys.append(Key(1, content, verified=True))


def sign_head(gitea: GiteaEnvironment, signer: Signer, number: int) -> Sha:
    """Replaces the head by the same commit with a signature of Grace."""
    return push_signed(gitea, signer, gitea.head(number), f"topic-{number}", "grace@example.org")


def push_signed(gitea: GiteaEnvironment, signer: Signer, commit: str, branch: str, address: str) -> Sha:
    """Pushes the same commit with a signature, and with this address of its committer."""
    origin = gitea.project.origin
    headers, _, message = origin.run("cat-file", "commit", commit).decode().partition("\n\n")
    lines = [
        line.replace("committer Ada <ada@example.org>", f"committer A <{address}>") for line in headers.split("\n")
    ]
    payload = "\n".join(lines) + "\n\n" + message
    signature = signer.sign(payload.encode(), "git").strip().replace("\n", "\n ")
    signed = "\n".join([*lines, f"gpgsig {signature}"]) + "\n\n" + message
    sha = Sha(origin.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=signed.encode()).decode().strip())
    origin.set_ref(branch, sha)
    gitea.project.push(branch)
    return sha


@asynchronous
async def test_unsigned_commits_of_a_pull_request_are_named_where_commits_must_be_signed(
    fake: FakeGitea, gitea: GiteaEnvironment, signer: Signer
):
    head = gitea.open(1)
    add_key(fake, BOT, signer.public_key)
    async with gitea.host(signer=signer) as host:
        assert await gitea.unmet_reasons(host, ONE) == {}
        protect(fake, SIGNED)
        assert await gitea.unmet_reasons(host, ONE) == {Reason.COMMITS_UNSIGNED: (head[:10],)}
        signed = sign_head(gitea, signer, 1)
        assert await gitea.unmet_reasons(host, ONE) == {Reason.COMMITS_UNSIGNED: (signed[:10],)}
        gitea.people.ensure_account("grace")
        add_key(fake, "grace", signer.public_key)
        assert await gitea.unmet_reasons(host, ONE) == {}


@asynchronous
async def test_a_signing_key_that_our_account_lacks_is_named(fake: FakeGitea, gitea: GiteaEnvironment, signer: Signer):
    gitea.open(1)
    protect(fake, SIGNED)
    sign_head(gitea, signer, 1)
    gitea.people.ensure_account("grace")
    add_key(fake, "grace", signer.public_key)
    async with gitea.host() as host:
        missing = f"signing_key_file is not set for {gitea.repo.host}"
        assert await gitea.unmet_reasons(host, ONE) == {Reason.SIGNING_KEY_NOT_ACCEPTED: (missing,)}
    async with gitea.host(signer=signer) as host:
        add_key(fake, BOT, OTHER_KEY)
        missing = f"{signer.fingerprint} of @{BOT}"
        assert await gitea.unmet_reasons(host, ONE) == {Reason.SIGNING_KEY_NOT_ACCEPTED: (missing,)}
        gitea.people.request("POST", "/user/keys", {"title": "queue", "key": f"{signer.public_key} queue"}, user=BOT)
        assert await gitea.unmet_reasons(host, ONE) == {}


@asynchronous
async def test_a_key_that_is_not_verified_is_named_as_soon_as_a_test_commit_shows_it(
    fake: FakeGitea, gitea: GiteaEnvironment, signer: Signer
):
    head = gitea.open(1)
    protect(fake, SIGNED)
    key = Key(1, signer.public_key)
    gitea.people.ensure_account("grace")
    fake.world.account(BOT).keys.append(key)
    fake.world.account("grace").keys.append(key)
    sign_head(gitea, signer, 1)
    async with gitea.host(signer=signer) as host:
        assert Reason.SIGNING_KEY_NOT_ACCEPTED not in await gitea.unmet_reasons(host, ONE)
        push_signed(gitea, signer, head, "mergeyard/pr-1/1", OWN_ADDRESS)
        missing = f"{signer.fingerprint} of @{BOT}, which is not verified there"
        assert (await gitea.unmet_reasons(host, ONE))[Reason.SIGNING_KEY_NOT_ACCEPTED] == (missing,)
        gitea.project.remove("mergeyard/pr-1/1")
        assert (await gitea.unmet_reasons(host, ONE))[Reason.SIGNING_KEY_NOT_ACCEPTED] == (missing,)
        key.verified = True
        assert await gitea.unmet_reasons(host, ONE) == {}


@pytest.mark.long
@asynchronous
async def test_a_test_commit_with_another_address_proves_nothing(
    fake: FakeGitea, gitea: GiteaEnvironment, signer: Signer
):
    head = gitea.open(1)
    protect(fake, SIGNED)
    gitea.people.ensure_account("grace")
    add_key(fake, "grace", signer.public_key)
    key, bot = Key(1, signer.public_key), fake.world.account(BOT)
    bot.keys.append(key)
    sign_head(gitea, signer, 1)
    async with gitea.host(signer=signer) as host:
        push_signed(gitea, signer, head, "mergeyard/pr-1/1", "mergeyard@localhost")
        assert await gitea.unmet_reasons(host, ONE) == {}
        push_signed(gitea, signer, head, "mergeyard/pr-1/1", "grace@example.org")
        assert await gitea.unmet_reasons(host, ONE) == {}
        push_signed(gitea, signer, head, "mergeyard/pr-1/1", OWN_ADDRESS)
        assert Reason.SIGNING_KEY_NOT_ACCEPTED in await gitea.unmet_reasons(host, ONE)
        gitea.project.remove("mergeyard/pr-1/1")
        assert Reason.SIGNING_KEY_NOT_ACCEPTED in await gitea.unmet_reasons(host, ONE)
        bot.address = "other@example.org"
        assert await gitea.unmet_reasons(host, ONE) == {}
    async with gitea.host(signer=signer, committer_email="mergeyard@localhost") as host:
        push_signed(gitea, signer, head, "mergeyard/pr-1/1", "mergeyard@localhost")
        assert Reason.SIGNING_KEY_NOT_ACCEPTED in await gitea.unmet_reasons(host, ONE)


@asynchronous
async def test_a_test_commit_of_another_key_proves_nothing(fake: FakeGitea, gitea: GiteaEnvironment, signer: Signer):
    head = gitea.open(1)
    protect(fake, SIGNED)
    add_key(fake, BOT, signer.public_key)
    gitea.project.origin.set_ref("mergeyard/pr-1/1", head)
    gitea.project.push("mergeyard/pr-1/1")
    async with gitea.host(signer=signer) as host:
        assert await gitea.unmet_reasons(host, ONE) == {Reason.COMMITS_UNSIGNED: (head[:10],)}


class PgpSigner:
    """Only the names of an OpenPGP key."""

    public_key = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
    fingerprint = "0123456789ABCDEF0123456789ABCDEF01234567"
    expires_at = float("inf")

    def sign(self, payload: bytes, namespace: str) -> str:
        raise NotImplementedError

    def sign_bytes(self, payload: bytes, at: int) -> tuple[str, bytes]:
        raise NotImplementedError


@asynchronous
async def test_an_openpgp_key_counts_only_if_it_is_verified(fake: FakeGitea, gitea: GiteaEnvironment):
    async with gitea.host(signer=PgpSigner()) as host:
        assert await host.find_missing_key() == f"{PgpSigner.fingerprint} of @{BOT}"
        key = Key(1, PgpSigner.fingerprint)
        fake.world.account(BOT).keys.append(key)
        assert await host.find_missing_key()
        key.verified = True
        assert not await host.find_missing_key()


@asynchronous
async def test_an_expired_key_does_not_count(fake: FakeGitea, gitea: GiteaEnvironment):
    fake.world.account(BOT).keys.append(Key(1, PgpSigner.fingerprint, verified=True))
    signer = PgpSigner()
    async with gitea.host(signer=signer) as host:
        assert not await host.find_missing_key()
        signer.expires_at = 0
        assert await host.find_missing_key() == f"{PgpSigner.fingerprint}, which has expired"


@pytest.mark.parametrize(
    ("key", "accepts"),
    [
        (GpgKey("A", verified=True), True),
        (GpgKey("A"), False),
        (GpgKey("B", verified=True), False),
        (GpgKey("A", emails=[KeyAddress(), KeyAddress(verified=True)]), True),
        (GpgKey("A", emails=[KeyAddress()]), False),
        (GpgKey("B", verified=True, subkeys=[GpgKey("A")]), True),
    ],
)
def test_signatures_of_subkeys_and_of_keys_with_an_address_of_the_account_count(key: GpgKey, accepts: bool):
    assert key.accepts("A") is accepts


@asynchronous
async def test_the_host_check_names_what_signed_commits_need(fake: FakeGitea, gitea: GiteaEnvironment, signer: Signer):
    protect(fake, SIGNED)
    async with gitea.host(signer=signer) as host:
        missing = [each.message for each in await host.diagnose(gitea.repo) if not each.ok]
        assert any(
            "main requires signed commits" in one and f"({signer.fingerprint} of @{BOT})" in one for one in missing
        )
        add_key(fake, BOT, signer.public_key)
        advice = [each.message for each in await host.diagnose(gitea.repo) if each.advice]
        assert any(
            f"the account has the key {signer.fingerprint}. Gitea accepts it only if it is" in one for one in advice
        )
        assert not any("signed commits" in each.message for each in await host.diagnose(gitea.repo) if not each.ok)


@pytest.mark.parametrize(
    "path",
    [
        "/reviews",
        "/dependencies",
        "/branches/main",
        "/branch_protections/main",
        "/files",
        "/branches/topic-1",
        "/commits",
    ],
)
@asynchronous
async def test_facts_that_gitea_does_not_answer_are_never_guessed(fake: FakeGitea, gitea: GiteaEnvironment, path: str):
    """A 404 would mean that there is none, and there is."""
    gitea.open(1)
    protect(fake, Rule("main", required_approvals=1, protected_file_patterns="*.lock", require_signed_commits=True))
    async with gitea.host() as host:
        for status in (503, 404):
            fake.faults.plan(RespondsWith(status), f"{path}$")
            with pytest.raises(HostUnavailable) as raised:
                await host.read_pull_request(gitea.repo, ONE)
            assert not isinstance(raised.value, HostRefused)


@asynchronous
async def test_checks_of_a_branch_that_gitea_does_not_show_now_are_not_taken_for_none(
    fake: FakeGitea, gitea: GiteaEnvironment
):
    fake.faults.plan(RespondsWith(404), "/branches/main$")
    async with gitea.host() as host:
        with pytest.raises(HostUnavailable, match="does not show the branch main"):
            await host.required_statuses(gitea.repo, "main")


@asynchronous
async def test_nothing_is_required_by_a_base_branch_that_is_gone_nor_by_dependencies_that_are_off(
    fake: FakeGitea, gitea: GiteaEnvironment
):
    gitea.open(1, base="release")
    repository = fake.world.repositories["acme/app"]
    repository.origin.run("branch", "-D", "release")
    repository.settings.internal_tracker["enable_issue_dependencies"] = False
    async with gitea.host() as host:
        assert await gitea.unmet(host, ONE) == []


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("main", ["main"], ["main2", "mai", "x/main"]),
        ("*.md", ["readme.md"], ["docs/readme.md", "a.b.md", "md"]),
        ("**.md", ["readme.md", "docs/a/readme.md"], ["readme.mdx"]),
        ("docs/**", ["docs/a", "docs/a/b.c", "docs/"], ["docs", "x/docs/a"]),
        ("**a*b", ["a/ab", "ab", "xaab"], ["a/b", "ab/"]),
        ("*ab*c", ["abc", "xabxc"], ["ab/abc"]),
        ("a?c", ["abc"], ["a/c", "a.c", "ac"]),
        ("{a,{b,c}d,}x", ["ax", "bdx", "cdx", "x"], ["bx", "adx"]),
        ("[a-c][!0-9]", ["ax", "c/"], ["dx", "a1"]),
        ("[!a]", ["b"], ["a", "", "bb"]),
        (r"\*[\]]", ["*]"], ["a]", r"\*]"]),
        ("a,b}", ["a,b}"], ["a", "b}"]),
        ("[z-a]", [], ["z", "a"]),
        ("", [""], ["a"]),
    ],
)
def test_patterns_match_as_on_gitea(pattern: str, matching: list[str], others: list[str]):
    assert [text for text in [*matching, *others] if matches(pattern, text, "./")] == matching


def test_a_pattern_with_many_stars_is_compared_quickly():
    assert not matches("*a" * 100 + "b", "a" * 1000, "/")
