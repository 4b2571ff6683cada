"""A Git host that consists of bare repositories in a folder, with pull requests stored in refs.

Pull request N is the ref `refs/pull/N/head` and the JSON blob `refs/pull/N/meta` (`PullRequestMetadata`). The command
`mergeyard pr` edits them; the server reads them and marks pull requests as merged. Both update refs by
compare-and-swap.

- `process`: runs git in a repository, with the runner of `git_cli`
- `pull_requests`: reads pull requests from their refs, through a long-lived `git cat-file`
- `ref_watch`: finds out without git whether refs can have changed
- `editor`: opens, updates and closes pull requests
- `host`: `PlainHost`, which implements the port `Host`
"""
