"""`mergeyard verify COMMIT`: what is accepted, and that every changed byte is noticed."""

import json
import shutil
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from msgspec.structs import replace
from typer.testing import CliRunner

from mergeyard.adapters.signing import SshKey, parse_signing_key
from mergeyard.cli import app, provenance
from mergeyard.cli.output import ExitCode
from mergeyard.cli.provenance import Expected, NoProvenanceError, ProvenanceMismatch, verify_commit
from mergeyard.cli.public_keys import KeyFileError, read_public_keys
from mergeyard.domain.config import LandingMethod
from mergeyard.domain.ids import SHA1, QueueKey, Repo, Sha
from mergeyard.domain.pull_requests import Requirement
from mergeyard.domain.runs import Run
from mergeyard.domain.states import CheckState, Reason, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.git import Commit, Signature, Signer
from mergeyard.service.merge_audit.records import RecordedMerge
from mergeyard.service.provenance import (
    MAX_NOTE_BYTES,
    NOTES_REF,
    Merge,
    build_statement,
    decode_envelope,
    encode,
    encode_for_signature,
    sign_statement,
)
from tests.support.builders import a_run, a_submission
from tests.support.openpgp import to_pgp_file
from tests.support.repositories import Origin

KEY, OTHER_KEY = (SshKey(Ed25519PrivateKey.from_private_bytes(bytes((number,)) * 32)) for number in (1, 2))
PGP_KEY = parse_signing_key(to_pgp_file(Ed25519PrivateKey.from_private_bytes(bytes(32))).encode())
PASSED_RUN = replace(
    a_run(1), status=RunStatus.SUCCEEDED, required_statuses=("unit",), checks={"unit": CheckState.PASSED}
)
WHEN = Signature("Ada", "ada@example.org", "1700000000 +0000")


class Clone:
    """A repository with a merged commit and its note."""

    def __init__(self, folder: Path) -> None:
        self.origin = Origin.create(folder / "clone.git")
        self.commit = self.origin.commit("main", {"a": "1"})
        self.commit = self.origin.commit("main", {"b": "2"})
        self.write_commit(KEY)
        self.key_file = folder / "queue.pub"
        self.key_file.write_text(f"{KEY.public_key} queue@example.org\n")

    def write_commit(self, signer: Signer | None, at: int = 1_700_000_000) -> None:
        """Another commit on main, signed like git does."""
        by = f"A <a@b> {at} +0000"
        header = f"tree {self.origin.tree('main')}\nparent {self.commit}\nauthor {by}\ncommitter {by}"
        signature = ""
        if signer is not None:
            armor = signer.sign(f"{header}\n\nMerge\n".encode(), "git").rstrip("\n")
            signature = "\ngpgsig " + armor.replace("\n", "\n ")
        content = f"{header}{signature}\n\nMerge\n".encode()
        self.commit = Sha(
            self.origin.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=content).decode().strip()
        )
        self.origin.set_ref("main", self.commit)

    def build_merge(self, commit: str | None = None, landing: LandingMethod = LandingMethod.TESTED_COMMIT) -> Merge:
        shown = self.origin.run("log", "-1", "--format=%T %P", commit or self.commit).decode().split()
        return Merge(
            key=QueueKey(Repo("git.local", "acme", "app"), "main"),
            record=RecordedMerge(
                submission=replace(a_submission(1), reason=Reason.MERGED_BY_QUEUE),
                run=replace(PASSED_RUN, landing_method=landing),
            ),
            commit=Commit(
                sha=Sha(commit or self.commit),
                parents=tuple(map(Sha, shown[1:])),
                tree=Sha(shown[0]),
                author=WHEN,
                committer=WHEN,
                message="Merge",
            ),
            url=None,
            submitted_by="ada",
            merged_at=Instant(1_700_000_000_000),
        )

    def attest(self, merge: Merge | None = None, signer: Signer = KEY) -> bytes:
        note = sign_statement(build_statement(merge or self.build_merge()), signer)
        self.write_note(note)
        return note

    def write_note(self, note: bytes) -> None:
        blob = self.origin.blob(note)
        self.origin.run("notes", f"--ref={NOTES_REF}", "add", "-f", "-C", blob, self.commit)

    def attest_run(self, run: Run) -> None:
        merge = self.build_merge()
        self.attest(replace(merge, record=replace(merge.record, run=run)))

    def verify(self, revision: str = "main", **expected: Any) -> provenance.Verified:
        return verify_commit(self.origin.path, revision, self.key_file, Expected(**expected))


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_a_statement_as_signed_is_valid(clone: Clone):
    clone.attest()
    verified = clone.verify()
    assert (verified.commit, verified.keyid) == (clone.commit, KEY.fingerprint)
    assert verified.statement == build_statement(clone.build_merge())


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1(), None])
def test_other_kinds_of_keys(clone: Clone, curve: ec.EllipticCurve | None):
    signer = SshKey(ec.generate_private_key(curve) if curve else rsa.generate_private_key(65537, 2048))
    clone.key_file.write_text(signer.public_key)
    clone.write_commit(signer)
    clone.attest(signer=signer)
    assert clone.verify().commit_keyid == signer.fingerprint


@pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")
def test_an_openpgp_key(clone: Clone):
    with TemporaryDirectory(prefix="gpg-") as home:  # the path of its socket must be short
        command = ["gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback"]
        subprocess.run([*command, "--quick-generate-key", "queue", "ed25519", "sign"], check=True, capture_output=True)
        exported = subprocess.run([*command, "--armor", "--export-secret-keys"], check=True, capture_output=True).stdout
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False, capture_output=True)
    signer = parse_signing_key(exported)
    clone.key_file.write_text(f"The key of the queue:\n{signer.public_key}")
    clone.write_commit(signer)
    note = clone.attest(signer=signer)
    assert clone.verify().commit_keyid == signer.fingerprint
    envelope = decode_envelope(note)
    changed = b64encode(b64decode(envelope.payload).replace(b'"merged_by_queue"', b'"merged_directly"')).decode()
    clone.write_note(encode(replace(envelope, payload=changed)))
    with pytest.raises(ProvenanceMismatch, match="signature of the statement is not valid"):
        clone.verify()


@pytest.mark.parametrize("signer", [KEY, PGP_KEY], ids=["ssh", "openpgp"])
def test_every_changed_byte_of_the_note_is_noticed(clone: Clone, signer: Signer):
    """Of the payload, the signature, the name of the key, and everything between them; without git for each byte."""
    clone.key_file.write_text(signer.public_key)
    note, keys = clone.attest(signer=signer), read_public_keys(clone.key_file)
    content = clone.origin.run("cat-file", "commit", clone.commit)
    accepted = list[int]()
    for at in range(len(note)):
        try:
            payload = provenance.open_envelope(provenance.decode_envelope(flip(note, at)), keys)
            provenance.check_subject(provenance.decode_statement(payload), clone.commit, content)
            accepted.append(at)
        except ProvenanceMismatch:
            continue
    assert accepted == []
    assert len(note) > 1000


@pytest.mark.parametrize("added", [b"\n", b" ", b"{}"])
def test_bytes_after_the_statement_are_noticed(clone: Clone, added: bytes):
    clone.write_note(clone.attest() + added)
    with pytest.raises(ProvenanceMismatch):
        clone.verify()


def test_another_encoding_of_the_same_signature_is_noticed(clone: Clone):
    """The last digit of Base64 has bits without a meaning."""
    envelope = decode_envelope(clone.attest())
    (signed,) = envelope.signatures
    assert signed.sig.endswith("==")
    for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZ":
        sig = f"{signed.sig[:-3]}{last}=="
        if sig != signed.sig:
            with pytest.raises(ProvenanceMismatch):
                provenance.open_envelope(
                    replace(envelope, signatures=(replace(signed, sig=sig),)),
                    read_public_keys(clone.key_file),
                )


def test_the_payload_type_is_signed(clone: Clone):
    envelope = decode_envelope(clone.attest())
    with pytest.raises(ProvenanceMismatch, match="signature of the statement is not valid"):
        provenance.open_envelope(replace(envelope, payload_type="text/plain"), read_public_keys(clone.key_file))


def test_a_signed_payload_of_another_type_is_not_accepted(clone: Clone):
    envelope = decode_envelope(clone.attest())
    signed = KEY.sign_bytes(encode_for_signature("text/plain", b64decode(envelope.payload)), 0)[1]
    signature = replace(envelope.signatures[0], sig=b64encode(signed).decode())
    clone.write_note(encode(replace(envelope, payload_type="text/plain", signatures=(signature,))))
    with pytest.raises(ProvenanceMismatch, match="not exactly as Mergeyard wrote it"):
        clone.verify()


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()])
def test_the_other_valid_form_of_an_ecdsa_signature_is_noticed(clone: Clone, curve: ec.EllipticCurve):
    """With (r, s), also (r, n - s) is valid. Everyone can compute it."""
    signer = SshKey(ec.generate_private_key(curve))
    clone.key_file.write_text(signer.public_key)
    clone.write_commit(signer)
    envelope = decode_envelope(clone.attest(signer=signer))
    assert clone.verify().keyid == signer.fingerprint
    r, s = decode_dss_signature(b64decode(envelope.signatures[0].sig))
    other = b64encode(encode_dss_signature(r, curve.group_order - s)).decode()
    clone.write_note(encode(replace(envelope, signatures=(replace(envelope.signatures[0], sig=other),))))
    with pytest.raises(ProvenanceMismatch, match="signature of the statement is not valid"):
        clone.verify()
    signed = (decode_dss_signature(signer.sign_bytes(bytes((number,)), 0)[1]) for number in range(20))
    assert all(s <= curve.group_order // 2 for _, s in signed)


def test_a_statement_by_another_key_is_not_accepted(clone: Clone):
    clone.attest(signer=OTHER_KEY)
    with pytest.raises(ProvenanceMismatch, match=r"names the key SHA256:.* not in the key file") as caught:
        clone.verify()
    assert "former public key" in caught.value.advice


def test_another_key_that_names_itself_ours_is_not_accepted(clone: Clone):
    envelope = decode_envelope(clone.attest(signer=OTHER_KEY))
    forged = replace(envelope, signatures=(replace(envelope.signatures[0], keyid=KEY.fingerprint),))
    clone.write_note(encode(forged))
    with pytest.raises(ProvenanceMismatch, match="signature of the statement is not valid"):
        clone.verify()


def test_the_statement_of_another_commit_is_not_accepted(clone: Clone):
    clone.attest(clone.build_merge(clone.origin.run("rev-parse", "main^").decode().strip()))
    with pytest.raises(ProvenanceMismatch, match="about another commit"):
        clone.verify()


def test_another_tree_or_parent_than_signed_is_named(clone: Clone):
    merge = clone.build_merge()
    clone.attest(replace(merge, commit=replace(merge.commit, tree=Sha("1" * 40))))
    with pytest.raises(ProvenanceMismatch, match=f"tree {'1' * 40}, but the commit has {merge.commit.tree}"):
        clone.verify()
    clone.attest(replace(merge, commit=replace(merge.commit, parents=(Sha("2" * 40),))))
    with pytest.raises(ProvenanceMismatch, match=f"parents {'2' * 40}, but the commit has {merge.commit.parents[0]}"):
        clone.verify()


def test_the_signature_of_the_commit_is_by_the_same_key(clone: Clone):
    clone.write_commit(KEY)
    clone.attest()
    assert clone.verify().commit_keyid == KEY.fingerprint


def test_a_commit_signed_by_another_key_is_not_accepted(clone: Clone):
    clone.write_commit(OTHER_KEY)
    clone.attest()
    with pytest.raises(ProvenanceMismatch, match="with no key of the key file"):
        clone.verify()
    clone.key_file.write_text(f"{KEY.public_key}\n{OTHER_KEY.public_key}\n")
    assert clone.verify().commit_keyid == OTHER_KEY.fingerprint


def test_an_unsigned_commit_is_accepted_only_by_an_option(clone: Clone):
    """A user's commit with the same files and parents, on a test branch that the queue used again."""
    clone.write_commit(None)
    clone.attest()
    with pytest.raises(ProvenanceMismatch, match="not signed, but the queue signs") as caught:
        clone.verify()
    assert "pass --allow-missing" in caught.value.advice
    assert clone.verify(allow_missing=True).commit_keyid is None
    clone.write_commit(None)
    clone.attest(clone.build_merge(landing=LandingMethod.PROVIDER_MERGE))
    assert clone.verify().commit_keyid is None


def test_every_changed_byte_of_a_signed_commit_is_noticed(clone: Clone):
    """Also without the name of the commit, which is a hash of these bytes."""
    clone.write_commit(KEY)
    (key,) = read_public_keys(clone.key_file)
    content, armor = provenance.split_signature(
        clone.origin.run("cat-file", "commit", clone.commit), SHA1.signature_header
    )
    assert armor is not None
    assert key.verify_armored(content, armor)
    assert not any(key.verify_armored(flip(content, at), armor) for at in range(len(content)))
    digits = [at for at, character in enumerate(armor) if character != "\n"]
    assert not any(key.verify_armored(content, flip(armor.encode(), at).decode()) for at in digits)


def flip(content: bytes, at: int) -> bytes:
    return content[:at] + bytes((content[at] ^ 1,)) + content[at + 1 :]


def test_the_git_host_signs_what_it_merges_itself(clone: Clone):
    """On plain Git, the queue does."""
    clone.write_commit(OTHER_KEY)
    clone.attest(clone.build_merge(landing=LandingMethod.PROVIDER_MERGE))
    assert clone.verify().commit_keyid is None
    clone.write_commit(KEY)
    clone.attest(clone.build_merge(landing=LandingMethod.PROVIDER_MERGE))
    assert clone.verify().commit_keyid == KEY.fingerprint


def test_a_commit_whose_contents_do_not_match_its_name_is_noticed(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """git compares them only for some of the files in which it keeps objects."""
    clone.attest()
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    real = shutil.which("git")
    change = f"{real} \"$@\" | sed 's/^Merge/Other/'"
    git.write_text(f'#!/bin/sh\ncase "$*" in "cat-file commit"*) {change};; *) exec {real} "$@";; esac\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(git.parent), prepend=":")
    with pytest.raises(ProvenanceMismatch, match="do not match its name"):
        clone.verify()


def test_a_replaced_commit_is_not_taken_for_the_merged_one(clone: Clone):
    clone.attest()
    clone.origin.run("replace", clone.commit, clone.origin.run("rev-parse", "main^").decode().strip())
    assert clone.verify(clone.commit).commit == clone.commit


def test_a_clone_without_the_note_says_how_to_fetch_it(clone: Clone):
    with pytest.raises(NoProvenanceError, match=f"git fetch origin {NOTES_REF}:{NOTES_REF}"):
        clone.verify()


def test_an_unknown_commit_or_folder_is_named(clone: Clone, tmp_path: Path):
    with pytest.raises(NoProvenanceError, match="finds no commit nowhere"):
        clone.verify("nowhere")
    with pytest.raises(NoProvenanceError, match="none is not a folder"):
        verify_commit(tmp_path / "none", "main", clone.key_file)
    with pytest.raises(NoProvenanceError, match="is not a folder"):
        verify_commit(clone.key_file, "main", clone.key_file)


@pytest.mark.parametrize(
    "text",
    [
        KEY.public_key,
        f"{KEY.public_key} queue\n",
        f"  {KEY.public_key} ssh-ed25519 {OTHER_KEY.public_key}\r\n",
        f"{OTHER_KEY.public_key}\n{KEY.public_key}",
        f"# the key of the queue\n\nqueue {KEY.public_key} the queue\n",
        f"queue {OTHER_KEY.public_key} the former one\nqueue {KEY.public_key}",
        f'"queue" NAMESPACES="git,file",valid-after="20231114Z",valid-before="202311142214Z" {KEY.public_key}',
    ],
    ids=["key", "comment", "spaces", "two", "allowed-signers", "former", "options"],
)
def test_key_files(clone: Clone, text: str):
    clone.attest()
    clone.key_file.write_text(text)
    assert clone.verify().keyid == KEY.fingerprint


def test_only_keys_of_the_queue_count(clone: Clone):
    """A file of allowed signers has the keys of the developers, too, who can push notes."""
    clone.key_file.write_text(f"ada,bob {OTHER_KEY.public_key}\nmergeyard {KEY.public_key}\n")
    clone.write_commit(OTHER_KEY)
    clone.attest(signer=OTHER_KEY)
    with pytest.raises(KeyFileError, match=r"several signers.* --signer.*: ada, bob, mergeyard\."):
        clone.verify()
    with pytest.raises(ProvenanceMismatch, match="not in the key file as a key of the queue"):
        clone.verify(signer="mergeyard")
    with pytest.raises(KeyFileError, match="no public key of eve"):
        clone.verify(signer="eve")
    assert clone.verify(signer="bob").keyid == OTHER_KEY.fingerprint
    clone.key_file.write_text(f"{OTHER_KEY.public_key}\nmergeyard {KEY.public_key}\n")
    with pytest.raises(KeyFileError, match="several signers"):
        clone.verify()


@pytest.mark.parametrize(
    "line",
    [
        "  # removed {}",
        "queue cert-authority {}",
        'queue namespaces="file" {}',
        'queue namespaces="git,!g*" {}',
        'queue valid-before="yesterday" {}',
        'queue valid-before="20201301" {}',
        'queue valid-before="99991231",valid-before="20200101Z" {}',
        "queue valid-before=20991231 {}",
        "queue no-touch-required {}",
        "queue # {}",
    ],
)
def test_lines_that_git_does_not_use_are_not_used(clone: Clone, line: str):
    clone.attest()
    clone.key_file.write_text(f"{line.format(KEY.public_key)}\nqueue {OTHER_KEY.public_key}\n")
    with pytest.raises(ProvenanceMismatch, match="not in the key file"):
        clone.verify()


@pytest.mark.parametrize(
    "option",
    [
        'valid-before="20200101"',
        'valid-before="20231114221319Z"',
        'valid-after="202311142214Z"',
        'valid-after="20240101"',
    ],
)
def test_a_key_counts_only_at_its_time(clone: Clone, option: str):
    """The commit was merged at 2023-11-14 22:13:20 UTC."""
    clone.attest()
    clone.key_file.write_text(f"queue {option} {KEY.public_key}\n")
    with pytest.raises(ProvenanceMismatch, match=r"does not allow the key SHA256:.* at the time of the merge"):
        clone.verify()
    clone.key_file.write_text(f"queue {option} {KEY.public_key}\nqueue {KEY.public_key}\n")
    assert clone.verify().keyid == KEY.fingerprint


def test_the_commit_counts_at_its_own_date(clone: Clone):
    """As for git: the key can change between the test and the merge."""
    clone.write_commit(OTHER_KEY, at=1)
    clone.attest()
    clone.key_file.write_text(f'queue valid-before="19700102" {OTHER_KEY.public_key}\nqueue {KEY.public_key}\n')
    assert clone.verify().commit_keyid == OTHER_KEY.fingerprint
    clone.key_file.write_text(f'queue valid-after="20000101" {OTHER_KEY.public_key}\nqueue {KEY.public_key}\n')
    with pytest.raises(ProvenanceMismatch, match="with no key of the key file"):
        clone.verify()


def test_a_large_key_file_is_refused(clone: Clone):
    clone.key_file.write_text(f"{KEY.public_key}\n" + "#" * 1024 * 1024)
    with pytest.raises(KeyFileError, match="has more than 1048576 bytes"):
        clone.verify()


def test_another_repository_or_branch_is_not_accepted(clone: Clone):
    clone.attest()
    for repository, branch in (("git.local/acme/app", "main"), ("git.local/Acme/App", "refs/heads/main")):
        assert clone.verify(repository=repository, branch=branch).commit == clone.commit
    with pytest.raises(
        ProvenanceMismatch, match=r"repository git\.local/acme/app, not git\.local/acme/other"
    ) as caught:
        clone.verify(repository="git.local/acme/other")
    assert "Another queue merged this commit" in caught.value.advice
    with pytest.raises(ProvenanceMismatch, match="branch refs/heads/main, not release"):
        clone.verify(branch="release")


@pytest.mark.parametrize("state", [CheckState.FAILED, CheckState.PENDING, None])
def test_a_required_check_that_did_not_pass_is_named(clone: Clone, state: CheckState | None):
    clone.attest_run(replace(PASSED_RUN, checks={} if state is None else {"unit": state}))
    with pytest.raises(ProvenanceMismatch, match=f"did not pass: unit: {state or 'missing'}") as caught:
        clone.verify()
    assert "why the commit was merged" in caught.value.advice


def test_a_run_that_did_not_pass_is_named(clone: Clone):
    clone.attest_run(replace(PASSED_RUN, status=RunStatus.FAILED))
    with pytest.raises(ProvenanceMismatch, match=f"did not pass: run {PASSED_RUN.id}: failed"):
        clone.verify()


def test_a_statement_without_a_test_run_is_accepted_only_by_an_option(clone: Clone):
    merge = clone.build_merge()
    clone.attest(replace(merge, record=replace(merge.record, run=None)))
    with pytest.raises(ProvenanceMismatch, match="names no test run") as caught:
        clone.verify()
    assert "pass --allow-missing" in caught.value.advice
    assert clone.verify(allow_missing=True).statement.predicate.test_run is None
    assert run_verify(clone, "main", "--key", str(clone.key_file))[0] == 5
    assert "not recorded" in run_verify(clone, "main", "--key", str(clone.key_file), "--allow-missing")[1]


def test_a_statement_of_another_type_is_not_accepted(clone: Clone):
    statement = build_statement(clone.build_merge())
    for changed in (replace(statement, predicate_type="urn:other"), replace(statement, type="other")):
        clone.write_note(sign_statement(changed, KEY))
        with pytest.raises(ProvenanceMismatch, match="a type that this version does not know") as caught:
            clone.verify()
        assert "the version of Mergeyard that wrote it" in caught.value.advice
    with pytest.raises(ProvenanceMismatch, match="a type that this version does not know"):
        provenance.decode_statement(b"{}")


def test_a_note_that_is_too_large_is_not_read(clone: Clone):
    clone.write_note(b"x" * (MAX_NOTE_BYTES + 1))
    with pytest.raises(ProvenanceMismatch, match="too large"):
        clone.verify()


def test_other_checks_can_have_any_result(clone: Clone):
    checks = {"unit": CheckState.NEUTRAL, "lint": CheckState.FAILED}
    clone.attest_run(replace(PASSED_RUN, checks=checks))
    assert clone.verify().commit == clone.commit


@pytest.mark.parametrize(
    "text", ["", "nothing", f"# {KEY.public_key}", "ssh-ed25519 AAAA"], ids=["empty", "text", "comment", "damaged"]
)
def test_a_file_without_a_usable_key_is_refused(clone: Clone, text: str):
    clone.attest()
    clone.key_file.write_text(text)
    with pytest.raises(KeyFileError):
        clone.verify()


def run_verify(clone: Clone, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["verify", *arguments, "--repo-path", str(clone.origin.path)])
    return result.exit_code, result.output


def test_the_command_prints_what_is_attested(clone: Clone):
    merge = clone.build_merge()
    rule = Requirement(reason=Reason.WAITING_FOR_REVIEW, needed=2, given=2, given_by=("@ada", "@bob"))
    pull_request = replace(merge.record.submission.pull_request, requirements=(rule,), author="ada", title="Fix it")
    submission = replace(merge.record.submission, pull_request=pull_request)
    clone.attest(replace(merge, record=replace(merge.record, submission=submission)))
    code, printed = run_verify(clone, "main", "--key", str(clone.key_file))
    assert code == ExitCode.SUCCESS
    facts = dict(
        line.strip().split("  ", 1) for line in printed.splitlines()[1:] if line.startswith("  ") and line[2] != " "
    )
    assert printed.startswith(f"The provenance of {clone.commit} is valid.\n")
    assert facts["merged"].strip() == "#1 Fix it, by ada"
    assert facts["rules"].strip().endswith(": 2 of 2 (met), by @ada, @bob")
    assert facts["submitted"].strip() == "by ada"
    assert facts["signed with"].strip() == KEY.fingerprint


def test_the_command_prints_json(clone: Clone):
    clone.attest()
    code, printed = run_verify(clone, "main", "--key", str(clone.key_file), "--json")
    verified = json.loads(printed)
    assert (code, verified["commit"]) == (ExitCode.SUCCESS, clone.commit)
    assert verified["statement"]["predicate"]["pullRequest"]["number"] == 1


def test_a_mismatch_has_its_own_exit_code_and_advice(clone: Clone):
    note = clone.attest()
    clone.write_note(note.replace(b'"sig":"', b'"sig":"A', 1))
    code, printed = run_verify(clone, "main", "--key", str(clone.key_file))
    assert code == ExitCode.MERGE_MISMATCH
    assert "error: " in printed
    assert "hint: This is not what Mergeyard wrote." in printed


def test_the_options_say_which_queue_must_have_merged(clone: Clone):
    clone.attest()
    clone.key_file.write_text(f"ada {OTHER_KEY.public_key}\nqueue {KEY.public_key}\n")
    options = ("main", "--key", str(clone.key_file), "--signer")
    assert run_verify(clone, *options, "queue", "--queue", "git.local/acme/app:main")[0] == ExitCode.SUCCESS
    assert run_verify(clone, *options, "ada")[0] == ExitCode.MERGE_MISMATCH
    for option, value in (("--repo", "git.local/acme/other"), ("--branch", "release")):
        code, printed = run_verify(clone, *options, "queue", option, value)
        assert (code, value in printed) == (ExitCode.MERGE_MISMATCH, True)


@pytest.mark.long
def test_checks_that_the_statement_does_not_list_are_counted(clone: Clone):
    names = {f"{at:04}": CheckState.PASSED for at in range(1200)}
    clone.attest_run(replace(PASSED_RUN, checks={**PASSED_RUN.checks, **names}))
    code, printed = run_verify(clone, "main", "--key", str(clone.key_file))
    assert (code, "and 201 more, which the statement does not list" in printed) == (ExitCode.SUCCESS, True)


def test_wrong_usage_is_refused(clone: Clone):
    clone.attest()
    assert run_verify(clone, "--signer", "queue")[0] == ExitCode.USAGE_ERROR
    assert run_verify(clone, "main")[0] == ExitCode.USAGE_ERROR
    assert run_verify(clone, "--key", str(clone.key_file))[0] == ExitCode.USAGE_ERROR
    assert run_verify(clone, "main", "--key", "none.pub")[0] == ExitCode.USAGE_ERROR
    assert run_verify(clone, "nowhere", "--key", str(clone.key_file))[0] == ExitCode.FAILED


def test_the_envelope_is_the_documented_one(clone: Clone):
    """DSSE and in-toto name these members."""
    envelope = json.loads(clone.attest())
    assert list(envelope) == ["payloadType", "payload", "signatures"]
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert list(envelope["signatures"][0]) == ["keyid", "sig"]
    statement = json.loads(b64decode(envelope["payload"]))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"] == [{"name": "git.local/acme/app", "digest": {"gitCommit": clone.commit}}]
    assert list(statement) == ["_type", "subject", "predicateType", "predicate"]


def test_the_signature_is_over_the_documented_bytes():
    """The example of the DSSE specification."""
    encoded = encode_for_signature("http://example.com/HelloWorld", b"hello world")
    assert encoded == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
