"""Reads where the refs of the remote are, and brings them.

No object that was brought is ever removed, also when no ref leads to it any more: a mirror is never cleaned (see
`opening`). Refs are let go of when they are of no use, for every fetch and push looks at all of them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from mergeyard.adapters.git_cli.names import (
    checked_pattern,
    checked_sha,
    kept,
    kept_glob,
    matches,
    original,
    refs_in,
)
from mergeyard.adapters.git_cli.process import SECONDS_OVER_THE_NETWORK
from mergeyard.adapters.git_cli.repository import Repository
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import GitTrouble, Remote

HEAD = "HEAD"
PEELED = "^{}"
"""How the commit behind a tag is named, beside the tag itself."""
OVER_THE_WEB = ("http://", "https://")
"""Where any page that somebody puts in its place looks to git like a repository without refs."""
FETCH = (
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-show-forced-updates",
    "--stdin",
    "--end-of-options",
)
MAX_REFS_BYTES = 256 * 1024 * 1024
"""Of a list of refs, whose length no single pull request decides."""
KEPT_REFS = ("for-each-ref", "--format=%(objectname) %(objecttype) %(refname)")
"""With the type, for which git must find the object: a ref whose object was lost would never be fetched again."""


async def remote_refs(repository: Repository, remote: Remote, patterns: Collection[str]) -> dict[str, Sha]:
    """Git also answers with refs whose names merely end like a pattern: those are left out."""
    if not patterns:
        return {}
    wanted = [checked_pattern(pattern) for pattern in patterns]
    question = ("ls-remote", "--quiet", "--end-of-options", remote.url, HEAD, *wanted)
    out = await repository.ask(*question, environment=remote.environment, max_bytes=MAX_REFS_BYTES)
    told = [(sha, ref) for sha, ref in refs_in(out) if not ref.endswith(PEELED)]
    if remote.url.startswith(OVER_THE_WEB) and HEAD not in {ref for _, ref in told}:
        raise GitTrouble(f"{remote.url} names no HEAD: it is empty, or something else answers in its place")
    return chosen(told, wanted)


async def fetch(repository: Repository, remote: Remote, patterns: Collection[str]) -> dict[str, Sha]:
    """A fetch that names an absent ref fails as a whole, so it is read first what there is."""
    there = await remote_refs(repository, remote, patterns)
    try:
        await bring(repository, remote, patterns, there)
    except GitTrouble:
        before, there = there, await remote_refs(repository, remote, patterns)
        if there.keys() >= before.keys():
            raise
        await bring(repository, remote, patterns, there)
    return {ref: sha for ref, sha in (await kept_refs(repository, patterns)).items() if ref in there}


async def bring(repository: Repository, remote: Remote, patterns: Collection[str], there: Mapping[str, Sha]) -> None:
    have = await kept_refs(repository, patterns)
    refspecs = [f"+{ref}:{kept(ref)}\n" for ref, sha in there.items() if have.get(ref) != sha]
    if refspecs:
        await _fetch(repository, remote, "".join(refspecs))


async def fetch_commit(repository: Repository, remote: Remote, commit: Sha) -> None:
    """Newer servers give whatever they have, and the large hosts keep for weeks what no ref leads to."""
    await _fetch(repository, remote, f"{checked_sha(commit)}\n")


async def forget(repository: Repository, pattern: str, unless: Callable[[str], bool]) -> None:
    there = await _kept(repository, [checked_pattern(pattern)])
    gone = [ref for _, ref in there if matches(pattern, ref) and not unless(ref)]
    if gone:
        deletions = "".join(f"delete {kept(ref)}\n" for ref in gone)
        await repository.ask("update-ref", "--stdin", stdin=deletions.encode())


async def _fetch(repository: Repository, remote: Remote, refspecs: str) -> None:
    await repository.ask(
        *FETCH,
        remote.url,
        stdin=refspecs.encode(),
        environment=remote.environment,
        seconds=SECONDS_OVER_THE_NETWORK,
    )


async def contained(repository: Repository, tip: Sha, patterns: Collection[str]) -> frozenset[Sha]:
    return frozenset((await kept_refs(repository, patterns, f"--merged={checked_sha(tip)}")).values())


async def kept_refs(repository: Repository, patterns: Collection[str], *options: str) -> dict[str, Sha]:
    wanted = [checked_pattern(pattern) for pattern in patterns]
    if not wanted:
        return {}
    return chosen(await _kept(repository, wanted, *options), wanted)


async def _kept(repository: Repository, patterns: Collection[str], *options: str) -> Iterator[tuple[Sha, str]]:
    question = (*KEPT_REFS, *options, "--end-of-options", *map(kept_glob, patterns))
    out = await repository.ask(*question, max_bytes=MAX_REFS_BYTES)
    return ((sha, original(ref)) for sha, ref in refs_in(out))


def chosen(pairs: Iterable[tuple[Sha, str]], patterns: Collection[str]) -> dict[str, Sha]:
    names = {pattern for pattern in patterns if "*" not in pattern}
    stars = [pattern for pattern in patterns if "*" in pattern]
    return {ref: sha for sha, ref in pairs if ref in names or any(matches(pattern, ref) for pattern in stars)}
