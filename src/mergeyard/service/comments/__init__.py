"""Comments and labels on pull requests of forges: commands such as `/merge`, and the status comment.

- `listener`: reads a thread when a webhook or the poller reports a change, executes new commands and labels, and
  publishes the status comment from the journal
- `commands`: parses a command, checks that its author is allowed to give it, executes it, and stores per thread what
  was answered and which replies are unsent (`ThreadState`), so that no command is executed twice and no reply is lost,
  also after a restart
- `texts`: every sentence that appears in a comment
"""
