#!/bin/sh
# SPDX-License-Identifier: MIT
# Measures what docs/performance.md states: Benchmarks/run.sh [dbus|idle|binary|joins|sealed|bridge|peers|all]…
# A missed target is a line in the table; the exit status is 1 only if something could not be measured.
set -eu
cd "$(dirname "$0")"

[ $# -gt 0 ] || set -- all
names=
for name in "$@"; do
    case $name in
    dbus | idle | binary | joins | sealed | bridge | peers) names="$names $name" ;;
    all) names="dbus idle binary joins sealed bridge peers" ;;
    *)
        echo "usage: Benchmarks/run.sh [dbus|idle|binary|joins|sealed|bridge|peers|all]…" >&2
        exit 2
        ;;
    esac
done

for tool in swift cc pkg-config python3 dbus-daemon taskset strip; do
    command -v "$tool" >/dev/null || {
        echo "Benchmarks/run.sh: $tool is missing" >&2
        exit 1
    }
done

flags="-c release --static-swift-stdlib"
nearby=none
root=none
python=none

compile() {
    mkdir -p .build/c
    # shellcheck disable=SC2046 # several words are meant
    cc -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -Wall -Wextra -Werror -o ".build/c/$1" "C/$1.c" \
        $(pkg-config --cflags --libs dbus-1)
}

for name in $names; do
    case $name in
    dbus)
        compile echo_server
        compile blocking_caller
        # shellcheck disable=SC2086
        swift build $flags --product DBusRoundTrip >&2
        ;;
    idle)
        # shellcheck disable=SC2086
        swift build $flags --product EmptyAsync >&2
        ;;
    joins)
        # shellcheck disable=SC2086
        swift build $flags --product Joins >&2
        ;;
    sealed)
        # It feeds the protocol's machines, which only their own package sees; the manifest has it where this is set.
        # shellcheck disable=SC2086
        NEARBY_BENCHMARKS=1 swift build $flags --package-path .. --product SealedCost >&2
        # shellcheck disable=SC2086
        root=$(swift build $flags --package-path .. --show-bin-path)
        ;;
    peers)
        compile bare_host
        compile bare_client
        # The lab's environment has SimpleBLE too.
        python=${XDG_CACHE_HOME:-$HOME/.cache}/nearbydiscoverykit/lab/venv/bin/python
        [ -x "$python" ] || python=$(../scripts/python-env.sh)
        ;;
    esac
    case $name in
    idle | binary | bridge | peers)
        # shellcheck disable=SC2086
        swift build $flags --package-path .. --product nearby >&2
        # shellcheck disable=SC2086
        nearby=$(swift build $flags --package-path .. --show-bin-path)/nearby
        ;;
    esac
done

# shellcheck disable=SC2086
swift=$(swift build $flags --show-bin-path)
# shellcheck disable=SC2086
exec python3 -m measure --c .build/c --swift "$swift" --nearby "$nearby" --root "$root" \
    --python "$python" $names
