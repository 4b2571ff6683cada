"""The repository at its host: refs that move together or not at all, and a log of every move."""

from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Pushed, RefUpdate, Stale
from tests.simulation.objects import Files, Objects
from tests.support.host_log import Move, Transaction

TARGET = "refs/heads/main"


class Origin:
    def __init__(self, objects: Objects, files: Files) -> None:
        self.objects = objects
        self.refs: dict[str, Sha] = {}
        self.log: list[Transaction] = []
        self.watchers: list[Callable[[], None]] = []
        self.late = set[Sha]()
        """Came to the target on a request that was so long on its way that nobody wanted it any more."""
        self.set(TARGET, objects.commit(objects.tree(files), (), "the beginning"))

    def __len__(self) -> int:
        return len(self.log)

    def __iter__(self) -> Iterator[Transaction]:
        return iter(self.log)

    @property
    def target(self) -> Sha:
        return self.refs[TARGET]

    def matching(self, patterns: Collection[str]) -> dict[str, Sha]:
        exact = {pattern: self.refs[pattern] for pattern in patterns if pattern in self.refs}
        wild = [pattern for pattern in patterns if "*" in pattern]
        if not wild:
            return exact
        return {
            ref: sha for ref, sha in self.refs.items() if ref in exact or any(fnmatchcase(ref, one) for one in wild)
        }

    def ever_had(self, commit: Sha) -> bool:
        """Like a large host, it keeps what no ref leads to any more."""
        shown = {move.new for transaction in self.log for move in transaction.moves}
        return any(self.objects.holds(each, commit) for each in self.objects.commits.keys() & shown)

    def push(self, updates: Sequence[RefUpdate], *, late: bool) -> Pushed | Stale:
        """By the service: like git, it takes a ref that is there already for a success. A test branch that has to go
        with it would refuse a late one."""
        if all(self.refs.get(update.ref) == update.new for update in updates):
            return Pushed()
        if any(self.refs.get(update.ref) != update.old for update in updates):
            return Stale()
        self._move(tuple(Move(update.ref, update.old, update.new) for update in updates), by_service=True)
        if late and [update.ref for update in updates] == [TARGET]:
            self.late.add(self.target)
        return Pushed()

    def set(self, ref: str, sha: Sha | None) -> None:
        """By somebody else, who asks nobody."""
        if self.refs.get(ref) != sha:
            self._move((Move(ref, self.refs.get(ref), sha),), by_service=False)

    def merge(self, new: Sha) -> None:
        """By the forge, as the service asked it to."""
        self._move((Move(TARGET, self.target, new),), by_service=True)

    def _move(self, moves: tuple[Move, ...], *, by_service: bool) -> None:
        for move in moves:
            if move.new is None:
                self.refs.pop(move.ref, None)
            else:
                self.refs[move.ref] = move.new
        self.log.append(Transaction(len(self.log), by_service, moves))
        for watch in self.watchers:
            watch()
