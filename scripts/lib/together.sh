# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced by the scripts that do several things at a time.

# at_most N COMMAND...: runs it beside the others, once fewer than N of them run. `wait` waits for all.
at_most() {
    local most=$1
    shift
    while [ "$(jobs -rp | wc -l)" -ge "$most" ]; do wait -n || true; done
    "$@" &
}

# ended_by_signal: ends what this shell has started. For a trap.
ended_by_signal() {
    local started
    mapfile -t started < <(jobs -p)
    [ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2>/dev/null || true
    exit 130
}
