"""Reads and fetches the refs of the remote, and pushes to it by compare-and-swap.

Fetched objects are never removed, even if no ref contains them any longer: mirrors are never garbage-collected (see
`mirrors`). Refs that are no longer needed are pruned, because every fetch and push reads all refs.
"""

import re
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO

from msgspec import Struct

from mergeyard.adapters.git_cli.limits import LOCAL_TIMEOUT_S, Work
from mergeyard.adapters.git_cli.process import (
    MAX_MESSAGE_CHARS,
    SHA_IN_TEXT,
    UNKNOWN_FORMAT,
    UNKNOWN_FORMAT_ADVICE,
    GitResult,
    Repository,
    is_damage_message,
    is_stale_file_message,
)
from mergeyard.domain.ids import SHA_PATTERN, ObjectFormat, Sha, object_format_of
from mergeyard.ports.git import (
    GitError,
    MissingObject,
    Pushed,
    PushOutcome,
    PushRefused,
    RefUpdate,
    Remote,
    RemoteRefused,
    RemoteUnavailable,
    RemoteUnsupported,
    Stale,
)

MIRROR_REFS = "refs/origin/"
FULL_SHA = re.compile(SHA_PATTERN)
REF_COMPONENT = r"/(?!\.)[^\x00-\x20\x7f~^:?*\[\\/]+(?<!\.lock)"
REF_PATTERN = re.compile(rf"refs(?:{REF_COMPONENT})+(?<!\.)")
FORBIDDEN_IN_REFS = ("..", "@{")


def validate_sha(sha: Sha) -> Sha:
    if not FULL_SHA.fullmatch(sha):
        raise GitError(f"{sha!r} is not the name of an object")
    return sha


def validate_ref(ref: str) -> str:
    if not REF_PATTERN.fullmatch(ref) or any(part in ref for part in FORBIDDEN_IN_REFS):
        raise GitError(f"{ref!r} is not the full name of a ref")
    return ref


def validate_pattern(pattern: str) -> str:
    validate_ref(pattern.replace("*", "-", 1))
    return pattern


def matches_pattern(pattern: str, ref: str) -> bool:
    """As in git refspecs: `*` matches any text, including slashes."""
    head, star, tail = pattern.partition("*")
    if not star:
        return ref == pattern
    return ref.startswith(head) and ref.endswith(tail) and len(ref) >= len(head) + len(tail)


def to_mirror_ref(ref: str) -> str:
    return f"{MIRROR_REFS}{ref.count('/')}/{ref.removeprefix('refs/')}"


def to_mirror_glob(pattern: str) -> str:
    """Matches all mirror refs of the pattern, and others: filter the result with `matches_pattern`."""
    head, star, _ = pattern.partition("*")
    if not star:
        return to_mirror_ref(pattern)
    folder = head.rpartition("/")[0].removeprefix("refs")
    return f"{MIRROR_REFS}*{folder}/**"


def from_mirror_ref(mirror_ref: str) -> str:
    return "refs/" + mirror_ref.removeprefix(MIRROR_REFS).partition("/")[2]


def parse_refs(out: bytes) -> Iterator[tuple[Sha, str]]:
    """Parses lines that start with an object name and end with a ref. Split as bytes, because a ref can contain
    characters that Python treats as line ends. Refs that are not UTF-8 are left out: we cannot name them."""
    for line in BytesIO(out):  # lazily: there can be many
        sha, *_, ref = line.split()
        with suppress(UnicodeDecodeError):
            yield Sha(sha.decode()), ref.decode()


def to_display_path(path: bytes) -> str:
    """A path for messages: bytes that are not UTF-8 are shown as escapes."""
    return path.decode(errors="backslashreplace")


LOCAL_FAILURE = re.compile(
    r"could not be started|stopped before it started|cannot (?:fork|allocate)|out of memory|too many open files"
    r"|read-only file system|input/output error|: permission denied$",
    re.IGNORECASE,
)
REMOTE_REFUSAL = re.compile(
    r"returned error: 40[13]\b|authentication failed|could not read (?:username|password)|invalid credentials"
    r"|permission to \S{1,300} denied|permission denied \(|access denied|not allowed to"
    r"|repository (?:'.{0,300}' )?not found",
    re.IGNORECASE,
)
SHALLOW = "shallow roots are not allowed"
REDIRECT = re.compile(r"returned error: 30[12378]\b")
REDIRECT_ADVICE = (
    "the Git host redirects to another URL, which we do not follow. If the repository was renamed, create the "
    "queue for the new name; otherwise configure the URL that the Git host uses for itself"
)
NO_GIT_HOST = re.compile(r"is this a git repository\?|invalid server response|protocol error: (?:unexpected|bad line)")
NO_GIT_HOST_ADVICE = (
    "what answers there is no Git host. Compare the URL in the settings with the address of the Git host for git"
)
PLAIN_WEB_SERVER = "git-http-push failed"
PLAIN_WEB_SERVER_ADVICE = (
    "a plain web server answers there, which git can read but not push to. Serve the repository with "
    "git http-backend, or through a Git host"
)
SHALLOW_ADVICE = (
    "the repository on the Git host is shallow: the older part of its history is missing. Complete it there with: "
    "git fetch --unshallow"
)
WITHOUT_ATOMIC_PUSH = "does not support --atomic push"
WITHOUT_ATOMIC_PUSH_ADVICE = (
    "the Git host cannot move several branches in one step, which the queue needs. Set receive.advertiseAtomic to "
    "true there, or install a newer git"
)
FOREIGN = re.compile(r"^fatal: could not read from remote repository", re.IGNORECASE | re.MULTILINE)
"""A command in the repository of another program failed: what else was said is about that one, not about the mirror."""
REMOTE_LIMIT = re.compile(r"rate limit|too many requests|abuse|temporar(?:y|ily)|try again", re.IGNORECASE)
"""Some hosts answer 403 also to what they would accept later."""


@contextmanager
def remote_errors() -> Generator[None]:
    """For commands that talk to the remote."""
    try:
        yield
    except GitError as error:
        raise to_remote_error(error) from error


def to_remote_error(error: GitError) -> GitError:
    """Says who has to act on what git reports of a command that talks to the remote: a fetch can also fail because
    our own disk is full."""
    message = str(error)
    if type(error) is not GitError:
        return error
    is_ours = is_local_failure(message)
    advice = find_unsupported_advice(message)
    if advice is not None and (FOREIGN.search(message) or not is_ours):
        return RemoteUnsupported(f"{message}: {advice}")
    if is_ours:
        return error
    if REMOTE_REFUSAL.search(message) and not REMOTE_LIMIT.search(message):
        return RemoteRefused(message)
    return RemoteUnavailable(message)


def find_unsupported_advice(message: str) -> str | None:
    """What a Git host really is that we cannot use, and what to do."""
    if REDIRECT.search(message):
        return REDIRECT_ADVICE
    if UNKNOWN_FORMAT.search(message):
        return UNKNOWN_FORMAT_ADVICE
    if NO_GIT_HOST.search(message):
        return NO_GIT_HOST_ADVICE
    if PLAIN_WEB_SERVER in message:
        return PLAIN_WEB_SERVER_ADVICE
    if SHALLOW in message:
        return SHALLOW_ADVICE
    if WITHOUT_ATOMIC_PUSH in message:
        return WITHOUT_ATOMIC_PUSH_ADVICE
    return None


def is_local_failure(message: str) -> bool:
    if is_damage_message(message) or is_stale_file_message(message):
        return True
    own_lines = (line for line in message.splitlines() if not line.startswith("remote:"))
    return any(LOCAL_FAILURE.search(line) for line in own_lines)


HEAD = "HEAD"
PEELED_SUFFIX = "^{}"
"""`ls-remote` lists the commit of an annotated tag under this name, in addition to the tag."""
BRANCHES = "refs/heads/"
HTTP_SCHEMES = ("http://", "https://")
"""Over these, git accepts any web page as an empty repository."""
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
"""Larger than the default limit: the number of refs does not depend on a single pull request."""
FOR_EACH_REF = ("for-each-ref", "--format=%(objectname) %(objecttype) %(refname)")
"""With the type, for which git has to read the object: otherwise a ref whose object was lost is never fetched again."""


async def read_remote_refs(repository: Repository, remote: Remote, patterns: Collection[str]) -> dict[str, Sha]:
    """Lists all branches if only branches are wanted: that is the one case in which git asks the server for a part of
    its refs, and the hosts keep refs for every pull request ever opened. `ls-remote` also returns refs whose names only
    end like a pattern; these are left out."""
    wanted = [validate_pattern(pattern) for pattern in patterns]
    return select_matching(await _list_remote_refs(repository, remote, wanted), wanted)


async def _list_remote_refs(repository: Repository, remote: Remote, wanted: Sequence[str]) -> list[tuple[Sha, str]]:
    """Of all that were listed, also those that are not wanted."""
    if not wanted:
        return []
    selection = ("--heads",) if all(pattern.startswith(BRANCHES) for pattern in wanted) else ()
    names = () if selection else (HEAD, *wanted)
    arguments = ("ls-remote", "--quiet", *selection, "--end-of-options", remote.url, *names)
    with remote_errors():
        out = await repository.run_checked(
            *arguments,
            environment=remote.environment,
            work=Work.TRANSFER,
            timeout_s=LOCAL_TIMEOUT_S,
            max_bytes=MAX_REFS_BYTES,
        )
    listed = [(sha, ref) for sha, ref in parse_refs(out) if not ref.endswith(PEELED_SUFFIX)]
    if remote.url.startswith(HTTP_SCHEMES) and not any(ref == HEAD or ref.startswith(BRANCHES) for _, ref in listed):
        raise RemoteUnsupported(
            f"{remote.url} has no branch: it is empty, or it is not a git repository. "
            "Push a branch, or correct the URL of the Git host in the settings"
        )
    return listed


class OtherObjectFormatError(GitError):
    """The remote names its objects in another way than the mirror, so git can fetch none of them."""

    def __init__(self, object_format: ObjectFormat) -> None:
        super().__init__(f"the repository of the Git host now has objects of the format {object_format.name}")
        self.object_format = object_format


async def read_refs_to_fetch(repository: Repository, remote: Remote, patterns: Collection[str]) -> dict[str, Sha]:
    """`ls-remote` works in a mirror of any format, and every id shows the format of the remote. A remote without refs
    shows none, and there is nothing to fetch from it."""
    wanted = [validate_pattern(pattern) for pattern in patterns]
    listed = await _list_remote_refs(repository, remote, wanted)
    if listed:
        object_format = object_format_of(listed[0][0])
        if object_format != await repository.read_object_format():
            raise OtherObjectFormatError(object_format)
    return select_matching(listed, wanted)


async def fetch(repository: Repository, remote: Remote, patterns: Collection[str]) -> dict[str, Sha]:
    """Reads the remote refs first, because a fetch that names an absent ref fails completely. If refs disappeared
    between the two, it tries once more without them.

    Over HTTP, named refs that are not branches are fetched without that: git can fetch them alone, but not list them
    without those of all other pull requests.
    """
    unlisted = {ref for ref in map(validate_pattern, patterns) if can_fetch_unlisted(remote, ref)}
    present = await read_refs_to_fetch(repository, remote, [each for each in patterns if each not in unlisted])
    try:
        await fetch_changed_refs(repository, remote, patterns, present, unlisted)
    except GitError:
        before, present = {*present, *unlisted}, await read_refs_to_fetch(repository, remote, patterns)
        if present.keys() >= before:
            raise
        await fetch_changed_refs(repository, remote, patterns, present)
        unlisted = set[str]()
    fetched = await read_mirror_refs(repository, patterns)
    return {ref: sha for ref, sha in fetched.items() if ref in present or ref in unlisted}


def can_fetch_unlisted(remote: Remote, pattern: str) -> bool:
    """Local repositories are listed faster than a fetch starts."""
    return remote.url.startswith(HTTP_SCHEMES) and "*" not in pattern and not pattern.startswith(BRANCHES)


async def fetch_changed_refs(
    repository: Repository,
    remote: Remote,
    patterns: Collection[str],
    present: Mapping[str, Sha],
    unlisted: Collection[str] = (),
) -> None:
    have = await read_mirror_refs(repository, patterns)
    changed = [ref for ref, sha in present.items() if have.get(ref) != sha]
    if changed or unlisted:
        refspecs = "".join(f"+{ref}:{to_mirror_ref(ref)}\n" for ref in (*changed, *unlisted))
        await _run_fetch(repository, remote, refspecs)


NOT_GIVEN = re.compile("not our ref|unadvertised object")


async def fetch_commit(repository: Repository, remote: Remote, commit: Sha) -> None:
    """Newer servers return any object they have, and large hosts keep unreferenced ones for weeks."""
    await repository.check_object_format(validate_sha(commit))
    try:
        await _run_fetch(repository, remote, f"{validate_sha(commit)}\n")
    except GitError as error:
        if NOT_GIVEN.search(str(error)):
            raise MissingObject(str(error)) from error
        raise


async def prune_refs(repository: Repository, pattern: str, keep: Callable[[str], bool]) -> None:
    present = await _list_mirror_refs(repository, [validate_pattern(pattern)])
    obsolete = [ref for _, ref in present if matches_pattern(pattern, ref) and not keep(ref)]
    if obsolete:
        deletions = "".join(f"delete {to_mirror_ref(ref)}\n" for ref in obsolete)
        await repository.run_checked("update-ref", "--stdin", stdin=deletions.encode())


async def _run_fetch(repository: Repository, remote: Remote, refspecs: str) -> None:
    with remote_errors():
        result = await repository.run(
            *FETCH,
            remote.url,
            stdin=refspecs.encode(),
            environment=remote.environment,
            work=Work.TRANSFER,
        )
        is_shallow = SHALLOW in result.stderr  # then git fetches nothing, warns, and ends with success
        if result.exit_code != 0 or is_shallow:
            raise await repository.to_error(result, SHA_IN_TEXT.findall(refspecs))


async def find_contained_heads(repository: Repository, tip: Sha, patterns: Collection[str]) -> frozenset[Sha]:
    return frozenset((await read_mirror_refs(repository, patterns, f"--merged={validate_sha(tip)}")).values())


async def read_mirror_refs(repository: Repository, patterns: Collection[str], *options: str) -> dict[str, Sha]:
    wanted = [validate_pattern(pattern) for pattern in patterns]
    if not wanted:
        return {}
    return select_matching(await _list_mirror_refs(repository, wanted, *options), wanted)


async def _list_mirror_refs(
    repository: Repository, patterns: Collection[str], *options: str
) -> Iterator[tuple[Sha, str]]:
    arguments = (*FOR_EACH_REF, *options, "--end-of-options", *map(to_mirror_glob, patterns))
    out = await repository.run_checked(*arguments, max_bytes=MAX_REFS_BYTES)
    return ((sha, from_mirror_ref(ref)) for sha, ref in parse_refs(out))


def select_matching(refs: Iterable[tuple[Sha, str]], patterns: Collection[str]) -> dict[str, Sha]:
    names = {pattern for pattern in patterns if "*" not in pattern}
    globs = [pattern for pattern in patterns if "*" in pattern]
    return {ref: sha for sha, ref in refs if ref in names or any(matches_pattern(pattern, ref) for pattern in globs)}


PUSH = ("push", "--atomic", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no")

MOVED_FLAGS = frozenset(" +*-t")
REJECTED_FLAG = "!"

ATOMIC_FAILURE = re.compile(r"atomic push fail")
"""Reported for refs that did not move because another ref of the push did not."""
UNKNOWN_RESULT = re.compile(r"\[remote failure\]")
STALE_REF = re.compile(r"but expected|reference already exists|reference is missing|unable to resolve reference")
GITHUB_REFUSAL = re.compile(r"\berror: GH[0-9]{3}:")
"""GitHub's codes for refusals. The words after one contain names of checks and files, so they prove nothing; not even
those of `STALE_REF`. The name of a branch contains no colon."""
PERMANENT_FAILURE = re.compile(r"exists; cannot create")
TRANSIENT_FAILURE = re.compile(
    r"unable to create '|(?<![\w./-])(?:"
    r"unpacker error|failed to (?:update|lock|write)|unable to write|atomic transaction failed"
    r"|no space|internal (?:server |api )?error|temporar(?:y|ily)|try again|(?:service ?)?unavailable"
    r"|e?timed?[ -]?out|client\.timeout exceeded|deadline ?exceeded"
    r"|fatal error in commit_refs|internal api|api is not accessible|unreachable|read-only"
    r"|(?:http(?:/[0-9.]{1,3})?|error:?|status:?|code:?|returned) \(?50[0-9]"
    r"|50[0-9]:? (?:bad|service|gateway|internal)"
    r")(?![\w/-]|\.\w)",
    re.IGNORECASE,
)
"""As words: in a name such as `timeout-tests` or `src/timeout.py` they prove nothing."""


class RefResult(Struct, frozen=True):
    """git's result for one ref: in porcelain, `<flag> <from>:<to> <summary>`, separated by tabs."""

    flag: str
    ref: str
    summary: str


async def push(repository: Repository, remote: Remote, updates: Sequence[RefUpdate]) -> PushOutcome:
    if not updates:
        return Pushed()
    with remote_errors():
        result = await repository.run(
            *PUSH,
            *map(to_lease_option, updates),
            "--end-of-options",
            remote.url,
            *map(to_refspec, updates),
            environment=remote.environment,
            work=Work.TRANSFER,
        )
    ref_results = list(parse_push_output(result.stdout))
    if result.exit_code == 0 and [ref.flag in MOVED_FLAGS for ref in ref_results] == [True] * len(updates):
        return Pushed()
    present = await read_remote_refs(repository, remote, [update.ref for update in updates])
    if all(present.get(update.ref) == update.new for update in updates):
        return Pushed()
    if has_moved_nothing(ref_results) and any(is_stale(update, present.get(update.ref)) for update in updates):
        return Stale()
    outcome = classify_failure(result, ref_results) if has_moved_nothing(ref_results) else None
    if outcome is None:
        raise to_remote_error(await repository.to_error(result, [update.new for update in updates if update.new]))
    return outcome


def is_stale(update: RefUpdate, present: Sha | None) -> bool:
    """A ref that is at the new commit already is no reason for a failure. One that should be deleted and is gone is."""
    return present != update.old and (present != update.new or update.new is None)


def to_lease_option(update: RefUpdate) -> str:
    return f"--force-with-lease={validate_ref(update.ref)}:{validate_sha(update.old) if update.old else ''}"


def to_refspec(update: RefUpdate) -> str:
    return f"{validate_sha(update.new) if update.new else ''}:{update.ref}"


def parse_push_output(out: bytes) -> Iterator[RefResult]:
    for line in out.decode(errors="replace").split("\n"):
        flag, tab, rest = line.partition("\t")
        if tab:
            refs, _, summary = rest.partition("\t")
            yield RefResult(flag, refs.rpartition(":")[2], summary)


def has_moved_nothing(ref_results: Sequence[RefResult]) -> bool:
    """Whether git knows for certain that no ref moved."""
    return bool(ref_results) and not any(
        ref.flag in MOVED_FLAGS or UNKNOWN_RESULT.search(ref.summary) for ref in ref_results
    )


def classify_failure(result: GitResult, ref_results: Sequence[RefResult]) -> Stale | PushRefused | None:
    """Why nothing moved although every ref is at its old value (again); None for a transient failure."""
    rejected = [ref for ref in ref_results if ref.flag == REJECTED_FLAG and not ATOMIC_FAILURE.search(ref.summary)]
    reasons = " ".join(ref.summary for ref in rejected)
    detail = " ".join(extract_remote_messages(result.stderr).split()) or reasons
    refusal = PushRefused(detail[:MAX_MESSAGE_CHARS], find_refused_refs(rejected, ref_results))
    if GITHUB_REFUSAL.search(detail):
        return refusal
    if "[remote rejected]" not in reasons or STALE_REF.search(detail):
        return Stale()
    if TRANSIENT_FAILURE.search(f"{reasons} {detail}") and not PERMANENT_FAILURE.search(detail):
        return None
    return refusal


def find_refused_refs(rejected: Sequence[RefResult], ref_results: Sequence[RefResult]) -> tuple[str, ...]:
    """The refs with a reason of their own. A hook that refuses a whole push names none of several refs: it gives all of
    them the same reason."""
    is_same_for_all = len(rejected) == len(ref_results) > 1 and len({ref.summary for ref in rejected}) == 1
    return () if is_same_for_all else tuple(ref.ref for ref in rejected)


def extract_remote_messages(stderr: str) -> str:
    lines = (line.removeprefix("remote:").strip() for line in stderr.splitlines() if line.startswith("remote:"))
    return "\n".join(filter(None, lines))
