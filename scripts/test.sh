#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs every test that needs no virtual machine. Installs what is missing for it.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: scripts/test.sh [options] [-- arguments for `swift test`]

  --sanitize thread|address   build and run with that sanitizer, in a build folder of its own
  --filter PATTERN            only tests whose names match; may be repeated
  --strict                    warnings are errors
  -h, --help                  show this help
TEXT
}

cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib/packages.sh
. scripts/lib/packages.sh
# shellcheck source=scripts/lib/toolchain.sh
. scripts/lib/toolchain.sh

# Swift Testing only: with XCTest in, AddressSanitizer reports XCTest's own leaks.
options=(--disable-xctest)
while [ $# -gt 0 ]; do
    case $1 in
    --sanitize)
        case ${2:-} in
        thread | address) ;;
        *) echo "test.sh: --sanitize takes thread or address, not '${2:-}'" >&2; exit 2 ;;
        esac
        options+=(--sanitize="$2" --scratch-path ".build/$2-sanitizer")
        shift
        ;;
    --filter)
        [ -n "${2:-}" ] || { echo "test.sh: --filter takes a pattern" >&2; exit 2; }
        options+=(--filter "$2")
        shift
        ;;
    --strict) options+=(-Xswiftc -warnings-as-errors) ;;
    -h | --help) usage; exit 0 ;;
    --) shift; options+=("$@"); break ;;
    *) echo "test.sh: unknown option '$1' (--help lists them)" >&2; exit 2 ;;
    esac
    shift
done

need_swift
need_packages "building (libdbus)" libdbus-1-dev
command -v pkg-config >/dev/null || need_packages "building (where libdbus is)" pkg-config
command -v dbus-daemon >/dev/null || need_packages "the tests' private buses" dbus
python3 -c 'import ensurepip, venv' 2>/dev/null ||
    need_packages "the Python environment of the tests' foreign peers (bleak, dbus-fast)" python3 python3-venv
scripts/python-env.sh >/dev/null

exec swift test "${options[@]}"
