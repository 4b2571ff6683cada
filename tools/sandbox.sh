# Installs bubblewrap for the tests of the sandbox if it is missing and this system can install it.
set -eu

if command -v bwrap >/dev/null; then exit 0; fi

if [ "$(id -u)" -ne 0 ]; then
    echo "There is no bubblewrap. Install it (on Debian: sudo apt-get install bubblewrap), and the sandbox is tested too." >&2
    exit 1
fi
if ! command -v apt-get >/dev/null; then
    echo "There is no bubblewrap, and no apt-get to install it with. Install it, and the sandbox is tested too." >&2
    exit 1
fi
echo "Installing bubblewrap ..."
apt-get update --quiet=2
DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet=2 --no-install-recommends bubblewrap >/dev/null
