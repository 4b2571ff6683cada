"""Reads the table of the provider that vouches for people. Its secret stands in a file or in the environment."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from mergeyard.domain.tokens import Scope
from mergeyard.settings.fitting import is_web_address
from mergeyard.settings.schema import Oidc
from mergeyard.settings.sources import Complaint, File, unknown, variable

TEXTS = ("issuer", "client_id", "client_secret_file", "label", "name_claim", "groups_claim")
KEYS = (*TEXTS, "request_scopes", "default_scopes", "scopes")
SECRET = variable("oidc_client_secret")
KNOWN_SCOPES = ", ".join(Scope)
THIS_MACHINE = ("127.0.0.1", "::1", "localhost")

Table = dict[str, Any]


def read_oidc(file: File, environment: Mapping[str, str]) -> tuple[Oidc | None, list[Complaint]]:
    if "oidc" not in file.values:
        return None, []
    given = file.values["oidc"]
    if not isinstance(given, dict):
        return None, [Complaint(f"{file.where('oidc')}: expected a table, [oidc] with {', '.join(KEYS)}")]
    table = OidcTable(file, cast(Table, given), environment)
    complaints = list(table.complaints())
    return None if complaints else table.oidc(), complaints


class OidcTable:
    def __init__(self, file: File, table: Table, environment: Mapping[str, str]) -> None:
        self._file = file
        self._table = table
        self._environment = environment

    def complaints(self) -> Iterator[Complaint]:
        yield from (self._about_key(key) for key in self._table if key not in KEYS)
        wrong = [key for key in TEXTS if key in self._table and not self._text(key)]
        yield from (self._complaint("expected some text", key) for key in wrong)
        yield from (
            self._complaint(f"{key} is missing", then=MISSING[key]) for key in MISSING if key not in self._table
        )
        if "issuer" in self._table:
            yield from self._about_issuer()
        yield from self._about_secret()
        yield from self._about_requested()
        yield from self._about_scopes()

    def oidc(self) -> Oidc:
        changed: Table = {key: self._text(key) for key in ("name_claim", "groups_claim") if key in self._table}
        if "request_scopes" in self._table:
            changed["request_scopes"] = tuple(self._table["request_scopes"])
        return Oidc(
            issuer=self._text("issuer"),
            client_id=self._text("client_id"),
            client_secret=self._secret(),
            label=self._text("label") or str(urlsplit(self._text("issuer")).hostname),
            default_scopes=frozenset(map(Scope, self._table.get("default_scopes", ()))),
            scopes={group: frozenset(map(Scope, scopes)) for group, scopes in self._table.get("scopes", {}).items()},
            **changed,
        )

    # What may be wrong

    def _about_key(self, key: str) -> Complaint:
        if key == "client_secret":
            words = f"secrets do not stand here; set client_secret_file to a file, or the variable {SECRET}"
            return self._complaint(words, key)
        return unknown(self._file.where("oidc", key), key, KEYS)

    def _about_issuer(self) -> Iterator[Complaint]:
        issuer = self._text("issuer")
        if not is_web_address(issuer) or "@" in urlsplit(issuer).netloc:
            yield self._complaint("expected an address such as https://login.example.com", "issuer")
        elif urlsplit(issuer).scheme == "http" and urlsplit(issuer).hostname not in THIS_MACHINE:
            yield self._complaint("secrets go there; it must be https, except on this machine", "issuer")

    def _about_secret(self) -> Iterator[Complaint]:
        key = "client_secret_file"
        if key not in self._table:
            if not self._environment.get(SECRET, "").strip():
                yield self._complaint("its secret is missing", then=f"set {key}, or the variable {SECRET}")
            return
        try:
            if not self._path().read_text().strip():
                yield self._complaint(f"{self._path()} is empty; put the secret into it", key)
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else "it is no text"
            yield self._complaint(f"{self._path()} cannot be read: {words}", key)

    def _about_requested(self) -> Iterator[Complaint]:
        asked = self._table.get("request_scopes", ["openid"])
        if not _is_list_of_words(asked) or "openid" not in asked:
            yield self._complaint(
                'expected a list with "openid" in it, such as ["openid", "profile"]', "request_scopes"
            )

    def _about_scopes(self) -> Iterator[Complaint]:
        groups = self._table.get("scopes", {})
        if not isinstance(groups, dict):
            yield self._complaint(
                'expected a table of groups, [oidc.scopes] with lines such as admins = ["admin"]', "scopes"
            )
            return
        for keys, scopes in ((("scopes", group), scopes) for group, scopes in cast(Table, groups).items()):
            if not _are_scopes(scopes):
                yield self._complaint(f"expected a list of some of {KNOWN_SCOPES}", *keys)
        everybody = self._table.get("default_scopes", [])
        if everybody != [] and not _are_scopes(everybody):
            yield self._complaint(f"expected a list of some of {KNOWN_SCOPES}", "default_scopes")
        if not groups and everybody == []:
            then = "say which groups may do what in [oidc.scopes], or what everybody may do with default_scopes"
            yield self._complaint("nobody could come in", then=then)

    def _complaint(self, words: str, *keys: str, then: str = "") -> Complaint:
        return Complaint(f"{self._file.where('oidc', *keys)}: {words}{f'; {then}' if then else ''}")

    # What stands there

    def _secret(self) -> str:
        return (self._path().read_text() if "client_secret_file" in self._table else self._environment[SECRET]).strip()

    def _path(self) -> Path:
        return self._file.path.parent / self._text("client_secret_file")

    def _text(self, key: str) -> str:
        value = self._table.get(key, "")
        return value.strip() if isinstance(value, str) and value.isprintable() else ""


MISSING = {
    "issuer": 'name the provider, issuer = "https://login.example.com"',
    "client_id": "the provider gave it to you when you registered Mergeyard there",
}


def _is_list_of_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) and each for each in cast(list[object], value))


def _are_scopes(value: object) -> bool:
    return _is_list_of_words(value) and bool(value) and set(cast(list[str], value)) <= set(Scope)
