// SPDX-License-Identifier: MIT
// What caller and server agree on.
#ifndef BENCH_H
#define BENCH_H

#include <dbus/dbus.h>
#include <stdio.h>
#include <stdlib.h>

#define BENCH_NAME "org.example.Echo"
#define BENCH_PATH "/org/example/Echo"
#define BENCH_INTERFACE "org.example.Echo"
#define BENCH_MEMBER "Echo"
#define BENCH_TEXT "/org/bluez/hci0/dev_00_11_22_33_44_55"
#define BENCH_BYTES 20

static inline void bench_check(int good, const char *what, const DBusError *error) {
    if (good) return;
    fprintf(stderr, "%s: %s\n", what, error && error->message ? error->message : "failed");
    exit(1);
}

static inline DBusConnection *bench_connect(const char *address) {
    DBusError error = DBUS_ERROR_INIT;
    DBusConnection *connection = dbus_connection_open_private(address, &error);
    bench_check(connection != NULL, "open", &error);
    dbus_connection_set_exit_on_disconnect(connection, FALSE);
    bench_check(dbus_bus_register(connection, &error), "register", &error);
    return connection;
}

#endif
