"""The scratch repository of a run: it is prepared before the story, and deleted or cleaned after it."""

import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.live.client import NotRun, Reply
from tests.live.hosts import MARKER, LiveHost
from tests.live.stage import Observation, Stage, Waits
from tests.live.webhooks import WebhookRecorder
from tests.support.queue_server import QueueServer

CLEANUP_REQUESTS, CLEANUP_SECONDS = 60, 120
NOT_FOUND, SERVER_ERROR = 404, 500
SECRET = "secret-of-the-live-kit"


@contextmanager
def open_stage(
    host: LiveHost, folder: Path, waits: Waits, run_id: str, *, keep: bool, public_url: str = "", port: int = 0
) -> Generator[tuple[Stage, list[Observation]]]:
    """Creates the repository, starts Mergeyard, and removes everything afterwards, also after an error. With a public
    URL, the Git host sends webhooks there, and the user forwards them to the port. Port 0 is any that is free: only a
    fake on this machine finds it."""
    queue: QueueServer | None = None
    recorder: WebhookRecorder | None = None
    try:
        if public_url:
            recorder = _open_recorder(port, lambda: queue.server.url if queue else "")
        created = prepare_repository(host, run_id)
        settings, secrets = host.queue_settings(waits.poll_s)
        secrets |= {"webhook_secret": SECRET}
        queue = QueueServer(folder, host.access.host_name, settings, secrets, (host.owner, host.name))
        queue.server.start()
        if recorder is not None:
            host.add_webhook(public_url if port else recorder.url, SECRET).must_succeed()
        stage = Stage(host, queue, waits, run_id, recorder)
        yield stage, [stage.saw("the new repository", reply, "repository") for reply in created]
    finally:
        try:
            if queue is not None:
                _close_queue(queue)
            if recorder is not None:
                recorder.close()
        finally:
            host.cleanup = clean_up_or_explain(host, keep=keep)
            host.close()


def _open_recorder(port: int, target: Callable[[], str]) -> WebhookRecorder:
    try:
        return WebhookRecorder(port, target)
    except OSError as error:
        raise NotRun(
            f"the port {port} of this machine cannot be used ({error.strerror}): name another with --port"
        ) from None


def _close_queue(queue: QueueServer) -> None:
    """A server that is stopped while it starts does not end cleanly, and that is no result."""
    with suppress(AssertionError, subprocess.TimeoutExpired):
        queue.close()


def prepare_repository(host: LiveHost, run_id: str) -> list[Reply]:
    """Creates the repository, or checks that the kit can use it and removes the rules and pull requests of an earlier
    run. `start` is where all branches of this run begin."""
    created = list[Reply]()
    reply = host.read_repository()
    if reply.status == NOT_FOUND:
        host.is_created = True  # also if the answer is lost
        reply = host.create_repository()
        host.is_created = reply.succeeded or reply.status >= SERVER_ERROR
        created = [reply.must_succeed()]
    else:
        refs = host.refs()
        if refs and f"refs/heads/{MARKER}" not in refs:
            raise NotRun(
                f"{host.path} has content and no branch {MARKER}: the kit did not create it and does not touch it. "
                "Name an empty repository, or none"
            )
        if "refs/heads/main" in refs:
            host.fetch("main")
            host.unprotect()
            host.close_all()
    host.is_accepted = True
    host.origin.commit("main", {"a.txt": run_id, "README.md": "A scratch repository of the live kit of Mergeyard.\n"})
    host.origin.branch(MARKER, base="main")
    host.origin.branch("start", base="main")
    for place in ("main", MARKER):
        result = host.push(place)
        assert result.succeeded, "; ".join(result.messages)
    host.connect()
    if host.has_second:
        host.admit_second()
    return created


def clean_up_or_explain(host: LiveHost, *, keep: bool) -> str:
    """Returns what is left behind, and what a person must do about it."""
    host.budget.extend(CLEANUP_REQUESTS, CLEANUP_SECONDS)
    try:
        return _clean_up(host, keep=keep)
    except Exception as error:  # the report must be written in any case
        return f"{host.path} could not be removed ({error}). Delete it, and the fork of it if there is one."


def _clean_up(host: LiveHost, *, keep: bool) -> str:
    """Deletes what the kit created. From a repository that existed before, it removes rules, branches and pull
    requests."""
    if keep and host.is_accepted:
        return f"{host.path} was kept. Delete it when you no longer need it."
    if host.fork_path:
        try:
            _is_deleted(host.delete_fork())
        except Exception as error:  # the repository must be deleted in any case
            host.cleanup_notes.append(f"The fork {host.fork_path} is left ({error}). Delete it.")
    if host.is_created:
        end = "was deleted" if _is_deleted(host.delete_repository()) else "does not exist"
        return " ".join([f"{host.path} {end}.", *host.cleanup_notes])
    if not host.is_accepted:
        return "No repository was created or changed."
    host.unprotect()
    host.close_all()
    own = [ref for ref in host.refs() if ref.startswith(("refs/heads/kit-", "refs/heads/mergeyard/"))]
    if own:
        host.git("push", "--delete", *own)
    removed = f"The branches, rules and pull requests of the kit in {host.path} were removed. Its branch main was not."
    return " ".join([removed, *host.cleanup_notes])


def _is_deleted(reply: Reply) -> bool:
    """False: there was nothing to delete."""
    return reply.status != NOT_FOUND and reply.must_succeed().succeeded
