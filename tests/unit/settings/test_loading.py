"""Settings from the file, the environment and the command line: precedence, hosts, single sign-on, problems."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mergeyard.adapters.forges.rate_limits import GITHUB_CLOUD_PACE
from mergeyard.adapters.signing import parse_signing_key
from mergeyard.domain.access import Scope
from mergeyard.ports.forge import ChecksFrom
from mergeyard.settings import ForgeHost, Oidc, PlainHost, Provider, Settings, SettingsError, load
from mergeyard.settings.loading import Hosts, read_hosts, to_secret_variable
from mergeyard.settings.parsing import SettingsFile, read_settings_file
from mergeyard.wiring import build_forge_config, make_identities


def write_settings(folder: Path, text: str) -> Path:
    file = folder / "mergeyard.toml"
    file.write_text(text)
    return file


def load_problems(
    path: Path | None = None, environment: Mapping[str, str] | None = None, options: Mapping[str, object] | None = None
) -> list[str]:
    with pytest.raises(SettingsError) as raised:
        load(path, environment or {}, options or {})
    first, *lines = str(raised.value).splitlines()
    assert first == "Mergeyard cannot start with these settings:"
    return [line.strip() for line in lines]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# Precedence


def test_the_database_url_can_be_in_a_file(tmp_path: Path):
    address = "postgresql://ada:s3cret@db.example/queue"
    (tmp_path / "url").write_text(f"{address}\n")
    for settings in (
        load(write_settings(tmp_path, 'database_url_file = "url"'), {}, {}),
        load(write_settings(tmp_path, ""), {"MERGEYARD_DATABASE_URL_FILE": "url"}, {}),
    ):
        assert settings.database_url == address
        assert "s3cret" not in repr(settings)


def test_a_given_database_url_takes_precedence_over_the_file():
    settings = load(None, {"MERGEYARD_DATABASE_URL_FILE": "missing"}, {"database_url": "sqlite:///other.db"})
    assert settings.database_path == Path("other.db")


def test_an_invalid_database_url_file_is_named_without_its_contents(tmp_path: Path):
    variable = {"MERGEYARD_DATABASE_URL_FILE": "url"}
    assert "url cannot be read" in load_problems(environment=variable)[0]
    (tmp_path / "url").write_text("mysql://ada:s3cret@db.example/queue")
    (problem,) = load_problems(environment=variable)
    assert problem.startswith("url: expected postgresql://")
    assert "s3cret" not in problem


def test_without_sources_all_settings_have_defaults():
    assert load(None, {}, {}) == Settings()


def test_the_command_line_overrides_the_environment_and_both_override_the_file(tmp_path: Path):
    file = write_settings(tmp_path, 'port = 1\nhost = "file"\nlog_level = "debug"')
    environment = {"MERGEYARD_PORT": "2", "MERGEYARD_HOST": "environment"}
    settings = load(file, environment, {"port": 3})
    assert (settings.port, settings.host, settings.log_level) == (3, "environment", "debug")


def test_options_that_were_not_given_and_empty_variables_are_ignored(tmp_path: Path):
    file = write_settings(tmp_path, "port = 1")
    assert load(file, {"MERGEYARD_PORT": ""}, {"port": None, "host": None}) == Settings(port=1)


def test_the_file_in_the_current_folder_is_read_by_default(tmp_path: Path):
    write_settings(tmp_path, "port = 1")
    assert load(None, {}, {}).port == 1


def test_a_variable_names_the_file_and_the_command_line_overrides_it(tmp_path: Path):
    write_settings(tmp_path, "port = 1")
    (tmp_path / "second.toml").write_text("port = 2")
    (tmp_path / "third.toml").write_text("port = 3")
    environment = {"MERGEYARD_CONFIG": "second.toml"}
    assert load(None, environment, {}).port == 2
    assert load(Path("third.toml"), environment, {}).port == 3


def test_numbers_and_booleans_are_parsed_from_the_environment():
    environment = {"MERGEYARD_PORT": "0", "MERGEYARD_OPEN_METRICS": "true", "MERGEYARD_RUNNER_LIMIT": "7"}
    assert load(None, environment, {}) == Settings(port=0, open_metrics=True, runner_limit=7)


def test_variables_of_the_client_and_of_kubernetes_are_ignored():
    others = ("URL", "TOKEN", "SERVICE_HOST", "SERVICE_PORT", "PORT_8080_TCP", "PORT_8080_TCP_ADDR")
    assert load(None, {f"MERGEYARD_{name}": "x" for name in others}, {}) == Settings()


# Roles


@pytest.mark.parametrize("role", ["api", "worker"])
def test_a_process_with_one_role_needs_a_shared_database(role: str):
    with pytest.raises(SettingsError, match="need a shared PostgreSQL database; set database_url"):
        load(None, {"MERGEYARD_ROLE": role}, {})
    shared = {"MERGEYARD_ROLE": role, "MERGEYARD_DATABASE_URL": "postgresql://db/queue"}
    assert load(None, shared, {}).role == role


# Paths


def test_relative_paths_in_the_file_are_relative_to_it(tmp_path: Path):
    folder = tmp_path / "etc"
    (folder / "repos").mkdir(parents=True)
    file = write_settings(
        folder,
        'data_dir = "data"\ndatabase_url = "sqlite:///db/queue.db"\n[hosts.local]\nprovider = "git"\nroot = "repos"',
    )
    settings = load(file, {}, {})
    assert settings.data_dir == folder / "data"
    assert settings.database_path == folder / "db/queue.db"
    assert settings.hosts == {"local": PlainHost(root=folder / "repos")}


def test_absolute_paths_stay_as_they_are(tmp_path: Path):
    file = write_settings(tmp_path, 'data_dir = "/data"\ndatabase_url = "sqlite:////db/queue.db"')
    assert load(file, {}, {}).data_dir == Path("/data")
    assert load(file, {}, {}).database_path == Path("/db/queue.db")


def test_other_relative_paths_are_relative_to_the_current_folder(tmp_path: Path):
    file = write_settings(tmp_path, 'data_dir = "file"')
    assert load(file, {"MERGEYARD_DATA_DIR": "variable"}, {}).data_dir == Path("variable")
    assert load(file, {}, {"data_dir": Path("option")}).data_dir == Path("option")
    assert load(file, {"MERGEYARD_DATABASE_URL": "sqlite:///queue.db"}, {}).database_path == Path("queue.db")


# Problems


def test_a_named_file_must_exist():
    (problem,) = load_problems(Path("nowhere.toml"))
    assert problem.startswith("nowhere.toml: No such file or directory; correct --config or MERGEYARD_CONFIG")
    assert load_problems(environment={"MERGEYARD_CONFIG": "nowhere.toml"}) == [problem]


def test_invalid_toml_is_reported_with_its_line(tmp_path: Path):
    file = write_settings(tmp_path, "port = 1\nhost =\n")
    assert load_problems(file) == [f"{file}: not valid TOML: Invalid value (at line 2, column 7)"]


def test_a_mistyped_setting_is_reported_with_a_suggestion(tmp_path: Path):
    file = write_settings(tmp_path, "# first\nprot = 1\nzebra = 2\n")
    assert load_problems(file, {"MERGEYARD_LOG_LEVLE": "info"}, {"data_dri": "x"}) == [
        f"{file}: prot: unknown setting; did you mean port?",
        f"{file}: zebra: unknown setting; remove it",
        "MERGEYARD_LOG_LEVLE: unknown setting; did you mean MERGEYARD_LOG_LEVEL?",
        "--data-dri: unknown setting; did you mean --data-dir?",
    ]


def test_all_problems_are_reported_at_once_with_their_location(tmp_path: Path):
    file = write_settings(tmp_path, 'port = "8080"\n\nopen_metrics = "yes"\ndata_dir = 3\n')
    assert load_problems(file, {"MERGEYARD_PORT": "tcp://10.0.0.1:8080"}, {"log_format": "xml"}) == [
        f"{file}: port: expected a whole number from 0 to 65535, not '8080'",
        f"{file}: open_metrics: expected true or false, not 'yes'",
        f"{file}: data_dir: expected the path of a folder, not 3",
        "MERGEYARD_PORT: expected a whole number from 0 to 65535, not 'tcp://10.0.0.1:8080'",
        "--log-format: expected one of auto, human, json, not 'xml'",
    ]


def test_a_broken_file_does_not_hide_other_problems(tmp_path: Path):
    file = write_settings(tmp_path, "port")
    assert len(load_problems(file, {"MERGEYARD_PORT": "many"})) == 2


def test_hosts_in_the_environment_are_refused():
    (problem,) = load_problems(environment={"MERGEYARD_HOSTS": "x"})
    assert problem.startswith("MERGEYARD_HOSTS: hosts can be set only in the file")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the settings file, which is not the current folder."""
    folder = tmp_path / "etc"
    (folder / "repos").mkdir(parents=True)
    return folder


def file_with(folder: Path, text: str) -> SettingsFile:
    path = folder / "mergeyard.toml"
    path.write_text(text)
    return read_settings_file(path, {})


def read_plain_hosts(folder: Path, text: str) -> Hosts:
    found, problems = read_hosts(file_with(folder, text), {})
    assert problems == []
    return found


def host_problems(folder: Path, text: str) -> list[str]:
    _, found = read_hosts(file_with(folder, text), {})
    return [problem.removeprefix(f"{folder}/mergeyard.toml: ") for problem in found]


def test_a_plain_host_has_a_folder_and_gets_its_checks_from_the_api(folder: Path):
    found = read_plain_hosts(folder, '[hosts."git.local"]\nprovider = "git"\nroot = "repos"')
    assert found == {"git.local": PlainHost(root=folder / "repos", checks=ChecksFrom.API)}


def test_a_plain_host_can_have_its_checks_run(folder: Path):
    found = read_plain_hosts(folder, '[hosts."git.local:8022"]\nprovider = "git"\nroot = "repos"\nchecks = "run"')
    assert found["git.local:8022"].checks is ChecksFrom.RUN


def test_the_name_of_a_host_is_lower_case(folder: Path):
    assert set(read_plain_hosts(folder, '[hosts."Git.Local"]\nprovider = "git"\nroot = "repos"')) == {"git.local"}


def test_two_spellings_of_one_host_are_refused(folder: Path):
    text = '[hosts.A]\nprovider = "git"\nroot = "repos"\n[hosts.a]\nprovider = "git"\nroot = "repos"'
    assert host_problems(folder, text) == [
        "hosts.a: this host is already configured with other capitalization; remove one of the two"
    ]


def test_hosts_are_optional(folder: Path):
    assert read_plain_hosts(folder, "port = 1") == {}


@pytest.mark.parametrize("line", ["", 'provider = "svn"', "provider = 1"])
def test_a_host_needs_a_known_provider(folder: Path, line: str):
    (problem,) = host_problems(folder, f'[hosts.a]\n{line}\nroot = "repos"')
    assert problem.endswith('expected provider = one of "git", "github", "gitlab", "gitea"')


def test_a_plain_host_needs_a_root(folder: Path):
    (problem,) = host_problems(folder, '[hosts.a]\nprovider = "git"')
    assert problem.startswith("hosts.a: root is missing")


def test_the_root_must_exist(folder: Path):
    (problem,) = host_problems(folder, '[hosts.a]\nprovider = "git"\nroot = "nowhere"')
    assert problem == (f"hosts.a.root: folder {folder / 'nowhere'} does not exist; create it, or correct the path")


@pytest.mark.parametrize("root", ["3", '""', '"a\\u0000b"', "[]"])
def test_the_root_must_be_a_path(folder: Path, root: str):
    (problem,) = host_problems(folder, f'[hosts.a]\nprovider = "git"\nroot = {root}')
    assert problem == "hosts.a.root: expected the path of a folder"


@pytest.mark.parametrize("checks", ['"never"', "1", "[]"])
def test_checks_come_from_the_api_or_are_run(folder: Path, checks: str):
    (problem,) = host_problems(folder, f'[hosts.a]\nprovider = "git"\nroot = "repos"\nchecks = {checks}')
    assert problem == "hosts.a.checks: expected one of api, run"


def test_a_mistyped_key_of_a_host_is_reported_with_a_suggestion(folder: Path):
    (problem,) = host_problems(folder, '[hosts."git.local"]\nprovider = "git"\nroot = "repos"\ncheck = "run"')
    assert problem == 'hosts."git.local".check: unknown setting; did you mean checks?'


@pytest.mark.parametrize("name", ["..", "a/b", "-a", "", "a b", "a\\n"])
def test_an_invalid_host_name_is_refused(folder: Path, name: str):
    (problem,) = host_problems(folder, f'[hosts."{name}"]\nprovider = "git"\nroot = "repos"')
    assert problem.endswith("expected the name of a host, such as git.local")


@pytest.mark.parametrize("text", ["hosts = 3", "[[hosts]]", "[hosts]\na = 3"])
def test_hosts_are_tables(folder: Path, text: str):
    (problem,) = host_problems(folder, text)
    assert "expected" in problem
    assert "table" in problem


GITHUB = '[hosts."github.com"]\nprovider = "github"\n'
TOKEN = {"MERGEYARD_HOST_GITHUB_COM_TOKEN": "secret"}


def read_forge_hosts(folder: Path, text: str, environment: Mapping[str, str]) -> tuple[Hosts, list[str]]:
    path = folder / "mergeyard.toml"
    path.write_text(text)
    hosts, problems = read_hosts(read_settings_file(path, {}), environment)
    return hosts, [problem.removeprefix(str(path)).strip() for problem in problems]


def read_forge(folder: Path, text: str, environment: Mapping[str, str]) -> ForgeHost:
    hosts, problems = read_forge_hosts(folder, text, environment)
    assert problems == []
    (host,) = hosts.values()
    assert isinstance(host, ForgeHost)
    return host


def forge_problem(folder: Path, text: str, environment: Mapping[str, str] = TOKEN) -> str:
    hosts, (problem,) = read_forge_hosts(folder, text, environment)
    assert hosts == {}
    return problem


@pytest.mark.parametrize(
    ("name", "provider", "api"),
    [
        ("github.com", "github", "https://api.github.com"),
        ("git.acme.com", "github", "https://git.acme.com/api/v3"),
        ("acme.ghe.com", "github", "https://api.acme.ghe.com"),
        ("acme.ghe.com", "gitea", "https://acme.ghe.com/api/v1"),
        ("notghe.com", "github", "https://notghe.com/api/v3"),
        ("gitlab.com", "gitlab", "https://gitlab.com/api/v4"),
        ("codeberg.org", "gitea", "https://codeberg.org/api/v1"),
    ],
)
def test_a_name_and_a_token_are_enough(folder: Path, name: str, provider: str, api: str):
    text = f'[hosts."{name}"]\nprovider = "{provider}"\n'
    assert read_forge(folder, text, {to_secret_variable(name, "token"): "secret\n"}) == ForgeHost(
        provider=Provider(provider), url=f"https://{name}", api_url=api, token="secret", checks=ChecksFrom.HOST
    )


def test_a_private_authority_is_a_file_next_to_the_settings(folder: Path, monkeypatch: pytest.MonkeyPatch):
    certificate = Path(__file__).parents[2] / "support" / "no_public_authority.pem"
    (folder / "ca.pem").write_bytes(certificate.read_bytes())
    assert read_forge(folder, GITHUB + 'ca_file = "ca.pem"\n', TOKEN).ca_file == folder / "ca.pem"
    monkeypatch.chdir(folder)
    assert read_forge(Path(), GITHUB + 'ca_file = "ca.pem"\n', TOKEN).ca_file == folder / "ca.pem"
    assert read_forge(folder, GITHUB + 'ca_file = ""\n', TOKEN).ca_file is None


@pytest.mark.parametrize(
    ("provider", "api_url", "is_cloud"),
    [
        ("github", "https://api.github.com", True),
        ("github", "https://api.acme.ghe.com", True),
        ("github", "https://git.acme.com/api/v3", False),
        ("github", "https://api.github.com.acme.com", False),
        ("gitlab", "https://api.github.com", False),
    ],
)
def test_the_limits_of_githubs_cloud_apply_there_only(provider: str, api_url: str, is_cloud: bool):
    host = ForgeHost(provider=Provider(provider), url="https://x", api_url=api_url)
    assert host.is_github_cloud is is_cloud
    config = build_forge_config("x", host, None)
    assert config.write_pace == (GITHUB_CLOUD_PACE if is_cloud else None)


def test_a_forge_can_have_another_address_than_its_name(folder: Path):
    forge = read_forge(folder, GITHUB + 'url = "http://127.0.0.1:3000/git/"\n', TOKEN)
    assert (forge.url, forge.api_url) == ("http://127.0.0.1:3000/git", "https://api.github.com")
    forge = read_forge(folder, GITHUB + 'api_url = "http://127.0.0.1:3000/api/"\n', TOKEN)
    assert (forge.url, forge.api_url) == ("https://github.com", "http://127.0.0.1:3000/api")


def test_relative_secret_files_are_next_to_the_settings_file(folder: Path):
    for name in ("token", "key", "hook"):
        (folder / name).write_text(f"the {name}\n")
    text = GITHUB + 'app_id = "12"\nprivate_key_file = "key"\ntoken_file = "token"\nwebhook_secret_file = "hook"\n'
    forge = read_forge(folder, text, {})
    secrets = (forge.token, forge.app_id, forge.private_key, forge.webhook_secret)
    assert secrets == ("the token", "12", "the key", "the hook")


def test_a_secret_file_takes_precedence_over_the_environment(folder: Path):
    (folder / "token").write_text("from the file")
    assert read_forge(folder, GITHUB + 'token_file = "token"', TOKEN).token == "from the file"


def test_rules_that_cannot_be_read_block_unless_the_file_permits_to_go_on(folder: Path):
    assert read_forge(folder, GITHUB, TOKEN).unreadable_rules == "unmet"
    assert read_forge(folder, GITHUB + 'unreadable_rules = "unmet"\n', TOKEN).unreadable_rules == "unmet"
    assert read_forge(folder, GITHUB + 'unreadable_rules = "unknown"\n', TOKEN).unreadable_rules == "unknown"


def test_only_maintainers_can_submit_as_urgent_unless_the_file_permits_writers(folder: Path):
    assert Settings(hosts=read_forge_hosts(folder, GITHUB, TOKEN)[0]).hosts_with_urgent_writers == frozenset()
    for group, hosts in (("maintainers", frozenset[str]()), ("writers", frozenset({"github.com"}))):
        text = f'{GITHUB}urgent_from = "{group}"\n\n[hosts."git.local"]\nprovider = "git"\nroot = "."\n'
        assert Settings(hosts=read_forge_hosts(folder, text, TOKEN)[0]).hosts_with_urgent_writers == hosts


PLAIN = '[hosts."git.local"]\nprovider = "git"\nroot = "."\n'
SIGNING_KEY = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


@pytest.mark.parametrize("text", [GITHUB, PLAIN])
def test_the_key_that_signs_commits_is_a_file_next_to_the_settings(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str
):
    (folder / "signing.key").write_bytes(SIGNING_KEY)
    monkeypatch.chdir(folder)
    for place in (folder, Path()):
        hosts, problems = read_forge_hosts(place, text + 'signing_key_file = "signing.key"\n', TOKEN)
        assert (problems, [host.signing_key_file for host in hosts.values()]) == ([], [folder / "signing.key"])
    hosts, _ = read_forge_hosts(folder, text + 'signing_key_file = ""\n', TOKEN)
    assert [host.signing_key_file for host in hosts.values()] == [None]


@pytest.mark.parametrize("text", [GITHUB, PLAIN])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('signing_key_file = "nowhere.key"', "nowhere.key cannot be read: No such file or directory"),
        ('signing_key_file = "."', "cannot be read: "),
        ('signing_key_file = "a\\u0000b"', "cannot be read: "),
        ('signing_key_file = "mergeyard.toml"', "mergeyard.toml has no private key in a known format; create one with"),
        ('signing_key_file = "half.key"', "half.key is damaged, or its type is not supported; use an Ed25519 key"),
        ('signing_key = "abc123"', "secrets are not allowed here; set signing_key_file to a file"),
    ],
)
def test_a_key_that_cannot_sign_is_reported_without_its_contents(folder: Path, text: str, line: str, message: str):
    (folder / "half.key").write_bytes(SIGNING_KEY[:150])
    problem = forge_problem(folder, text + line)
    assert message in problem
    assert "abc123" not in problem
    assert SIGNING_KEY[100:140].decode() not in problem


def test_a_pipe_or_a_large_file_is_no_key(folder: Path):
    """Neither may hold up the start, or fill the memory."""
    os.mkfifo(folder / "pipe")
    (folder / "large.key").write_bytes(SIGNING_KEY + b"\n" * 300_000)
    assert "pipe cannot be read: it is not a regular file" in forge_problem(folder, f'{PLAIN}signing_key_file = "pipe"')
    problem = forge_problem(folder, f'{PLAIN}signing_key_file = "large.key"')
    assert "large.key has more than 262144 bytes" in problem


def test_the_key_signs_for_its_own_host_only_with_the_address_of_the_settings(folder: Path):
    (folder / "signing.key").write_bytes(SIGNING_KEY)
    hosts, _ = read_forge_hosts(folder, f'{PLAIN}signing_key_file = "signing.key"\n\n{GITHUB}', TOKEN)
    identities = make_identities(Settings(hosts=hosts, committer_name="Ada"))
    key = parse_signing_key(SIGNING_KEY).fingerprint
    found = {
        name: (identity.name, identity.email, identity.signer and identity.signer.fingerprint)
        for name, identity in identities.items()
    }
    assert found == {"git.local": ("Ada", "", key), "github.com": ("Ada", "", None)}
    settings = Settings(hosts=hosts, committer_email="ada@example.org")
    assert {identity.email for identity in make_identities(settings).values()} == {"ada@example.org"}
    assert SIGNING_KEY.decode()[100:140] not in repr(settings)


def test_a_forge_knows_the_key_that_must_be_registered_there(folder: Path):
    (folder / "signing.key").write_bytes(SIGNING_KEY)
    host = read_forge(folder, GITHUB + 'signing_key_file = "signing.key"\n', TOKEN)
    config = build_forge_config("github.com", host, None)
    assert config.signer is not None
    assert config.signer.public_key == parse_signing_key(SIGNING_KEY).public_key
    assert "signer" not in repr(config)
    assert config.signer is make_identities(Settings(hosts={"github.com": host}))["github.com"].signer


def test_secrets_are_never_shown(folder: Path):
    assert "secret" not in repr(read_forge(folder, GITHUB, TOKEN))


@pytest.mark.parametrize("key", ["token", "private_key", "webhook_secret"])
def test_a_secret_in_the_table_is_refused_and_not_repeated(folder: Path, key: str):
    problem = forge_problem(folder, GITHUB + f'{key} = "abc123"')
    assert f"set {key}_file to a file, or the variable MERGEYARD_HOST_GITHUB_COM_{key.upper()}" in problem
    assert "abc123" not in problem


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('url = "github.com"', "expected an address such as"),
        ('url = "https://me:pw@x"', "remove the user name and password before the @"),
        ('api_url = "ftp://x"', "expected an address such as"),
        ('checks = "github"', "expected one of host, api, run"),
        ('checks = "run"', "or accept the risk with allow_untrusted_checks = true"),
        ('checks = "run"\nallow_untrusted_checks = false', "files of pull requests, also from forks"),
        ('checks = "run"\nallow_untrusted_checks = "true"', "expected true or false"),
        ("poll_seconds = 0", "expected a whole number from 1 to 60"),
        ("poll_seconds = true", "expected a whole number from 1 to 60"),
        ('unreadable_rules = "ignored"', ".unreadable_rules: expected one of unmet, unknown"),
        ("urgent_from = []", ".urgent_from: expected one of maintainers, writers"),
        ('token_file = "nowhere"', "cannot be read: No such file or directory"),
        ('ca_file = "nowhere.pem"', "nowhere.pem cannot be read: No such file or directory"),
        ('ca_file = "."', "cannot be read: "),
        ('ca_file = "a\\u0000b"', "cannot be read: "),
        ('ca_file = "mergeyard.toml"', "mergeyard.toml contains no certificate; put"),
        ('ca = "x"', "unknown setting; remove it"),
        ('app_id = "12"', "the App has no private key; set private_key_file"),
        ('tokenfile = "x"', "did you mean token_file?"),
        ('root = "repos"', "unknown setting"),
    ],
)
def test_a_problem_of_a_forge_host_is_reported(folder: Path, line: str, message: str):
    assert message in forge_problem(folder, GITHUB + line)


@pytest.mark.parametrize(("name", "provider"), [("github.com", "github"), ("gitlab.com", "gitlab"), ("a.b", "gitea")])
def test_a_forge_runs_checks_on_this_machine_only_where_untrusted_checks_are_allowed(
    folder: Path, name: str, provider: str
):
    table = f'[hosts."{name}"]\nprovider = "{provider}"\nchecks = "run"\n'
    token = {to_secret_variable(name, "token"): "secret"}
    assert "allow_untrusted_checks" in forge_problem(folder, table, token)
    assert read_forge(folder, table + "allow_untrusted_checks = true", token).checks is ChecksFrom.RUN


def test_an_empty_secret_file_of_a_forge_is_refused(folder: Path):
    (folder / "token").write_text(" \n")
    assert forge_problem(folder, GITHUB + 'token_file = "token"').endswith("is empty; put the secret into it")


@pytest.mark.parametrize("environment", [{}, {"MERGEYARD_HOST_GITHUB_COM_TOKEN": " "}])
def test_a_forge_needs_credentials(folder: Path, environment: dict[str, str]):
    problem = forge_problem(folder, GITHUB, environment)
    assert problem.endswith("set token_file, or the variable MERGEYARD_HOST_GITHUB_COM_TOKEN")


def test_only_github_has_apps(folder: Path):
    text = '[hosts."gitlab.com"]\nprovider = "gitlab"\napp_id = "1"'
    assert forge_problem(folder, text).endswith("only GitHub has Apps; set token_file for gitlab")


ISSUER = 'issuer = "https://login.example.com"\n'
CLIENT = 'client_id = "mergeyard"\n'
GROUPS = '[oidc.scopes]\n"release crew" = ["submit", "priority"]\n'
SECRET = {"MERGEYARD_OIDC_CLIENT_SECRET": "shh\n"}


def read_oidc(folder: Path, text: str, environment: Mapping[str, str] = SECRET) -> Oidc | None:
    path = folder / "mergeyard.toml"
    path.write_text(text)
    return load(path, environment, {}).oidc


def oidc_problem(folder: Path, text: str, environment: Mapping[str, str] = SECRET) -> str:
    with pytest.raises(SettingsError) as raised:
        read_oidc(folder, text, environment)
    (_, problem) = str(raised.value).splitlines()
    return problem.strip().removeprefix(f"{folder}/mergeyard.toml: ")


def test_there_is_no_identity_provider_by_default(folder: Path):
    assert read_oidc(folder, "") is None


def test_a_provider_a_client_and_a_group_are_enough(folder: Path):
    assert read_oidc(folder, "[oidc]\n" + ISSUER + CLIENT + GROUPS) == Oidc(
        issuer="https://login.example.com",
        client_id="mergeyard",
        client_secret="shh",
        label="login.example.com",
        scopes={"release crew": frozenset({Scope.SUBMIT, Scope.PRIORITY})},
    )


def test_every_oidc_setting_can_be_given(folder: Path):
    (folder / "secret").write_text("from the file\n")
    text = f"""[oidc]
{ISSUER}{CLIENT}client_secret_file = "secret"
label = "Acme"
request_scopes = ["openid", "email"]
name_claim = "email"
groups_claim = "realm_access.roles"
default_scopes = ["read"]
"""
    assert read_oidc(folder, text) == Oidc(
        issuer="https://login.example.com",
        client_id="mergeyard",
        client_secret="from the file",
        label="Acme",
        request_scopes=("openid", "email"),
        name_claim="email",
        groups_claim="realm_access.roles",
        default_scopes=frozenset({Scope.READ}),
    )


def test_an_issuer_keeps_its_last_slash_because_providers_compare_it(folder: Path):
    oidc = read_oidc(folder, '[oidc]\nissuer = "https://acme.example.com/"\n' + CLIENT + GROUPS)
    assert oidc is not None
    assert oidc.issuer == "https://acme.example.com/"


def test_an_issuer_on_this_machine_need_not_be_https(folder: Path):
    assert read_oidc(folder, '[oidc]\nissuer = "http://127.0.0.1:5556/dex"\n' + CLIENT + GROUPS)


def test_the_oidc_secret_is_never_shown(folder: Path):
    assert "shh" not in repr(read_oidc(folder, "[oidc]\n" + ISSUER + CLIENT + GROUPS))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("oidc = 1\n", "oidc: expected a table"),
        (f"[oidc]\n{CLIENT}{GROUPS}", "issuer is missing; set the address"),
        (f"[oidc]\n{ISSUER}{GROUPS}", "client_id is missing"),
        (f"[oidc]\n{ISSUER}{CLIENT}", "oidc: no user has a scope; set the scopes of groups"),
        (f"[oidc]\n{ISSUER}client_id = 7\n{GROUPS}", "oidc.client_id: expected some text"),
        (f'[oidc]\nissuer = "login.example.com"\n{CLIENT}{GROUPS}', "expected an address such as"),
        (f'[oidc]\nissuer = "https://a:b@example.com"\n{CLIENT}{GROUPS}', "expected an address such as"),
        (f'[oidc]\nissuer = "http://login.example.com"\n{CLIENT}{GROUPS}', "it must be https"),
        (f'[oidc]\nclient_secrets = "x"\n{ISSUER}{CLIENT}{GROUPS}', "did you mean client_secret_file?"),
        (f'[oidc]\nclient_secret_file = "nowhere"\n{ISSUER}{CLIENT}{GROUPS}', "cannot be read: No such file"),
        (f'[oidc]\nrequest_scopes = ["profile"]\n{ISSUER}{CLIENT}{GROUPS}', 'a list with "openid" in it'),
        (f'[oidc]\nrequest_scopes = "openid"\n{ISSUER}{CLIENT}{GROUPS}', 'a list with "openid" in it'),
        (f'[oidc]\ndefault_scopes = ["write"]\n{ISSUER}{CLIENT}', "expected a list of some of read, submit"),
        (f'[oidc]\nscopes = ["read"]\n{ISSUER}{CLIENT}', "expected a table of groups"),
        (f'[oidc]\n{ISSUER}{CLIENT}[oidc.scopes]\nops = "admin"', "oidc.scopes.ops: expected a list"),
        (f"[oidc]\n{ISSUER}{CLIENT}[oidc.scopes]\nops = []", "oidc.scopes.ops: expected a list"),
    ],
)
def test_a_problem_of_the_oidc_settings_is_reported(folder: Path, text: str, message: str):
    assert message in oidc_problem(folder, text)


def test_a_missing_oidc_secret_is_reported(folder: Path):
    problem = oidc_problem(folder, "[oidc]\n" + ISSUER + CLIENT + GROUPS, {})
    assert problem.endswith("set client_secret_file, or the variable MERGEYARD_OIDC_CLIENT_SECRET")


def test_an_empty_secret_file_of_oidc_is_refused(folder: Path):
    (folder / "empty").touch()
    text = f'[oidc]\nclient_secret_file = "empty"\n{ISSUER}{CLIENT}{GROUPS}'
    assert oidc_problem(folder, text).endswith("is empty; put the secret into it")


def test_an_oidc_secret_in_the_table_is_refused_and_not_repeated(folder: Path):
    problem = oidc_problem(folder, f'[oidc]\nclient_secret = "abc123"\n{ISSUER}{CLIENT}{GROUPS}')
    assert "set client_secret_file to a file" in problem
    assert "abc123" not in problem
