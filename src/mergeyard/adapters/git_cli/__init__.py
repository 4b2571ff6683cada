"""Git through its command line, in bare mirrors: nothing is checked out there, and hooks never run.

- `limits`: what one git process may use, and which processes share slots
- `process`: runs git with a fixed environment and within those limits, and detects damaged repositories
- `remote`: fetches and pushes refs of the Git host, and validates names that become arguments
- `history`: reads and creates commits, and merges them without a working tree
- `contents`: compares, reads and writes the files of commits
- `mirror`: `CliMirror`, which implements the port `Mirror` with these modules
- `mirrors`: `GitCli`, which creates, repairs and maintains the mirrors below one folder

A mirror names its objects as its remote does, by SHA-1 or by SHA-256.
"""

from mergeyard.adapters.git_cli.mirrors import GitCli

__all__ = ["GitCli"]
