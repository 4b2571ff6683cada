# Installs what the test of the container image needs: podman if no container engine works, and the base image of the
# Dockerfile. Where no image registry can be reached, a stand-in for the base image is made of Debian and a local Python.
set -eu

python=$(sed -n 's/^ARG PYTHON=//p' Dockerfile)
base=docker.io/library/python:$python-slim-bookworm
stand_in=localhost/mergeyard-stand-in:$python

works() { "$1" info >/dev/null 2>&1; }

# The test itself takes no engine that does not work.
fail() { echo "$1 Then the image is tested too." >&2; exit 1; }

install() {
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then fail "Install $*."; fi
    echo "Installing $* ..."
    apt-get update --quiet=2
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet=2 --no-install-recommends "$@" >/dev/null
}

find_python() {
    for candidate in "python$python" "${HOME:-/root}/.pyenv/versions/$python".*/bin/python; do
        if "$candidate" -c 'import sys; print(sys.base_prefix)' 2>/dev/null; then return; fi
    done
    return 1
}

# What the official image has, as far as the Dockerfile uses it: Debian, and Python in /usr/local.
make_stand_in() {
    home=$(find_python) || fail "Install Python $python."
    command -v debootstrap >/dev/null || install debootstrap
    root=$(mktemp -d) && trap 'rm -rf "$root"' EXIT && trap 'exit 1' INT TERM && chmod 755 "$root"
    libraries=libbz2-1.0,libexpat1,libffi8,liblzma5,libncursesw6,libreadline8,libsqlite3-0,libssl3,libuuid1,zlib1g
    debootstrap --variant=minbase --include="ca-certificates,netbase,tzdata,$libraries" bookworm "$root" >/dev/null
    # A proxy on the way to the package registry can have a certificate that only this machine knows.
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    (cd "$home" && tar -c --exclude='__pycache__' --exclude='site-packages/*' --exclude="lib/python$python/test" \
        "bin/python$python" "lib/python$python" $(ls -d lib/libpython* 2>/dev/null)) | tar -x -C "$root/usr/local"
    for name in python python3; do ln -s "python$python" "$root/usr/local/bin/$name"; done
    chroot "$root" ldconfig
    tar -c -C "$root" . | "$1" import --change 'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - "$stand_in"
    echo "No image registry can be reached: $stand_in takes the place of $base in the test."
}

if works docker; then engine=docker; else
    command -v podman >/dev/null || install podman runc containernetworking-plugins iptables
    engine=podman
    works podman || fail "Set up podman or Docker: neither works here."
fi
has_image() { "$engine" image inspect "$1" >/dev/null 2>&1; }
has_image "$base" || has_image "$stand_in" || "$engine" pull --quiet "$base" || make_stand_in "$engine"
