# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced by scripts/lab.sh: what the lab needs, made once and kept under $CACHE.

# locked COMMAND...: one set-up at a time, whoever else runs the lab.
locked() {
    local status=0
    mkdir -p "$CACHE"
    exec 9>"$CACHE/lock"
    flock 9
    "$@" || status=$?
    exec 9>&-
    return $status
}

say() { echo "lab: $*" >&2; }

# progress FILE: keeps a command's lines there and shows that they come: a count, or on no terminal every 50th line.
progress() {
    local terminal=''
    [ -t 2 ] && terminal=1
    tee "$1" | awk -v terminal="$terminal" '
        terminal { printf "\r  %d steps", NR }
        !terminal && NR % 50 == 0 { print "  " NR " steps" }
        { fflush() }
        END { if (terminal && NR) print "" }' >&2
}

# Debian's own mirror for this machine, from its apt sources (both formats). LAB_DEBIAN_MIRROR overrides it.
debian_mirror() {
    if [ -n "${LAB_DEBIAN_MIRROR:-}" ]; then echo "$LAB_DEBIAN_MIRROR"; return; fi
    {
        sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/*.sources
        sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list
    } 2>/dev/null | grep -E '/debian/?$' | head -1
}

kernel_package() { apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends:/ {print $2; exit}'; }

make_kernel() {
    compgen -G "$CACHE/kernel/boot/vmlinuz-*" >/dev/null && return
    local package as_root=()
    package=$(kernel_package)
    if [ -z "$package" ]; then
        # Container images come without apt's lists.
        [ "$(id -u)" -eq 0 ] || as_root=(sudo)
        "${as_root[@]}" apt-get update -qq
        package=$(kernel_package)
    fi
    [ -n "$package" ] || { say "no linux-image-amd64 in apt's lists: the lab needs Debian's kernel"; return 1; }
    say "downloading the guest's kernel $package ($(apt-cache show "$package" |
        awk '/^Size:/ {printf "%d MB", $2 / 1e6; exit}'))"
    mkdir -p "$CACHE/kernel.part"
    if ! (cd "$CACHE/kernel.part" && apt-get download "$package" >&2 && dpkg -x ./*.deb . && rm ./*.deb); then
        say "could not fetch and unpack $package"
        return 1
    fi
    /sbin/depmod -b "$CACHE/kernel.part" "$(ls "$CACHE/kernel.part/lib/modules")" || return
    rm -rf "$CACHE/kernel"
    mv "$CACHE/kernel.part" "$CACHE/kernel"
}

make_python() {
    local wanted="$LAB/requirements.txt"
    cmp -s "$wanted" "$CACHE/venv/requirements.txt" && return
    python3 -c 'import ensurepip, venv' 2>/dev/null || need_packages "the lab's Python peers" python3-venv || return
    say "making the Python environment of the peers (about 25 MB of packages)"
    rm -rf "$CACHE/venv"
    python3 -m venv "$CACHE/venv" || return
    "$CACHE/venv/bin/pip" install --disable-pip-version-check -r "$wanted" | progress "$CACHE/venv.log" || return
    cp "$wanted" "$CACHE/venv/requirements.txt"
}

make_initramfs() {
    local version folder module path name
    version=$(ls "$CACHE/kernel/lib/modules")
    [ "$CACHE/initramfs.gz" -nt "$LAB/boot/initramfs-init" ] && [ "$CACHE/initramfs.gz" -nt "$CACHE/kernel" ] && return
    say "making the initramfs for kernel $version"
    folder=$(mktemp -d "$CACHE/initramfs.XXXXXX")
    mkdir -p "$folder"/{bin,modules,proc,sys,dev,lower,rw,root}
    cp "$(command -v busybox)" "$folder/bin/busybox"
    cp "$LAB/boot/initramfs-init" "$folder/init"
    chmod +x "$folder/init"
    for module in virtio_pci virtio_console 9pnet_virtio 9p overlay; do
        while read -r _ path _; do
            name=$(basename "${path%.xz}")
            [ -e "$folder/modules/$name" ] && continue
            case $path in *.xz) xz -dc "$path" ;; *) cat "$path" ;; esac >"$folder/modules/$name"
            echo "$name" >>"$folder/modules/modules.list"
        done < <(/sbin/modprobe -d "$CACHE/kernel" -S "$version" --show-depends "$module" | grep '^insmod')
    done
    (cd "$folder" && find . | cpio -o -H newc --quiet | gzip -1) >"$CACHE/initramfs.gz"
    rm -rf "$folder"
}

# make_root SUITE: a small root file system of that Debian release with its bluetoothd.
make_root() {
    local suite=$1 mirror as_root=() root=$CACHE/roots/$1
    [ -e "$root/.complete" ] && return
    need_packages "root file systems of other Debian releases" debootstrap debian-archive-keyring || return
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || { say "no Debian mirror in apt's sources: set LAB_DEBIAN_MIRROR"; return 1; }
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    say "downloading Debian $suite with its BlueZ (about 60 MB, 250 MB unpacked, a minute or two)"
    "${as_root[@]}" rm -rf "$root"
    mkdir -p "$CACHE/roots"
    if ! "${as_root[@]}" /usr/sbin/debootstrap --variant=minbase --include=bluez,dbus "$suite" "$root" "$mirror" \
        2>&1 | progress "$CACHE/roots/$suite.log"; then
        say "debootstrap of $suite failed: $(tail -1 "$CACHE/roots/$suite.log")"
        return 1
    fi
    "${as_root[@]}" rm -rf "$root"/var/cache/apt/archives/*.deb
    "${as_root[@]}" touch "$root/.complete"
}

daemon_of() {   # daemon_of ROOT: the path of bluetoothd within that root ("" = this system)
    local path
    for path in /usr/libexec/bluetooth/bluetoothd /usr/lib/bluetooth/bluetoothd; do
        [ -x "$1$path" ] && { echo "$path"; return; }
    done
    return 1
}

# bluez_of ROOT: which BlueZ is in there, read from the package data (nothing of it is run).
bluez_of() {
    local status=$1/var/lib/dpkg/status
    awk '/^Package: bluez$/ {on = 1} on && /^Version:/ {split($2, v, "[-+]"); print v[1]; exit}' "$status"
}

set_up() {
    [ "$(uname -m)" = x86_64 ] || { say "the lab's guest is x86-64 only"; return 1; }
    mkdir -p "$CACHE/runs"
    need_packages "the lab (emulator, guest system, BlueZ and its tools)" \
        qemu-system-x86 busybox-static cpio kmod xz-utils dbus bluez &&
        make_kernel && make_python && make_initramfs
}
