"""`mergeyard db`: the commands report what they did, or the problem and what to do."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mergeyard.adapters.store_sqlite.connection import connect
from mergeyard.cli import app
from mergeyard.cli.db.checks import exclude_server

SERVER = "postgresql://ada:secret@127.0.0.1:1/queue"
COMMANDS = ("migrate", "check", "export", "import", "backup", "restore")
COMMANDS_WITH_FILE = ("export", "import", "backup", "restore")


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(tmp_path / "data")


def db(*arguments: object, status: int = 0) -> Result:
    result = CliRunner(env={"MERGEYARD_DATABASE_URL": ""}).invoke(app, ["db", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result


def execute(statement: str, data: str) -> None:
    connection = connect(Path(data) / "mergeyard.db")
    connection.execute(statement)
    connection.close()


def create_database_with_token(data: str) -> None:
    db("migrate", "--data-dir", data)
    assert CliRunner().invoke(app, ["token", "create", "--name", "ci", "--data-dir", data]).exit_code == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_description(command: str):
    assert len(db(command, "--help").output.split(".")[0].split()) > 8


def test_migrate_reports_the_schema_version(data: str):
    assert "was created with schema version 1" in db("migrate", "--data-dir", data).output
    assert "already has schema version 1: nothing to do" in db("migrate", "--data-dir", data).output


def test_check_reports_the_same_as_text_and_json(data: str):
    create_database_with_token(data)
    assert "No problems found" in db("check", "--data-dir", data).output
    report = json.loads(db("check", "--json", "--data-dir", data).stdout)
    assert (report["ok"], report["schemaVersion"], report["problems"]) == (True, 1, [])
    assert {table["table"]: table["rows"] for table in report["tables"]}["tokens"] == 1


def test_problems_are_reported_and_set_the_exit_status(data: str, tmp_path: Path):
    assert "contains no Mergeyard database" in db("check", "--data-dir", data, status=1).stderr
    create_database_with_token(data)
    execute("INSERT INTO submissions VALUES (1, 'missing', 1, 1, 'b', 'pending', 1, 1, x'00', NULL)", data)
    assert "refer to a queue that does not exist: 1" in db("check", "--data-dir", data, status=1).stdout
    assert json.loads(db("check", "--json", "--data-dir", data, status=1).stdout)["ok"] is False
    db("backup", tmp_path / "backup.db", "--data-dir", data, status=1)


def test_export_and_import_copy_everything(data: str, tmp_path: Path):
    create_database_with_token(data)
    file, elsewhere = tmp_path / "all.jsonl.gz", tmp_path / "elsewhere"
    db("export", file, "--data-dir", data)
    assert "contains all exported rows" in db("import", file, "--data-dir", elsewhere).output
    checks = [json.loads(db("check", "--json", "--data-dir", folder).stdout) for folder in (data, elsewhere)]
    assert checks[0]["tables"] == checks[1]["tables"]
    assert (
        "is not empty and idle (journal: 1, tokens: 1)" in db("import", file, "--data-dir", elsewhere, status=1).stderr
    )


def test_every_command_prints_one_object_for_programs(data: str, tmp_path: Path):
    def run(*arguments: object) -> dict[str, Any]:
        return json.loads(db(*arguments, "--json", "--data-dir", data).stdout)

    database = f"{data}/mergeyard.db"
    assert run("migrate") == {"database": database, "previousSchemaVersion": None, "schemaVersion": 1}
    assert run("migrate")["previousSchemaVersion"] == 1
    assert run("backup", tmp_path / "backup") == {"file": str(tmp_path / "backup")}
    exported = run("export", tmp_path / "all.jsonl")
    assert exported == {"file": str(tmp_path / "all.jsonl"), "tables": run("check")["tables"]}
    restored = run("restore", tmp_path / "backup", "--force")
    assert restored["database"] == database
    assert Path(restored["previousDatabase"]).exists()
    Path(database).unlink()
    assert run("import", tmp_path / "all.jsonl") == {"database": database, "tables": exported["tables"]}


@pytest.mark.parametrize("command", ["export", "backup"])
def test_a_file_is_overwritten_only_with_force(command: str, data: str, tmp_path: Path):
    create_database_with_token(data)
    file = tmp_path / "file"
    file.write_text("precious")
    assert "already exists" in db(command, file, "--data-dir", data, status=1).stderr
    assert file.read_text() == "precious"
    db(command, file, "--force", "--data-dir", data)
    assert file.read_bytes() != b"precious"


def test_a_database_is_replaced_only_with_force_and_the_old_one_is_kept(data: str, tmp_path: Path):
    create_database_with_token(data)
    backup = tmp_path / "backup.db"
    db("backup", backup, "--data-dir", data)
    assert "already exists" in db("restore", backup, "--data-dir", data, status=1).stderr
    assert "is kept as" in db("restore", backup, "--force", "--data-dir", data).output
    assert "Restored" in db("restore", backup, "--data-dir", tmp_path / "new").output
    assert "No problems found" in db("check", "--data-dir", tmp_path / "new").output


@pytest.mark.parametrize("command", ["migrate", "import", "restore"])
def test_nothing_is_changed_while_a_server_is_running(command: str, data: str, tmp_path: Path):
    other, file = tmp_path / "other", tmp_path / "file"
    db("migrate", "--data-dir", other)
    db("export" if command == "import" else "backup", file, "--data-dir", other)
    with exclude_server(Path(data)):
        message = db(command, *([] if command == "migrate" else [file]), "--data-dir", data, status=1).stderr
    assert "A server is using" in message
    assert [entry.name for entry in Path(data).iterdir()] == ["server.lock"]


@pytest.mark.parametrize("command", ["import", "restore"])
def test_a_missing_file_is_named(command: str, data: str, tmp_path: Path):
    assert "missing does not exist" in db(command, tmp_path / "missing", "--data-dir", data, status=1).stderr


@pytest.mark.parametrize("command", ["export", "backup"])
def test_a_missing_folder_is_reported(command: str, data: str, tmp_path: Path):
    create_database_with_token(data)
    assert "check the path" in db(command, tmp_path / "no" / "file", "--data-dir", data, status=1).stderr


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_backup_and_restore_refer_postgresql_users_to_other_tools(command: str, tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    message = db(command, file, "--force", "--database-url", SERVER, status=1).stderr
    assert "PostgreSQL" in message
    assert "mergeyard db export" in message


@pytest.mark.parametrize("command", ["migrate", "check", "export"])
def test_no_output_contains_the_database_password(command: str, tmp_path: Path):
    file = [tmp_path / "file"] if command in COMMANDS_WITH_FILE else []
    result = db(command, *file, "--database-url", SERVER, status=1)
    assert "cannot be reached" in result.stderr
    assert "secret" not in result.output


@pytest.mark.long
def test_a_full_disk_is_reported_and_no_file_is_left(data: str, tmp_path: Path):
    """A file size limit simulates a full disk; SQLite's own files are below the limit."""
    create_database_with_token(data)
    execute("INSERT INTO responses VALUES ('t1', 'k1', x'00', zeroblob(200000), 1)", data)
    command = f'ulimit -f 100; exec "{sys.executable}" -m mergeyard db export "{tmp_path}/all" --data-dir "{data}"'
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert f"{tmp_path}/all would exceed the maximum file size" in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["data"]
