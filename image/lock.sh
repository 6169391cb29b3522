#!/bin/sh
# Write image/requirements.lock anew: the newest versions that pyproject.toml allows, each file by its hash. Of the extras
# the image has otel: whether there are traces is for the environment to say, and nobody adds packages to a container.
set -eu
cd "$(dirname "$0")/.."
pin() { # pin INPUT OUTPUT [OPTION...]
  input=$1 output=$2
  shift 2
  "${COMPILER:-pip-compile}" --quiet --upgrade --generate-hashes --strip-extras --no-annotate --no-header \
    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file "$output" "$@" "$input"
}
pin pyproject.toml image/requirements.lock --extra otel
# What only the first releases of Python 3.11 lack, and the one that made the lock may not.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo async-timeout >"$folder/older.in"
pin "$folder/older.in" "$folder/older.lock"
sed 's/^\(async-timeout==[^ ]*\) /\1 ; python_full_version < "3.11.3" /' "$folder/older.lock" >>image/requirements.lock
