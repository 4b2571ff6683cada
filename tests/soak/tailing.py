"""What grows with the traffic is read once: the host's log from where it was left, and test branches with it."""

from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from mergeyard.domain.ids import Sha
from tests.soak.sheets import verdict
from tests.support.api import Api
from tests.support.ci import Ci
from tests.support.host_log import SERVICE, TEST_BRANCHES, HostLog, Transaction, move_told
from tests.support.repositories import Origin


class TailedLog(HostLog):
    def __init__(self, origin: Origin, folder: Path) -> None:
        super().__init__(origin, folder)
        self._transactions: list[Transaction] = []
        self._lines = 0
        self._bytes = 0
        self._reading = Lock()

    def __len__(self) -> int:
        self._catch_up()
        return self._lines

    def __iter__(self) -> Iterator[Transaction]:
        return self.since(0)

    def since(self, known: int) -> Iterator[Transaction]:
        """Those that came after so many."""
        self._catch_up()
        return iter(self._transactions[known:])

    def _catch_up(self) -> None:
        with self._reading, self._path.open("rb") as log:
            log.seek(self._bytes)
            whole = log.read().rpartition(b"\n")[0]
            if whole:
                self._bytes += len(whole) + 1
                for line in whole.decode().split("\n"):
                    self._take_down(line)

    def _take_down(self, line: str) -> None:
        who, *moves = line.split("|")
        told = tuple(move_told(move) for move in moves if " refs/" in move)
        if told:
            self._transactions.append(Transaction(self._lines, who == SERVICE, told))
        self._lines += 1


class TailingCi(Ci):
    def __init__(self, origin: Origin, host_log: TailedLog, api: Api) -> None:
        super().__init__(origin, host_log, api)
        self._tailed = host_log
        self._known = 0
        self._there = dict[str, Sha]()

    def branches(self) -> dict[str, Sha]:
        for transaction in self._tailed.since(self._known):
            self._known += 1
            for move in transaction.moves:
                if move.new is None:
                    self._there.pop(move.ref, None)
                elif move.ref.startswith(TEST_BRANCHES):
                    self._there[move.ref] = move.new
        return dict(self._there)

    def verdict(self, sha: Sha) -> str:
        return verdict(self._origin, sha)
