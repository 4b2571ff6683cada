"""The image is pinned, small, runs as nobody in particular, and says whether it is well."""

import json
import re
from pathlib import PurePosixPath

import pytest

from mergeyard.settings import Settings
from tests.deploy.files import CHART_TEXT, DOCKERFILE, ROOT, instructions

USER = "10001"
LIFE = [*instructions("ENTRYPOINT"), *instructions("CMD"), *instructions("VOLUME")]


def test_every_stage_starts_from_an_image_of_a_pinned_minor_version():
    stages = [line.partition(" ")[0] for line in instructions("FROM")]
    (python,) = set(re.findall(r"^ARG PYTHON=(\S+)$", DOCKERFILE, re.MULTILINE))
    assert re.fullmatch(r"3\.\d+", python)
    assert stages == ["python:${PYTHON}-slim-bookworm"] * 2


def test_nothing_is_latest_and_nothing_is_added_from_the_net():
    assert ":latest" not in DOCKERFILE
    assert instructions("ADD") == []
    assert re.findall(r"\b(?:curl|wget)\b", DOCKERFILE) == []


def test_it_runs_as_a_user_by_number_so_that_kubernetes_can_tell_it_is_not_root():
    assert instructions("USER") == [f"{USER}:{USER}"]
    assert re.findall(r"(?:runAsUser|runAsGroup|fsGroup): (\d+)", CHART_TEXT) == [USER] * 3


def test_the_last_user_is_set_after_the_last_step_that_needs_root():
    assert DOCKERFILE.rindex("\nUSER ") > DOCKERFILE.rindex("\nRUN ")


@pytest.mark.parametrize("line", LIFE, ids=LIFE)
def test_what_it_runs_is_started_without_a_shell_in_between(line: str):
    assert all(isinstance(word, str) for word in json.loads(line))


def test_a_signal_ends_it_politely():
    assert instructions("STOPSIGNAL") == ["SIGTERM"]


def test_packages_come_alone_and_their_lists_are_not_left_behind():
    (step,) = [step for step in instructions("RUN") if "apt-get" in step]
    assert "apt-get install --yes --no-install-recommends git " in step
    assert "rm -rf /var/lib/apt/lists/*" in step


def test_python_packages_come_from_the_lock_with_hashes_and_leave_no_cache():
    (step,) = [step for step in instructions("RUN") if "pip install" in step]
    assert {"--no-cache-dir", "--require-hashes", "--only-binary"} <= set(step.split())
    assert "requirements/run.txt /tmp/run.txt" in instructions("COPY")
    assert "--requirement /tmp/run.txt" in step


def test_the_health_check_asks_the_port_that_the_server_listens_on():
    (check,) = instructions("HEALTHCHECK")
    _, _, script = json.loads(check.partition("CMD ")[2])
    compile(script, "health check", "exec")
    assert '{os.environ["MERGEYARD_PORT"]}/healthz' in script
    assert instructions("EXPOSE") == [str(Settings().port)]
    assert f"MERGEYARD_PORT={Settings().port} " in DOCKERFILE


def test_the_data_directory_is_a_volume_that_the_user_owns():
    (volume,) = json.loads(instructions("VOLUME")[0])
    assert f"MERGEYARD_DATA_DIR={volume}" in DOCKERFILE
    assert f"install --directory --owner {USER} --group {USER} --mode 700 {volume}" in DOCKERFILE


def test_whatever_is_copied_is_there_and_let_through():
    let_through = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copied = [line.split()[-2] for line in instructions("COPY") if "--from" not in line]
    assert sorted(copied) == sorted(let_through)
    assert [path for path in copied if not (ROOT / path).exists()] == []


def test_the_command_is_put_on_the_path():
    (entry,) = json.loads(instructions("ENTRYPOINT")[0])
    targets = [PurePosixPath(line.split()[-1]) for line in instructions("COPY")]
    assert PurePosixPath(f"/opt/mergeyard/bin/{entry}") in targets
    assert "PATH=/opt/mergeyard/bin:$PATH" in DOCKERFILE
