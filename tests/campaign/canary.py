"""A canary that dies when git obeys the machine's own settings: then a driver or filter of a pull request ran."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "GIT_CONFIG_GLOBAL"
CONFIG = """\
[merge "canary"]
	driver = touch {dead} && exit 0
[diff "canary"]
	command = touch {dead}
[filter "canary"]
	clean = touch {dead} && cat
	smudge = touch {dead} && cat
	required = true
[core]
	fsmonitor = touch {dead}
	hooksPath = {hooks}
"""
HOOKS = ("pre-push", "reference-transaction", "post-checkout", "post-index-change", "pre-merge-commit")


@contextmanager
def cage(folder: Path) -> Generator[None]:
    """While it lasts, whoever reads the settings of the machine does what they say."""
    dead, hooks = folder / "dead-canary", folder / "hooks"
    hooks.mkdir()
    for name in HOOKS:
        (hooks / name).write_text(f"#!/bin/sh\ntouch {dead}\n")
        (hooks / name).chmod(0o755)
    (folder / "gitconfig").write_text(CONFIG.format(dead=dead, hooks=hooks))
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(folder / "gitconfig")
    try:
        yield
        assert not dead.exists(), "the canary is dead: git ran what it should not even have read"
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before
