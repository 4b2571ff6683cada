"""Verifies the provenance of a merged commit with git and the public key, without a server.

`mergeyard verify COMMIT` imports this module only when it is called: other commands need no cryptography.
"""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import MsgspecError, Struct

from mergeyard.adapters.signing import COMMIT_DATE
from mergeyard.cli import output
from mergeyard.cli.public_keys import PublicKey, decode_base64, read_public_keys
from mergeyard.domain.ids import object_format_of
from mergeyard.domain.states import SATISFIED_CHECK_STATES, RunStatus
from mergeyard.service import provenance
from mergeyard.service.git_names import branch_ref
from mergeyard.service.merge_audit.records import LandingForm

GIT_LOCATION_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE")
MAX_LISTED_CHECKS = 10
FETCH_ADVICE = f"Fetch the notes with: git fetch origin {provenance.NOTES_REF}:{provenance.NOTES_REF}"
TAMPERING_ADVICE = (
    "This is not what Mergeyard wrote. Fetch the notes again with: git fetch origin "
    f"+{provenance.NOTES_REF}:{provenance.NOTES_REF}. If the result is the same, do not rely on the commit, and check "
    f"who can push {provenance.NOTES_REF}."
)
MISSING_ADVICE = "If you know why it is missing, pass --allow-missing."


class NoProvenanceError(Exception):
    """There is nothing to verify. The message says what to do."""


class ProvenanceMismatch(Exception):
    """Something differs from what was signed."""

    def __init__(self, message: str, advice: str = TAMPERING_ADVICE) -> None:
        super().__init__(message)
        self.advice = advice


class Expected(Struct, frozen=True, kw_only=True):
    """What the user knows about the commit. None: the user accepts any. One key serves all queues of a Git host, so a
    commit that passed a queue with fewer checks can be pushed elsewhere, together with its note."""

    signer: str | None = None
    """Whose keys count, in a file of allowed signers."""
    repository: str | None = None
    branch: str | None = None
    allow_missing: bool = False
    """Whether the queue may have left the commit unsigned, or have had no record of its test run."""


ANYTHING = Expected()


class Verified(Struct, frozen=True, kw_only=True, rename="camel"):
    """A commit whose provenance is as it was signed."""

    commit: str
    keyid: str
    commit_keyid: str | None
    """Of the signature of the commit itself; None if it has none, or if the Git host made the commit."""
    statement: provenance.Statement


def verify_commit(folder: Path, revision: str, key_file: Path, expected: Expected = ANYTHING) -> Verified:
    keys = read_public_keys(key_file, expected.signer)
    repository = LocalRepository(folder)
    commit = repository.resolve_commit(revision)
    content = repository.read_commit(commit)
    envelope = decode_envelope(repository.read_note(commit))
    keyid = envelope.signatures[0].keyid
    statement = decode_statement(open_envelope(envelope, keys))
    check_key(keyid, statement, keys)
    check_subject(statement, commit, content)
    check_queue(statement, expected)
    check_run(statement, expected)
    return Verified(
        commit=commit,
        keyid=keyid,
        commit_keyid=check_commit_signature(statement, content, keys, expected),
        statement=statement,
    )


class LocalRepository:
    def __init__(self, folder: Path) -> None:
        """A named folder has precedence over the variables that name the repository in a git hook. Replacements of
        objects, which a clone can have, are not used."""
        ignored = GIT_LOCATION_VARIABLES if folder != Path() else ()
        self._environment = {name: value for name, value in os.environ.items() if name not in ignored}
        self._environment["GIT_NO_REPLACE_OBJECTS"] = "1"
        self._folder = folder

    def resolve_commit(self, revision: str) -> str:
        found = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if found is None:
            raise NoProvenanceError(
                f"Git finds no commit {revision} in {self._folder.absolute()}. "
                "Fetch it, or name a clone that has it with --repo-path."
            )
        return found.decode().strip()

    def read_commit(self, commit: str) -> bytes:
        """git does not compare an object with its name each time it reads it."""
        content = self._git("cat-file", "commit", commit) or b""
        algorithm = object_format_of(commit).name
        name = hashlib.new(algorithm, b"commit %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()
        if name != commit:
            advice = "This clone is damaged. Clone the repository again."
            raise ProvenanceMismatch(f"The contents of commit {commit} do not match its name.", advice)
        return content

    def read_note(self, commit: str) -> bytes:
        blob = self._git("notes", f"--ref={provenance.NOTES_REF}", "list", commit)
        if blob is None:
            raise NoProvenanceError(f"This clone has no provenance for {commit}. {FETCH_ADVICE}")
        size = self._git("cat-file", "-s", blob.decode().strip())
        if size is None or int(size) > provenance.MAX_NOTE_BYTES:
            raise ProvenanceMismatch("The note is too large for provenance.")
        return self._git("cat-file", "blob", blob.decode().strip()) or b""

    def _git(self, *arguments: str) -> bytes | None:
        """None if git fails."""
        try:
            result = subprocess.run(
                ["git", *arguments], cwd=self._folder, env=self._environment, capture_output=True, check=False
            )
        except (FileNotFoundError, NotADirectoryError):
            missing = (
                "Git is not installed: install it."
                if self._folder.is_dir()
                else f"{self._folder} is not a folder: name a clone."
            )
            raise NoProvenanceError(missing) from None
        return None if result.returncode else result.stdout


def decode_envelope(note: bytes) -> provenance.Envelope:
    """Accepts only the bytes that Mergeyard writes, so that each changed byte is noticed, also one without a meaning,
    such as a space."""
    try:
        envelope = provenance.decode_envelope(note)
    except MsgspecError:
        raise ProvenanceMismatch("The note is not a signed statement.") from None
    is_ours = envelope.payload_type == provenance.PAYLOAD_TYPE and len(envelope.signatures) == 1
    if not is_ours or provenance.encode(envelope) != note:
        raise ProvenanceMismatch("The note is not exactly as Mergeyard wrote it.")
    return envelope


def open_envelope(envelope: provenance.Envelope, keys: Sequence[PublicKey]) -> bytes:
    """The payload, after its signature was verified."""
    signed = envelope.signatures[0]
    try:
        payload, signature = decode_base64(envelope.payload), decode_base64(signed.sig)
    except ValueError:
        raise ProvenanceMismatch("The note is not exactly as Mergeyard wrote it.") from None
    key = next((key for key in keys if key.fingerprint == signed.keyid), None)
    if key is None:
        raise ProvenanceMismatch(
            f"The statement names the key {signed.keyid}, which is not in the key file as a key of the queue.",
            "If the key was changed since the merge, pass a file that also has the former public key.",
        )
    if not key.verify(provenance.encode_for_signature(envelope.payload_type, payload), signature):
        raise ProvenanceMismatch(f"The signature of the statement is not valid for the key {signed.keyid}.")
    return payload


def check_key(keyid: str, statement: provenance.Statement, keys: Sequence[PublicKey]) -> None:
    """A file of allowed signers can limit the time of a key."""
    merged_at = statement.predicate.merged_at
    if not any(key.fingerprint == keyid and key.is_valid_at(merged_at) for key in keys):
        moment = output.format_time(merged_at)
        raise ProvenanceMismatch(
            f"The key file does not allow the key {keyid} at the time of the merge, {moment}.",
            "Compare valid-after and valid-before in the key file with this time.",
        )


def decode_statement(payload: bytes) -> provenance.Statement:
    try:
        statement = provenance.decode_statement(payload)
    except MsgspecError:
        statement = None
    expected = (provenance.STATEMENT_TYPE, provenance.PREDICATE_TYPE)
    if statement is None or (statement.type, statement.predicate_type) != expected:
        advice = "Verify it with the version of Mergeyard that wrote it, or a newer one."
        raise ProvenanceMismatch("The statement has a type that this version does not know.", advice)
    return statement


def check_subject(statement: provenance.Statement, commit: str, content: bytes) -> None:
    described = [subject.digest.get("gitCommit") for subject in statement.subject]
    if described != [commit]:
        raise ProvenanceMismatch(f"The statement is about another commit: {', '.join(map(str, described))}.")
    headers = [line.split(b" ", 1) for line in content.partition(b"\n\n")[0].split(b"\n")]
    tree, *parents = (value.decode() for name, value in filter(has_value, headers) if name in (b"tree", b"parent"))
    if statement.predicate.tree != tree:
        raise ProvenanceMismatch(f"The statement names the tree {statement.predicate.tree}, but the commit has {tree}.")
    if list(statement.predicate.parents) != parents:
        named, has = ", ".join(statement.predicate.parents), ", ".join(parents)
        raise ProvenanceMismatch(
            f"The statement names the parents {named or 'none'}, but the commit has {has or 'none'}."
        )


def has_value(header: list[bytes]) -> bool:
    return len(header) == 2


def check_queue(statement: provenance.Statement, expected: Expected) -> None:
    """Ignores the case of the repository, as most Git hosts do."""
    found = statement.predicate
    advice = "Another queue merged this commit. Do not rely on its checks here."
    if expected.repository is not None and found.repository.lower() != expected.repository.lower():
        message = f"The statement is about the repository {found.repository}, not {expected.repository}."
        raise ProvenanceMismatch(message, advice)
    if expected.branch is not None and found.branch not in (expected.branch, branch_ref(expected.branch)):
        raise ProvenanceMismatch(f"The statement is about the branch {found.branch}, not {expected.branch}.", advice)


def check_run(statement: provenance.Statement, expected: Expected) -> None:
    """A run whose record was deleted before the statement was written is not described."""
    run = statement.predicate.test_run
    if run is None:
        if not expected.allow_missing:
            advice = f"The queue had no record of the run any more. {MISSING_ADVICE}"
            raise ProvenanceMismatch("The statement names no test run, so it does not say what passed.", advice)
        return
    failed = [f"{check.name}: {check.state}" for check in run.checks if check.required and not has_passed(check)]
    if failed or run.result != RunStatus.SUCCEEDED:
        results = ", ".join(failed[:MAX_LISTED_CHECKS]) or f"run {run.id}: {run.result}"
        advice = "The statement is as it was signed. Find out why the commit was merged."
        raise ProvenanceMismatch(f"The tests of the commit did not pass: {results}.", advice)


def has_passed(check: provenance.CheckResult) -> bool:
    return check.state in SATISFIED_CHECK_STATES


def check_commit_signature(
    statement: provenance.Statement, content: bytes, keys: Sequence[PublicKey], expected: Expected
) -> str | None:
    """The fingerprint of the key that signed the commit. A commit that the Git host made has the signature of the Git
    host, which these keys cannot verify, or none. The queue signs all others when a statement about them can exist: it
    writes statements only with the same key."""
    unsigned, armor = split_signature(content, object_format_of(statement.predicate.tree).signature_header)
    is_by_host = statement.predicate.landing == LandingForm.PROVIDER_MERGE
    if armor is None:
        if not is_by_host and not expected.allow_missing:
            advice = f"Either another program made the commit, or the queue had no key yet. {MISSING_ADVICE}"
            raise ProvenanceMismatch("The commit itself is not signed, but the queue signs its commits.", advice)
        return None
    date = COMMIT_DATE.match(unsigned)  # at which git verifies it as well
    at = statement.predicate.merged_at if date is None else datetime.fromtimestamp(int(date[1]), UTC)
    signers = [key.fingerprint for key in keys if key.is_valid_at(at) and key.verify_armored(unsigned, armor)]
    if not signers and not is_by_host:
        advice = "If the key was changed before the merge, pass a file that also has the former public key."
        raise ProvenanceMismatch("The commit itself is signed, but with no key of the key file.", advice)
    return next(iter(signers), None)


def split_signature(content: bytes, signature_header: bytes) -> tuple[bytes, str | None]:
    """The commit without its signature, and the signature. The lines of a header after the first begin with a space."""
    head, blank, message = content.partition(b"\n\n")
    kept, signature, in_signature = list[bytes](), list[bytes](), False
    for line in head.split(b"\n"):
        in_signature = (line.startswith(b" ") and in_signature) or line.startswith(signature_header + b" ")
        (signature if in_signature else kept).append(line)
    if not signature:
        return content, None
    lines = (line.removeprefix(signature_header).removeprefix(b" ").decode(errors="replace") for line in signature)
    return b"\n".join(kept) + blank + message, "\n".join(lines) + "\n"


# Output


def show_verified(verified: Verified) -> None:
    output.print_output(
        output.plain_text(f"The provenance of {verified.commit} is valid.", "bold"),
        output.build_facts_table(list_facts(verified)),
    )


def list_facts(verified: Verified) -> dict[str, str | tuple[str, ...] | None]:
    predicate = verified.statement.predicate
    pull_request, run = predicate.pull_request, predicate.test_run
    method = (predicate.merge_method or "unknown method", predicate.landing)
    is_by_host = predicate.landing == LandingForm.PROVIDER_MERGE
    unsigned = "not verified: the Git host made the commit" if is_by_host else "none"
    facts: dict[str, str | tuple[str, ...] | None] = {
        "repository": f"{predicate.repository} ({predicate.branch.removeprefix('refs/heads/')})",
        "merged": f"#{pull_request.number} {pull_request.title}, by {pull_request.author or 'an unknown author'}",
        "head": pull_request.head,
        "merged at": output.format_time(predicate.merged_at),
        "method": ", ".join(method).replace("_", " "),
        "tree": predicate.tree,
        "parents": predicate.parents,
        "submitted": f"by {predicate.submitted_by or 'an unknown user'}{' with --force' if predicate.forced else ''}",
        "rules": tuple(f"{rule.code}: {format_rule(rule)}" for rule in predicate.rules) or "none recorded",
        "test run": "not recorded" if run is None else f"{run.id}: {run.result}",
        "tested": None if run is None else ", ".join(f"#{member.number}" for member in run.stack),
        "checks": None if run is None else format_checks(run),
        "signed with": verified.keyid,
        "commit key": verified.commit_keyid or unsigned,
    }
    return facts


def format_rule(rule: provenance.RuleState) -> str:
    given = "unknown" if rule.given is None else str(rule.given)
    by = f", by {', '.join(rule.given_by)}" if rule.given_by else ""
    return f"{given} of {rule.needed} ({'met' if rule.met else 'not met'}){by}"


def format_checks(run: provenance.TestRun) -> tuple[str, ...]:
    more = (f"and {run.checks_left_out} more, which the statement does not list",) if run.checks_left_out else ()
    return (*map(format_check, run.checks), *more) or ("none",)


def format_check(check: provenance.CheckResult) -> str:
    return f"{check.name}: {check.state}{' (required)' if check.required else ''}"
