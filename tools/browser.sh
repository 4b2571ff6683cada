# Installs the system's Chromium if it is missing and this system can install it.
set -eu

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then exit 0; fi
done

if [ "$(id -u)" -ne 0 ]; then
    echo "There is no Chromium. Install it (on Debian: sudo apt-get install chromium), and the pages are tested too." >&2
    exit 1
fi
if ! command -v apt-get >/dev/null; then
    echo "There is no Chromium, and no apt-get to install it with. Install it, and the pages are tested too." >&2
    exit 1
fi
echo "Installing Chromium ..."
apt-get update --quiet=2
DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet=2 --no-install-recommends chromium fonts-dejavu-core >/dev/null
