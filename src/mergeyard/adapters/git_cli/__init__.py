"""Git by its command line: bare mirrors, in which nothing is ever checked out and no hook ever runs.

Every call is a list of arguments in an environment of its own making. Repositories with SHA-256 names are not served.
"""

from mergeyard.adapters.git_cli.commits import Committer
from mergeyard.adapters.git_cli.opening import GitCli

__all__ = ["Committer", "GitCli"]
