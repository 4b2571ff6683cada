"""What somebody says a pull request impacts, in the form in which it is stored."""

import asyncio

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.targets import Targets
from mergeyard.service import long_targets


class WrittenTargets(Struct, frozen=True):
    body: bytes
    count: int | None
    """None: all that there are."""
    targets: Targets | None = None
    """Those of a long list are made only where a queue needs them."""

    async def read(self, known: Targets | None = None) -> "WrittenTargets":
        """With the very targets that are known, if they are the same: to compare all of them later takes long."""
        if self.targets is not None:
            return self
        if known is not None and await self._says(known):
            return replace(self, targets=known)
        return replace(self, targets=await long_targets.decoded_aside(self.body))

    async def _says(self, known: Targets) -> bool:
        if known.everything or self.count != len(known.names):
            return False
        return await asyncio.to_thread(long_targets.is_within, self.body, known.names)


def written(targets: Targets) -> WrittenTargets:
    return WrittenTargets(long_targets.encoded(targets), None if targets.everything else len(targets.names), targets)
