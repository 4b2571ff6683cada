"""Loads the settings. Command-line options override environment variables, and those override the file."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from msgspec import structs

from mergeyard.domain.access import Scope
from mergeyard.ports.forge import ChecksFrom
from mergeyard.settings import parsing
from mergeyard.settings.schema import ForgeHost, Oidc, PlainHost, Provider, Settings

SECRET_KEYS = ("token", "private_key", "webhook_secret")
FORGE_KEYS = (
    *("provider", "url", "api_url", "app_id", "checks", "allow_untrusted_checks", "poll_seconds"),
    *(f"{secret}_file" for secret in SECRET_KEYS),
)
API_PATHS = {Provider.GITHUB: "/api/v3", Provider.GITLAB: "/api/v4", Provider.GITEA: "/api/v1"}
API_URLS = {"github.com": "https://api.github.com"}
MIN_POLL_S, MAX_POLL_S, DEFAULT_POLL_S = 1, 60, 20
"""Seconds between two polls of a repository."""

Table = dict[str, object]


def to_secret_variable(host: str, secret: str) -> str:
    """The variable of a secret of this host, used if no file is set: `MERGEYARD_HOST_GITHUB_COM_TOKEN`."""
    return f"{parsing.ENVIRONMENT_PREFIX}HOST_{re.sub('[^A-Z0-9]', '_', host.upper())}_{secret.upper()}"


class ForgeTable:
    """One table and its place in the file."""

    def __init__(self, file: parsing.SettingsFile, name: str, table: Table, environment: Mapping[str, str]) -> None:
        self._file = file
        self._name = name
        self._table = table
        self._environment = environment
        self._provider = Provider(str(table["provider"]))

    def find_problems(self) -> Iterator[parsing.SettingsProblem]:
        for key in ("url", "api_url"):
            if key in self._table and not parsing.is_web_url(self._text(key)):
                yield self._problem(key, "expected an address such as https://git.example.com")
            elif "@" in urlsplit(self._text(key)).netloc:
                yield self._problem(
                    key, "this address is public; remove the user name and password before the @, and set token_file"
                )
        if self._table.get("checks", ChecksFrom.HOST) not in tuple(ChecksFrom):
            yield self._problem("checks", f"expected one of {', '.join(ChecksFrom)}")
        yield from self._find_untrusted_checks_problems()
        seconds = self._table.get("poll_seconds", DEFAULT_POLL_S)
        if type(seconds) is not int or not MIN_POLL_S <= seconds <= MAX_POLL_S:
            yield self._problem("poll_seconds", f"expected a whole number from {MIN_POLL_S} to {MAX_POLL_S}")
        for secret in SECRET_KEYS:
            yield from self._find_secret_problems(secret)
        yield from self._find_access_problems()

    def build(self) -> ForgeHost:
        url = self._text("url").rstrip("/") or f"https://{self._name}"
        api_url = self._text("api_url").rstrip("/") or API_URLS.get(self._name, url + API_PATHS[self._provider])
        return ForgeHost(
            provider=self._provider,
            url=url,
            api_url=api_url,
            token=self._secret("token"),
            app_id=self._text("app_id") or None,
            private_key=self._secret("private_key"),
            webhook_secret=self._secret("webhook_secret"),
            checks=ChecksFrom(str(self._table.get("checks", ChecksFrom.HOST))),
            allow_untrusted_checks=bool(self._table.get("allow_untrusted_checks")),
            poll_seconds=int(str(self._table.get("poll_seconds", DEFAULT_POLL_S))),
        )

    def _find_untrusted_checks_problems(self) -> Iterator[parsing.SettingsProblem]:
        is_allowed = self._table.get("allow_untrusted_checks", False)
        if not isinstance(is_allowed, bool):
            yield self._problem("allow_untrusted_checks", "expected true or false")
        elif self._table.get("checks") == ChecksFrom.RUN and not is_allowed:
            yield self._problem(
                "checks",
                "this runs files of pull requests, also from forks, on this machine as the service's user; set it to"
                ' "host" or "api", or accept the risk with allow_untrusted_checks = true',
            )

    def _find_secret_problems(self, secret: str) -> Iterator[parsing.SettingsProblem]:
        key = f"{secret}_file"
        if key not in self._table:
            return
        try:
            if not self._read(key).strip():
                yield self._problem(key, f"{self._path(key)} is empty; put the secret into it")
        except (OSError, ValueError) as error:
            message = error.strerror if isinstance(error, OSError) else "not a text file"
            yield self._problem(key, f"{self._path(key)} cannot be read: {message}")

    def _find_access_problems(self) -> Iterator[parsing.SettingsProblem]:
        where = self._file.locate("hosts", self._name)
        has_token = "token_file" in self._table or self._environment.get(to_secret_variable(self._name, "token"))
        has_key = "private_key_file" in self._table or self._environment.get(
            to_secret_variable(self._name, "private_key")
        )
        if "app_id" in self._table and self._provider is not Provider.GITHUB:
            yield self._problem("app_id", f"only GitHub has Apps; set token_file for {self._provider}")
        elif "app_id" in self._table and not has_key:
            name = to_secret_variable(self._name, "private_key")
            yield parsing.SettingsProblem(
                f"{where}: the App has no private key; set private_key_file, or the variable {name}"
            )
        elif "app_id" not in self._table and not has_token:
            name = to_secret_variable(self._name, "token")
            yield parsing.SettingsProblem(f"{where}: there are no credentials; set token_file, or the variable {name}")

    def _secret(self, secret: str) -> str | None:
        key = f"{secret}_file"
        if key in self._table:
            return self._read(key).strip()
        return self._environment.get(to_secret_variable(self._name, secret), "").strip() or None

    def _read(self, key: str) -> str:
        return self._path(key).read_text()

    def _path(self, key: str) -> Path:
        return self._file.path.parent / self._text(key)

    def _text(self, key: str) -> str:
        return str(self._table.get(key, ""))

    def _problem(self, key: str, message: str) -> parsing.SettingsProblem:
        return parsing.SettingsProblem(f"{self._file.locate('hosts', self._name, key)}: {message}")


PLAIN_PROVIDER = "git"
PLAIN_KEYS = ("provider", *PlainHost.__struct_fields__)
PLAIN_CHECKS = (ChecksFrom.API, ChecksFrom.RUN)
HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?")
"""The name becomes part of a path, so it must not contain separators or dots at its ends."""

Hosts = dict[str, PlainHost | ForgeHost]


def read_hosts(
    file: parsing.SettingsFile, environment: Mapping[str, str]
) -> tuple[Hosts, list[parsing.SettingsProblem]]:
    tables = file.values.get("hosts", {})
    if not isinstance(tables, dict):
        return {}, [parsing.SettingsProblem(f'{file.locate("hosts")}: expected tables, such as [hosts."git.local"]')]
    hosts: Hosts = {}
    problems: list[parsing.SettingsProblem] = []
    for name, table in cast(Table, tables).items():
        table_problems = list(_find_table_problems(file, name, table, hosts))
        problems += table_problems
        if not table_problems:
            host, host_problems = _read_host(file, name, cast(Table, table), environment)
            problems += host_problems
            hosts |= {name.lower(): host} if host else {}
    return hosts, problems


def _read_host(
    file: parsing.SettingsFile, name: str, table: Table, environment: Mapping[str, str]
) -> tuple[PlainHost | ForgeHost | None, list[parsing.SettingsProblem]]:
    if table["provider"] == PLAIN_PROVIDER:
        host_problems = list(_find_plain_host_problems(file, name, table))
        return None if host_problems else _build_plain_host(file, table), host_problems
    forge_table = ForgeTable(file, name, table, environment)
    host_problems = list(forge_table.find_problems())
    return None if host_problems else forge_table.build(), host_problems


def _find_table_problems(
    file: parsing.SettingsFile, name: str, table: object, others: Hosts
) -> Iterator[parsing.SettingsProblem]:
    where = file.locate("hosts", name)
    if not isinstance(table, dict):
        yield parsing.SettingsProblem(f"{where}: expected a table with {', '.join(PLAIN_KEYS)}")
        return
    if not HOST_NAME.fullmatch(name.lower()):
        yield parsing.SettingsProblem(f"{where}: expected the name of a host, such as git.local")
    if name.lower() in others:
        yield parsing.SettingsProblem(
            f"{where}: this host is already configured with other capitalization; remove one of the two"
        )
    host = cast(Table, table)
    provider = host.get("provider")
    if provider != PLAIN_PROVIDER and provider not in tuple(Provider):
        where = file.locate("hosts", name, "provider") if "provider" in host else where
        providers = ", ".join(f'"{each}"' for each in (PLAIN_PROVIDER, *Provider))
        yield parsing.SettingsProblem(f"{where}: expected provider = one of {providers}")
        return
    keys = PLAIN_KEYS if provider == PLAIN_PROVIDER else FORGE_KEYS
    yield from (_describe_unknown_key(file, name, key, keys) for key in host if key not in keys)


def _describe_unknown_key(
    file: parsing.SettingsFile, name: str, key: str, keys: tuple[str, ...]
) -> parsing.SettingsProblem:
    where = file.locate("hosts", name, key)
    if f"{key}_file" in keys:
        secret_variable = to_secret_variable(name, key)
        return parsing.SettingsProblem(
            f"{where}: secrets are not allowed here; set {key}_file to a file, or the variable {secret_variable}"
        )
    return parsing.build_unknown_key_problem(where, key, keys)


def _find_plain_host_problems(file: parsing.SettingsFile, name: str, host: Table) -> Iterator[parsing.SettingsProblem]:
    root = host.get("root")
    if "root" not in host:
        yield parsing.SettingsProblem(
            f'{file.locate("hosts", name)}: root is missing; set the folder of the repositories, root = "repos"'
        )
    elif not isinstance(root, str) or not root or "\0" in root:
        yield parsing.SettingsProblem(f"{file.locate('hosts', name, 'root')}: expected the path of a folder")
    elif not (file.path.parent / root).is_dir():
        folder = file.path.parent / root
        yield parsing.SettingsProblem(
            f"{file.locate('hosts', name, 'root')}: folder {folder} does not exist; create it, or correct the path"
        )
    if host.get("checks", ChecksFrom.API) not in PLAIN_CHECKS:
        yield parsing.SettingsProblem(
            f"{file.locate('hosts', name, 'checks')}: expected one of {', '.join(PLAIN_CHECKS)}"
        )


def _build_plain_host(file: parsing.SettingsFile, host: Table) -> PlainHost:
    root = file.path.parent / Path(str(host["root"]))
    return PlainHost(root=root, checks=ChecksFrom(str(host.get("checks", ChecksFrom.API))))


TEXT_KEYS = ("issuer", "client_id", "client_secret_file", "label", "name_claim", "groups_claim")
OIDC_KEYS = (*TEXT_KEYS, "request_scopes", "default_scopes", "scopes")
SECRET_VARIABLE = parsing.to_environment_variable("oidc_client_secret")
KNOWN_SCOPES = ", ".join(Scope)
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")

AnyTable = dict[str, Any]


def read_oidc(
    file: parsing.SettingsFile, environment: Mapping[str, str]
) -> tuple[Oidc | None, list[parsing.SettingsProblem]]:
    if "oidc" not in file.values:
        return None, []
    given = file.values["oidc"]
    if not isinstance(given, dict):
        return None, [
            parsing.SettingsProblem(f"{file.locate('oidc')}: expected a table, [oidc] with {', '.join(OIDC_KEYS)}")
        ]
    table = OidcTable(file, cast(AnyTable, given), environment)
    problems = list(table.find_problems())
    return None if problems else table.build(), problems


class OidcTable:
    def __init__(self, file: parsing.SettingsFile, table: AnyTable, environment: Mapping[str, str]) -> None:
        self._file = file
        self._table = table
        self._environment = environment

    def find_problems(self) -> Iterator[parsing.SettingsProblem]:
        yield from (self._describe_unknown_key(key) for key in self._table if key not in OIDC_KEYS)
        empty_keys = [key for key in TEXT_KEYS if key in self._table and not self._text(key)]
        yield from (self._problem("expected some text", key) for key in empty_keys)
        yield from (
            self._problem(f"{key} is missing", advice=MISSING_KEY_ADVICE[key])
            for key in MISSING_KEY_ADVICE
            if key not in self._table
        )
        if "issuer" in self._table:
            yield from self._find_issuer_problems()
        yield from self._find_secret_problems()
        yield from self._find_request_scope_problems()
        yield from self._find_scope_problems()

    def build(self) -> Oidc:
        optional: AnyTable = {key: self._text(key) for key in ("name_claim", "groups_claim") if key in self._table}
        if "request_scopes" in self._table:
            optional["request_scopes"] = tuple(self._table["request_scopes"])
        return Oidc(
            issuer=self._text("issuer"),
            client_id=self._text("client_id"),
            client_secret=self._secret(),
            label=self._text("label") or str(urlsplit(self._text("issuer")).hostname),
            default_scopes=frozenset(map(Scope, self._table.get("default_scopes", ()))),
            scopes={group: frozenset(map(Scope, scopes)) for group, scopes in self._table.get("scopes", {}).items()},
            **optional,
        )

    # Validation

    def _describe_unknown_key(self, key: str) -> parsing.SettingsProblem:
        if key == "client_secret":
            message = (
                f"secrets are not allowed here; set client_secret_file to a file, or the variable {SECRET_VARIABLE}"
            )
            return self._problem(message, key)
        return parsing.build_unknown_key_problem(self._file.locate("oidc", key), key, OIDC_KEYS)

    def _find_issuer_problems(self) -> Iterator[parsing.SettingsProblem]:
        issuer = self._text("issuer")
        if not parsing.is_web_url(issuer) or "@" in urlsplit(issuer).netloc:
            yield self._problem("expected an address such as https://login.example.com", "issuer")
        elif urlsplit(issuer).scheme == "http" and urlsplit(issuer).hostname not in LOCAL_HOSTS:
            yield self._problem(
                "it must be https, because secrets are sent there; http is allowed only for this machine", "issuer"
            )

    def _find_secret_problems(self) -> Iterator[parsing.SettingsProblem]:
        key = "client_secret_file"
        if key not in self._table:
            if not self._environment.get(SECRET_VARIABLE, "").strip():
                yield self._problem(
                    "the client secret is missing", advice=f"set {key}, or the variable {SECRET_VARIABLE}"
                )
            return
        try:
            if not self._path().read_text().strip():
                yield self._problem(f"{self._path()} is empty; put the secret into it", key)
        except (OSError, ValueError) as error:
            message = error.strerror if isinstance(error, OSError) else "not a text file"
            yield self._problem(f"{self._path()} cannot be read: {message}", key)

    def _find_request_scope_problems(self) -> Iterator[parsing.SettingsProblem]:
        request_scopes = self._table.get("request_scopes", ["openid"])
        if not _is_list_of_text(request_scopes) or "openid" not in request_scopes:
            yield self._problem('expected a list with "openid" in it, such as ["openid", "profile"]', "request_scopes")

    def _find_scope_problems(self) -> Iterator[parsing.SettingsProblem]:
        groups = self._table.get("scopes", {})
        if not isinstance(groups, dict):
            yield self._problem(
                'expected a table of groups, [oidc.scopes] with lines such as admins = ["admin"]', "scopes"
            )
            return
        for keys, scopes in ((("scopes", group), scopes) for group, scopes in cast(AnyTable, groups).items()):
            if not _are_scopes(scopes):
                yield self._problem(f"expected a list of some of {KNOWN_SCOPES}", *keys)
        default_scopes = self._table.get("default_scopes", [])
        if default_scopes != [] and not _are_scopes(default_scopes):
            yield self._problem(f"expected a list of some of {KNOWN_SCOPES}", "default_scopes")
        if not groups and default_scopes == []:
            advice = "set the scopes of groups in [oidc.scopes], or of all users with default_scopes"
            yield self._problem("no user has a scope", advice=advice)

    def _problem(self, message: str, *keys: str, advice: str = "") -> parsing.SettingsProblem:
        return parsing.SettingsProblem(
            f"{self._file.locate('oidc', *keys)}: {message}{f'; {advice}' if advice else ''}"
        )

    # Values

    def _secret(self) -> str:
        return (
            self._path().read_text() if "client_secret_file" in self._table else self._environment[SECRET_VARIABLE]
        ).strip()

    def _path(self) -> Path:
        return self._file.path.parent / self._text("client_secret_file")

    def _text(self, key: str) -> str:
        value = self._table.get(key, "")
        return value.strip() if isinstance(value, str) and value.isprintable() else ""


MISSING_KEY_ADVICE = {
    "issuer": 'set the address of the provider, issuer = "https://login.example.com"',
    "client_id": "set the id that the provider assigned when you registered Mergeyard there",
}


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item for item in cast(list[object], value))


def _are_scopes(value: object) -> bool:
    return _is_list_of_text(value) and bool(value) and set(cast(list[str], value)) <= set(Scope)


ROLE_NEEDS_SERVER = parsing.SettingsProblem(
    "role: the roles api and worker need a shared PostgreSQL database; set database_url"
)


class SettingsError(Exception):
    """All problems of the settings, one line each."""

    def __init__(self, problems: Iterable[parsing.SettingsProblem]) -> None:
        lines = [f"  {problem.message}" for problem in problems]
        super().__init__("\n".join(["Mergeyard cannot start with these settings:", *lines]))


def load(path: Path | None, environment: Mapping[str, str], options: Mapping[str, object]) -> Settings:
    file = parsing.read_settings_file(path, environment)
    given = [*parsing.from_environment(environment), *parsing.from_options(options)]
    if isinstance(file, parsing.SettingsProblem):
        raise SettingsError([file, *_parse_values(given)[1]])
    values, problems = _parse_values([*parsing.from_file(file), *given])
    address, address_problems = _read_database_url(values)
    values |= address
    problems += address_problems
    hosts, host_problems = read_hosts(file, environment)
    oidc, oidc_problems = read_oidc(file, environment)
    if all_problems := problems + host_problems + oidc_problems:
        raise SettingsError(all_problems)
    settings = structs.replace(Settings(hosts=hosts, oidc=oidc), **values)
    if settings.role != "all" and settings.database_server_url is None:
        raise SettingsError([ROLE_NEEDS_SERVER])
    return settings


def _read_database_url(values: Mapping[str, object]) -> tuple[dict[str, object], list[parsing.SettingsProblem]]:
    """Reads `database_url_file`, unless `database_url` is set."""
    path = values.get("database_url_file")
    if not isinstance(path, Path) or "database_url" in values:
        return {}, []
    try:
        text = path.read_text().strip()
    except (OSError, ValueError) as error:
        message = error.strerror if isinstance(error, OSError) else "not a text file"
        return {}, [parsing.SettingsProblem(f"database_url_file: {path} cannot be read: {message}")]
    return _parse_values(
        [parsing.SettingInput(key="database_url", value=text, location=str(path), base_dir=path.parent, is_typed=True)]
    )


def _parse_values(
    given: Iterable[parsing.SettingInput | parsing.SettingsProblem],
) -> tuple[dict[str, object], list[parsing.SettingsProblem]]:
    """Later values override earlier ones; overridden values are validated too."""
    values: dict[str, object] = {}
    problems: list[parsing.SettingsProblem] = []
    for item in given:
        if isinstance(item, parsing.SettingsProblem):
            problems.append(item)
            continue
        value = parsing.parse_value(item)
        if isinstance(value, parsing.SettingsProblem):
            problems.append(value)
        else:
            values[item.key] = value
    return values, problems
