"""How an identity provider is named, where its secret may stand, and what is said when something is wrong."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from mergeyard.domain.tokens import Scope
from mergeyard.settings import Oidc, SettingsError, load

ISSUER = 'issuer = "https://login.example.com"\n'
CLIENT = 'client_id = "yard"\n'
GROUPS = '[oidc.scopes]\n"release crew" = ["submit", "priority"]\n'
SECRET = {"MERGEYARD_OIDC_CLIENT_SECRET": "shh\n"}


def read(folder: Path, text: str, environment: Mapping[str, str] = SECRET) -> Oidc | None:
    path = folder / "mergeyard.toml"
    path.write_text(text)
    return load(path, environment, {}).oidc


def complaint(folder: Path, text: str, environment: Mapping[str, str] = SECRET) -> str:
    with pytest.raises(SettingsError) as raised:
        read(folder, text, environment)
    (_, words) = str(raised.value).splitlines()
    return words.strip().removeprefix(f"{folder}/mergeyard.toml ")


def test_nobody_else_vouches_unless_it_is_said(tmp_path: Path):
    assert read(tmp_path, "") is None


def test_a_provider_a_client_and_a_group_are_enough(tmp_path: Path):
    assert read(tmp_path, "[oidc]\n" + ISSUER + CLIENT + GROUPS) == Oidc(
        issuer="https://login.example.com",
        client_id="yard",
        client_secret="shh",
        label="login.example.com",
        scopes={"release crew": frozenset({Scope.SUBMIT, Scope.PRIORITY})},
    )


def test_everything_may_be_said(tmp_path: Path):
    (tmp_path / "secret").write_text("from the file\n")
    text = f"""[oidc]
{ISSUER}{CLIENT}client_secret_file = "secret"
label = "Acme"
request_scopes = ["openid", "email"]
name_claim = "email"
groups_claim = "realm_access.roles"
default_scopes = ["read"]
"""
    assert read(tmp_path, text) == Oidc(
        issuer="https://login.example.com",
        client_id="yard",
        client_secret="from the file",
        label="Acme",
        request_scopes=("openid", "email"),
        name_claim="email",
        groups_claim="realm_access.roles",
        default_scopes=frozenset({Scope.READ}),
    )


def test_an_issuer_keeps_its_last_slash_because_providers_count_it(tmp_path: Path):
    oidc = read(tmp_path, '[oidc]\nissuer = "https://acme.example.com/"\n' + CLIENT + GROUPS)
    assert oidc is not None
    assert oidc.issuer == "https://acme.example.com/"


def test_on_this_machine_it_need_not_be_https(tmp_path: Path):
    assert read(tmp_path, '[oidc]\nissuer = "http://127.0.0.1:5556/dex"\n' + CLIENT + GROUPS)


def test_the_secret_is_never_shown(tmp_path: Path):
    assert "shh" not in repr(read(tmp_path, "[oidc]\n" + ISSUER + CLIENT + GROUPS))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("oidc = 1\n", "line 1, oidc: expected a table"),
        (f"[oidc]\n{CLIENT}{GROUPS}", "issuer is missing; name the provider"),
        (f"[oidc]\n{ISSUER}{GROUPS}", "client_id is missing"),
        (f"[oidc]\n{ISSUER}{CLIENT}", "line 1, oidc: nobody could come in; say which groups"),
        (f"[oidc]\n{ISSUER}client_id = 7\n{GROUPS}", "line 3, oidc.client_id: expected some text"),
        (f'[oidc]\nissuer = "login.example.com"\n{CLIENT}{GROUPS}', "expected an address such as"),
        (f'[oidc]\nissuer = "https://a:b@example.com"\n{CLIENT}{GROUPS}', "expected an address such as"),
        (f'[oidc]\nissuer = "http://login.example.com"\n{CLIENT}{GROUPS}', "it must be https"),
        (f'[oidc]\nclient_secrets = "x"\n{ISSUER}{CLIENT}{GROUPS}', "did you mean client_secret_file?"),
        (f'[oidc]\nclient_secret_file = "nowhere"\n{ISSUER}{CLIENT}{GROUPS}', "cannot be read: No such file"),
        (f'[oidc]\nrequest_scopes = ["profile"]\n{ISSUER}{CLIENT}{GROUPS}', 'a list with "openid" in it'),
        (f'[oidc]\nrequest_scopes = "openid"\n{ISSUER}{CLIENT}{GROUPS}', 'a list with "openid" in it'),
        (f'[oidc]\ndefault_scopes = ["write"]\n{ISSUER}{CLIENT}', "expected a list of some of read, submit"),
        (f'[oidc]\nscopes = ["read"]\n{ISSUER}{CLIENT}', "expected a table of groups"),
        (f'[oidc]\n{ISSUER}{CLIENT}[oidc.scopes]\nops = "admin"', "line 5, oidc.scopes.ops: expected a list"),
        (f"[oidc]\n{ISSUER}{CLIENT}[oidc.scopes]\nops = []", "oidc.scopes.ops: expected a list"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, words: str):
    assert words in complaint(tmp_path, text)


def test_a_missing_secret_is_said(tmp_path: Path):
    words = complaint(tmp_path, "[oidc]\n" + ISSUER + CLIENT + GROUPS, {})
    assert words.endswith("set client_secret_file, or the variable MERGEYARD_OIDC_CLIENT_SECRET")


def test_an_empty_file_is_no_secret(tmp_path: Path):
    (tmp_path / "empty").touch()
    text = f'[oidc]\nclient_secret_file = "empty"\n{ISSUER}{CLIENT}{GROUPS}'
    assert complaint(tmp_path, text).endswith("is empty; put the secret into it")


def test_a_secret_in_the_table_is_refused_and_not_repeated(tmp_path: Path):
    words = complaint(tmp_path, f'[oidc]\nclient_secret = "abc123"\n{ISSUER}{CLIENT}{GROUPS}')
    assert "set client_secret_file to a file" in words
    assert "abc123" not in words
