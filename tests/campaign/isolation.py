"""Detects that git read the machine's own configuration: then a driver or filter of a pull request could run."""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "GIT_CONFIG_GLOBAL"
CONFIG = """\
[merge "canary"]
	driver = touch {triggered} && exit 0
[diff "canary"]
	command = touch {triggered}
[filter "canary"]
	clean = touch {triggered} && cat
	smudge = touch {triggered} && cat
	required = true
[core]
	fsmonitor = touch {triggered}
	hooksPath = {hooks}
"""
HOOKS = ("pre-push", "reference-transaction", "post-checkout", "post-index-change", "pre-merge-commit")


@contextmanager
def config_canary(folder: Path) -> Generator[None]:
    """Within this context, a git process that reads the global configuration leaves a file, and the check fails."""
    triggered, hooks = folder / "canary-triggered", folder / "hooks"
    hooks.mkdir()
    for name in HOOKS:
        (hooks / name).write_text(f"#!/bin/sh\ntouch {triggered}\n")
        (hooks / name).chmod(0o755)
    (folder / "gitconfig").write_text(CONFIG.format(triggered=triggered, hooks=hooks))
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(folder / "gitconfig")
    try:
        yield
        assert not triggered.exists(), "git ran a command of the global configuration, which it must not read"
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


GIT_FILES = frozenset({"HEAD", "config", "description", "hooks", "info", "objects", "refs", "packed-refs", "branches"})


def check_mirrors(folder: Path) -> Iterator[str]:
    for mirror in folder.rglob("*.git"):
        if (mirror / "HEAD").is_file():
            yield from (f"the mirror holds {path.name}" for path in mirror.iterdir() if path.name not in GIT_FILES)
            if any((mirror / "hooks").glob("*")):
                yield "the mirror has hooks"
