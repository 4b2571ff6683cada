"""A `git` that waits right before it pushes: it stands first in the path of one replica, and holds nobody else's.

held = HeldGit(replica)
replica.start()
held.hold(LANDING)
"""

import shutil

from tests.support.replicas import Replica

LANDING = "*:refs/heads/main"
BUILD = "?*:refs/heads/mergeyard/*"
GIVING_UP = ":refs/heads/mergeyard/*"
"""Which pushes are meant, as the shell matches what git is told to push: `<new>:<ref>`."""
MOST_PAUSES = 3000

SCRIPT = """\
#!/bin/sh
which=$(cat {folder}/held 2> {folder}/nothing)
for word in "$@"; do
    case "$word" in $which)
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
        script.write_text(SCRIPT.format(folder=self._folder, git=shutil.which("git"), pauses=MOST_PAUSES))
        script.chmod(0o755)
        replica.place_first_in_path(self._folder)

    def hold(self, which: str) -> None:
        """The next push of this kind."""
        (self._folder / "held").write_text(which)

    def release(self) -> None:
        (self._folder / "released").touch()

    @property
    def waits(self) -> bool:
        return (self._folder / "waits").exists()

    @property
    def over(self) -> bool:
        """Whatever became of the push."""
        return (self._folder / "over").exists()
