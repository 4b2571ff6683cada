"""Loads the settings: the command line goes before the environment, and that before the file."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import structs

from mergeyard.settings.fitting import fit
from mergeyard.settings.hosts import read_hosts
from mergeyard.settings.oidc import read_oidc
from mergeyard.settings.schema import Settings
from mergeyard.settings.sources import Complaint, Given, from_environment, from_file, from_options, read_file

LONELY_ROLE = Complaint("role: processes with a part of the work need a database that they share: set database_url too")


class SettingsError(Exception):
    """Everything that is wrong with the settings, a line for each."""

    def __init__(self, complaints: Iterable[Complaint]) -> None:
        lines = [f"  {complaint.words}" for complaint in complaints]
        super().__init__("\n".join(["Mergeyard cannot start with these settings:", *lines]))


def load(path: Path | None, environment: Mapping[str, str], options: Mapping[str, object]) -> Settings:
    file = read_file(path, environment)
    given = [*from_environment(environment), *from_options(options)]
    if isinstance(file, Complaint):
        raise SettingsError([file, *fitted(given)[1]])
    values, complaints = fitted([*from_file(file), *given])
    address, complaints_about_address = read_database_url(values)
    values |= address
    complaints += complaints_about_address
    hosts, complaints_about_hosts = read_hosts(file, environment)
    oidc, complaints_about_oidc = read_oidc(file, environment)
    if wrong := complaints + complaints_about_hosts + complaints_about_oidc:
        raise SettingsError(wrong)
    settings = structs.replace(Settings(hosts=hosts, oidc=oidc), **values)
    if settings.role != "all" and settings.database_server is None:
        raise SettingsError([LONELY_ROLE])
    return settings


def read_database_url(values: Mapping[str, object]) -> tuple[dict[str, object], list[Complaint]]:
    """From `database_url_file`; one that is given directly goes before it."""
    path = values.get("database_url_file")
    if not isinstance(path, Path) or "database_url" in values:
        return {}, []
    try:
        text = path.read_text().strip()
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else "it is no text"
        return {}, [Complaint(f"database_url_file: {path} cannot be read: {words}")]
    return fitted([Given(key="database_url", value=text, where=str(path), beside=path.parent, has_types=True)])


def fitted(given: Iterable[Given | Complaint]) -> tuple[dict[str, object], list[Complaint]]:
    """What is given later goes before what was given earlier; all of it must fit, even what is not used."""
    values: dict[str, object] = {}
    complaints: list[Complaint] = []
    for item in given:
        if isinstance(item, Complaint):
            complaints.append(item)
            continue
        value = fit(item)
        if isinstance(value, Complaint):
            complaints.append(value)
        else:
            values[item.key] = value
    return values, complaints
