"""The notes with the provenance of merges, on a real Gitea."""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mergeyard.adapters.signing import FileSigner
from mergeyard.cli.provenance import verify_commit
from mergeyard.service.provenance import NOTES_REF
from tests.forge.gitea_admin import GiteaAdmin
from tests.forge.mergeyard_server import a_mergeyard_server
from tests.forge.project import Project
from tests.support.polling import eventually


def test_every_merge_has_its_statement_and_the_next_one_keeps_it(admin: GiteaAdmin, project: Project, tmp_path: Path):
    key, public_key = tmp_path / "signing-key", tmp_path / "queue.pub"
    key.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    key.chmod(0o600)
    public_key.write_text(FileSigner(key).public_key)
    with a_mergeyard_server(tmp_path, admin, project, key) as mergeyard:
        mergeyard.enable_webhooks()
        mergeyard.post("updateQueue", mergeMethod="squash")
        merged, notes = list[str](), project.refs().get(NOTES_REF)
        for number in (project.open("one", {"1.txt": "1"}), project.open("two", {"2.txt": "1"})):
            mergeyard.submit(number)
            merged.append(mergeyard.wait_for_state(number, "merged")["mergedSha"])
            before = notes
            notes = eventually(lambda before=before: {project.refs().get(NOTES_REF)} - {before, None}).pop()
        project.fetch("main")
        project.fetch(NOTES_REF)
        for commit in merged:
            verified = verify_commit(project.origin.path, commit, public_key)
            assert verified.commit_keyid == verified.keyid
            assert verified.statement.predicate.pull_request.url is not None
