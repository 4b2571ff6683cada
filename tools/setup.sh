# Fills .venv from a hashed lock file, with uv if it is installed and pip otherwise: from requirements/run.txt for
# `setup.sh run`, which is enough to run the product, and else from requirements/test.txt, which contains the same and more.
set -eu

lock=${1:-test}

# Includes the path: a copied checkout must not run the programs of the original folder.
fingerprint() { pwd; cat "requirements/$1.txt"; }

contains() { [ -x .venv/bin/python ] && fingerprint "$1" | cmp -s - ".venv/$1.fingerprint"; }

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

choose_python() {
    for candidate in $PYTHON; do
        if is_new_enough "$candidate"; then echo "$candidate"; return; fi
    done
    echo "Mergeyard needs Python 3.11 or newer, and found none among: $PYTHON." >&2
    echo "Install one, or add one that you have to the command: PYTHON=/path/to/python3" >&2
    return 1
}

choose_installer() {
    if command -v uv >/dev/null; then
        echo "uv pip install --quiet --python .venv/bin/python"
    elif "$1" -m pip --version >/dev/null 2>&1; then
        echo "$1 -m pip --quiet --disable-pip-version-check --python .venv/bin/python install"
    else
        echo "$1 has no pip. Install pip (on Debian and Ubuntu: sudo apt-get install python3-pip) or uv, and try again." >&2
        return 1
    fi
}

# The product is not built: .venv refers to its source.
link_product() {
    echo "$PWD/src" >"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/mergeyard.pth"
    # First for the shell, then for Python: the path in a first line must be short and without spaces.
    cat >.venv/bin/mergeyard <<END
#!/bin/sh
'''exec' '$PWD/.venv/bin/python' "\$0" "\$@"
' '''
from mergeyard.__main__ import main

main()
END
    chmod +x .venv/bin/mergeyard
}

if contains test || contains "$lock"; then exit 0; fi

python=$(choose_python)
install=$(choose_installer "$python")

if contains run; then
    echo "Adding what the tests need to .venv ..."
else
    echo "Creating .venv with $python ..."
    rm -rf .venv
    "$python" -m venv --without-pip .venv
    link_product
fi
$install --require-hashes --only-binary :all: --requirement "requirements/$lock.txt"
fingerprint "$lock" >".venv/$lock.fingerprint" # last, so that an incomplete .venv is never taken for a complete one
