"""GitHub, GitLab and Gitea/Forgejo as Git hosts: pull requests, checks, comments and merges over their web APIs.

Every forge has the same modules:

- `host`: the class that implements the ports `Host` and `Forge`, by calling the other modules
- `pull_requests` (GitLab: `merge_requests`): reading pull requests, draft pull requests for test branches, ref polling
- `checks`: commit statuses and check runs
- `comments`: threads, our own comments, labels and the roles of their authors
- `merging`: the forge's own merge, and its outcome when the response was lost
- `webhooks`: verifying and parsing incoming webhooks
- `diagnostics`: what is missing in the configuration, with instructions
- `rules` (GitHub): branch protection and rulesets
- `auth` (GitHub): app installations, tokens and permissions
- `wire`: the structs of the API's JSON, valid repository names, API paths and refs

`http.ForgeClient` sends all requests: with a conditional GET cache, within the forge's rate limits (`rate_limits`), and
never to a redirect target. A 404 is ambiguous on every forge: it also means that our account lost access. So each
module that gets a 404 verifies that the repository itself is visible before it reports a pull request as gone.
"""
