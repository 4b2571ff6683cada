"""Opens, updates and closes pull requests of plain Git repositories."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar, assert_never

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.adapters.host_plain import pull_requests
from mergeyard.adapters.host_plain.process import GitFailed, run_git
from mergeyard.domain.ids import PullRequestNumber, Sha

MAX_SUBJECT_BYTES = 1024 * 1024


class EditRefused(Exception):
    """The request cannot be fulfilled; the message says what to do instead."""


async def read_branch_tip(folder: Path, branch: str) -> Sha:
    ref = f"refs/heads/{branch}"
    await require_valid_branch(folder, branch)
    tips = await pull_requests.list_refs(folder, ref)
    if ref not in tips:
        raise EditRefused(f"There is no branch {branch} in {folder}. Push it first, or name another with --head.")
    return tips[ref]


async def require_valid_branch(folder: Path, branch: str) -> None:
    try:
        await run_git(folder, "check-ref-format", f"refs/heads/{branch}")
    except (GitFailed, ValueError):
        raise EditRefused(f"{branch!r} is not a valid name of a branch.") from None


async def read_subject_and_author(folder: Path, commit: Sha) -> tuple[str, str]:
    """Uses plumbing, because `git show` runs programs that the repository's configuration names."""
    arguments = ("--format=%s%x00%an", "--no-commit-header", "--max-count=1", "--end-of-options", commit)
    out = await run_git(folder, "rev-list", *arguments, max_bytes=MAX_SUBJECT_BYTES)
    subject, _, author = out.decode(errors="replace").strip().partition("\0")
    return subject, author


MAX_ATTEMPTS = 50
"""In each round of concurrent attempts one succeeds, so this suffices for 50 concurrent writers."""
Outcome = TypeVar("Outcome")


class RefUpdateConflict(GitFailed):
    """The refs did not have their expected values, or another process has locked them: read them and try again."""


async def retry_on_conflict(attempt: Callable[[], Awaitable[Outcome]]) -> Outcome:
    for _ in range(MAX_ATTEMPTS - 1):
        with suppress(RefUpdateConflict):
            return await attempt()
    return await attempt()


async def create_pull_request_refs(
    folder: Path, number: PullRequestNumber, head: Sha, meta: pull_requests.PullRequestMetadata
) -> None:
    blob = await write_blob(folder, pull_requests.encode_metadata(meta))
    await update_refs(
        folder, f"create {pull_requests.head_ref(number)} {head}", f"create {pull_requests.meta_ref(number)} {blob}"
    )


async def update_pull_request_refs(
    folder: Path,
    stored: pull_requests.StoredPullRequest,
    meta: pull_requests.PullRequestMetadata,
    head: Sha | None = None,
) -> None:
    """Without a new head, the head must still be the stored one."""
    head_ref, meta_ref = pull_requests.head_ref(stored.number), pull_requests.meta_ref(stored.number)
    blob = await write_blob(folder, pull_requests.encode_metadata(meta, previous=stored.raw))
    head_step = f"update {head_ref} {head} {stored.head}" if head else f"verify {head_ref} {stored.head}"
    await update_refs(folder, head_step, f"update {meta_ref} {blob} {stored.blob}")


async def write_blob(folder: Path, content: bytes) -> Sha:
    return Sha((await run_git(folder, "hash-object", "-w", "--stdin", stdin=content)).decode().strip())


async def update_refs(folder: Path, *instructions: str) -> None:
    stdin = "".join(f"{instruction}\n" for instruction in instructions)
    try:
        await run_git(folder, "update-ref", "--no-deref", "--stdin", stdin=stdin.encode())
    except GitFailed as error:
        raise RefUpdateConflict(str(error)) from error


class NewPullRequest(Struct, frozen=True, kw_only=True):
    """The requested pull request. Title and author default to those of the head commit."""

    head: str
    base: str
    title: str | None = None
    author: str | None = None
    draft: bool = False


async def open_pull_request(folder: Path, request: NewPullRequest) -> PullRequestNumber:
    await require_valid_branch(folder, request.base)
    head = await read_branch_tip(folder, request.head)
    subject, author = await read_subject_and_author(folder, head)
    meta = pull_requests.PullRequestMetadata(
        title=subject if request.title is None else request.title,
        author=author if request.author is None else request.author,
        base=request.base,
        branch=request.head,
        draft=request.draft,
    )

    async def create_with_next_number() -> PullRequestNumber:
        number = await find_next_number(folder)
        await create_pull_request_refs(folder, number, head, meta)
        return number

    return await retry_on_conflict(create_with_next_number)


async def find_next_number(folder: Path) -> PullRequestNumber:
    numbers = map(pull_requests.pull_request_number_of, await pull_requests.list_refs(folder, "refs/pull"))
    number = 1 + max((number for number in numbers if number), default=0)
    if number > pull_requests.MAX_NUMBER:
        raise EditRefused(
            f"There is no number left after {pull_requests.MAX_NUMBER}. Delete the refs of that pull request."
        )
    return PullRequestNumber(number)


class PullRequestChange(Struct, frozen=True, kw_only=True):
    """The requested changes. None: unchanged."""

    head: str | None = None
    base: str | None = None
    title: str | None = None
    draft: bool | None = None


async def update_pull_request(folder: Path, number: PullRequestNumber, change: PullRequestChange) -> None:
    """Also moves the head to the current tip of its branch."""
    if change.base is not None:
        await require_valid_branch(folder, change.base)

    async def update(pull_request: pull_requests.StoredPullRequest) -> None:
        match pull_request.meta.state:
            case pull_requests.StoredState.OPEN:
                meta = apply_change(pull_request.meta, change)
                head = await read_branch_tip(folder, meta.branch)
                await update_pull_request_refs(folder, pull_request, meta, head)
            case pull_requests.StoredState.CLOSED | pull_requests.StoredState.MERGED as state:
                raise EditRefused(f"Pull request {number} is {state}. Open another with: mergeyard pr open")
            case _:
                assert_never(pull_request.meta.state)

    await edit_with_retries(folder, number, update)


async def close_pull_request(folder: Path, number: PullRequestNumber) -> None:
    async def close(pull_request: pull_requests.StoredPullRequest) -> None:
        match pull_request.meta.state:
            case pull_requests.StoredState.OPEN:
                meta = replace(pull_request.meta, state=pull_requests.StoredState.CLOSED)
                await update_pull_request_refs(folder, pull_request, meta)
            case pull_requests.StoredState.CLOSED:
                return
            case pull_requests.StoredState.MERGED:
                raise EditRefused(f"Pull request {number} is merged, so there is nothing left to close.")
            case _:
                assert_never(pull_request.meta.state)

    await edit_with_retries(folder, number, close)


def apply_change(
    meta: pull_requests.PullRequestMetadata, change: PullRequestChange
) -> pull_requests.PullRequestMetadata:
    return replace(
        meta,
        branch=meta.branch if change.head is None else change.head,
        base=meta.base if change.base is None else change.base,
        title=meta.title if change.title is None else change.title,
        draft=meta.draft if change.draft is None else change.draft,
    )


async def edit_with_retries(
    folder: Path, number: PullRequestNumber, edit: Callable[[pull_requests.StoredPullRequest], Awaitable[None]]
) -> None:
    """Reads the pull request and edits it, again if another process changed it in between."""
    reader = await pull_requests.ObjectReader.start(folder)

    async def read_and_edit() -> None:
        pull_request = await pull_requests.read_stored_pull_request(reader, number)
        if pull_request is None:
            raise EditRefused(f"There is no pull request {number}. See them with: mergeyard pr list")
        await edit(pull_request)

    try:
        await retry_on_conflict(read_and_edit)
    finally:
        await reader.close()
