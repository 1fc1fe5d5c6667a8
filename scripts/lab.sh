#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs the project's cases on a real bluetoothd and kernel, in a virtual machine with virtual controllers.
# docs/testing.md ("The lab") describes it.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: scripts/lab.sh [options]

  --bluez V       the BlueZ to run on: 5.55, 5.66, 5.82, 5.87 or all; may be repeated (default: 5.66)
  --filter NAME   only cases whose name begins with NAME, or matches it as a pattern; may be repeated
  --core          only the handoff and fault core
  --subject S     nearby (default) or reference: the lab's own small host and client, to test the lab itself
  --nearby PATH   the nearby binary (default: built with swift build)
  --contract PATH the LabContract binary, for contract/, roles/ and bridged/ (default: built with swift build)
  --no-contract   without contract/, roles/ and bridged/, the suites that the simulators run, too
  --soak N        only the soak, of N handoffs (default in the whole suite: 30)
  --cost N        what a handoff costs, N of each kind: tables of our client and host beside others
                  (with --filter clients or hosts only these)
  --speed N       the extended profile beside the basic one, and 64 KiB beside raw notifications, N of each
                  (with --filter profiles or throughput only these)
  --retries N     run a case that failed up to N times more, and count it as passed if it then passes
  --repeat N      run the chosen cases N times in the one boot
  --guests N      at most N guests at a time; many cases are dealt among them (default: one a processor)
  --trace         keep the HCI trace of every case, not only of those that failed
  --list          name the cases and stop
  --shell         a prompt in the guest instead of the cases
  --keep          keep the run's folder even when everything passed
  --set-up        download and make everything that the chosen versions need, and stop

Everything is cached in ${XDG_CACHE_HOME:-~/.cache}/nearbydiscoverykit/lab.
exit status: 0 all passed, 1 a case failed, 2 usage, 70 the lab itself could not run
TEXT
}

HERE=$(cd "$(dirname "$0")/.." && pwd)
LAB=$HERE/Tests/Lab
PORT=$HERE/Tests/Python
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/nearbydiscoverykit/lab
# shellcheck source=scripts/lib/packages.sh
. "$HERE/scripts/lib/packages.sh"
# shellcheck source=scripts/lib/together.sh
. "$HERE/scripts/lib/together.sh"
# shellcheck source=Tests/Lab/boot/setup.sh
. "$LAB/boot/setup.sh"

versions=() arguments=() mode=suite keep='' nearby='' contract='' soak='' work=run subject=nearby setup_only='' without_contract='' guests=''
while [ $# -gt 0 ]; do
    case $1 in
    --bluez)
        case ${2:-} in
        all) versions+=(5.66 5.55 5.82 5.87) ;;
        5.55 | 5.66 | 5.82 | 5.87) versions+=("$2") ;;
        *) echo "lab.sh: --bluez takes 5.55, 5.66, 5.82, 5.87 or all, not '${2:-}'" >&2; exit 2 ;;
        esac
        shift ;;
    --subject)
        case ${2:-} in nearby | reference) subject=$2 ;;
        *) echo "lab.sh: --subject takes nearby or reference, not '${2:-}'" >&2; exit 2 ;; esac
        shift ;;
    --filter | --repeat | --retries)
        [[ ${2:-} =~ ^[A-Za-z0-9_./*-]+$ ]] || { echo "lab.sh: $1 takes a name or number, not '${2:-}'" >&2; exit 2; }
        arguments+=("$1" "$2")
        shift ;;
    --cost | --speed)
        [[ ${2:-} =~ ^[1-9][0-9]{0,3}$ ]] || { echo "lab.sh: $1 takes a number, not '${2:-}'" >&2; exit 2; }
        work=${1#--}
        arguments+=(--count "$2")
        shift ;;
    --soak)
        [[ ${2:-} =~ ^[1-9][0-9]{0,4}$ ]] || { echo "lab.sh: --soak takes a number, not '${2:-}'" >&2; exit 2; }
        soak=$2
        arguments+=(--filter soak/)
        shift ;;
    --nearby)
        nearby=$(readlink -e "${2:-}") || { echo "lab.sh: --nearby: no such file: '${2:-}'" >&2; exit 2; }
        shift ;;
    --contract)
        contract=$(readlink -e "${2:-}") || { echo "lab.sh: --contract: no such file: '${2:-}'" >&2; exit 2; }
        shift ;;
    --guests)
        [[ ${2:-} =~ ^[1-9][0-9]?$ ]] || { echo "lab.sh: --guests takes a number, not '${2:-}'" >&2; exit 2; }
        guests=$2
        shift ;;
    --no-contract) without_contract=1 ;;
    --core | --trace) arguments+=("$1") ;;
    --keep) keep=1 ;;
    --list) mode=list ;;
    --shell) mode=shell ;;
    --set-up) setup_only=1 ;;
    -h | --help) usage; exit 0 ;;
    *) echo "lab.sh: unknown option '$1' (--help lists them)" >&2; exit 2 ;;
    esac
    shift
done
[ ${#versions[@]} -gt 0 ] || versions=(5.66)
# A guest on a busy machine is slow: LAB_PATIENCE=3 triples every time limit of the lab (none of nearby's own).
PATIENCE=${LAB_PATIENCE:-1}

locked set_up || exit 70

# list: the chosen cases, a line each.
list() {
    (cd "$LAB" && LAB_CONTRACT=$contract PYTHONPATH=$PORT PYTHONDONTWRITEBYTECODE=1 \
        "$CACHE/venv/bin/python" -m lab list --subject "$subject" "${arguments[@]}")
}
if [ $mode = list ]; then
    contract=${contract:-$(cd "$HERE" && swift build --show-bin-path 2>/dev/null)/LabContract}
    [ -x "$contract" ] || contract=''
    list
    exit
fi

# root_for VERSION: prints the root file system whose BlueZ it is ("" = this system's own).
root_for() {
    local suite
    case $1 in 5.55) suite=bullseye ;; 5.66) suite=bookworm ;; 5.82) suite=trixie ;; 5.87) suite=sid ;; esac
    [ "$(bluez_of '')" = "$1" ] && return
    locked make_root "$suite" || return
    echo "$CACHE/roots/$suite"
}

# boot FOLDER PREFIX: one guest, which finds its work in that folder. Gives up after $LIMIT seconds.
boot() {
    local folder=$1 kernel serial=(-serial "file:$1/console.log") qemu watchdog copy status=0
    kernel=$(echo "$CACHE"/kernel/boot/vmlinuz-*)
    [ $mode = shell ] && serial=(-serial mon:stdio)
    local command=(qemu-system-x86_64 -M "pc,usb=off,vmport=off" -nodefaults -no-user-config -no-reboot
        -accel "tcg,thread=multi" -cpu max -smp "$CPUS" -m "${LAB_MEMORY:-2048}" -display none
        -kernel "$kernel" -initrd "$CACHE/initramfs.gz"
        -append "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off nokaslr random.trust_cpu=on
                 tsc=reliable cryptomgr.notests"
        -virtfs "local,path=/,mount_tag=hostroot,security_model=none,readonly=on,multidevs=remap"
        -virtfs "local,path=$folder,mount_tag=job,security_model=none,multidevs=remap"
        "${serial[@]}")
    if [ $mode = shell ]; then
        "${command[@]}"
        return
    fi
    # Ctrl-C and the like: the guest ends with us.
    trap ended_by_signal INT TERM HUP
    : >"$folder/output.txt"
    "${command[@]}" -device virtio-serial-pci -chardev "file,id=output,path=$folder/output.txt" \
        -device "virtserialport,chardev=output,name=output" </dev/null >"$folder/qemu.log" 2>&1 &
    qemu=$!
    # A line at a time, with the version where another guest's may stand beside it.
    tail -n +1 -f --pid=$qemu "$folder/output.txt" 2>/dev/null | sed -u "s/^/$2/" &
    copy=$!
    (
        sleep "$LIMIT" &
        trap 'kill $!' TERM
        wait $! && say "the guest did not end within $LIMIT s" && kill $qemu
    ) &
    watchdog=$!
    wait $qemu || status=$?
    kill $watchdog 2>/dev/null || true
    wait $watchdog 2>/dev/null || true
    wait $copy
    return $status
}

# guest VERSION ROOT PART OF RESULT: a folder for the run, the guest; RESULT gets what came of it: the counts of cases that
# passed, failed, were left out and run again, or "unbooted" where the guest's Python was never reached.
guest() {
    local version=$1 root=$2 part=$3 of=$4 result=$5 folder passed failed skipped retried prefix=''
    [ "$together" -eq 1 ] || prefix="$version  "
    folder=$(mktemp -d "$CACHE/runs/$(date +%Y%m%d-%H%M%S)-$version.XXX")
    chmod 755 "$folder"
    mkdir "$folder/suite"
    cp -r "$LAB"/{lab,suite,boot} "$folder/suite/"
    # The port of the extended client, with what it reads.
    cp "$PORT"/extended_*.py "$PORT/bridge_client.py" "$folder/suite/"
    mkdir "$folder/suite/shared"
    cp "$HERE/shared/protocol.json" "$folder/suite/shared/"
    cp "$LAB/boot/guest-init.sh" "$folder/"
    # Compiled here, because the guest emulates its processor.
    "$CACHE/venv/bin/python" -m compileall -q "$folder/suite"
    {
        printf 'LAB_MODE=%q\n' $mode
        printf 'LAB_KERNEL=%q\n' "$CACHE/kernel"
        printf 'LAB_ROOT=%q\n' "$root"
        printf 'LAB_DAEMON=%q\n' "$(daemon_of "$root")"
        printf 'LAB_BLUEZ=%q\n' "$(bluez_of "$root")"
        printf 'LAB_PYTHON=%q\n' "$CACHE/venv/bin/python"
        printf 'LAB_SUITE=%q\n' "$folder/suite"
        printf 'LAB_NEARBY=%q\n' "$nearby"
        printf 'LAB_CONTRACT=%q\n' "$contract"
        printf 'LAB_SOAK=%q\n' "$soak"
        printf 'LAB_BARE_HOST=%q\n' "$bare_host"
        printf 'LAB_PATIENCE=%q\n' "$PATIENCE"
        printf 'LAB_ARGUMENTS=%q\n' "$work --subject $subject --part $part/$of ${arguments[*]}"
    } >"$folder/env"
    boot "$folder" "$prefix" || say "the emulator ended with $?, see $folder/qemu.log"
    [ $mode = shell ] && { rm -rf "$folder"; return 0; }
    if ! read -r passed failed skipped retried 2>/dev/null <"$folder/summary"; then
        say "the guest never reported; see $folder (console.log, output.txt)"
        [ -e "$folder/started" ] || echo unbooted >"$result"
        return 0
    fi
    echo "$passed $failed $skipped ${retried:-0}" >"$result"
    rm -rf "$folder/suite"
    if [ "$((failed + ${retried:-0}))" -gt 0 ] || [ -n "$keep" ] || [[ " ${arguments[*]} " == *" --trace "* ]]; then
        echo "evidence: $folder"
    else
        rm -rf "$folder"
    fi
}

if [ -n "$setup_only" ]; then
    status=0
    for version in "${versions[@]}"; do
        root=$(root_for "$version") && echo "BlueZ $(bluez_of "$root"): ready" || status=70
    done
    exit $status
fi
if [ "$subject" = nearby ] && [ $mode = suite ] && [ -z "$nearby" ]; then
    need_build_packages
    (cd "$HERE" && swift build --product nearby >&2) || exit 70
    nearby=$(cd "$HERE" && swift build --show-bin-path)/nearby
fi
# The suites of the contract: not part of the core, nor for the lab's own stand-ins.
if [ "$subject $mode $work$soak$contract$without_contract" = "nearby suite run" ] && [[ " ${arguments[*]} " != *" --core "* ]]; then
    (cd "$HERE" && swift build --product LabContract >&2) || exit 70
    contract=$(cd "$HERE" && swift build --show-bin-path)/LabContract
fi

# The least that a host can cost, for comparison.
bare_host=''
if [ "$work" = cost ] && command -v cc >/dev/null && pkg-config --exists dbus-1 2>/dev/null; then
    bare_host=$CACHE/bare_host
    # shellcheck disable=SC2046  # several words are meant
    cc -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -o "$bare_host" "$HERE/Benchmarks/C/bare_host.c" \
        $(pkg-config --cflags --libs dbus-1) || exit 70
fi

# How many guests share the cases of a version: what boots shall have something to do, and what is measured be alone.
parts=1 together=1
if [ "$mode $work$soak" = "suite run" ]; then
    cases=$(list | wc -l) || { say "the cases could not be listed"; exit 70; }
    [ "$cases" -gt 0 ] || { echo "lab.sh: no case has such a name (--list names them)" >&2; exit 2; }
    together=${guests:-$(nproc)}
    parts=$(((cases + 39) / 40))
    [ $parts -le "$together" ] || parts=$together
    [ $((parts * ${#versions[@]})) -ge "$together" ] || together=$((parts * ${#versions[@]}))
fi
# A guest is idle half of its time, waiting for a radio: one processor each is enough where there are several.
CPUS=${LAB_CPUS:-$([ "$together" -eq 1 ] && echo 2 || echo 1)}
# What no guest takes that does not hang, in seconds.
case $work$soak in
run) expected=$((cases * 40 / parts)) ;;
run*) expected=$((soak * 20)) ;;
*) expected=7200 ;;
esac
LIMIT=${LAB_LIMIT:-$(awk -v expected="${expected:-0}" -v patience="$PATIENCE" 'BEGIN { print int(900 + expected * patience) }')}

results=$(mktemp -d)
trap ended_by_signal INT TERM HUP
trap 'rm -rf "$results"' EXIT
left_out=0 booted=0
for version in "${versions[@]}"; do
    if ! root=$(root_for "$version"); then
        echo "skipped: BlueZ $version: its Debian release could not be fetched"
        left_out=$((left_out + 1))
        continue
    fi
    found=$(bluez_of "$root")
    echo "BlueZ $found ($([ -n "$root" ] && echo "Debian $(basename "$root")" || echo "this system")), $(
        basename "$(echo "$CACHE"/kernel/boot/vmlinuz-*)" | sed 's/vmlinuz-/kernel /')$(
        [ "$parts" -eq 1 ] || echo ", $parts guests")"
    [ "$found" = "$version" ] || say "note: asked for $version, the release now has $found"
    for part in $(seq "$parts"); do
        booted=$((booted + 1))
        if [ "$together" -eq 1 ]; then
            guest "$version" "$root" "$part" "$parts" "$results/$booted"
        else
            at_most "$together" guest "$version" "$root" "$part" "$parts" "$results/$booted"
        fi
    done
done
wait
[ $mode = shell ] && exit 0

# A guest that began and never reported has failed, however it came to that. Where none began, the lab could not run.
for number in $(seq "$booted"); do cat "$results/$number" 2>/dev/null || echo lost; done |
    awk -v skipped=$left_out -v booted=$booted '
        $1 == "unbooted" { unbooted++; next }
        $1 == "lost" { failed++; next }
        { passed += $1; failed += $2; skipped += $3; retried += $4 }
        END {
            if (retried) print "run again: " retried
            print passed + 0 " passed, " failed + unbooted " failed" (skipped ? ", " skipped " skipped" : "")
            exit unbooted == booted ? 70 : failed + unbooted > 0
        }'
