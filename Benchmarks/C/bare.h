// SPDX-License-Identifier: MIT
// What the bare host and the bare client have in common: the system bus by libdbus, and the names.
#ifndef BARE_H
#define BARE_H

#include <dbus/dbus.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE "a1b2c3d4-e5f6-7890-abcd-ef1234567890"
#define MESSAGE "b2c3d4e5-f6a7-8901-bcde-f12345678901"
#define PROPERTIES "org.freedesktop.DBus.Properties"
#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"

static DBusConnection *bus;

static inline void check(bool good, const char *what) {
    if (good) return;
    fprintf(stderr, "bare: %s\n", what);
    exit(1);
}

static inline void open_bus(void) {
    DBusError error = DBUS_ERROR_INIT;
    bus = dbus_bus_get_private(DBUS_BUS_SYSTEM, &error);
    check(bus != NULL, error.message ? error.message : "no bus");
    dbus_connection_set_exit_on_disconnect(bus, TRUE);
}

// Returns the message's serial.
static inline dbus_uint32_t send_message(DBusMessage *message) {
    dbus_uint32_t serial = 0;
    check(message && dbus_connection_send(bus, message, &serial), "not sent");
    dbus_message_unref(message);
    return serial;
}

static inline dbus_uint32_t add_match(void) {
    DBusMessage *call = dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS, "AddMatch");
    const char *rule = "type='signal',sender='org.bluez'";
    check(call && dbus_message_append_args(call, DBUS_TYPE_STRING, &rule, DBUS_TYPE_INVALID), "memory");
    return send_message(call);
}

// A call that is still to be filled and sent.
static inline DBusMessage *call_bluez(const char *path, const char *interface, const char *member) {
    check(dbus_validate_path(path, NULL), "not a path");
    DBusMessage *call = dbus_message_new_method_call("org.bluez", path, interface, member);
    check(call != NULL, "memory");
    return call;
}

static inline DBusMessage *call_adapter(const char *adapter, const char *interface, const char *member) {
    char path[64];
    snprintf(path, sizeof path, "/org/bluez/%s", adapter);
    return call_bluez(path, interface, member);
}

// MARK: Values. libdbus says no only when memory is short.

static inline DBusMessageIter open(DBusMessageIter *outer, int kind, const char *contents) {
    DBusMessageIter inner;
    check(dbus_message_iter_open_container(outer, kind, contents, &inner), "memory");
    return inner;
}

static inline void add(DBusMessageIter *iterator, int type, const void *value) {
    check(dbus_message_iter_append_basic(iterator, type, value), "memory");
}

static inline void add_text(DBusMessageIter *iterator, int type, const char *text) { add(iterator, type, &text); }

static inline void property(DBusMessageIter *dictionary, const char *name, int type, const void *value) {
    DBusMessageIter entry = open(dictionary, DBUS_TYPE_DICT_ENTRY, NULL);
    add_text(&entry, DBUS_TYPE_STRING, name);
    DBusMessageIter variant = open(&entry, DBUS_TYPE_VARIANT, (char[]){(char)type, 0});
    add(&variant, type, value);
    dbus_message_iter_close_container(&entry, &variant);
    dbus_message_iter_close_container(dictionary, &entry);
}

static inline void text_property(DBusMessageIter *dictionary, const char *name, int type, const char *text) {
    property(dictionary, name, type, &text);
}

static inline void texts_property(DBusMessageIter *dictionary, const char *name, const char *const *texts) {
    DBusMessageIter entry = open(dictionary, DBUS_TYPE_DICT_ENTRY, NULL);
    add_text(&entry, DBUS_TYPE_STRING, name);
    DBusMessageIter variant = open(&entry, DBUS_TYPE_VARIANT, "as");
    DBusMessageIter array = open(&variant, DBUS_TYPE_ARRAY, "s");
    for (; *texts; texts++) add_text(&array, DBUS_TYPE_STRING, *texts);
    dbus_message_iter_close_container(&variant, &array);
    dbus_message_iter_close_container(&entry, &variant);
    dbus_message_iter_close_container(dictionary, &entry);
}

static inline void add_bytes(DBusMessageIter *iterator, const char *bytes) {
    DBusMessageIter array = open(iterator, DBUS_TYPE_ARRAY, "y");
    check(dbus_message_iter_append_fixed_array(&array, DBUS_TYPE_BYTE, &bytes, (int)strlen(bytes)), "memory");
    dbus_message_iter_close_container(iterator, &array);
}

#endif
