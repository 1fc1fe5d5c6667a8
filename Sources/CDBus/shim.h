/* SPDX-License-Identifier: MIT */
#pragma once
#include <dbus/dbus.h>
#include <errno.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

/* prctl is variadic, which Swift does not import; glibc hides pthread_setname_np without _GNU_SOURCE. */
static inline void cdbus_name_this_thread(const char *name) {
    prctl(PR_SET_NAME, (unsigned long)name, 0UL, 0UL, 0UL);
}

/* Glibc's module does not show what stands behind _GNU_SOURCE. */
int pipe2(int descriptors[2], int flags);
