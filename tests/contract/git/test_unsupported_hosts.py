"""What answers git and is no Git host that a queue can use: the error says what it is and what to do, not to wait."""

import functools
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from mergeyard.ports.git import Git, Mirror, Pushed, RefUpdate, Remote, RemoteUnsupported
from tests.support.asynchronous import asynchronous
from tests.support.http_server import Receive, Scope, Send, respond, serve_in_thread
from tests.support.repositories import ENVIRONMENT, Origin

MAIN, RUN = "refs/heads/main", "refs/heads/mergeyard/pr-1/run"
PAGE = b"<html>Please sign in</html>"
ADVERTISEMENT = {"content-type": "application/x-git-upload-pack-advertisement"}


@pytest.mark.parametrize(
    ("headers", "body", "advice"),
    [
        ({"content-type": "text/html"}, PAGE, "has no branch: it is empty, or it is not a git"),
        (ADVERTISEMENT, PAGE, "address of the Git host for git"),
        (ADVERTISEMENT, b"001e# service=git-upload-pack\n0000000cversion!", "address of the Git host for git"),
        (ADVERTISEMENT, b"001e# service=git-upload-pack\n00000000", "has no branch: it is empty, or it is not a git"),
        ({"content-type": "text/plain"}, b"", "has no branch: it is empty, or it is not a git"),
        (
            ADVERTISEMENT,
            b"001e# service=git-upload-pack\n0000000eversion 2\n000cls-refs\n0019object-format=sha512\n0000",
            "Install a newer git",
        ),
    ],
    ids=["page", "page as git", "garbage", "no refs", "nothing", "unknown format"],
)
@asynchronous
async def test_an_answer_that_is_no_repository(git: Git, headers: dict[str, str], body: bytes, advice: str):
    async def answer(_: Scope, __: Receive, send: Send) -> None:
        await respond(send, 200, headers, body)

    with serve_in_thread(answer) as url:
        mirror = await git.mirror("h/o/n", Remote(f"{url}/acme/app.git"))
        for call in (mirror.remote_refs(MAIN), mirror.fetch(["refs/pull/1/head"])):
            with pytest.raises(RemoteUnsupported, match=advice):
                await call


@contextmanager
def serve_files(folder: Path) -> Generator[str]:
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@asynchronous
async def test_a_web_server_that_only_serves_files(git: Git, origin: Origin):
    origin.run("update-server-info")
    with serve_files(origin.path.parent) as url:
        mirror = await git.mirror("h/o/n", Remote(f"{url}/{origin.path.name}"))
        tip = (await mirror.fetch([MAIN]))[MAIN]
        with pytest.raises(RemoteUnsupported, match="git can read but not push to"):
            await mirror.push(RefUpdate(RUN, None, tip))


@asynchronous
async def test_a_format_that_git_does_not_know(mirror: Mirror, origin: Origin):
    known = origin.object_format.name
    origin.run("config", "core.repositoryFormatVersion", "1")
    for name, value in (("objectFormat", "sha512"), ("refStorage", "of-a-newer-git")):
        origin.run("config", f"extensions.{name}", value)
        for call in (mirror.remote_refs(MAIN), mirror.fetch([MAIN])):
            with pytest.raises(RemoteUnsupported, match="Install a newer git here"):
                await call
        subprocess.run(
            ["git", "config", "--file", origin.path / "config", f"extensions.{name}", known],
            check=True, env=ENVIRONMENT,
        )  # fmt: skip
    subprocess.run(
        ["git", "config", "--file", origin.path / "config", "--unset", "extensions.refStorage"],
        check=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert await mirror.fetch([MAIN]) == {MAIN: origin.tip("main")}


@asynchronous
async def test_a_repository_without_its_beginning(mirror: Mirror, origin: Origin):
    tip = origin.commit("main", {"a.txt": "2"})
    (origin.path / "shallow").write_text(f"{tip}\n")
    for refs in ([MAIN], ["refs/heads/*"]):
        with pytest.raises(RemoteUnsupported, match="git fetch --unshallow"):
            await mirror.fetch(refs)
    (origin.path / "shallow").unlink()
    assert await mirror.fetch([MAIN]) == {MAIN: tip}


@asynchronous
async def test_a_host_that_cannot_move_several_branches_at_once(mirror: Mirror, origin: Origin):
    tip = (await mirror.fetch([MAIN]))[MAIN]
    origin.run("config", "receive.advertiseAtomic", "false")
    with pytest.raises(RemoteUnsupported, match=r"Set receive\.advertiseAtomic to true"):
        await mirror.push(RefUpdate(RUN, None, tip))
    origin.run("config", "receive.advertiseAtomic", "true")
    assert await mirror.push(RefUpdate(RUN, None, tip)) == Pushed()
