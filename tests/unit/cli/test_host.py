"""`mergeyard host check` shows what is missing in red."""

import json
from pathlib import Path

from typer.testing import CliRunner

from mergeyard.cli import app
from tests.support.repositories import Origin

RED = "\x1b[31m"


def test_missing_repositories_are_shown_in_red(tmp_path: Path):
    Origin.create(tmp_path / "repos" / "acme" / "app.git")
    config = tmp_path / "mergeyard.toml"
    config.write_text('[hosts."git.local"]\nprovider = "git"\nroot = "repos"\n')

    def check(repo: str) -> tuple[int, str]:
        command = ["host", "check", "git.local", "--repo", repo, "--config", str(config)]
        result = CliRunner().invoke(app, command, color=True)
        return result.exit_code, result.output

    code, output = check("acme/lib")
    assert (code, output.startswith(f"{RED}✗ There is no repository")) == (1, True)
    code, output = check("acme/app")
    assert (code, output) == (0, "✓ git.local/acme/app exists.\x1b[0m\n")
    command = ["host", "check", "git.local/acme/app", "--config", str(config)]
    assert CliRunner().invoke(app, command).stdout == "✓ git.local/acme/app exists.\n"
    command = ["host", "check", "git.local", "--repo", "acme/app", "--config", str(config), "--json"]
    found = {"ok": True, "message": "git.local/acme/app exists."}
    assert json.loads(CliRunner().invoke(app, command).stdout) == {"host": "git.local", "findings": [found]}
