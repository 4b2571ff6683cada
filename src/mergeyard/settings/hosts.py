"""Reads the hosts that the service may reach; there are no others."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from mergeyard.ports.host import ChecksFrom
from mergeyard.settings.schema import PlainHost
from mergeyard.settings.sources import Complaint, File, unknown

PROVIDER = "git"
LATER_PROVIDERS = ("github", "gitlab", "gitea")
KEYS = ("provider", *PlainHost.__struct_fields__)
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?")
"""It becomes part of a path, and nothing in it may lead elsewhere."""

Table = dict[str, object]


def read_hosts(file: File) -> tuple[dict[str, PlainHost], list[Complaint]]:
    tables = file.values.get("hosts", {})
    if not isinstance(tables, dict):
        return {}, [Complaint(f'{file.where("hosts")}: expected tables, such as [hosts."git.local"]')]
    hosts: dict[str, PlainHost] = {}
    complaints: list[Complaint] = []
    for name, table in cast(Table, tables).items():
        found = list(complaints_about(file, name, table, hosts))
        complaints += found
        if not found:
            hosts[name.lower()] = plain_host(file, cast(Table, table))
    return hosts, complaints


def complaints_about(file: File, name: str, table: object, others: dict[str, PlainHost]) -> Iterator[Complaint]:
    where = file.where("hosts", name)
    if not isinstance(table, dict):
        yield Complaint(f"{where}: expected a table with {', '.join(KEYS)}")
        return
    if not NAME.fullmatch(name.lower()):
        yield Complaint(f"{where}: expected the name of a host, such as git.local")
    if name.lower() in others:
        yield Complaint(f"{where}: this host is there already, in other letters; keep one of the two")
    host = cast(Table, table)
    yield from (unknown(file.where("hosts", name, key), key, KEYS) for key in host if key not in KEYS)
    yield from complaints_about_provider(file, name, host)


def complaints_about_provider(file: File, name: str, host: Table) -> Iterator[Complaint]:
    provider = host.get("provider")
    where = file.where("hosts", name, "provider") if "provider" in host else file.where("hosts", name)
    if provider in LATER_PROVIDERS:
        yield Complaint(f'{where}: this version speaks only to plain git; {provider} comes later, use provider = "git"')
    elif provider != PROVIDER:
        yield Complaint(f'{where}: say who keeps the repositories: provider = "git"')
    else:
        yield from complaints_about_plain_host(file, name, host)


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
    if host.get("checks", ChecksFrom.API) not in tuple(ChecksFrom):
        yield Complaint(f"{file.where('hosts', name, 'checks')}: expected one of {', '.join(ChecksFrom)}")


def plain_host(file: File, host: Table) -> PlainHost:
    root = file.path.parent / Path(str(host["root"]))
    return PlainHost(root=root, checks=ChecksFrom(str(host.get("checks", ChecksFrom.API))))
