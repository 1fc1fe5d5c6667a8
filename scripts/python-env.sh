#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes the Python environment in which the tests' foreign peers run (bleak, dbus-fast), outside the source tree, and
# prints the path of its interpreter. Does nothing but print when the environment is there and up to date.
#
#   scripts/python-env.sh            make it if need be, print the interpreter's path
#   scripts/python-env.sh --path     print the path only; exit status 1 if the environment is not there or out of date
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
requirements=$root/Tests/Python/requirements.txt
env=${XDG_CACHE_HOME:-$HOME/.cache}/nearbydiscoverykit/python
stamp=$env/.requirements
interpreter=$env/bin/python3

ready() { [ -x "$interpreter" ] && cmp -s "$requirements" "$stamp"; }

if [ "${1:-}" = --path ]; then
    ready || exit 1
    printf '%s\n' "$interpreter"
    exit 0
fi
if [ $# -gt 0 ]; then
    printf 'usage: %s [--path]\n' "$0" >&2
    exit 2
fi

if ! ready; then
    command -v python3 >/dev/null || { echo "python-env: python3 is missing (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
    mkdir -p "$(dirname "$env")"
    # Two runs at once must not build in one directory: the second waits, and finds the first one's work.
    exec 9>"$env.lock"
    flock 9
fi
if ! ready; then
    rm -rf "$env"
    if ! python3 -m venv "$env" >&2; then
        echo "python-env: could not make a virtual environment (Debian, Ubuntu: apt install python3-venv)" >&2
        exit 1
    fi
    "$interpreter" -m pip install --quiet --disable-pip-version-check -r "$requirements" >&2
    cp "$requirements" "$stamp"
fi
printf '%s\n' "$interpreter"
