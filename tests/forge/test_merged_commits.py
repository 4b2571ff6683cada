"""The commits that merge a pull request, on a real Gitea: squashed, rebased, signed; and its branch afterwards."""

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mergeyard.adapters.signing import FileSigner
from tests.forge.gitea_admin import BOT, GiteaAdmin
from tests.forge.mergeyard_server import MergeyardServer, a_mergeyard_server
from tests.forge.project import Project
from tests.support.polling import eventually


@pytest.mark.parametrize("method", ["squash", "rebase"])
def test_tested_commit_merges_and_the_pr_keeps_its_head_and_its_changes(
    admin: GiteaAdmin, project: Project, tmp_path: Path, method: str
):
    with a_mergeyard_server(tmp_path, admin, project) as mergeyard:
        mergeyard.enable_webhooks()
        mergeyard.post("updateQueue", mergeMethod=method)
        number = project.open("topic", {"1.txt": "1"})
        head = project.commit("topic", {"2.txt": "1"})
        project.commit("main", {"other.txt": "1"})
        mergeyard.submit(number)
        merged = mergeyard.wait_for_state(number, "merged")
        eventually(lambda: project.pull_request(number)["merged"])
        shown = project.pull_request(number)
        assert project.fetch("main") == merged["mergedSha"] == shown["merge_commit_sha"]
        assert (shown["head"]["sha"], shown["changed_files"]) == (head, 2)
        assert project.changed_files(number) == ["1.txt", "2.txt"]
        parents = project.origin.log("main", "%p")
        assert all(len(line.split()) < 2 for line in parents)


def test_branch_of_a_merged_pr_is_deleted_and_prs_into_it_get_another_base(
    admin: GiteaAdmin, project: Project, tmp_path: Path
):
    with a_mergeyard_server(tmp_path, admin, project) as mergeyard:
        mergeyard.enable_webhooks()
        mergeyard.post("updateQueue", mergeMethod="squash", deleteHeadBranches=True)
        number = project.open("topic", {"1.txt": "1"})
        child = project.open("child", {"2.txt": "1"}, base="topic")
        mergeyard.submit(number)
        mergeyard.wait_for_state(number, "merged")
        eventually(lambda: "refs/heads/topic" not in project.refs(), describe=project.refs)
        shown = project.pull_request(child)
        assert (shown["state"], shown["base"]["ref"]) == ("open", "main")
        assert project.changed_files(number) == ["1.txt"]


def write_key(folder: Path) -> FileSigner:
    file = folder / "signing-key"
    file.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    file.chmod(0o600)
    return FileSigner(file)


def test_signed_commits_merge_into_a_branch_that_requires_signatures(
    admin: GiteaAdmin, project: Project, tmp_path: Path
):
    signer = write_key(tmp_path)
    admin.add_signing_key(BOT, signer)
    admin.verify_signing_key(BOT, signer)
    with a_mergeyard_server(tmp_path, admin, project, tmp_path / "signing-key") as mergeyard:
        mergeyard.enable_webhooks()
        mergeyard.post("updateQueue", mergeMethod="squash")
        number = project.open("topic", {"1.txt": "1"})
        project.request("PATCH", "/branch_protections/main", {"require_signed_commits": True})
        mergeyard.submit(number)
        merged = mergeyard.wait_for_state(number, "merged")
        commit = project.request("GET", f"/git/commits/{merged['mergedSha']}")["commit"]
        assert commit["verification"]["verified"], commit
        assert commit["verification"]["signer"]["username"] == BOT


def test_pr_waits_without_a_test_run_if_gitea_does_not_know_the_signing_key(
    admin: GiteaAdmin, project: Project, tmp_path: Path
):
    """If the key is known and not verified, only a test commit shows it, so the pull request waits after its tests."""
    signer = write_key(tmp_path)
    key = tmp_path / "signing-key"
    with a_mergeyard_server(tmp_path, admin, project, key, require_signed_commits=True) as mergeyard:
        mergeyard.enable_webhooks()
        mergeyard.post("updateQueue", mergeMethod="squash")
        number = project.open("topic", {"1.txt": "1"})
        mergeyard.submit(number)
        wait_for_key_problem(mergeyard, number)
        assert not [ref for ref in project.refs() if ref.startswith("refs/heads/mergeyard/")]
        admin.add_signing_key(BOT, signer)
        mergeyard.wait_for_state(number, "testing", "tests_passed")
        wait_for_key_problem(mergeyard, number)
        admin.verify_signing_key(BOT, signer)
        mergeyard.wait_for_state(number, "merged")


def wait_for_key_problem(mergeyard: MergeyardServer, number: int) -> None:
    def describe() -> dict[str, Any]:
        return mergeyard.submission(number)

    eventually(lambda: describe()["reason"]["code"] == "signing_key_not_accepted", describe=describe)
    assert describe()["state"] == "not_ready"
