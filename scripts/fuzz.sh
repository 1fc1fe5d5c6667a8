#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Feeds the fuzz targets (Tests/Fuzz) with whatever libFuzzer comes up with. docs/testing.md ("Fuzzing") describes it.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: scripts/fuzz.sh [options] [seconds] [target…]

Builds the fuzz targets with AddressSanitizer and runs each for so many seconds (60), one after the other.
Targets: envelope, frames, hello, sealed, dbus, arguments, bridge (default: all).

  --replay    only the corpus that is kept, once: does everything that was found before still hold?
  --keep      afterwards, put what the runs have added into the corpus that is kept, as little of it as covers as much
  --no-build  run what was built before
  -h, --help  show this help

exit status: 0 nothing was found, 1 something was (its input's path is printed), 2 usage
TEXT
}

cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib/packages.sh
. scripts/lib/packages.sh
# shellcheck source=scripts/lib/toolchain.sh
. scripts/lib/toolchain.sh

all=(envelope frames hello sealed dbus arguments bridge)
targets=() seconds=60 replay='' keep='' build=1
while [ $# -gt 0 ]; do
    case $1 in
    --replay) replay=1 ;;
    --keep) keep=1 ;;
    --no-build) build='' ;;
    -h | --help) usage; exit 0 ;;
    envelope | frames | hello | sealed | dbus | arguments | bridge) targets+=("$1") ;;
    *)
        [[ $1 =~ ^[1-9][0-9]{0,6}$ ]] || { echo "fuzz.sh: no such target or option: '$1' (--help lists them)" >&2; exit 2; }
        seconds=$1
        ;;
    esac
    shift
done
[ ${#targets[@]} -gt 0 ] || targets=("${all[@]}")

program=.build/fuzz/release/NearbyFuzz
if [ -n "$build" ]; then
    need_swift
    need_build_packages
    # The manifest has the targets only where this is set. Everything is built anew here, with libFuzzer's counters.
    NEARBY_FUZZ=1 swift build -c release --product NearbyFuzz --scratch-path .build/fuzz \
        -Xswiftc -enable-testing -Xswiftc -sanitize=fuzzer,address >&2
fi
[ -x $program ] || { echo "fuzz.sh: nothing is built; leave --no-build out" >&2; exit 2; }

# A crash would keep Swift's backtracer busy for minutes, and globals with tagged pointers look like leaks.
export SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=detect_leaks=0
work=.build/fuzz-work
mkdir -p $work/{seeds,corpus,findings,logs}
corpus=Tests/Fuzz/Corpus
$program --seeds shared/vectors $work/seeds

status=0
for target in "${targets[@]}"; do
    rm -rf "$work/kept"
    mkdir -p "$work/corpus/$target" "$work/kept"
    [ ! -f $corpus/"$target.tar.gz" ] || tar -xzf $corpus/"$target.tar.gz" -C "$work/kept"
    options=("--target=$target" "-artifact_prefix=$work/findings/$target-" -max_len=2048)
    folders=("$work/kept" "$work/seeds/$target")
    if [ -n "$replay" ]; then
        options+=(-runs=0)
    else
        options+=("-max_total_time=$seconds" -dict=Tests/Fuzz/words.dict -print_final_stats=1)
        folders=("$work/corpus/$target" "${folders[@]}")
    fi
    log=$work/logs/$target.txt
    if $program "${options[@]}" "${folders[@]}" </dev/null >"$log" 2>&1; then
        runs=$(sed -n 's/^#\([0-9]*\)[[:blank:]]*DONE.*cov: \([0-9]*\).*/\1 runs, \2 edges/p' "$log" | tail -n 1)
        echo "ok $target: ${runs:-done}"
    else
        echo "not ok $target: see $log"
        grep -aE 'does not hold|ERROR|Fatal error|Test unit written' "$log" || true
        status=1
    fi
    if [ -n "$keep" ]; then
        rm -rf "$work/merged"
        mkdir "$work/merged"
        $program "--target=$target" -max_len=2048 -merge=1 "$work/merged" "${folders[@]}" </dev/null >>"$log" 2>&1
        # One file for each target, and the same for the same inputs.
        mkdir -p $corpus
        tar -C "$work/merged" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' -cf - . |
            gzip -9n >$corpus/"$target.tar.gz"
        echo "   kept: $(find "$work/merged" -type f | wc -l) inputs, $(stat -c %s $corpus/"$target.tar.gz") bytes"
    fi
done
exit $status
