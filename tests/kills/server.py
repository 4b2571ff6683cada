"""`mergeyard serve` as it is, with adapters that end it where its orders say so.

    KILLS_ORDERS=orders.json python -m tests.kills.server serve --config mergeyard.toml

The command is the real one. Only in the one place that knows concrete classes, each is replaced by one that stands upon
it, and so are the two functions that apply one migration.
"""

import os
from collections.abc import Mapping
from types import ModuleType

from mergeyard import __main__, wiring
from mergeyard.adapters.git_cli import opening
from mergeyard.adapters.store_postgres import migrating as migrating_postgres
from mergeyard.adapters.store_sqlite import migrating as migrating_sqlite
from tests.kills import mortal_door, mortal_hands, mortal_stores
from tests.kills.orders import VARIABLE, Orders
from tests.kills.reaper import REAPER

MORTAL: Mapping[ModuleType, Mapping[str, object]] = {
    wiring: {
        "SqliteStore": mortal_stores.MortalSqliteStore,
        "PostgresStore": mortal_stores.MortalPostgresStore,
        "GitCli": mortal_hands.MortalGit,
        "PlainHost": mortal_hands.MortalHost,
        "LocalRunner": mortal_hands.MortalRunner,
        "HttpSender": mortal_hands.MortalSender,
        "make_application": mortal_door.make_application,
    },
    opening: {"CliMirror": mortal_hands.MortalMirror},
    migrating_sqlite: {"apply": mortal_stores.apply_to_sqlite},
    migrating_postgres: {"apply": mortal_stores.apply_to_postgres},
}


def main() -> None:
    for module, names in MORTAL.items():
        for name, mortal in names.items():
            assert hasattr(module, name), f"{module.__name__} knows no {name} any more"
            setattr(module, name, mortal)
    REAPER.obey(Orders.load(os.environ[VARIABLE]))
    __main__.main()


if __name__ == "__main__":
    main()
