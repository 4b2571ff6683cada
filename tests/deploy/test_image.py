"""The image is built from the Dockerfile and started. One mounted folder is enough."""

import json
import os
import shutil
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from mergeyard import __version__
from tests.deploy.files import ROOT, instructions
from tests.support.polling import eventually

pytestmark = pytest.mark.long

PYTHON = instructions("ARG")[0].partition("=")[2]
BASE_IMAGES = (f"docker.io/library/python:{PYTHON}-slim-bookworm", f"localhost/mergeyard-stand-in:{PYTHON}")
"""The official one, and the one that `make setup-image` makes where no registry of images can be reached."""
IMAGE_USER = 10001
OTHER_USER = 4242
"""For `--user`, where the tests run as root."""
LIMITS = ("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096")
"""Engines raise these limits by default, which an engine inside a container is not allowed to do."""
CONFIG = """\
sealing_key_file = "secrets/sealing.key"

[hosts."git.local"]
provider = "git"
root = "repos"
"""


class Engine:
    def __init__(self, command: str) -> None:
        self._command = command

    def run(self, *arguments: str) -> str:
        result = self._call(*arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout.strip()

    def works(self) -> bool:
        return shutil.which(self._command) is not None and self._call("info").returncode == 0

    def has_image(self, name: str) -> bool:
        return self._call("image", "inspect", name).returncode == 0

    def _call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        variables = os.environ | {"BUILDAH_FORMAT": "docker"}  # the default format of podman has no health check
        command = [self._command, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=variables, cwd=ROOT, check=False)


@pytest.fixture(scope="module")
def engine() -> Engine:
    working = [engine for engine in map(Engine, ("docker", "podman")) if engine.works()]
    if not working:
        pytest.skip("no container engine works here: `make setup-image` installs one")
    if not any(map(working[0].has_image, BASE_IMAGES)):
        pytest.skip(f"{BASE_IMAGES[0]} is missing here: `make setup-image` pulls it or makes a stand-in")
    return working[0]


@pytest.fixture(scope="module")
def image(engine: Engine) -> Iterator[str]:
    name = f"mergeyard-test-{uuid4().hex}"
    base = next(filter(engine.has_image, BASE_IMAGES))
    engine.run("build", "--build-arg", f"BASE={base}", "--tag", name, ".")
    yield name
    engine.run("rmi", "--force", name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """All that an administrator prepares."""
    mounted = tmp_path / "mergeyard"
    for path in (mounted, mounted / "secrets", mounted / "repos"):
        path.mkdir(mode=0o700)
    (mounted / "mergeyard.toml").write_text(CONFIG)
    key = mounted / "secrets" / "sealing.key"
    key.write_text("0123456789abcdef" * 4)
    key.chmod(0o600)
    return mounted


def give_to(user: int, folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user)


@contextmanager
def started(engine: Engine, image: str, folder: Path, *options: str) -> Generator[tuple[str, httpx2.Client]]:
    """The name of the container, and a client of its published port."""
    name = f"mergeyard-test-{uuid4().hex}"
    mount = ("--volume", f"{folder}:/var/lib/mergeyard")
    published = ("--publish", "127.0.0.1::8080")
    # Without systemd podman cannot run the health check regularly; the test runs it.
    engine.run("run", "--detach", "--name", name, *LIMITS, "--no-healthcheck", *published, *mount, *options, image)
    try:
        url = f"http://{engine.run('port', name, '8080/tcp')}"
        with httpx2.Client(base_url=url, trust_env=False) as client:
            eventually(lambda: responds(client), 30, lambda: engine.run("logs", name))
            yield name, client
    finally:
        engine.run("rm", "--force", name)


def responds(client: httpx2.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx2.TransportError:
        return False


def test_one_folder_is_enough_and_belongs_to_the_user_who_starts_the_container(
    engine: Engine, image: str, folder: Path
):
    user = os.getuid()
    if user == 0:
        user = OTHER_USER
        give_to(user, folder)
    with started(engine, image, folder, "--user", f"{user}:{user}") as (name, client):
        assert __version__ in engine.run("exec", name, "mergeyard", "--version")
        engine.run("exec", name, "mergeyard", "host", "check", "git.local")  # fails unless the settings were read
        token = engine.run("exec", name, "mergeyard", "token", "create", "--name", "me", "--scope", "admin")
        response = client.post("/v1/listQueues", headers={"x-api-token": token}, json={})
        assert (response.status_code, response.json()) == (200, {"queues": []})
        engine.run("stop", "--time", "20", name)
        assert engine.run("inspect", "--format", "{{.State.ExitCode}}", name) == "0"
    assert {path.stat().st_uid for path in folder.rglob("*")} == {user}
    assert (folder / "mergeyard.db").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give the folder to the user of the image")
def test_image_runs_as_its_own_user_on_a_read_only_system(engine: Engine, image: str, folder: Path):
    give_to(IMAGE_USER, folder)
    restrictions = ("--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges")
    with started(engine, image, folder, *restrictions) as (name, _):
        assert engine.run("exec", name, "id", "-u") == f"{IMAGE_USER}"
        engine.run("exec", name, *json.loads(instructions("HEALTHCHECK")[0].partition("CMD ")[2]))
