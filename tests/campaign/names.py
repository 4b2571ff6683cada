"""Names that files may have: those that read alike, those that look like orders, and those that git will not have."""

UNICODE = (
    "caf\u00e9.txt",
    "cafe\u0301.txt",
    "\u212bngstr\u00f6m",
    "A\u030angstro\u0308m",
    "\u65e5\u672c\u8a9e/\u30d5\u30a1\u30a4\u30eb",
    "\U0001f682\u200d.txt",
    "\u202etxt.exe",
    "\udcff\udcfe-not-utf8",
)
"""The same in two forms, from right to left, and what is no text at all."""

HOSTILE = (
    "two\nlines.txt",
    " ",
    "-x",
    "--force",
    "--",
    "-rf ~",
    'say "hi"',
    "it's",
    "back\\slash",
    "tab\there",
    "$(reboot)",
    "`reboot`; reboot &",
    ":(top)x",
    ":!x",
    "*",
    "[a-z]?",
    "HEAD",
    "refs/heads/main",
    "%00%s%n",
    "bell\x07\x1b[31m",
    "CON",
    "aux.txt",
    "trailing.",
    "trailing ",
    "x" * 250,
    "y" * 300,
    "/".join(["deep"] * 120),
    ".gitmodules",
    ".gitignore",
    ".mailmap",
    "a/.gitkeep",
)

REFUSED_BY_GIT = (
    ".git/config",
    ".GIT/hooks/post-checkout",
    "sub/.git/HEAD",
    "git~1/config",
    ".git /config",
    "..git/../x",
)
"""Git puts none of these into an index, but a tree that was pushed may hold them."""
