"""Repositories whose objects are named by SHA-1 and by SHA-256, which Git 3.0 makes the default."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mergeyard.adapters.git_cli import GitCli
from mergeyard.adapters.git_cli.contents import count_paths
from mergeyard.adapters.signing import SshKey
from mergeyard.domain.ids import SHA1, SHA256, ObjectFormat, Sha, object_format_of
from mergeyard.ports.git import Git, Identity, Mirror, MissingObject, Pushed, RefUpdate, Remote, Stale
from tests.support.asynchronous import asynchronous
from tests.support.forges.git_server import GitServer
from tests.support.http_server import serve_in_thread
from tests.support.repositories import Origin

MAIN, RUN = "refs/heads/main", "refs/heads/mergeyard/pr-1/run"
ADDRESS = "queue@example.org"
MIRROR = "git.local/owner/name"


def format_of_mirror(tmp_path: Path) -> str:
    mirror = tmp_path / "mirrors" / f"{MIRROR}.git"
    shown = subprocess.check_output(["git", f"--git-dir={mirror}", "rev-parse", "--show-object-format"])
    return shown.decode().strip()


@asynchronous
async def test_what_a_mirror_makes_is_pushed(mirror: Mirror, origin: Origin, tmp_path: Path):
    head = origin.branch("feature", base="main", files={"a.txt": "2\n"})
    tip = origin.commit("main", {"lib/c.txt": "d\n"})
    assert await mirror.fetch([MAIN, "refs/heads/feature"]) == {MAIN: tip, "refs/heads/feature": head}
    assert format_of_mirror(tmp_path) == origin.object_format.name
    tree = await mirror.merge(tip, head)
    assert isinstance(tree, str)
    assert tree == await mirror.cherry_pick(tip, head)
    merged = await mirror.commit(tree, [tip, head], "Merge")
    assert {object_format_of(each) for each in (tree, merged)} == {origin.object_format}
    assert await mirror.push(RefUpdate(RUN, None, merged)) == Pushed()
    assert await mirror.push(RefUpdate(MAIN, head, merged), RefUpdate(RUN, merged, None)) == Stale()
    assert await mirror.push(RefUpdate(MAIN, tip, merged), RefUpdate(RUN, merged, None)) == Pushed()
    assert origin.files("main") == {"a.txt": "2\n", "b.txt": "1\n2\n3\n", "lib/c.txt": "d\n"}
    assert RUN not in origin.refs()


@asynchronous
async def test_files_are_read_compared_and_moved(mirror: Mirror, origin: Origin, tmp_path: Path):
    before = origin.tip("main")
    after = origin.commit("main", {"a.txt": None, "a.txt/deep": "1", "new": "2"})
    await mirror.fetch([MAIN])
    assert await mirror.read_file(after, "new", max_bytes=9) == b"2"
    assert await mirror.changed_paths(before, after) == {b"a.txt", b"a.txt/deep", b"new"}
    moved = await mirror.replace_paths(before, after, [b"a.txt", b"a.txt/deep"])
    assert isinstance(moved, str)
    await mirror.export_tree(moved, str(tmp_path / "out"))
    assert (tmp_path / "out" / "a.txt" / "deep").read_text() == "1"
    assert not (tmp_path / "out" / "new").exists()


@asynchronous
async def test_trees_that_git_refuses_are_found_and_paths_are_counted(mirror: Mirror, origin: Origin):
    before = origin.tip("main")
    bad = origin.commit_raw_entry("main", ".git", f"100644 blob {origin.blob('x')}")
    await mirror.fetch([MAIN])
    (problem,) = await mirror.tree_problems(bad, without=before)
    assert problem.startswith("hasDotgit")
    trees = origin.run("cat-file", "--batch", stdin=f"{origin.tree(before)}\n".encode())
    assert count_paths(trees) == len(("a.txt", "b.txt", "lib"))


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
@asynchronous
async def test_git_verifies_a_signed_commit(git: Git, origin: Origin, tmp_path: Path):
    """Git signs SHA-256 commits in a header of another name, and ignores the usual one there."""
    signer = SshKey(Ed25519PrivateKey.generate())
    mirror = await git.mirror(MIRROR, Remote(origin.url), Identity("Mergeyard", ADDRESS, signer))
    tip = (await mirror.fetch([MAIN]))[MAIN]
    commit = await mirror.commit(await mirror.tree(tip), [tip], "Signed")
    assert await mirror.push(RefUpdate(MAIN, tip, commit)) == Pushed()
    allowed = tmp_path / "allowed_signers"
    allowed.write_text(f"{ADDRESS} {signer.public_key}\n")
    verified = subprocess.run(
        ["git", f"--git-dir={origin.path}", "-c", "gpg.format=ssh", "-c", f"gpg.ssh.allowedSignersFile={allowed}",
         "verify-commit", "--raw", commit],
        capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"], "HOME": os.devnull},
    )  # fmt: skip
    assert (verified.returncode, f"for {ADDRESS}" in verified.stderr) == (0, True), verified.stderr
    header = origin.object_format.signature_header + b" -----BEGIN SSH SIGNATURE-----"
    assert header in origin.run("cat-file", "commit", commit).split(b"\n")


@asynchronous
async def test_a_pull_request_alone_is_fetched_over_http(git: Git, object_format: ObjectFormat, tmp_path: Path):
    """Its ref is fetched before the refs of the host are listed."""
    server = GitServer(tmp_path / "served", is_allowed=lambda _: True)
    served = server.create("acme/app", object_format)
    head = served.commit("refs/pull/1/head", {"a.txt": "1"})
    served.branch("main", base=head)
    header = {"GIT_CONFIG_KEY_0": "http.extraHeader", "GIT_CONFIG_VALUE_0": "Authorization: Basic YTpi"}
    with serve_in_thread(server) as url:
        remote = Remote(f"{url}/acme/app.git", {"GIT_CONFIG_COUNT": "1", **header})
        mirror = await git.mirror(MIRROR, remote)
        assert await mirror.fetch(["refs/pull/1/head"]) == {"refs/pull/1/head": head}
        commit = await mirror.commit(await mirror.tree(head), [head], "Next")
        assert await mirror.push(RefUpdate(MAIN, head, commit)) == Pushed()
    assert served.tip("main") == commit


@asynchronous
async def test_refs_that_do_not_exist_show_the_format_too(mirror: Mirror, origin: Origin, tmp_path: Path):
    assert await mirror.fetch(["refs/notes/none"]) == {}
    assert format_of_mirror(tmp_path) == origin.object_format.name


@asynchronous
async def test_a_repository_that_was_created_again_in_the_other_format_is_fetched(
    mirror: Mirror, git: Git, origin: Origin, tmp_path: Path
):
    before = (await mirror.fetch([MAIN]))[MAIN]
    shutil.rmtree(origin.path)
    other = Origin.create(origin.path, SHA1 if origin.object_format == SHA256 else SHA256)
    tip = other.commit("main", {"new.txt": "1"})
    assert await mirror.fetch([MAIN]) == {MAIN: tip}
    assert format_of_mirror(tmp_path) == other.object_format.name
    commit = await mirror.commit(await mirror.tree(tip), [tip], "Next")
    assert await mirror.push(RefUpdate(MAIN, tip, commit)) == Pushed()
    with pytest.raises(MissingObject):
        await mirror.tree(before)
    assert await git.mirror(MIRROR, Remote(origin.url)) is mirror
    restarted = await GitCli(tmp_path / "mirrors", Identity("Mergeyard", ADDRESS)).mirror(MIRROR, Remote(origin.url))
    assert await restarted.fetch([MAIN]) == {MAIN: commit}


@asynchronous
async def test_a_name_of_the_other_length_is_no_commit(mirror: Mirror, origin: Origin):
    """To git, the first 40 of 64 digits are an abbreviation, and a branch can have a name of 64 digits."""
    tip = (await mirror.fetch([MAIN]))[MAIN]
    other = Sha(tip[:40] if origin.object_format == SHA256 else tip + tip[:24])
    if origin.object_format == SHA1:
        origin.branch(f"refs/heads/{other}", base="main")
    with pytest.raises(MissingObject):
        await mirror.tree(other)
    with pytest.raises(MissingObject):
        await mirror.fetch_commit(other)
    await mirror.fetch_commit(tip)
