#!/bin/bash
# SPDX-License-Identifier: MIT
# Process 1 of the guest, after the switch to the host's file system. Prepares a bare system, runs the suite (or a
# shell), reports the status through the job folder and switches the machine off.
exec </dev/null
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts /dev/shm /run/dbus /run/lock /var/lib/bluetooth /lib/modules
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
# No pairing, no cache from the machine that runs the lab.
mount -t tmpfs -o mode=700 tmpfs /var/lib/bluetooth
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
set -a
# shellcheck source=/dev/null
. /run/job/env
set +a

if [ -n "$LAB_DEAL" ]; then
    mkdir -p /run/deal
    mount -t 9p -o rw,cache=none,trans=virtio,version=9p2000.L,msize=512000 deal /run/deal
fi
if [ "$LAB_MODE" != shell ]; then
    for port in /sys/class/virtio-ports/*; do
        [ "$(cat "$port/name")" = output ] && exec >"/dev/$(basename "$port")" 2>&1
    done
else
    exec </dev/ttyS0 >/dev/ttyS0 2>&1
fi
busybox ifconfig lo 127.0.0.1 up
# The kernel loads drbg by itself when bluetooth wants a key pair: without this link ECDH fails with -14 (EFAULT).
ln -sfn "$LAB_KERNEL/lib/modules/$(uname -r)" "/lib/modules/$(uname -r)"
for module in drbg jitterentropy_rng bluetooth ecdh_generic cmac ecb algif_hash algif_skcipher hci_vhci uhid; do
    modprobe "$module" || echo "lab: cannot load $module"
done
[ -s /etc/machine-id ] || dbus-uuidgen >/etc/machine-id

if [ -n "$LAB_ROOT" ]; then
    # Another release's bluetoothd runs in its own root, on this kernel and this bus.
    mkdir -p /run/release/{upper,work,root}
    mount -t tmpfs tmpfs /run/release && mkdir -p /run/release/{upper,work,root}
    mount -t overlay -o "lowerdir=$LAB_ROOT,upperdir=/run/release/upper,workdir=/run/release/work" overlay \
        /run/release/root
    for folder in proc sys dev run; do
        mkdir -p "/run/release/root/$folder"
        mount --rbind "/$folder" "/run/release/root/$folder"
    done
    mkdir -p /run/release/root/var/lib/bluetooth
    mount -t tmpfs -o mode=700 tmpfs /run/release/root/var/lib/bluetooth
    export LAB_ROOT=/run/release/root
fi

cd "$LAB_SUITE" || exit
if [ "$LAB_MODE" = shell ]; then
    setsid "$LAB_PYTHON" -m lab serve >/run/lab.log 2>&1 &
    for _ in $(seq 1200); do [ -S /run/lab.sock ] && break; sleep 0.1; done
    cat boot/motd
    setsid -c bash --rcfile boot/bashrc -i </dev/ttyS0 >/dev/ttyS0 2>&1
    status=$?
else
    : >/run/job/started
    # The arguments are words by design, and a pattern is the suite's to read.
    set -f
    # shellcheck disable=SC2086
    "$LAB_PYTHON" -m lab $LAB_ARGUMENTS --so-far "$LAB_SO_FAR"
    status=$?
fi
echo "$status" >/run/job/status
dmesg >/run/job/dmesg.txt
sync
exec busybox poweroff -f
