"""`mergeyard serve` with adapters that kill it where the plan says so.

    KILL_PLAN=plan.json python -m tests.kills.server serve --config mergeyard.toml

The command is the real one. In the wiring, each adapter class is replaced by a subclass of it, and so are the two
functions that apply one migration.
"""

import os
from collections.abc import Mapping
from types import ModuleType

from mergeyard import __main__, wiring
from mergeyard.adapters.git_cli import mirrors
from mergeyard.adapters.store_postgres import connection as postgres_connection
from mergeyard.adapters.store_sqlite import connection as sqlite_connection
from tests.kills.killable_adapters import (
    KillableGit,
    KillableHost,
    KillableMirror,
    KillablePostgresStore,
    KillableRunner,
    KillableSender,
    KillableSqliteStore,
    apply_postgres_migration,
    apply_sqlite_migration,
    make_application,
)
from tests.kills.killer import KILLER, PLAN_VARIABLE, KillPlan

REPLACEMENTS: Mapping[ModuleType, Mapping[str, object]] = {
    wiring: {
        "SqliteStore": KillableSqliteStore,
        "PostgresStore": KillablePostgresStore,
        "GitCli": KillableGit,
        "PlainHost": KillableHost,
        "LocalRunner": KillableRunner,
        "HttpSender": KillableSender,
        "make_application": make_application,
    },
    mirrors: {"CliMirror": KillableMirror},
    sqlite_connection: {"apply_migration": apply_sqlite_migration},
    postgres_connection: {"apply_migration": apply_postgres_migration},
}


def main() -> None:
    for module, names in REPLACEMENTS.items():
        for name, replacement in names.items():
            assert hasattr(module, name), f"{module.__name__} has no {name}"
            setattr(module, name, replacement)
    KILLER.load(KillPlan.load(os.environ[PLAN_VARIABLE]))
    __main__.main()


if __name__ == "__main__":
    main()
