"""The sample project: the till of a tea house, written in shell, so that its tests need nothing else."""

BRANCH = "main"

README = """\
# The till of the tea house

It knows what a cup costs and what a guest owes.

Open from {opens} to {closes}.
"""

PRICE = """\
{price_of}() {{
    cat "menu/$1"
}}
"""

TOTAL = """\
total() {{
    sum=0
    for tea in "$@"; do
        sum=$((sum + $({price_of} "$tea")))
    done
    echo "$sum"
}}
"""

# Both checks take their time, so that there is something to see; not every system sleeps for less than a second.
UNIT = """\
# Runs every test with all of the till's functions at hand.
sleep 1
failed=0
for test in tests/test_*.sh; do
    if (for part in till/*.sh; do . "./$part"; done; . "./$test"); then
        echo "ok      $test"
    else
        echo "not ok  $test"
        failed=1
    fi
done
exit $failed
"""

LINT = """\
# Every price is a whole number, and every script can be read.
sleep 0.5 2>/dev/null || sleep 1
grep -vx '[0-9][0-9]*' menu/* && exit 1
for script in till/*.sh tests/*.sh; do
    sh -n "$script" || exit 1
done
"""

CHECKS = """\
version = 1

[checks]
unit = "sh tests/unit.sh"
lint = "sh tests/lint.sh"
"""

FILES = {
    ".mergeyard.toml": CHECKS,
    "README.md": README.format(opens=8, closes=18),
    "menu/black": "4\n",
    "menu/green": "3\n",
    "menu/mint": "3\n",
    "till/price.sh": PRICE.format(price_of="price_of"),
    "till/total.sh": TOTAL.format(price_of="price_of"),
    "tests/unit.sh": UNIT,
    "tests/lint.sh": LINT,
    "tests/test_price.sh": '[ "$(price_of black)" = 4 ]\n',
    "tests/test_total.sh": '[ "$(total green black)" = 7 ]\n',
}


def feature(name: str, body: str, test: str) -> dict[str, str]:
    """A function of the till in a file of its own, and its test."""
    return {f"till/{name}.sh": f"{name}() {{\n    {body}\n}}\n", f"tests/test_{name}.sh": f"{test}\n"}
