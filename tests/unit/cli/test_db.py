"""The commands around the database say what they did, or why not and what to do."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mergeyard.adapters.store_sqlite.connecting import connect
from mergeyard.cli import app
from mergeyard.cli.db.solitude import no_server_in

SERVER = "postgresql://ada:secret@127.0.0.1:1/queue"
COMMANDS = ("migrate", "check", "export", "import", "backup", "restore")
WITH_FILE = ("export", "import", "backup", "restore")


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(tmp_path / "data")


def db(*arguments: object, status: int = 0) -> Result:
    answer = CliRunner(env={"MERGEYARD_DATABASE_URL": ""}).invoke(app, ["db", *map(str, arguments)])
    assert answer.exit_code == status, answer.output
    return answer


def plant(statement: str, data: str) -> None:
    connection = connect(Path(data) / "mergeyard.db")
    connection.execute(statement)
    connection.close()


def a_token_in(data: str) -> None:
    db("migrate", "--data-dir", data)
    assert CliRunner().invoke(app, ["token", "create", "--name", "ci", "--data-dir", data]).exit_code == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str):
    assert len(db(command, "--help").output.split(".")[0].split()) > 8


def test_migrating_says_from_where_to_where(data: str):
    assert "was made, in form 5" in db("migrate", "--data-dir", data).output
    assert "has form 5 already: nothing to do" in db("migrate", "--data-dir", data).output


def test_a_check_tells_people_and_programs_the_same(data: str):
    a_token_in(data)
    assert "Sound" in db("check", "--data-dir", data).output
    told = json.loads(db("check", "--json", "--data-dir", data).stdout)
    assert (told["sound"], told["form"], told["faults"]) == (True, 5, [])
    assert {table["table"]: table["rows"] for table in told["tables"]}["tokens"] == 1


def test_what_is_wrong_is_said_and_shows_in_the_exit_status(data: str, tmp_path: Path):
    assert "holds nothing of Mergeyard yet" in db("check", "--data-dir", data, status=1).stderr
    a_token_in(data)
    plant("INSERT INTO stays VALUES (1, 'nobody', 1, 1, 'b', 'pending', 1, 1, x'00', NULL)", data)
    assert "belong to a queue that is not there: 1" in db("check", "--data-dir", data, status=1).stdout
    assert json.loads(db("check", "--json", "--data-dir", data, status=1).stdout)["sound"] is False
    db("backup", tmp_path / "backup.db", "--data-dir", data, status=1)


def test_everything_moves_with_two_commands(data: str, tmp_path: Path):
    a_token_in(data)
    file, elsewhere = tmp_path / "all.jsonl.gz", tmp_path / "elsewhere"
    db("export", file, "--data-dir", data)
    assert "holds all that was exported" in db("import", file, "--data-dir", elsewhere).output
    checks = [json.loads(db("check", "--json", "--data-dir", folder).stdout) for folder in (data, elsewhere)]
    assert checks[0]["tables"] == checks[1]["tables"]
    assert (
        "is not empty and idle (journal: 1, tokens: 1)" in db("import", file, "--data-dir", elsewhere, status=1).stderr
    )


@pytest.mark.parametrize("command", ["export", "backup"])
def test_a_file_is_written_over_only_when_asked(command: str, data: str, tmp_path: Path):
    a_token_in(data)
    file = tmp_path / "file"
    file.write_text("precious")
    assert "is there already" in db(command, file, "--data-dir", data, status=1).stderr
    assert file.read_text() == "precious"
    db(command, file, "--force", "--data-dir", data)
    assert file.read_bytes() != b"precious"


def test_a_database_is_replaced_only_when_asked_and_kept_aside(data: str, tmp_path: Path):
    a_token_in(data)
    backup = tmp_path / "backup.db"
    db("backup", backup, "--data-dir", data)
    assert "There is a database already" in db("restore", backup, "--data-dir", data, status=1).stderr
    assert "is kept as" in db("restore", backup, "--force", "--data-dir", data).output
    assert "Restored" in db("restore", backup, "--data-dir", tmp_path / "new").output
    assert "Sound" in db("check", "--data-dir", tmp_path / "new").output


@pytest.mark.parametrize("command", ["migrate", "import", "restore"])
def test_while_a_server_works_nothing_is_changed_behind_its_back(command: str, data: str, tmp_path: Path):
    other, file = tmp_path / "other", tmp_path / "file"
    db("migrate", "--data-dir", other)
    db("export" if command == "import" else "backup", file, "--data-dir", other)
    with no_server_in(Path(data)):
        words = db(command, *([] if command == "migrate" else [file]), "--data-dir", data, status=1).stderr
    assert "A server works in" in words
    assert [kept.name for kept in Path(data).iterdir()] == ["server.lock"]


@pytest.mark.parametrize("command", ["import", "restore"])
def test_a_file_that_is_not_there_is_named(command: str, data: str, tmp_path: Path):
    assert "nowhere is not there" in db(command, tmp_path / "nowhere", "--data-dir", data, status=1).stderr


@pytest.mark.parametrize("command", ["export", "backup"])
def test_a_folder_that_is_not_there_is_named(command: str, data: str, tmp_path: Path):
    a_token_in(data)
    assert "check the path" in db(command, tmp_path / "no" / "file", "--data-dir", data, status=1).stderr


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_server_is_backed_up_with_its_own_tools(command: str, tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    words = db(command, file, "--force", "--database-url", SERVER, status=1).stderr
    assert "PostgreSQL" in words
    assert "mergeyard db export" in words


@pytest.mark.parametrize("command", ["migrate", "check", "export"])
def test_no_word_holds_the_password_of_the_database(command: str, tmp_path: Path):
    file = [tmp_path / "file"] if command in WITH_FILE else []
    answer = db(command, *file, "--database-url", SERVER, status=1)
    assert "cannot be reached" in answer.stderr
    assert "secret" not in answer.output


def test_a_disk_without_room_is_named_and_nothing_is_left_on_it(data: str, tmp_path: Path):
    """A limit for files stands for a full disk; what SQLite keeps beside its file is below it."""
    a_token_in(data)
    plant("INSERT INTO answers VALUES ('t1', 'k1', x'00', zeroblob(200000), 1)", data)
    command = f'ulimit -f 100; exec "{sys.executable}" -m mergeyard db export "{tmp_path}/all" --data-dir "{data}"'
    answer = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert f"{tmp_path}/all would become larger than its disk allows" in answer.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["data"]
