# Gets GitHub's published GraphQL schema from the npm registry into .graphql, so that tests compare our queries with it.
set -eu

PACKAGE=@octokit/graphql-schema VERSION=15.26.1
SHA512=RFDC2MpRBd4AxSRvUeBIVeBU7ojN/SxDfALUd7iVYOSeEK3gZaqR2MGOysj4Zh2xj2RY5fQAUT+Oqq7hWTraMA==
CACHE=$PWD/.graphql
SCHEMA=$CACHE/schema-$VERSION.graphql

fail() { echo "$1 Then our queries are compared with GitHub's GraphQL schema too." >&2; exit 1; }

if [ -f "$SCHEMA" ]; then exit 0; fi
for tool in npm openssl tar; do
    command -v "$tool" >/dev/null || fail "There is no $tool. Install it."
done

mkdir -p "$CACHE" && echo '*' >"$CACHE/.gitignore"
work=$(mktemp -d "$CACHE/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
echo "Getting $PACKAGE $VERSION ..."
npm pack --silent "$PACKAGE@$VERSION" >/dev/null || fail "npm could not get $PACKAGE $VERSION. Check the registry of npm."
found=$(openssl dgst -sha512 -binary ./*.tgz | openssl base64 -A)
[ "$found" = "$SHA512" ] || fail "$PACKAGE $VERSION has another checksum than expected: $found. Check the registry of npm."
tar -xzf ./*.tgz package/schema.graphql
mv package/schema.graphql "$SCHEMA"
echo "GitHub's GraphQL schema is at $SCHEMA."
