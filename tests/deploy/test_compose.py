"""The composition starts by itself, hides its password, and leads everybody to replicas that are ready."""

import re
from pathlib import Path

import pytest

from mergeyard import __version__
from mergeyard.settings import PlainHost, load
from tests.deploy.files import CADDYFILE, COMPOSE, DEPLOY, DOCKERFILE, ROOT, Table, read_yaml

FILE: Table = read_yaml(ROOT / "compose.yaml")
SERVICES: dict[str, Table] = FILE["services"]
REPLICAS = {name: service for name, service in SERVICES.items() if service["image"].startswith("mergeyard:")}

every_service = pytest.mark.parametrize("name", SERVICES)
every_replica = pytest.mark.parametrize("name", REPLICAS)


def volumes(service: Table) -> dict[str, str]:
    """What is mounted, by where it is."""
    return {target: source for source, target, *_ in (volume.split(":") for volume in service["volumes"])}


@every_service
def test_a_service_tells_whether_it_is_well_and_comes_back_when_it_is_not(name: str):
    assert SERVICES[name]["healthcheck"]
    assert SERVICES[name]["restart"] == "unless-stopped"


@every_service
def test_a_service_has_an_image_of_a_pinned_version(name: str):
    assert re.fullmatch(r"[a-z]+:\d[\w.-]*", SERVICES[name]["image"])


@every_replica
def test_a_replica_has_a_limit_of_memory(name: str):
    assert REPLICAS[name]["mem_limit"] == "1g"


def test_the_sealing_key_is_read_by_no_other_user_of_the_machine():
    assert "chmod 644" not in COMPOSE
    assert re.search(r"chown 10001 \S+sealing.key", COMPOSE)
    assert re.search(r"chmod 600 \S+sealing.key", COMPOSE)


@every_service
def test_a_service_cannot_gain_rights(name: str):
    assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]


@every_service
def test_whatever_a_service_names_is_declared(name: str):
    service = SERVICES[name]
    assert set(service["networks"]) <= FILE["networks"].keys()
    assert set(service.get("depends_on", {})) <= SERVICES.keys()
    for source in volumes(service).values():
        assert (ROOT / source).exists() if source.startswith(".") else source in FILE["volumes"]


def test_no_volume_is_declared_for_nothing():
    assert {source for service in SERVICES.values() for source in volumes(service).values()} >= FILE["volumes"].keys()


def test_the_password_comes_from_outside_and_nothing_starts_without_it():
    named = re.findall(r"\$\{POSTGRES_PASSWORD.*?\}", COMPOSE)
    assert len(named) == 2
    assert all(name.startswith("${POSTGRES_PASSWORD:?") for name in named)
    assert re.findall(r"://\w+:(?!\$\{)", COMPOSE) == []


def test_there_are_two_replicas_of_this_version_that_do_everything():
    assert [service["image"] for service in REPLICAS.values()] == [f"mergeyard:{__version__}"] * 2
    assert {service["environment"]["MERGEYARD_ROLE"] for service in REPLICAS.values()} == {"all"}


def test_every_replica_has_a_data_directory_of_its_own_and_all_have_the_same_repositories():
    mounts = [volumes(service) for service in REPLICAS.values()]
    assert "MERGEYARD_DATA_DIR=/var/lib/mergeyard\n" in DOCKERFILE
    assert len({mounted["/var/lib/mergeyard"] for mounted in mounts}) == len(REPLICAS)
    assert {mounted["/srv/git"] for mounted in mounts} == {"repositories"}


@every_replica
def test_a_replica_waits_for_the_database_and_has_time_to_end(name: str):
    assert REPLICAS[name]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert REPLICAS[name]["stop_grace_period"] == "30s"


def test_only_the_proxy_is_reachable_and_nobody_but_the_replicas_reaches_the_database():
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]
    assert FILE["networks"]["back"] == {"internal": True}
    assert {name for name, service in SERVICES.items() if "back" in service["networks"]} == {*REPLICAS, "database"}


def test_the_proxy_balances_over_every_replica_that_is_ready():
    (upstreams,) = re.findall(r"reverse_proxy (.+) \{", CADDYFILE)
    assert upstreams.split() == [f"{name}:8080" for name in REPLICAS]
    assert "health_uri /readyz\n" in CADDYFILE


def test_the_proxy_passes_events_on_as_they_come():
    assert "flush_interval -1\n" in CADDYFILE


def test_the_settings_that_the_replicas_share_are_settings_that_the_server_takes(tmp_path: Path):
    text = (DEPLOY / "compose" / "mergeyard.toml").read_text()
    (tmp_path / "mergeyard.toml").write_text(text.replace('"/srv/git"', f'"{tmp_path}"'))
    assert load(tmp_path / "mergeyard.toml", {}, {}).hosts == {"git.local": PlainHost(root=tmp_path)}
