#!/bin/sh
# Build and check what is released, into dist/. AUDIT=no leaves out the audit, and says so there.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
if [ -n "$(git status --porcelain)" ]; then echo "release.sh: commit or remove what git status shows first" >&2; exit 2; fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
rm -rf dist build
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
echo "tools ..."
"$python" -m venv "$tools/venv"
"$tools/venv/bin/pip" --quiet --disable-pip-version-check install build cyclonedx-bom pip-audit
echo "wheel and source archive ..."
"$tools/venv/bin/python" -m build --outdir dist . >"$tools/build.log" 2>&1 || { cat "$tools/build.log" >&2; exit 1; }
echo "bill of materials ..."
PYTHON="$python" sh image/steps.sh install "$tools/shipped" dist image/requirements.lock
"$tools/venv/bin/cyclonedx-py" environment --output-reproducible --output-format JSON \
  --output-file dist/oarlock.cdx.json "$tools/shipped/bin/python"
if [ "${AUDIT:-yes}" = no ]; then
  echo "The packages were not looked up in a vulnerability service." >dist/NOT-AUDITED
else
  echo "audit ..."
  "$tools/venv/bin/pip-audit" --strict --disable-pip --requirement image/requirements.lock
fi
(cd dist && sha256sum ./* >SHA256SUMS)
echo "made:"
ls -l dist
