# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced by the scripts: system packages, installed only where they are missing.

# need_packages WHY PACKAGE...: says what is missing and what for, then installs it (through sudo unless we are root).
need_packages() {
    local why=$1 package missing=() as_root=()
    shift
    for package; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null; then
        echo "Please install these (Debian's names), needed for $why: ${missing[*]}" >&2
        return 1
    fi
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    echo "Installing for $why: ${missing[*]}" >&2
    "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq \
        --no-install-recommends "${missing[@]}" >/dev/null
}

# need_build_packages: what `swift build` needs for all of this package.
need_build_packages() {
    need_packages "building (libdbus)" libdbus-1-dev
    need_packages "building (libsodium, for sealed payloads)" libsodium-dev
    need_packages "building (libqrencode, for the command line's QR codes)" libqrencode-dev
    need_packages "building (libedit, for the command line's console)" libedit-dev
    command -v pkg-config >/dev/null || need_packages "building (where the libraries are)" pkg-config
}
