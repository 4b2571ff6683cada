"""The image is pinned and small, runs as an unprivileged user, and has a health check."""

import json
import re
from pathlib import PurePosixPath

import pytest

from mergeyard.settings import Settings
from tests.deploy.files import CHART_TEXT, DOCKERFILE, ROOT, instructions

USER = "10001"
EXEC_FORM_LINES = [*instructions("ENTRYPOINT"), *instructions("CMD"), *instructions("VOLUME")]


def test_every_stage_starts_from_an_image_of_a_pinned_minor_version():
    stages = [line.partition(" ")[0] for line in instructions("FROM")]
    (python,) = set(re.findall(r"^ARG PYTHON=(\S+)$", DOCKERFILE, re.MULTILINE))
    assert re.fullmatch(r"3\.\d+", python)
    assert stages == ["${BASE}"] * 2
    assert "\nARG BASE=python:${PYTHON}-slim-bookworm\n" in DOCKERFILE


def test_nothing_is_latest_and_nothing_is_downloaded():
    assert ":latest" not in DOCKERFILE
    assert instructions("ADD") == []
    assert re.findall(r"\b(?:curl|wget)\b", DOCKERFILE) == []


def test_user_is_numeric_so_that_kubernetes_can_verify_it_is_not_root():
    assert instructions("USER") == [f"{USER}:{USER}"]
    assert re.findall(r"(?:runAsUser|runAsGroup|fsGroup): (\d+)", CHART_TEXT) == [USER] * 3


def test_user_is_set_after_the_last_step_that_needs_root():
    assert DOCKERFILE.rindex("\nUSER ") > DOCKERFILE.rindex("\nRUN ")


@pytest.mark.parametrize("line", EXEC_FORM_LINES, ids=EXEC_FORM_LINES)
def test_commands_run_without_a_shell(line: str):
    assert all(isinstance(word, str) for word in json.loads(line))


def test_container_is_stopped_with_sigterm():
    assert instructions("STOPSIGNAL") == ["SIGTERM"]


def test_system_packages_are_installed_without_recommendations_and_lists_are_removed():
    (step,) = [step for step in instructions("RUN") if "apt-get" in step]
    assert "apt-get install --yes --no-install-recommends ca-certificates git " in step
    assert "rm -rf /var/lib/apt/lists/*" in step


def test_python_packages_are_installed_from_the_lock_without_cache():
    (step,) = [step for step in instructions("RUN") if "pip install" in step]
    assert {"--no-cache-dir", "--require-hashes", "--only-binary"} <= set(step.split())
    assert "requirements/run.txt /tmp/run.txt" in instructions("COPY")
    assert "--requirement /tmp/run.txt" in step


def test_health_check_uses_the_port_of_the_server():
    (check,) = instructions("HEALTHCHECK")
    _, _, script = json.loads(check.partition("CMD ")[2])
    compile(script, "health check", "exec")
    assert '{os.environ["MERGEYARD_PORT"]}/healthz' in script
    assert instructions("EXPOSE") == [str(Settings().port)]
    assert f"MERGEYARD_PORT={Settings().port} " in DOCKERFILE


def test_data_directory_is_a_volume_owned_by_the_user_and_also_the_place_of_the_settings():
    (volume,) = json.loads(instructions("VOLUME")[0])
    assert instructions("WORKDIR") == [volume]
    assert f"MERGEYARD_DATA_DIR={volume}" in DOCKERFILE
    assert f"install --directory --owner {USER} --group {USER} --mode 700 {volume}" in DOCKERFILE


def test_copied_files_exist_and_are_not_ignored():
    not_ignored = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copied = [line.split()[-2] for line in instructions("COPY") if "--from" not in line]
    assert sorted(copied) == sorted(not_ignored)
    assert [path for path in copied if not (ROOT / path).exists()] == []


def test_command_is_on_the_path():
    (entry,) = json.loads(instructions("ENTRYPOINT")[0])
    targets = [PurePosixPath(line.split()[-1]) for line in instructions("COPY")]
    assert PurePosixPath(f"/opt/mergeyard/bin/{entry}") in targets
    assert "PATH=/opt/mergeyard/bin:$PATH" in DOCKERFILE
