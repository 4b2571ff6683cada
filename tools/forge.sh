# Builds a Gitea for `make test-forge` from the Go module registry, into .forge: the newest release that can be built.
set -eu

MODULE=code.gitea.io/gitea
CACHE=$PWD/.forge
RELEASES=4 # how many releases are tried, the newest first
PARTS="templates options public" # what the binary reads at run time; no front end is needed

newest_binary() { find "$CACHE" -maxdepth 2 -path '*/gitea-*/gitea' 2>/dev/null | sort -V | tail -n 1; }

releases() { go list -m -versions "$MODULE" | tr ' ' '\n' | grep -E '^v[0-9]+\.[0-9]+\.[0-9]+$' | sort -rV | head -n "$RELEASES"; }

source_of() { go mod download -json "$MODULE@$1" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p'; }

# The sources in the module cache are read-only, and the parts must be in the folder of the binary.
build() {
    home=$CACHE/gitea-${1#v} work=$CACHE/work
    rm -rf "$work" && mkdir -p "$work"
    from=$(source_of "$1") && cp -R "$from" "$work/source" && chmod -R u+w "$work/source" || return 1
    (cd "$work/source" && CGO_ENABLED=1 go build -tags "sqlite sqlite_unlock_notify" \
        -ldflags "-s -w -X main.Version=${1#v}" -o "$work/gitea" .) || return 1
    for part in $PARTS; do mv "$work/source/$part" "$work/"; done
    rm -rf "$work/source" && mv "$work" "$home"
}

if [ -n "${MERGEYARD_FORGE_BINARY:-}" ]; then
    echo "Nothing is built: MERGEYARD_FORGE_BINARY names $MERGEYARD_FORGE_BINARY."
    exit
fi
found=$(newest_binary)
if [ -n "$found" ]; then
    echo "Nothing is built: $found exists."
    exit
fi
for tool in go cc; do
    command -v "$tool" >/dev/null && continue
    echo "No Gitea was built: the build needs $tool. Install it, or name a binary in MERGEYARD_FORGE_BINARY." >&2
    exit 1
done

mkdir -p "$CACHE" && echo '*' >"$CACHE/.gitignore"
export GOMODCACHE="${GOMODCACHE:-$CACHE/modules}" GOFLAGS="${GOFLAGS:-} -modcacherw"
trap 'rm -rf "$CACHE/work" "$CACHE/modules"' EXIT
for release in $(releases); do
    echo "Building Gitea $release, which takes some minutes."
    if build "$release" 2>"$CACHE/build.log"; then
        echo "Gitea $release is at $(newest_binary)."
        exit
    fi
    echo "Gitea $release cannot be built here: $(tail -n 1 "$CACHE/build.log")"
done
echo "No Gitea was built: none of the newest $RELEASES releases can be built. See $CACHE/build.log." >&2
exit 1
