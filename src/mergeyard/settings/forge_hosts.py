"""Reads the tables of forges. What opens a forge stands in files or in the environment, never in the table itself."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from mergeyard.ports.host import ChecksFrom
from mergeyard.settings.fitting import is_web_address
from mergeyard.settings.schema import ForgeHost, Provider
from mergeyard.settings.sources import PREFIX, Complaint, File

SECRETS = ("token", "private_key", "webhook_secret")
KEYS = (
    *("provider", "url", "api_url", "app_id", "checks", "allow_untrusted_checks", "poll_seconds"),
    *(f"{secret}_file" for secret in SECRETS),
)
APIS = {Provider.GITHUB: "/api/v3", Provider.GITLAB: "/api/v4", Provider.GITEA: "/api/v1"}
GITHUB = {"github.com": "https://api.github.com"}
SHORTEST, LONGEST, USUAL = 1, 60, 20
"""Seconds between two readings of a repository that no webhook told of."""

Table = dict[str, object]


def variable(host: str, secret: str) -> str:
    """Where a secret of this host is looked for, if no file is named: `MERGEYARD_HOST_GITHUB_COM_TOKEN`."""
    return f"{PREFIX}HOST_{re.sub('[^A-Z0-9]', '_', host.upper())}_{secret.upper()}"


class ForgeTable:
    """One table, and where it stands."""

    def __init__(self, file: File, name: str, table: Table, environment: Mapping[str, str]) -> None:
        self._file = file
        self._name = name
        self._table = table
        self._environment = environment
        self._provider = Provider(str(table["provider"]))

    def complaints(self) -> Iterator[Complaint]:
        for key in ("url", "api_url"):
            if key in self._table and not is_web_address(self._text(key)):
                yield self._complaint(key, "expected an address such as https://git.example.com")
            elif "@" in urlsplit(self._text(key)).netloc:
                yield self._complaint(key, "everybody sees it; remove what stands before the @ and set token_file")
        if self._table.get("checks", ChecksFrom.HOST) not in tuple(ChecksFrom):
            yield self._complaint("checks", f"expected one of {', '.join(ChecksFrom)}")
        yield from self._complaints_about_untrusted_checks()
        seconds = self._table.get("poll_seconds", USUAL)
        if type(seconds) is not int or not SHORTEST <= seconds <= LONGEST:
            yield self._complaint("poll_seconds", f"expected a whole number from {SHORTEST} to {LONGEST}")
        for secret in SECRETS:
            yield from self._complaints_about_secret(secret)
        yield from self._complaints_about_access()

    def host(self) -> ForgeHost:
        url = self._text("url").rstrip("/") or f"https://{self._name}"
        api = self._text("api_url").rstrip("/") or GITHUB.get(self._name, url + APIS[self._provider])
        return ForgeHost(
            provider=self._provider,
            url=url,
            api_url=api,
            token=self._secret("token"),
            app_id=self._text("app_id") or None,
            private_key=self._secret("private_key"),
            webhook_secret=self._secret("webhook_secret"),
            checks=ChecksFrom(str(self._table.get("checks", ChecksFrom.HOST))),
            allow_untrusted_checks=bool(self._table.get("allow_untrusted_checks")),
            poll_seconds=int(str(self._table.get("poll_seconds", USUAL))),
        )

    def _complaints_about_untrusted_checks(self) -> Iterator[Complaint]:
        allowed = self._table.get("allow_untrusted_checks", False)
        if not isinstance(allowed, bool):
            yield self._complaint("allow_untrusted_checks", "expected true or false")
        elif self._table.get("checks") == ChecksFrom.RUN and not allowed:
            yield self._complaint(
                "checks",
                "this would run files of pull requests, also from forks, on this machine as the service's user; set it"
                ' to "host" or "api", or accept the risk with allow_untrusted_checks = true',
            )

    def _complaints_about_secret(self, secret: str) -> Iterator[Complaint]:
        key = f"{secret}_file"
        if key not in self._table:
            return
        try:
            if not self._read(key).strip():
                yield self._complaint(key, f"{self._path(key)} is empty; put the secret into it")
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else "it is no text"
            yield self._complaint(key, f"{self._path(key)} cannot be read: {words}")

    def _complaints_about_access(self) -> Iterator[Complaint]:
        where = self._file.where("hosts", self._name)
        has_token = "token_file" in self._table or self._environment.get(variable(self._name, "token"))
        has_key = "private_key_file" in self._table or self._environment.get(variable(self._name, "private_key"))
        if "app_id" in self._table and self._provider is not Provider.GITHUB:
            yield self._complaint("app_id", f"only GitHub has Apps; give {self._provider} a token_file")
        elif "app_id" in self._table and not has_key:
            name = variable(self._name, "private_key")
            yield Complaint(f"{where}: an App needs its key: set private_key_file, or the variable {name}")
        elif "app_id" not in self._table and not has_token:
            name = variable(self._name, "token")
            yield Complaint(f"{where}: nothing opens it: set token_file, or the variable {name}")

    def _secret(self, secret: str) -> str | None:
        key = f"{secret}_file"
        if key in self._table:
            return self._read(key).strip()
        return self._environment.get(variable(self._name, secret), "").strip() or None

    def _read(self, key: str) -> str:
        return self._path(key).read_text()

    def _path(self, key: str) -> Path:
        return self._file.path.parent / self._text(key)

    def _text(self, key: str) -> str:
        return str(self._table.get(key, ""))

    def _complaint(self, key: str, words: str) -> Complaint:
        return Complaint(f"{self._file.where('hosts', self._name, key)}: {words}")
