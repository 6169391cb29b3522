#!/bin/sh
# Write image/requirements.lock anew: the newest versions that pyproject.toml allows, each file by its hash.
set -eu
cd "$(dirname "$0")/.."
"${COMPILER:-pip-compile}" --quiet --upgrade --generate-hashes --strip-extras --no-annotate --no-header \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file image/requirements.lock pyproject.toml
