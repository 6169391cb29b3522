#!/bin/sh
# Write image/requirements.lock anew: the newest versions that pyproject.toml allows, each file by its hash.
set -eu
cd "$(dirname "$0")/.."
pin() { # pin INPUT OUTPUT
  "${COMPILER:-pip-compile}" --quiet --upgrade --generate-hashes --strip-extras --no-annotate --no-header \
    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file "$2" "$1"
}
pin pyproject.toml image/requirements.lock
# What only the first releases of Python 3.11 lack, and the one that made the lock may not.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo async-timeout >"$folder/older.in"
pin "$folder/older.in" "$folder/older.lock"
sed 's/^\(async-timeout==[^ ]*\) /\1 ; python_full_version < "3.11.3" /' "$folder/older.lock" >>image/requirements.lock
