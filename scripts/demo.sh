#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Shows a whole handoff without Bluetooth hardware: installs what is missing, builds, and runs `nearby demo`.
# Arguments go to `nearby demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib/packages.sh
. scripts/lib/packages.sh
# shellcheck source=scripts/lib/toolchain.sh
. scripts/lib/toolchain.sh

need_swift
need_build_packages
command -v dbus-daemon >/dev/null || need_packages "the demo's private bus" dbus
echo "Building nearby…" >&2
swift build --product nearby >&2
exec "$(swift build --show-bin-path)/nearby" demo "$@"
