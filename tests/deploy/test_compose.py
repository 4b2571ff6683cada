"""compose.yaml starts without further files, takes its password from outside, and routes to replicas that are ready."""

import re
from pathlib import Path

import pytest

from mergeyard import __version__
from mergeyard.settings import PlainHost, load
from tests.deploy.files import CADDYFILE, COMPOSE, DEPLOY, DOCKERFILE, ROOT, Table, read_yaml

FILE: Table = read_yaml(ROOT / "compose.yaml")
SERVICES: dict[str, Table] = FILE["services"]
REPLICAS = {name: service for name, service in SERVICES.items() if service["image"].startswith("mergeyard:")}

each_service = pytest.mark.parametrize("name", SERVICES)
each_replica = pytest.mark.parametrize("name", REPLICAS)


def volumes(service: Table) -> dict[str, str]:
    """The mounted sources by mount path."""
    return {target: source for source, target, *_ in (volume.split(":") for volume in service["volumes"])}


@each_service
def test_service_has_a_health_check_and_is_restarted(name: str):
    assert SERVICES[name]["healthcheck"]
    assert SERVICES[name]["restart"] == "unless-stopped"


@each_service
def test_service_has_an_image_of_a_pinned_version(name: str):
    assert re.fullmatch(r"[a-z]+:\d[\w.-]*", SERVICES[name]["image"])


@each_replica
def test_replica_has_a_memory_limit(name: str):
    assert REPLICAS[name]["mem_limit"] == "1g"


def test_sealing_key_is_readable_only_by_its_user():
    assert "chmod 644" not in COMPOSE
    assert re.search(r"chown 10001 \S+sealing.key", COMPOSE)
    assert re.search(r"chmod 600 \S+sealing.key", COMPOSE)


@each_service
def test_service_cannot_gain_privileges(name: str):
    assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]


@each_service
def test_networks_dependencies_and_volumes_of_a_service_are_declared(name: str):
    service = SERVICES[name]
    assert set(service["networks"]) <= FILE["networks"].keys()
    assert set(service.get("depends_on", {})) <= SERVICES.keys()
    for source in volumes(service).values():
        assert (ROOT / source).exists() if source.startswith(".") else source in FILE["volumes"]


def test_every_declared_volume_is_used():
    assert {source for service in SERVICES.values() for source in volumes(service).values()} >= FILE["volumes"].keys()


def test_password_comes_from_outside_and_is_required():
    uses = re.findall(r"\$\{POSTGRES_PASSWORD.*?\}", COMPOSE)
    assert len(uses) == 2
    assert all(name.startswith("${POSTGRES_PASSWORD:?") for name in uses)
    assert re.findall(r"://\w+:(?!\$\{)", COMPOSE) == []


def test_there_are_two_replicas_of_the_current_version_with_all_roles():
    assert [service["image"] for service in REPLICAS.values()] == [f"mergeyard:{__version__}"] * 2
    assert {service["environment"]["MERGEYARD_ROLE"] for service in REPLICAS.values()} == {"all"}


def test_each_replica_has_its_own_data_directory_and_all_share_the_repositories():
    mounts = [volumes(service) for service in REPLICAS.values()]
    assert "MERGEYARD_DATA_DIR=/var/lib/mergeyard\n" in DOCKERFILE
    assert len({mounted["/var/lib/mergeyard"] for mounted in mounts}) == len(REPLICAS)
    assert {mounted["/srv/git"] for mounted in mounts} == {"repositories"}


@each_replica
def test_replica_reads_the_mounted_settings(name: str):
    settings = REPLICAS[name]["environment"]["MERGEYARD_CONFIG"]
    assert volumes(REPLICAS[name])[settings] == "./deploy/compose/mergeyard.toml"


@each_replica
def test_replica_waits_for_the_database_and_has_time_to_shut_down(name: str):
    assert REPLICAS[name]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert REPLICAS[name]["stop_grace_period"] == "30s"


def test_only_the_proxy_is_reachable_and_only_replicas_reach_the_database():
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]
    assert FILE["networks"]["back"] == {"internal": True}
    assert {name for name, service in SERVICES.items() if "back" in service["networks"]} == {*REPLICAS, "database"}


def test_proxy_balances_over_all_ready_replicas():
    (upstreams,) = re.findall(r"reverse_proxy \{\$REPLICAS:(.+)\} \{", CADDYFILE)
    assert upstreams.split() == [f"{name}:8080" for name in REPLICAS]
    assert "health_uri /readyz\n" in CADDYFILE


def test_server_loads_the_shared_settings(tmp_path: Path):
    text = (DEPLOY / "compose" / "mergeyard.toml").read_text()
    (tmp_path / "mergeyard.toml").write_text(text.replace('"/srv/git"', f'"{tmp_path}"'))
    assert load(tmp_path / "mergeyard.toml", {}, {}).hosts == {"git.local": PlainHost(root=tmp_path)}
