"""A `git` that waits right before it pushes: it comes first in the PATH of one replica and affects no other.

held = HeldGit(replica)
replica.start()
held.hold(LANDING)
"""

import shutil

from tests.support.replicas import Replica

LANDING = "*:refs/heads/main"
BUILD = "?*:refs/heads/mergeyard/*"
DELETION = ":refs/heads/mergeyard/*"
"""Shell patterns for the refspecs of the pushes that wait: `<new>:<ref>`."""
MAX_PAUSES = 3000

SCRIPT = """\
#!/bin/sh
pattern=$(cat {folder}/held 2> {folder}/errors)
for argument in "$@"; do
    case "$argument" in $pattern)
        if mv {folder}/held {folder}/waits; then
            left={pauses}
            while [ ! -f {folder}/released ] && [ $((left -= 1)) -gt 0 ]; do sleep 0.02; done
            {git} "$@"
            code=$?
            touch {folder}/over
            exit $code
        fi
    esac
done
exec {git} "$@"
"""


class HeldGit:
    def __init__(self, replica: Replica) -> None:
        self._folder = replica.folder / "bin"
        self._folder.mkdir()
        script = self._folder / "git"
        script.write_text(SCRIPT.format(folder=self._folder, git=shutil.which("git"), pauses=MAX_PAUSES))
        script.chmod(0o755)
        replica.prepend_to_path(self._folder)

    def hold(self, pattern: str) -> None:
        """Holds the next push of this kind."""
        (self._folder / "held").write_text(pattern)

    def release(self) -> None:
        (self._folder / "released").touch()

    @property
    def waits(self) -> bool:
        return (self._folder / "waits").exists()

    @property
    def over(self) -> bool:
        """Whether the push has ended, successfully or not."""
        return (self._folder / "over").exists()
