#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs every test that needs no virtual machine. Installs what is missing for it.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: scripts/test.sh [options] [-- arguments for `swift test`]

Runs every test target in a process of its own, or, with --filter, the tests that match in one.

  --sanitize thread|address   build and run with that sanitizer, in a build folder of its own
  --filter PATTERN            only tests whose names match; may be repeated
  --strict                    warnings are errors
  --jobs N                    at most N targets at a time (default: one a processor)
  --again                     run a target that fails once more, by itself: this is for machines that others keep busy,
                              where a test may be late. Both runs are told. Not what a sanitizer has found, and not
                              with --filter
  --build                     build for that, and stop
  -h, --help                  show this help
TEXT
}

cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib/packages.sh
. scripts/lib/packages.sh
# shellcheck source=scripts/lib/together.sh
. scripts/lib/together.sh
# shellcheck source=scripts/lib/toolchain.sh
. scripts/lib/toolchain.sh

# Swift Testing only: with XCTest in, AddressSanitizer reports XCTest's own leaks.
options=(--disable-xctest)
build=()
filters=()
jobs=$(nproc) build_only='' again=''
while [ $# -gt 0 ]; do
    case $1 in
    --sanitize)
        case ${2:-} in
        thread | address) ;;
        *) echo "test.sh: --sanitize takes thread or address, not '${2:-}'" >&2; exit 2 ;;
        esac
        build+=(--sanitize="$2" --scratch-path ".build/$2-sanitizer")
        shift
        ;;
    --filter)
        [ -n "${2:-}" ] || { echo "test.sh: --filter takes a pattern" >&2; exit 2; }
        filters+=(--filter "$2")
        shift
        ;;
    --jobs)
        [[ ${2:-} =~ ^[1-9][0-9]?$ ]] || { echo "test.sh: --jobs takes a number, not '${2:-}'" >&2; exit 2; }
        jobs=$2
        shift
        ;;
    --again) again=1 ;;
    --build) build_only=1 ;;
    --strict) build+=(-Xswiftc -warnings-as-errors) ;;
    -h | --help) usage; exit 0 ;;
    --) shift; options+=("$@"); break ;;
    *) echo "test.sh: unknown option '$1' (--help lists them)" >&2; exit 2 ;;
    esac
    shift
done

need_swift
need_build_packages
command -v dbus-daemon >/dev/null || need_packages "the tests' private buses" dbus
python3 -c 'import ensurepip, venv' 2>/dev/null ||
    need_packages "the Python environment of the tests' foreign peers (bleak, dbus-fast)" python3 python3-venv
scripts/python-env.sh >/dev/null

# LeakSanitizer does not know the forms in which Swift keeps pointers (to the side tables of weak references, in the
# payloads of enums) and takes what they point to for lost. That nothing grows is tested by counting: CrowdTests,
# MemoryTests, and Benchmarks' joins.
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"

swift build --build-tests "${build[@]}"
[ -z "$build_only" ] || exit 0
if [ ${#filters[@]} -gt 0 ]; then
    exec swift test --skip-build "${build[@]}" "${options[@]}" "${filters[@]}"
fi

# A process for each target: tests that turn a clock by hand wait until their process is at rest, and tests of one room
# shall not keep those of another from it. Several at a time, since much of their time is waiting.
# A target that hangs fails, and the rest still runs.
logs=$(mktemp -d)
: >"$logs/sum"
: >"$logs/found"
trap ended_by_signal INT TERM HUP
trap 'rm -rf "$logs"' EXIT

# run_target TARGET: what it has to say, when it has ended, and its numbers for the sum.
run_target() {
    local target=$1 log=$logs/$1 status=0 count passed failed=0 bad
    trap ended_by_signal INT TERM HUP
    # Nothing is built any more, so they need not wait for one another (--ignore-lock).
    timeout --signal=INT --kill-after=10 900 swift test --ignore-lock --skip-build "${build[@]}" "${options[@]}" \
        --filter "^$target\\." >"$log" 2>&1 &
    wait $! || status=$?
    count=$(sed -n 's/.*Test run with \([0-9]*\) tests\{0,1\} .*/\1/p' "$log" | tail -n 1)
    passed=${count:-0}
    exec 8>"$logs/lock"
    flock 8
    echo "--- $target"
    if [ "$status" -ne 0 ] || [ "${count:-0}" -eq 0 ]; then
        cat "$log"
        [ "$status" -ne 124 ] || echo "$target did not end within 15 minutes"
        echo "$target failed (exit status $status, ${count:-0} tests)"
        bad=$(grep -c '✘ Test .* failed after' "$log" || true)
        failed=$((bad > 0 ? bad : 1))
        passed=$(grep -c '✔ Test .* passed after' "$log" || true)
        ! grep -q 'WARNING: ThreadSanitizer\|ERROR: AddressSanitizer' "$log" || echo "$target" >>"$logs/found"
    else
        grep 'Test run with' "$log" | tail -n 1
    fi
    echo "$target $passed $failed" >>"$logs/sum"
}

# What takes longest begins, or all would wait for it in the end.
targets=(IntegrationTests nearbyTests)
for folder in Tests/*Tests; do
    [[ " ${targets[*]} " == *" ${folder#Tests/} "* ]] || targets+=("${folder#Tests/}")
done
for target in "${targets[@]}"; do at_most "$jobs" run_target "$target"; done
wait
if [ -n "$again" ]; then
    mapfile -t late < <(awk '$3 > 0 { print $1 }' "$logs/sum")
    for target in "${late[@]}"; do
        # What a sanitizer has found need not show a second time.
        ! grep -qx "$target" "$logs/found" || continue
        echo "$target failed, and is run once more by itself:"
        run_target "$target"
    done
fi
# What a target told last counts. One that told nothing has failed.
awk -v targets="${#targets[@]}" '{ passed[$1] = $2; failed[$1] = $3 }
    END {
        missing = targets
        for (target in passed) { sum += passed[target]; bad += failed[target]; missing-- }
        print sum + 0 " passed, " bad + missing " failed"
        exit bad + missing > 0
    }' "$logs/sum"
