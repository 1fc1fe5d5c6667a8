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

# with_apt SUITE FOLDER: sets `apt` to options with which apt-get knows that Debian release and nothing of this system, checks its
# signatures, and keeps all that it keeps in FOLDER, without being root.
with_apt() {
    local suite=$1 folder=$2 mirror
    need_packages "Debian's releases (their keys)" debian-archive-keyring || return
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || { say "no Debian mirror in apt's sources: set LAB_DEBIAN_MIRROR"; return 1; }
    mkdir -p "$folder/lists/partial" "$folder/archives/partial"
    : >"$folder/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$folder/sources.list"
    apt=(-qq -o "Dir::Etc::SourceList=$folder/sources.list" -o Dir::Etc::SourceParts=- -o Dir::Etc::Parts=-
        -o "Dir::State::Lists=$folder/lists" -o "Dir::State::Status=$folder/status" -o "Dir::Cache=$folder"
        -o Acquire::Languages=none -o APT::Sandbox::User= -o Debug::NoLocking=1)
    if ! apt-get "${apt[@]}" update >&2; then
        say "could not fetch the package lists of Debian $suite from $mirror"
        return 1
    fi
}

# The guest's kernel is Debian 13's for every BlueZ: Debian 12's 6.1.192 corrupts its memory where an adapter is powered off while
# a link comes up (docs/bluez.md). The release is in the folder's name, so that another one is another download.
KERNEL=$CACHE/kernel-trixie

make_kernel() {
    compgen -G "$KERNEL/boot/vmlinuz-*" >/dev/null && return
    local package apt part=$KERNEL.part
    rm -rf "$part"
    with_apt trixie "$part/apt" || return
    package=$(apt-cache "${apt[@]}" depends linux-image-amd64 | awk '/Depends:/ {print $2; exit}')
    [ -n "$package" ] || { say "no linux-image-amd64 in Debian trixie"; return 1; }
    say "downloading the guest's kernel $package ($(apt-cache "${apt[@]}" show "$package" |
        awk '/^Size:/ {printf "%d MB", $2 / 1e6; exit}'))"
    if ! (cd "$part" && apt-get "${apt[@]}" download "$package" >&2 && dpkg -x ./*.deb . && rm ./*.deb); then
        say "could not fetch and unpack $package"
        return 1
    fi
    rm -rf "$part/apt"
    [ -d "$part/lib" ] || mv "$part/usr/lib" "$part/lib"
    /sbin/depmod -b "$part" "$(ls "$part/lib/modules")" || return
    mv "$part" "$KERNEL"
}

make_python() {
    local wanted="$LAB/requirements.txt" mending="$LAB/boot/spare_debug.py" packages
    cmp -s "$wanted" "$CACHE/venv/requirements.txt" && cmp -s "$mending" "$CACHE/venv/spare_debug.py" && return
    python3 -c 'import ensurepip, venv' 2>/dev/null || need_packages "the lab's Python peers" python3-venv || return
    say "making the Python environment of the peers (about 25 MB of packages)"
    rm -rf "$CACHE/venv"
    python3 -m venv "$CACHE/venv" || return
    "$CACHE/venv/bin/pip" install --disable-pip-version-check -r "$wanted" | progress "$CACHE/venv.log" || return
    packages=$("$CACHE/venv/bin/python" -c 'import bumble, os; print(os.path.dirname(bumble.__file__))') || return
    "$CACHE/venv/bin/python" "$mending" "$packages" && "$CACHE/venv/bin/python" -m compileall -q "$packages" || return
    cp "$mending" "$wanted" "$CACHE/venv/"
}

make_initramfs() {
    local version folder module path name
    version=$(ls "$KERNEL/lib/modules")
    [ "$KERNEL/initramfs.gz" -nt "$LAB/boot/initramfs-init" ] && return
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
        done < <(/sbin/modprobe -d "$KERNEL" -S "$version" --show-depends "$module" | grep '^insmod')
    done
    (cd "$folder" && find . | cpio -o -H newc --quiet | gzip -1) >"$KERNEL/initramfs.gz"
    rm -rf "$folder"
}

# make_root SUITE: that Debian release's bluetoothd with the libraries that it needs, unpacked; nothing of it is run here.
make_root() {
    local suite=$1 root=$CACHE/roots/$1 apt part=$CACHE/roots/$1.part folder package
    [ -e "$root/.complete" ] && return
    say "downloading BlueZ and its libraries from Debian $suite (about 35 MB with the package lists, 70 MB unpacked)"
    rm -rf "$part"
    with_apt "$suite" "$part/apt" || return
    if ! apt-get "${apt[@]}" install --download-only -y --no-install-recommends bluez >&2; then
        say "could not fetch the bluez of Debian $suite"
        return 1
    fi
    for folder in bin sbin lib lib64; do
        mkdir -p "$part/usr/$folder"
        ln -s "usr/$folder" "$part/$folder"
    done
    mkdir -p "$part/var/lib/dpkg" "$part"/{proc,sys,dev,run,tmp}
    for package in "$part"/apt/archives/*.deb; do
        dpkg -x "$package" "$part" || return
        { dpkg -f "$package" && echo; } >>"$part/var/lib/dpkg/status" || return
    done
    rm -rf "$part/apt" "${part:?}/usr/share"
    touch "$part/.complete"
    rm -rf "$root" && mv "$part" "$root"
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
