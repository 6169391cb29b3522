#!/bin/sh
# The steps of the image, one argument each, so that they can also be followed without a container engine.
#
#   steps.sh wheel SOURCE OUT            build the wheel of SOURCE into OUT
#   steps.sh install PREFIX WHEELS LOCK  a Python environment in PREFIX: what LOCK pins by hash, then the wheel, no more
#   steps.sh old-names PREFIX FOLDER     let the names of an earlier release be found in PREFIX, after all others
#   steps.sh system                      what the running image needs of Debian, and a place to write (as root)
set -eu

# Bytecode of all that lies in folders. Nothing in an image changes, so nothing is held against its source later.
compile_all() { python=$1; shift; "$python" -m compileall -q -j 0 --invalidation-mode unchecked-hash "$@"; }

pip_quietly() { python=$1; shift; "$python" -m pip --quiet --disable-pip-version-check --no-input "$@"; }

case "${1:-}" in
  wheel)
    pip_quietly "${PYTHON:-python3}" wheel --no-deps --wheel-dir "$3" "$2"
    ;;
  install)
    "${PYTHON:-python3}" -m venv "$2"
    pip_quietly "$2/bin/python" install --require-hashes --only-binary :all: --no-compile -r "$4"
    pip_quietly "$2/bin/python" install --no-deps --no-index --no-compile "$3"/oarlock-*.whl
    "$2/bin/python" -m pip check
    # The image is never added to: without pip there is nothing to add with.
    pip_quietly "$2/bin/python" uninstall --yes setuptools pip
    # Here, as no container may write any: without it each process that starts compiles for a second and keeps 7 MB.
    compile_all "$2/bin/python" -x '/tests?/' "$2/lib"
    ;;
  old-names)
    cp -RL "$3" "$2/old_names"
    compile_all "$2/bin/python" "$2/old_names"
    echo "$2/old_names" >"$("$2/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/old_names.pth"
    ;;
  system)
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends tini >/dev/null
    rm -rf /var/lib/apt/lists/*
    # Python's own library: the official images leave its bytecode out.
    compile_all python3 -x '/(test|idlelib|lib2to3|site-packages)/' "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
    install -d -o 65532 -g 65532 -m 0750 /var/lib/oarlock
    ;;
  *)
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
