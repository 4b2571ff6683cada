# Creates .venv from the hashed lock file, with uv if it is installed and pip otherwise.
set -eu

# Includes the path: a copied checkout must not run the programs of the original folder.
fingerprint() { pwd; cat requirements/test.txt; }

is_current() { [ -x .venv/bin/python ] && fingerprint | cmp -s - .venv/fingerprint; }

is_installed() { cmp -s pyproject.toml .venv/pyproject.toml; }

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

choose_python() {
    for candidate in $PYTHON; do
        if is_new_enough "$candidate"; then echo "$candidate"; return; fi
    done
    echo "Mergeyard needs Python 3.11 or newer, and found none among: $PYTHON." >&2
    echo "Install one, or name one that you have: make setup PYTHON=/path/to/python3" >&2
    return 1
}

choose_installer() {
    if command -v uv >/dev/null; then
        echo "uv pip install --quiet --python .venv/bin/python"
    elif "$1" -m pip --version >/dev/null 2>&1; then
        echo "$1 -m pip --quiet --disable-pip-version-check --python .venv/bin/python install"
    else
        echo "$1 has no pip. Install pip for it, or uv, and try again." >&2
        return 1
    fi
}

if is_current && is_installed; then exit 0; fi

python=$(choose_python)
install=$(choose_installer "$python")

if ! is_current; then
    echo "Creating .venv with $python ..."
    rm -rf .venv
    "$python" -m venv --without-pip .venv
    $install --require-hashes --only-binary :all: --requirement requirements/test.txt
    fingerprint >.venv/fingerprint # last, so that an incomplete .venv is never taken for a complete one
fi

$install --no-deps --no-build-isolation --editable .
cp pyproject.toml .venv
