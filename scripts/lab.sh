#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs the project's cases on a real bluetoothd and kernel, in a virtual machine with virtual controllers.
# docs/testing.md ("The lab") describes it.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: scripts/lab.sh [options]

  --bluez V       the BlueZ to run on: 5.55, 5.66, 5.82, 5.87 or all; may be repeated (default: 5.66). V:core runs only the
                  handoff and fault core there
  --filter NAME   only cases whose name begins with NAME, or matches it as a pattern; may be repeated
  --core          only the handoff and fault core, on each of them
  --subject S     nearby (default) or reference: the lab's own small host and client, to test the lab itself
  --nearby PATH   the nearby binary (default: built with swift build)
  --contract PATH the LabContract binary, for contract/, roles/ and bridged/ (default: built with swift build)
  --no-contract   without contract/, roles/ and bridged/, the suites that the simulators run, too
  --soak N        only the soak, of N handoffs (default in the whole suite: 30)
  --cost N        what a handoff costs, N of each kind: tables of our client and host beside others
                  (with --filter clients or hosts only these)
  --speed N       the extended profile beside the basic one, and 64 KiB beside raw notifications, N of each
                  (with --filter profiles or throughput only these)
  --retries N     run a case that failed up to N times more, and count it as passed if it then passes; each is told
                  (default: 1 where several guests share the machine, else 0)
  --repeat N      run the chosen cases N times
  --guests N      at most N guests at a time; many cases are dealt among them (default: three a processor, as memory allows)
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

versions=() arguments=() mode=suite keep='' nearby='' contract='' soak='' work=run subject=nearby setup_only='' without_contract='' guests='' core='' retries_given=''
while [ $# -gt 0 ]; do
    case $1 in
    --bluez)
        case ${2:-} in
        all) versions+=(5.66 5.55 5.82 5.87) ;;
        5.55 | 5.66 | 5.82 | 5.87 | 5.55:core | 5.66:core | 5.82:core | 5.87:core) versions+=("$2") ;;
        *) echo "lab.sh: --bluez takes 5.55, 5.66, 5.82, 5.87 or all, or one of them with :core, not '${2:-}'" >&2; exit 2 ;;
        esac
        shift ;;
    --subject)
        case ${2:-} in nearby | reference) subject=$2 ;;
        *) echo "lab.sh: --subject takes nearby or reference, not '${2:-}'" >&2; exit 2 ;; esac
        shift ;;
    --filter)
        [[ ${2:-} =~ ^[A-Za-z0-9_./*-]+$ ]] || { echo "lab.sh: --filter takes a name or pattern, not '${2:-}'" >&2; exit 2; }
        arguments+=("$1" "$2")
        shift ;;
    --repeat)
        [[ ${2:-} =~ ^[1-9][0-9]{0,2}$ ]] || { echo "lab.sh: --repeat takes 1 to 999, not '${2:-}'" >&2; exit 2; }
        arguments+=("$1" "$2")
        shift ;;
    --retries)
        [[ ${2:-} =~ ^[0-9]$ ]] || { echo "lab.sh: --retries takes 0 to 9, not '${2:-}'" >&2; exit 2; }
        retries_given=1
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
    --core) core=1 ;;
    --trace) arguments+=("$1") ;;
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
if [ -n "$core" ]; then
    versions=("${versions[@]%:core}")
    versions=("${versions[@]/%/:core}")
fi

case $mode in
list) locked make_python || exit 70 ;;
*) locked set_up || exit 70 ;;
esac

# of_cases list|lay OPTION...: the chosen ones, a line each, or as files in a folder (lab/deal.py); prints their number.
of_cases() {
    (cd "$LAB" && LAB_CONTRACT=$contract PYTHONPATH=$PORT PYTHONDONTWRITEBYTECODE=1 \
        "$CACHE/venv/bin/python" -m lab "$@" --subject "$subject" "${arguments[@]}")
}
if [ $mode = list ]; then
    contract=${contract:-$(cd "$HERE" && swift build --show-bin-path 2>/dev/null)/LabContract}
    [ -x "$contract" ] || { contract=''; say "without contract/, roles/ and bridged/: swift build --product LabContract"; }
    of_cases list ${core:+--core}
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

# boot FOLDER PREFIX DEAL: one guest, which finds its work in that folder, and its cases in DEAL. Gives up after $LIMIT seconds.
# The processor's own counter (TSC) is not its clock: measured while the machine was busy, it made a guest's seconds a seventh of
# ours, and nothing of that guest's came in time. The HPET costs no more here.
# Without what protects a kernel from its programs, and with each program where it was the last time, so that what is translated
# of it is found again: a third less of the processor for the same cases.
boot() {
    local folder=$1 kernel serial=(-serial "file:$1/console.log") qemu watchdog copy status=0
    kernel=$(echo "$KERNEL"/boot/vmlinuz-*)
    [ $mode = shell ] && serial=(-serial mon:stdio)
    local command=(qemu-system-x86_64 -M "pc,usb=off,vmport=off" -nodefaults -no-user-config -no-reboot
        -accel "tcg,thread=multi" -cpu "max,la57=off,smap=off,smep=off,umip=off"
        -smp "$CPUS" -m "${LAB_MEMORY:-2048}" -display none
        -kernel "$kernel" -initrd "$KERNEL/initramfs.gz"
        -append "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off nokaslr norandmaps random.trust_cpu=on
                 tsc=unstable cryptomgr.notests"
        -virtfs "local,path=/,mount_tag=hostroot,security_model=none,readonly=on,multidevs=remap"
        -virtfs "local,path=$folder,mount_tag=job,security_model=none,multidevs=remap"
        ${3:+-virtfs "local,path=$3,mount_tag=deal,security_model=none,multidevs=remap"}
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

# guest VERSION ROOT NAME DEAL ARGUMENTS RESULT: a folder for the run, the guest; RESULT gets what came of it: the counts of
# cases that passed, failed, were left out and run again, or "unbooted" where the guest's Python was never reached.
guest() {
    local version=$1 root=$2 name=$3 deal=$4 its_arguments=$5 result=$6
    local folder passed failed skipped retried prefix='' boots=1 dead=0 left status
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
        printf 'LAB_KERNEL=%q\n' "$KERNEL"
        printf 'LAB_ROOT=%q\n' "$root"
        printf 'LAB_DAEMON=%q\n' "$(daemon_of "$root")"
        printf 'LAB_BLUEZ=%q\n' "$(bluez_of "$root")"
        printf 'LAB_PYTHON=%q\n' "$CACHE/venv/bin/python"
        printf 'LAB_SUITE=%q\n' "$folder/suite"
        printf 'LAB_NEARBY=%q\n' "$nearby"
        printf 'LAB_CONTRACT=%q\n' "$contract"
        printf 'LAB_SOAK=%q\n' "$soak"
        printf 'LAB_BARE=%q\n' "$bare"
        printf 'LAB_PATIENCE=%q\n' "$PATIENCE"
        printf 'LAB_DEAL=%q\n' "$deal"
        printf 'LAB_LOG=%q\n' "${LAB_LOG:-CRITICAL}"
        printf 'LAB_ARGUMENTS=%q\n' "$work --subject $subject --guest $name $its_arguments ${arguments[*]}"
        echo LAB_SO_FAR=0,0,0,0
    } >"$folder/env"
    echo 0 0 0 0 >"$folder/so-far"
    boot "$folder" "$prefix" "$deal" || say "the emulator ended with $?, see $folder/qemu.log"
    [ $mode = shell ] && { rm -rf "$folder"; return 0; }
    # A kernel that fails is nobody's fault here: another boot goes on, and the case that it has kept from its verdict is dealt
    # once more. So is a clock that is wrong, and a guest that cannot be cleaned up.
    while [ $boots -lt 50 ] && read -r passed failed skipped retried 2>/dev/null <"$folder/so-far"; do
        status=$(cat "$folder/status" 2>/dev/null || { grep -q 'Kernel panic' "$folder/console.log" && echo panic; }) || true
        [ "$status" = 75 ] || { [ "$status" = panic ] && [ -n "$deal" ]; } || break
        # One that dies while it boots will hardly ever boot.
        if [ -e "$folder/started" ]; then dead=0; else dead=$((dead + 1)); fi
        [ $dead -lt 3 ] || break
        left=''
        [ -z "$deal" ] || left=$(ls "$deal/$name" 2>/dev/null) || true
        case $left in
        '') [ "$status" != panic ] || echo "${prefix}the kernel died ($folder/console-$boots.log)" ;;
        *-again)
            echo "${prefix}not ok: the guest failed in this case a second time ($folder/console-$boots.log)"
            failed=$((failed + 1))
            rm "$deal/$name/$left" ;;
        *)
            if [ "$status" = panic ]; then
                echo "${prefix}again: the kernel died ($folder/console-$boots.log)"
                retried=$((retried + 1))
            fi
            mv "$deal/$name/$left" "$deal/left/$left-again" ;;
        esac
        rm -f "$folder/status"
        mv "$folder/console.log" "$folder/console-$boots.log"
        mv "$folder/output.txt" "$folder/output-$boots.txt"
        [ ! -e "$folder/dmesg.txt" ] || mv "$folder/dmesg.txt" "$folder/dmesg-$boots.txt"
        [ ! -e "$folder/started" ] || mv "$folder/started" "$folder/started-before"
        boots=$((boots + 1))
        echo "$passed $failed $skipped $retried" >"$folder/so-far"
        echo "LAB_SO_FAR=$passed,$failed,$skipped,$retried" >>"$folder/env"
        boot "$folder" "$prefix" "$deal" || say "the emulator ended with $?, see $folder/qemu.log"
    done
    if ! read -r passed failed skipped retried 2>/dev/null <"$folder/summary"; then
        say "the guest never reported; see $folder (console.log, output.txt)"
        [ -e "$folder/started" ] || [ -e "$folder/started-before" ] || echo unbooted >"$result"
        return 0
    fi
    echo "$passed $failed $skipped ${retried:-0}" >"$result"
    rm -rf "$folder/suite"
    if [ "$((failed + ${retried:-0}))" -gt 0 ] || [ $boots -gt 1 ] || [ -n "$keep" ] || [[ " ${arguments[*]} " == *" --trace "* ]]; then
        echo "evidence: $folder"
    else
        rm -rf "$folder"
    fi
}

if [ -n "$setup_only" ]; then
    status=0
    for version in "${versions[@]}"; do
        root=$(root_for "${version%:core}") && echo "BlueZ $(bluez_of "$root"): ready" || status=70
    done
    exit $status
fi
if [ "$subject" = nearby ] && [ $mode = suite ] && [ -z "$nearby" ]; then
    need_build_packages
    (cd "$HERE" && swift build --product nearby >&2) || exit 70
    nearby=$(cd "$HERE" && swift build --show-bin-path)/nearby
fi
# The suites of the contract: not part of the core, nor for the lab's own stand-ins.
whole=''
for version in "${versions[@]}"; do [[ $version = *:core ]] || whole=1; done
if [ "$subject $mode $work$soak$contract$without_contract" = "nearby suite run" ] && [ -n "$whole" ]; then
    (cd "$HERE" && swift build --product LabContract >&2) || exit 70
    contract=$(cd "$HERE" && swift build --show-bin-path)/LabContract
fi

# The least that a host and a client can cost, for comparison.
bare=''
if [ "$work" = cost ] && command -v cc >/dev/null && pkg-config --exists dbus-1 2>/dev/null; then
    bare=$CACHE/bare
    mkdir -p "$bare"
    for role in host client; do
        # shellcheck disable=SC2046  # several words are meant
        cc -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -o "$bare/$role" "$HERE/Benchmarks/C/bare_$role.c" \
            $(pkg-config --cflags --libs dbus-1) || exit 70
    done
fi

# How many guests run at a time, at most.
most=${guests:-$(awk -v most=$((3 * $(nproc))) -v each="${LAB_MEMORY:-2048}" \
    '/^MemAvailable/ { fit = int($2 / 1024 / each); print fit < 1 ? 1 : fit < most ? fit : most }' /proc/meminfo)}
results=$(mktemp -d)
# What is tried stays as it is, whatever is built meanwhile, and stands where a guest sees it (it has a /tmp of its own).
tried=$(mktemp -d "$CACHE/runs/tried.XXX")
trap ended_by_signal INT TERM HUP
trap 'rm -rf "$results" "$tried"' EXIT
[ -z "$nearby" ] || { cp "$nearby" "$tried/nearby" && nearby=$tried/nearby; }
[ -z "$contract" ] || { cp "$contract" "$tried/LabContract" && contract=$tried/LabContract; }

# Several guests share the cases of a version, so that what boots has something to do. What is measured is alone.
parts=() cases=() deals=() together=0
for version in "${versions[@]}"; do
    count=0 part=1 deal=''
    if [ "$mode $work" = "suite run" ]; then
        deal=$tried/deal-${#deals[@]}
        mkdir -p "$deal/left"
        its_core='' && [[ $version != *:core ]] || its_core=--core
        count=$(of_cases lay --deal "$deal" $its_core) || { say "the cases could not be listed"; exit 70; }
        [ "$count" -gt 0 ] || { echo "lab.sh: no case has such a name (--list names them)" >&2; exit 2; }
        part=$(((count + 29) / 30))
        [ "$part" -le "$most" ] || part=$most
        [ -n "$soak" ] && part=1
    fi
    parts+=("$part") cases+=("$count") deals+=("$deal")
    together=$((together + part))
done
[ "$together" -le "$most" ] || together=$most
# One version after the other, where something is measured or a person sits before the prompt.
[ "$mode $work$soak" = "suite run" ] || together=1
# A guest is idle half of its time, waiting for a radio: one processor each is enough where there are several.
CPUS=${LAB_CPUS:-$([ "$together" -eq 1 ] && echo 2 || echo 1)}
# Where they share the processors each is slow now and then, and a case late: LAB_PATIENCE=3 triples every time limit of the lab
# (none of nearby's own).
PATIENCE=${LAB_PATIENCE:-$([ "$together" -eq 1 ] && echo 1 || echo 2)}
[ "$together" -eq 1 ] || [ -n "$retries_given" ] || arguments+=(--retries 1)

left_out=0 booted=0
for index in "${!versions[@]}"; do
    version=${versions[index]%:core}
    if ! root=$(root_for "$version"); then
        echo "skipped: BlueZ $version: its Debian release could not be fetched"
        left_out=$((left_out + 1))
        deals[index]=''
        continue
    fi
    found=$(bluez_of "$root")
    echo "BlueZ $found ($([ -n "$root" ] && echo "Debian $(basename "$root")" || echo "this system")), $(
        basename "$(echo "$KERNEL"/boot/vmlinuz-*)" | sed 's/vmlinuz-/kernel /')$(
        [ "${cases[index]}" -eq 0 ] || echo ", ${cases[index]} cases")$(
        [ "${parts[index]}" -eq 1 ] || echo ", ${parts[index]} guests")"
    [ "$found" = "$version" ] || say "note: asked for $version, the release now has $found"
    # What no guest takes that does not hang, in seconds.
    case $work$soak in
    run) expected=$((cases[index] * 40 / parts[index])) ;;
    run*) expected=$((soak * 20)) ;;
    *) expected=7200 ;;
    esac
    LIMIT=${LAB_LIMIT:-$(awk -v expected="$expected" -v patience="$PATIENCE" 'BEGIN { print int(900 + expected * patience) }')}
    for part in $(seq "${parts[index]}"); do
        booted=$((booted + 1))
        its=("$version" "$root" "guest-$part" "${deals[index]}"
            "$([[ ${versions[index]} != *:core ]] || echo --core) $([ "${parts[index]}" -gt 1 ] || echo --in-order)" "$results/$booted")
        if [ "$together" -eq 1 ]; then guest "${its[@]}"; else at_most "$together" guest "${its[@]}"; fi
    done
done
wait
[ $mode = shell ] && exit 0

# A guest that began and never reported has failed, however it came to that, and so has a case that nobody has judged. Where
# none began, the lab could not run.
{
    for number in $(seq "$booted"); do cat "$results/$number" 2>/dev/null || echo lost; done
    for deal in "${deals[@]}"; do [ -z "$deal" ] || find "$deal" -type f -printf 'undone\n'; done
} |
    awk -v skipped=$left_out -v booted=$booted '
        $1 == "unbooted" { unbooted++; next }
        $1 == "lost" { failed++; next }
        $1 == "undone" { undone++; next }
        { passed += $1; failed += $2; skipped += $3; retried += $4 }
        END {
            if (retried) print "run again: " retried
            failed += unbooted
            if (undone && unbooted < booted) {
                print "not run, and counted as failed: " undone
                failed += undone
            }
            print passed + 0 " passed, " failed " failed" (skipped ? ", " skipped " skipped" : "")
            exit unbooted == booted ? 70 : failed > 0
        }'
