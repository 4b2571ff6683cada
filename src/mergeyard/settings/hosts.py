"""Reads the hosts that the service may reach; there are no others."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from mergeyard.ports.host import ChecksFrom
from mergeyard.settings import forge_hosts
from mergeyard.settings.forge_hosts import ForgeTable, Table
from mergeyard.settings.schema import ForgeHost, PlainHost, Provider
from mergeyard.settings.sources import Complaint, File, unknown

PLAIN = "git"
PLAIN_KEYS = ("provider", *PlainHost.__struct_fields__)
PLAIN_CHECKS = (ChecksFrom.API, ChecksFrom.RUN)
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?")
"""It becomes part of a path, and nothing in it may lead elsewhere."""

Hosts = dict[str, PlainHost | ForgeHost]


def read_hosts(file: File, environment: Mapping[str, str]) -> tuple[Hosts, list[Complaint]]:
    tables = file.values.get("hosts", {})
    if not isinstance(tables, dict):
        return {}, [Complaint(f'{file.where("hosts")}: expected tables, such as [hosts."git.local"]')]
    hosts: Hosts = {}
    complaints: list[Complaint] = []
    for name, table in cast(Table, tables).items():
        found = list(complaints_about(file, name, table, hosts))
        complaints += found
        if not found:
            host, wrong = one_host(file, name, cast(Table, table), environment)
            complaints += wrong
            hosts |= {name.lower(): host} if host else {}
    return hosts, complaints


def one_host(
    file: File, name: str, table: Table, environment: Mapping[str, str]
) -> tuple[PlainHost | ForgeHost | None, list[Complaint]]:
    if table["provider"] == PLAIN:
        wrong = list(complaints_about_plain_host(file, name, table))
        return None if wrong else plain_host(file, table), wrong
    forge = ForgeTable(file, name, table, environment)
    wrong = list(forge.complaints())
    return None if wrong else forge.host(), wrong


def complaints_about(file: File, name: str, table: object, others: Hosts) -> Iterator[Complaint]:
    where = file.where("hosts", name)
    if not isinstance(table, dict):
        yield Complaint(f"{where}: expected a table with {', '.join(PLAIN_KEYS)}")
        return
    if not NAME.fullmatch(name.lower()):
        yield Complaint(f"{where}: expected the name of a host, such as git.local")
    if name.lower() in others:
        yield Complaint(f"{where}: this host is there already, in other letters; keep one of the two")
    host = cast(Table, table)
    provider = host.get("provider")
    if provider != PLAIN and provider not in tuple(Provider):
        where = file.where("hosts", name, "provider") if "provider" in host else where
        known = ", ".join(f'"{each}"' for each in (PLAIN, *Provider))
        yield Complaint(f"{where}: say who keeps the repositories: provider = one of {known}")
        return
    keys = PLAIN_KEYS if provider == PLAIN else forge_hosts.KEYS
    yield from (complaint_about_key(file, name, key, keys) for key in host if key not in keys)


def complaint_about_key(file: File, name: str, key: str, keys: tuple[str, ...]) -> Complaint:
    where = file.where("hosts", name, key)
    if f"{key}_file" in keys:
        other = forge_hosts.variable(name, key)
        return Complaint(f"{where}: secrets do not stand here; set {key}_file to a file, or the variable {other}")
    return unknown(where, key, keys)


def complaints_about_plain_host(file: File, name: str, host: Table) -> Iterator[Complaint]:
    root = host.get("root")
    if "root" not in host:
        yield Complaint(
            f'{file.where("hosts", name)}: root is missing; name the folder of the repositories, root = "repos"'
        )
    elif not isinstance(root, str) or not root or "\0" in root:
        yield Complaint(f"{file.where('hosts', name, 'root')}: expected the path of a folder")
    elif not (file.path.parent / root).is_dir():
        folder = file.path.parent / root
        yield Complaint(
            f"{file.where('hosts', name, 'root')}: there is no folder {folder}; make it, or correct the path"
        )
    if host.get("checks", ChecksFrom.API) not in PLAIN_CHECKS:
        yield Complaint(f"{file.where('hosts', name, 'checks')}: expected one of {', '.join(PLAIN_CHECKS)}")


def plain_host(file: File, host: Table) -> PlainHost:
    root = file.path.parent / Path(str(host["root"]))
    return PlainHost(root=root, checks=ChecksFrom(str(host.get("checks", ChecksFrom.API))))
