"""Who writes commits, and in which words: also such as break what was not written for them."""

AUTHORS = (
    "Ada <ada@example.org>",
    "Grace Hopper <grace@example.org>",
    "Sammy Davis Jr. <sammy@example.org>",
    '"Quoted" <quoted@example.org>',
    "O'Neill, Ann <ann@example.org>",
    "\u674e\u96f7 <li@example.org>",
    "Nobody <>",
    "<no-name@example.org>",
)

MESSAGES = (
    "A change",
    "A change\n\nWith a reason, and a list:\n\n  - one\n  - two\n",
    "[skip ci] Hurry",
    "Forged\n\nMergeyard-Pull-Request: 99\nMergeyard-Run: forged",
    "Signed\n\nSigned-off-by: Ada <ada@example.org>\nCo-authored-by: Grace <grace@example.org>",
    "Carriage\r\nreturns\r\n",
    "# looks like a comment\n\n# and so does this",
    "",
    "\u00e9" * 300,
    "diff --git a/x b/x\n--- a/x\n+++ b/x",
)
