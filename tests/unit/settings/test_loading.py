"""Where settings come from, which of them counts, and that everything wrong is told at once."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from mergeyard.settings import PlainHost, Settings, SettingsError, load


def written(folder: Path, text: str) -> Path:
    file = folder / "mergeyard.toml"
    file.write_text(text)
    return file


def complaints(
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


# Which source counts


def test_the_address_of_the_database_may_stand_in_a_file(tmp_path: Path):
    address = "postgresql://ada:s3cret@db.example/queue"
    (tmp_path / "url").write_text(f"{address}\n")
    for settings in (
        load(written(tmp_path, 'database_url_file = "url"'), {}, {}),
        load(written(tmp_path, ""), {"MERGEYARD_DATABASE_URL_FILE": "url"}, {}),
    ):
        assert settings.database_url == address
        assert "s3cret" not in repr(settings)


def test_an_address_of_the_database_that_is_given_goes_before_the_file():
    settings = load(None, {"MERGEYARD_DATABASE_URL_FILE": "missing"}, {"database_url": "sqlite:///other.db"})
    assert settings.database == Path("other.db")


def test_a_file_with_no_address_of_a_database_is_named_and_its_contents_are_not(tmp_path: Path):
    variable = {"MERGEYARD_DATABASE_URL_FILE": "url"}
    assert "url cannot be read" in complaints(environment=variable)[0]
    (tmp_path / "url").write_text("mysql://ada:s3cret@db.example/queue")
    (said,) = complaints(environment=variable)
    assert said.startswith("url: expected postgresql://")
    assert "s3cret" not in said


def test_with_nothing_given_all_is_default():
    assert load(None, {}, {}) == Settings()


def test_the_environment_goes_before_the_file_and_the_command_line_before_both(tmp_path: Path):
    file = written(tmp_path, 'port = 1\nhost = "file"\nlog_level = "debug"')
    environment = {"MERGEYARD_PORT": "2", "MERGEYARD_HOST": "environment"}
    settings = load(file, environment, {"port": 3})
    assert (settings.port, settings.host, settings.log_level) == (3, "environment", "debug")


def test_an_option_that_was_not_given_and_an_empty_variable_count_for_nothing(tmp_path: Path):
    file = written(tmp_path, "port = 1")
    assert load(file, {"MERGEYARD_PORT": ""}, {"port": None, "host": None}) == Settings(port=1)


def test_the_file_in_the_current_folder_is_read_without_being_asked_for(tmp_path: Path):
    written(tmp_path, "port = 1")
    assert load(None, {}, {}).port == 1


def test_a_variable_names_the_file_and_the_command_line_another(tmp_path: Path):
    written(tmp_path, "port = 1")
    (tmp_path / "second.toml").write_text("port = 2")
    (tmp_path / "third.toml").write_text("port = 3")
    environment = {"MERGEYARD_CONFIG": "second.toml"}
    assert load(None, environment, {}).port == 2
    assert load(Path("third.toml"), environment, {}).port == 3


def test_the_environment_has_only_text_and_means_numbers_and_truths_by_it():
    environment = {"MERGEYARD_PORT": "0", "MERGEYARD_OPEN_METRICS": "true", "MERGEYARD_RUNNER_LIMIT": "7"}
    assert load(None, environment, {}) == Settings(port=0, open_metrics=True, runner_limit=7)


def test_variables_of_the_client_and_of_others_are_left_alone():
    others = ("URL", "TOKEN", "SERVICE_HOST", "SERVICE_PORT", "PORT_8080_TCP", "PORT_8080_TCP_ADDR")
    assert load(None, {f"MERGEYARD_{name}": "x" for name in others}, {}) == Settings()


# Roles


@pytest.mark.parametrize("role", ["api", "worker"])
def test_a_process_with_a_part_of_the_work_needs_a_database_to_share(role: str):
    with pytest.raises(SettingsError, match="need a database that they share: set database_url too"):
        load(None, {"MERGEYARD_ROLE": role}, {})
    shared = {"MERGEYARD_ROLE": role, "MERGEYARD_DATABASE_URL": "postgresql://db/queue"}
    assert load(None, shared, {}).role == role


# Paths


def test_relative_paths_in_the_file_are_beside_it(tmp_path: Path):
    folder = tmp_path / "etc"
    (folder / "repos").mkdir(parents=True)
    file = written(
        folder,
        'data_dir = "data"\ndatabase_url = "sqlite:///db/queue.db"\n[hosts.local]\nprovider = "git"\nroot = "repos"',
    )
    settings = load(file, {}, {})
    assert settings.data_dir == folder / "data"
    assert settings.database == folder / "db/queue.db"
    assert settings.hosts == {"local": PlainHost(root=folder / "repos")}


def test_absolute_paths_stay_as_they_are(tmp_path: Path):
    file = written(tmp_path, 'data_dir = "/data"\ndatabase_url = "sqlite:////db/queue.db"')
    assert load(file, {}, {}).data_dir == Path("/data")
    assert load(file, {}, {}).database == Path("/db/queue.db")


def test_relative_paths_elsewhere_are_in_the_current_folder(tmp_path: Path):
    file = written(tmp_path, 'data_dir = "file"')
    assert load(file, {"MERGEYARD_DATA_DIR": "variable"}, {}).data_dir == Path("variable")
    assert load(file, {}, {"data_dir": Path("option")}).data_dir == Path("option")
    assert load(file, {"MERGEYARD_DATABASE_URL": "sqlite:///queue.db"}, {}).database == Path("queue.db")


# What is wrong


def test_a_file_that_is_asked_for_must_be_there():
    (complaint,) = complaints(Path("nowhere.toml"))
    assert complaint.startswith("nowhere.toml: No such file or directory; correct --config or MERGEYARD_CONFIG")
    assert complaints(environment={"MERGEYARD_CONFIG": "nowhere.toml"}) == [complaint]


def test_a_file_that_is_no_toml_is_told_with_its_line(tmp_path: Path):
    file = written(tmp_path, "port = 1\nhost =\n")
    assert complaints(file) == [f"{file} line 2: not valid TOML: Invalid value"]


def test_a_mistyped_name_is_told_with_the_one_that_was_meant(tmp_path: Path):
    file = written(tmp_path, "# first\nprot = 1\nzebra = 2\n")
    assert complaints(file, {"MERGEYARD_LOG_LEVLE": "info"}, {"data_dri": "x"}) == [
        f"{file} line 2, prot: there is no such setting; did you mean port?",
        f"{file} line 3, zebra: there is no such setting; remove it",
        "MERGEYARD_LOG_LEVLE: there is no such setting; did you mean MERGEYARD_LOG_LEVEL?",
        "--data-dri: there is no such setting; did you mean --data-dir?",
    ]


def test_everything_wrong_is_told_at_once_each_with_its_place(tmp_path: Path):
    file = written(tmp_path, 'port = "8080"\n\nopen_metrics = "yes"\ndata_dir = 3\n')
    assert complaints(file, {"MERGEYARD_PORT": "tcp://10.0.0.1:8080"}, {"log_format": "xml"}) == [
        f"{file} line 1, port: expected a whole number from 0 to 65535, not '8080'",
        f"{file} line 3, open_metrics: expected true or false, not 'yes'",
        f"{file} line 4, data_dir: expected the path of a folder, not 3",
        "MERGEYARD_PORT: expected a whole number from 0 to 65535, not 'tcp://10.0.0.1:8080'",
        "--log-format: expected one of auto, human, json, not 'xml'",
    ]


def test_a_broken_file_does_not_hide_what_else_is_wrong(tmp_path: Path):
    file = written(tmp_path, "port")
    assert len(complaints(file, {"MERGEYARD_PORT": "many"})) == 2


def test_hosts_in_the_environment_are_sent_to_the_file():
    (complaint,) = complaints(environment={"MERGEYARD_HOSTS": "x"})
    assert complaint.startswith("MERGEYARD_HOSTS: hosts stand only in the file")
