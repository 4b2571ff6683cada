"""What is used of a connection to SQLite, with its types.

Those that apsw brings are known only to Python 3.12 and newer.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

Value = None | int | str | bytes
Values = Mapping[str, Value]
Row = tuple[Any, ...]


class Cursor(Protocol):
    @property
    def connection(self) -> "Connection": ...

    def execute(self, statements: str, bindings: Values | None = None) -> "Cursor": ...

    def executemany(self, statements: str, sequenceofbindings: Iterable[Values]) -> "Cursor": ...

    def fetchall(self) -> list[Row]: ...


class Connection(Protocol):
    @property
    def in_transaction(self) -> bool: ...

    def cursor(self) -> Cursor: ...

    def execute(self, statements: str, bindings: Values | None = None) -> Cursor: ...

    def changes(self) -> int:
        """How many rows the last statement changed."""
        ...

    def pragma(self, name: str, value: Value = None) -> Any: ...

    def set_busy_handler(self, handler: Callable[[int], bool], /) -> None: ...

    def wal_autocheckpoint(self, pages: int, /) -> None: ...

    def wal_checkpoint(self, *, mode: int) -> tuple[int, int]: ...

    def close(self) -> None: ...
