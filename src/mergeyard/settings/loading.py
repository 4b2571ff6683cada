"""Loads the settings. Command-line options override environment variables, and those override the file."""

import re
import ssl
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from msgspec import convert, structs

from mergeyard.adapters.signing import SigningKeyError, parse_signing_key, read_key_file
from mergeyard.domain.access import Scope
from mergeyard.ports.forge import ChecksFrom
from mergeyard.settings import parsing
from mergeyard.settings.schema import GITHUB_CLOUD_SUFFIX, ForgeHost, Oidc, PlainHost, Provider, Settings


def to_secret_variable(host: str, secret: str) -> str:
    """The variable of a secret of this host, used if no file is set: `MERGEYARD_HOST_GITHUB_COM_TOKEN`."""
    return parsing.to_environment_variable(f"host_{re.sub('[^A-Z0-9]', '_', host.upper())}_{secret}")


CA_KEY = "ca_file"
SIGNING_KEY = "signing_key_file"
Choice = TypeVar("Choice", bound=str)


class TableReader:
    """Reads one table of the file, and collects the problems of all its values."""

    def __init__(
        self,
        file: parsing.SettingsFile,
        environment: Mapping[str, str],
        keys: Sequence[str],
        values: object,
        expected: str,
    ) -> None:
        """`keys`: the place of the table in the file. `expected`: what to report if the values are not a table."""
        self._file = file
        self._environment = environment
        self._keys = keys
        self.folder = file.path.parent
        self.problems: list[str] = []
        self.values = cast(dict[str, Any], values if isinstance(values, dict) else {})
        if not isinstance(values, dict):
            self.report(f"expected {expected}")

    def report(self, message: str, *keys: str) -> None:
        self.problems.append(f"{self._file.locate(*self._keys, *keys)}: {message}")

    def refuse_unknown_keys(self, known: Collection[str]) -> None:
        for key in self.values:
            if f"{key}_file" == SIGNING_KEY and SIGNING_KEY in known:
                self.report(f"secrets are not allowed here; set {SIGNING_KEY} to a file", key)
            elif f"{key}_file" in known and f"{key}_file" != CA_KEY:
                variable = self.to_variable(key)
                self.report(f"secrets are not allowed here; set {key}_file to a file, or the variable {variable}", key)
            elif key not in known:
                self.report(parsing.describe_unknown_key(key, known), key)

    def to_variable(self, secret: str) -> str:
        table, *host = self._keys
        return to_secret_variable(host[0], secret) if host else parsing.to_environment_variable(f"{table}_{secret}")

    def read_text(self, key: str) -> str:
        return str(self.values.get(key, "")).strip()

    def read_choice(self, key: str, default: Choice, *others: Choice) -> Choice:
        """The default and the others are the allowed values."""
        choices = (default, *others)
        value = self.values.get(key, default)
        if value not in choices:
            self.report(f"expected one of {', '.join(choices)}", key)
            return default
        return choices[choices.index(value)]

    def read_secret(self, secret: str) -> str | None:
        """From the file if its key is set, else from the variable. None if neither is set."""
        key = f"{secret}_file"
        if key not in self.values:
            return self._environment.get(self.to_variable(secret), "").strip() or None
        path = self.folder / self.read_text(key)
        try:
            content = path.read_text().strip()
        except (OSError, ValueError) as error:
            self.report(f"{path} cannot be read: {parsing.describe_read_error(error)}", key)
            return ""
        if not content:
            self.report(f"{path} is empty; put the secret into it", key)
        return content

    def read_ca_file(self) -> Path | None:
        """The file with certificates; it has at least one. None if the setting is not used. The path is absolute,
        because git runs in another folder."""
        path = (self.folder / self.read_text(CA_KEY)).absolute()
        if not self.read_text(CA_KEY):
            return None
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
        except ssl.SSLError:
            self.report(f"{path} contains no certificate; put the certificate of the authority there, as PEM", CA_KEY)
        except (OSError, ValueError) as error:
            self.report(f"{path} cannot be read: {parsing.describe_read_error(error)}", CA_KEY)
        return path

    def read_signing_key_file(self) -> Path | None:
        """The file with a private key that can sign; None if the setting is not used."""
        path = (self.folder / self.read_text(SIGNING_KEY)).absolute()
        if not self.read_text(SIGNING_KEY):
            return None
        try:
            parse_signing_key(read_key_file(path)[0])
        except SigningKeyError as error:
            self.report(f"{path} {error}", SIGNING_KEY)
        return path


# Git hosts

FORGE_KEYS = (
    *("provider", "url", "api_url", "app_id", "checks", "allow_untrusted_checks", "poll_seconds"),
    *(
        "unreadable_rules",
        "urgent_from",
        "ca_file",
        "token_file",
        "private_key_file",
        "webhook_secret_file",
        SIGNING_KEY,
    ),
)
API_PATHS = {Provider.GITHUB: "/api/v3", Provider.GITLAB: "/api/v4", Provider.GITEA: "/api/v1"}
MIN_POLL_S, MAX_POLL_S, DEFAULT_POLL_S = 1, 60, 20
"""Seconds between two polls of a repository."""
PLAIN_PROVIDER = "git"
PLAIN_KEYS = ("provider", *PlainHost.__struct_fields__)
HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?")
"""The name becomes part of a path, so it must not contain separators or dots at its ends."""

Hosts = dict[str, PlainHost | ForgeHost]


def read_hosts(file: parsing.SettingsFile, environment: Mapping[str, str]) -> tuple[Hosts, list[str]]:
    given = file.values.get("hosts", {})
    tables = TableReader(file, environment, ["hosts"], given, 'tables, such as [hosts."git.local"]')
    hosts, problems = Hosts(), tables.problems
    for name, values in tables.values.items():
        table = TableReader(file, environment, ["hosts", name], values, f"a table with {', '.join(PLAIN_KEYS)}")
        host = None if table.problems else _read_host(table, name, hosts)
        hosts |= {name.lower(): host} if host and not table.problems else {}
        problems += table.problems
    return hosts, problems


def _read_host(table: TableReader, name: str, others: Hosts) -> PlainHost | ForgeHost | None:
    if not HOST_NAME.fullmatch(name.lower()):
        table.report("expected the name of a host, such as git.local")
    if name.lower() in others:
        table.report("this host is already configured with other capitalization; remove one of the two")
    provider = table.values.get("provider")
    if provider == PLAIN_PROVIDER:
        return _read_plain_host(table)
    if provider in tuple(Provider):
        return _read_forge(table, name, Provider(provider))
    providers = ", ".join(f'"{each}"' for each in (PLAIN_PROVIDER, *Provider))
    table.report(f"expected provider = one of {providers}", *([] if provider is None else ["provider"]))
    return None


def _read_plain_host(table: TableReader) -> PlainHost | None:
    table.refuse_unknown_keys(PLAIN_KEYS)
    checks, root = table.read_choice("checks", ChecksFrom.API, ChecksFrom.RUN), table.values.get("root")
    signing_key_file = table.read_signing_key_file()
    if root is None:
        table.report('root is missing; set the folder of the repositories, root = "repos"')
    elif not isinstance(root, str) or not root or "\0" in root:
        table.report("expected the path of a folder", "root")
    elif not (table.folder / root).is_dir():
        table.report(f"folder {table.folder / root} does not exist; create it, or correct the path", "root")
    else:
        return PlainHost(root=table.folder / root, checks=checks, signing_key_file=signing_key_file)
    return None


def _read_forge(table: TableReader, name: str, provider: Provider) -> ForgeHost:
    table.refuse_unknown_keys(FORGE_KEYS)
    url = _read_url(table, "url") or f"https://{name}"
    app_id, private_key, token = table.read_text("app_id"), table.read_secret("private_key"), table.read_secret("token")
    if app_id and provider is not Provider.GITHUB:
        table.report(f"only GitHub has Apps; set token_file for {provider}", "app_id")
    elif app_id and private_key is None:
        variable = table.to_variable("private_key")
        table.report(f"the App has no private key; set private_key_file, or the variable {variable}")
    elif not app_id and token is None:
        table.report(f"there are no credentials; set token_file, or the variable {table.to_variable('token')}")
    seconds = table.values.get("poll_seconds", DEFAULT_POLL_S)
    if type(seconds) is not int or not MIN_POLL_S <= seconds <= MAX_POLL_S:
        table.report(f"expected a whole number from {MIN_POLL_S} to {MAX_POLL_S}", "poll_seconds")
    checks = table.read_choice("checks", ChecksFrom.HOST, ChecksFrom.API, ChecksFrom.RUN)
    allows_untrusted = table.values.get("allow_untrusted_checks", False)
    if not isinstance(allows_untrusted, bool):
        table.report("expected true or false", "allow_untrusted_checks")
    elif checks is ChecksFrom.RUN and not allows_untrusted:
        table.report(
            "this runs files of pull requests, also from forks, on this machine as the service's user; set it to"
            ' "host" or "api", or accept the risk with allow_untrusted_checks = true',
            "checks",
        )
    return ForgeHost(
        provider=provider,
        url=url,
        api_url=_read_url(table, "api_url") or _default_api_url(name.lower(), url, provider),
        token=token,
        app_id=app_id or None,
        private_key=private_key,
        webhook_secret=table.read_secret("webhook_secret"),
        checks=checks,
        poll_seconds=seconds,
        unreadable_rules=table.read_choice("unreadable_rules", "unmet", "unknown"),
        urgent_from=table.read_choice("urgent_from", "maintainers", "writers"),
        ca_file=table.read_ca_file(),
        signing_key_file=table.read_signing_key_file(),
    )


def _default_api_url(name: str, url: str, provider: Provider) -> str:
    is_cloud = provider is Provider.GITHUB and (name == "github.com" or name.endswith(GITHUB_CLOUD_SUFFIX))
    return f"https://api.{name}" if is_cloud else url + API_PATHS[provider]


def _read_url(table: TableReader, key: str) -> str:
    url = table.read_text(key)
    if key in table.values and not parsing.is_web_url(url):
        table.report("expected an address such as https://git.example.com", key)
    elif "@" in urlsplit(url).netloc:
        table.report("this address is public; remove the user name and password before the @, and set token_file", key)
    return url.rstrip("/")


# Single sign-on

TEXT_KEYS = ("issuer", "client_id", "client_secret_file", "label", "name_claim", "groups_claim")
OIDC_KEYS = (*TEXT_KEYS, "request_scopes", "default_scopes", "scopes")
MISSING_KEY_ADVICE = {
    "issuer": 'set the address of the provider, issuer = "https://login.example.com"',
    "client_id": "set the id that the provider assigned when you registered Mergeyard there",
}
KNOWN_SCOPES = ", ".join(Scope)
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")


def read_oidc(file: parsing.SettingsFile, environment: Mapping[str, str]) -> tuple[Oidc | None, list[str]]:
    given = file.values.get("oidc", {})
    table = TableReader(file, environment, ["oidc"], given, f"a table, [oidc] with {', '.join(OIDC_KEYS)}")
    if "oidc" not in file.values or table.problems:
        return None, table.problems
    table.refuse_unknown_keys(OIDC_KEYS)
    for key in TEXT_KEYS:
        if key in table.values and not (_is_text(table.values[key]) and table.values[key].isprintable()):
            table.report("expected some text", key)
    for key, advice in MISSING_KEY_ADVICE.items():
        if key not in table.values:
            table.report(f"{key} is missing; {advice}")
    _check_issuer(table)
    secret = table.read_secret("client_secret")
    if secret is None:
        variable = table.to_variable("client_secret")
        table.report(f"the client secret is missing; set client_secret_file, or the variable {variable}")
    _check_scopes(table)
    if table.problems:
        return None, table.problems
    values = {key: value.strip() if isinstance(value, str) else value for key, value in table.values.items()}
    label = urlsplit(values["issuer"]).hostname
    return convert({"label": label} | values | {"client_secret": secret}, Oidc), []


def _check_issuer(table: TableReader) -> None:
    issuer = table.read_text("issuer")
    if "issuer" not in table.values:
        return
    if not parsing.is_web_url(issuer) or "@" in urlsplit(issuer).netloc:
        table.report("expected an address such as https://login.example.com", "issuer")
    elif urlsplit(issuer).scheme == "http" and urlsplit(issuer).hostname not in LOCAL_HOSTS:
        table.report(
            "it must be https, because secrets are sent there; http is allowed only for this machine", "issuer"
        )


def _check_scopes(table: TableReader) -> None:
    request_scopes = table.values.get("request_scopes", ["openid"])
    if not _is_list_of_text(request_scopes) or "openid" not in request_scopes:
        table.report('expected a list with "openid" in it, such as ["openid", "profile"]', "request_scopes")
    groups, default_scopes = table.values.get("scopes", {}), table.values.get("default_scopes", [])
    if not isinstance(groups, dict):
        table.report('expected a table of groups, [oidc.scopes] with lines such as admins = ["admin"]', "scopes")
        return
    for group, scopes in cast(dict[str, object], groups).items():
        if not _are_scopes(scopes):
            table.report(f"expected a list of some of {KNOWN_SCOPES}", "scopes", group)
    if default_scopes != [] and not _are_scopes(default_scopes):
        table.report(f"expected a list of some of {KNOWN_SCOPES}", "default_scopes")
    if not groups and default_scopes == []:
        table.report(
            "no user has a scope; set the scopes of groups in [oidc.scopes], or of all users with default_scopes"
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, cast(list[object], value)))


def _are_scopes(value: object) -> bool:
    return _is_list_of_text(value) and bool(value) and set(cast(list[str], value)) <= set(Scope)


# All settings


class SettingsError(Exception):
    """All problems of the settings, one line each."""

    def __init__(self, problems: Iterable[str]) -> None:
        lines = [f"  {problem}" for problem in problems]
        super().__init__("\n".join(["Mergeyard cannot start with these settings:", *lines]))


def load(path: Path | None, environment: Mapping[str, str], options: Mapping[str, object]) -> Settings:
    given = [*parsing.from_environment(environment), *parsing.from_options(options)]
    try:
        file = parsing.read_settings_file(path, environment)
    except parsing.SettingsProblem as problem:
        raise SettingsError([str(problem), *_parse_values(given)[1]]) from None
    values, problems = _parse_values([*parsing.from_file(file), *given])
    address, address_problems = _read_database_url(values)
    hosts, host_problems = read_hosts(file, environment)
    oidc, oidc_problems = read_oidc(file, environment)
    if all_problems := problems + address_problems + host_problems + oidc_problems:
        raise SettingsError(all_problems)
    settings = structs.replace(Settings(hosts=hosts, oidc=oidc), **values, **address)
    if settings.role != "all" and settings.database_server_url is None:
        raise SettingsError(["role: the roles api and worker need a shared PostgreSQL database; set database_url"])
    return settings


def _read_database_url(values: Mapping[str, object]) -> tuple[dict[str, object], list[str]]:
    """Reads `database_url_file`, unless `database_url` is set."""
    path = values.get("database_url_file")
    if not isinstance(path, Path) or "database_url" in values:
        return {}, []
    try:
        text = path.read_text().strip()
    except (OSError, ValueError) as error:
        return {}, [f"database_url_file: {path} cannot be read: {parsing.describe_read_error(error)}"]
    return _parse_values(
        [parsing.SettingInput(key="database_url", value=text, location=str(path), base_dir=path.parent, is_typed=True)]
    )


def _parse_values(given: Iterable[parsing.SettingInput | str]) -> tuple[dict[str, object], list[str]]:
    """Parses the values and collects the problems. Later values override earlier ones; overridden values are validated
    too."""
    values: dict[str, object] = {}
    problems: list[str] = []
    for item in given:
        if isinstance(item, str):
            problems.append(item)
            continue
        try:
            values[item.key] = parsing.parse_value(item)
        except parsing.SettingsProblem as problem:
            problems.append(str(problem))
    return values, problems
