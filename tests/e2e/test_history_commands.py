"""`mergeyard verify` and `mergeyard whatif` against a real server: output, exit codes, and the state of the queue."""

import json
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mergeyard.service.provenance import NOTES_REF
from tests.support.api_client import ApiRefused
from tests.support.environment import ServerEnvironment, new_token
from tests.support.polling import eventually
from tests.support.terminal import CommandLine, a_running_environment


@pytest.mark.long
def test_verify_finds_nothing_until_a_forged_landing_is_pushed(tmp_path: Path):
    env = ServerEnvironment.start(tmp_path)
    try:
        env.create_queue()
        terminal = CommandLine(env.server.url, new_token(env.server.config))
        assert terminal.run_ok("verify") == "No merge is recorded yet.\n"
        number = env.open_pr({"a.txt": "1"})
        env.submit(number)
        env.wait_for("merged", number)
        assert terminal.run_ok("verify").endswith("1 merge compared with the target branch: nothing differs.\n")
        (landing,) = terminal.run_json("verify", "--last", "5")["landings"]
        assert (landing["prNumber"], landing["verdict"]) == (number, "as_tested")
        forged = push_forged_landing(1234, env)
        assert f"unrecorded: {forged[:12]} has the trailers of a merge of #1234" in verify_with_mismatches(terminal)
        assert env.api.post("getQueue")["state"] == "PAUSED"
        assert terminal.run_json("queue", "resume")["state"] == "RUNNING"
        assert "unrecorded" in verify_with_mismatches(terminal)
        assert env.api.post("getQueue")["state"] == "RUNNING"
        (complaint,) = env.server.logged_errors()
        assert complaint["kind"] == "unrecorded"
    finally:
        env.close()


@pytest.mark.long
def test_verify_needs_only_a_clone_and_the_public_key(tmp_path: Path):
    env = ServerEnvironment.start(tmp_path)
    try:
        env.server.stop()
        set_signing_key(env, tmp_path / "signing.key")
        env.server.start()
        env.create_queue()
        number = env.open_pr({"a.txt": "1"})
        env.submit(number)
        env.wait_for("merged", number)
        eventually(lambda: env.origin.ref(NOTES_REF))
        terminal = CommandLine("http://127.0.0.1:1", "none")
        key = terminal.run_ok("host", "check", "git.local", "--public-key", "--config", str(env.server.config))
        (tmp_path / "queue.pub").write_text(key)
        clone = str(tmp_path / "clone")
        git("clone", "--quiet", env.origin.url, clone)
        arguments = ("verify", "HEAD", "--repo-path", clone, "--key", str(tmp_path / "queue.pub"))
        assert f"git fetch origin {NOTES_REF}:{NOTES_REF}" in terminal.run_failing(1, *arguments)
        git("-C", clone, "fetch", "--quiet", "origin", f"{NOTES_REF}:{NOTES_REF}")
        assert f"#{number} " in terminal.run_ok(*arguments)
        verified = terminal.run_json(*arguments)
        assert (
            verified["commit"] == verified["statement"]["subject"][0]["digest"]["gitCommit"] == env.origin.tip("main")
        )
        note = env.origin.run("notes", f"--ref={NOTES_REF}", "show", "main")
        assert env.api.post("getProvenance", pr={"number": number})["envelope"] == json.loads(note)
        git("-C", clone, "-c", "user.name=A", "-c", "user.email=a@b", "notes", "--ref", NOTES_REF, "append", "-m", "x")
        assert "hint: This is not what Mergeyard wrote." in terminal.run_failing(5, *arguments)
        assert env.server.logged_errors() == []
    finally:
        env.close()


def set_signing_key(env: ServerEnvironment, path: Path) -> None:
    """The table of the Git host is the last one in the file."""
    key = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    path.touch(mode=0o600)
    path.write_bytes(key)
    with env.server.config.open("a") as config:
        config.write(f'signing_key_file = "{path}"\n')


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)


def push_forged_landing(number: int, env: ServerEnvironment) -> str:
    message = f"Merge pull request #{number}: Planted\n\nMergeyard-Pull-Request: {number}\n"
    committer = env.origin.log("main", "%cn <%ce>")[-1]
    return env.origin.commit("main", {"planted": "1"}, message=message, committer=committer)


def verify_with_mismatches(terminal: CommandLine) -> str:
    answer = terminal.run("verify")
    assert answer.exit_code == 5, answer.output
    return answer.stdout


def merge_two_and_fail_one(env: ServerEnvironment) -> None:
    good = [env.open_pr({"a.txt": "1"}), env.open_pr({"b.txt": "1"})]
    env.submit(*good)
    env.wait_for("merged", *good)
    bad = env.open_pr({"bad": "1"})
    env.submit(bad)
    env.wait_for("failed", bad)


@pytest.mark.long
def test_history_of_a_queue_is_replayed(tmp_path: Path):
    with a_running_environment(tmp_path, concurrency=1) as env:
        terminal = CommandLine(env.server.url, new_token(env.server.config))
        assert "Nothing merged in this period: choose a longer period" in terminal.run_ok("whatif")
        merge_two_and_fail_one(env)
        printed = terminal.run_ok(
            "whatif", "--since", "1d", "--set", "concurrency=4", "--set", "batch=on", "--price", "1"
        )
        assert printed.startswith("3 pull requests since ")
        assert "\nconcurrency 1 → 4\nbatch off → on\n" in printed
        assert "\ncost  " in printed
        assert "Confidence: low\n  Only 2 pull requests merged in this period" in printed
        answered = terminal.run_json("whatif", "--set", "concurrency=4")
        assert (answered["actual"]["merged"], answered["actual"]["failed"]) == (2, 1)
        assert answered["proposed"]["merged"] == 2
        assert answered["changes"] == [{"setting": "concurrency", "now": 1, "proposed": 4}]
        assert env.api.post("getQueue")["concurrency"] == 1


def test_settings_that_cannot_be_replayed_are_refused(tmp_path: Path):
    with a_running_environment(tmp_path) as env:
        terminal = CommandLine(env.server.url, new_token(env.server.config))
        refusal = terminal.run_failing(64, "whatif", "--set", "mergeMethod=squash").replace("│", "")
        assert "mergeMethod is not a setting that can be replayed" in " ".join(refusal.split())
        with pytest.raises(ApiRefused, match="Unknown setting"):
            env.api.post("replayQueue", mergeMethod="squash")
        with pytest.raises(ApiRefused, match="concurrency"):
            env.api.post("replayQueue", concurrency=0)
