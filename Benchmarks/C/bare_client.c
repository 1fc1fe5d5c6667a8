// SPDX-License-Identifier: MIT
// The least that a client can cost: finds the service, connects, subscribes, writes one request, prints the notification.
//
//   bare_client ADAPTER        such as hci1, on the system bus (DBUS_SYSTEM_BUS_ADDRESS names another one)
//
// It does nothing else: no look at the answer, no RSSI, no second attempt, no time limit, no bluetoothd that restarts.
#include "bare.h"

#define DEVICE "org.bluez.Device1"
#define CHARACTERISTIC "org.bluez.GattCharacteristic1"
#define KNOWN 64

static const char request[] = "{\"type\":\"join_request\",\"protocolVersion\":1,\"appId\":\"com.example.lab\"}";

// Devices that have the service, and characteristics with the UUID, as bluetoothd tells of them.
static char *devices[KNOWN], *characteristics[KNOWN];
static int device_count, characteristic_count;
static const char *adapter;
static char *device;
static bool resolved, connected;
// The calls whose answers are waited for.
static dbus_uint32_t connecting, subscribing, writing, disconnecting, listing;

static bool keeps(char **list, int count, const char *path) {
    for (int index = 0; index < count; index++) {
        if (strcmp(list[index], path) == 0) return true;
    }
    return false;
}

static void keep(char **list, int *count, const char *path) {
    if (*count < KNOWN && !keeps(list, *count, path)) list[(*count)++] = strdup(path);
}

static const char *characteristic(void) {
    for (int index = 0; index < characteristic_count; index++) {
        if (strncmp(characteristics[index], device, strlen(device)) == 0) return characteristics[index];
    }
    return NULL;
}

static dbus_uint32_t ask(const char *path, const char *interface, const char *member) {
    return send_message(call_bluez(path, interface, member));
}

static void start_discovery(void) {
    DBusMessage *call = call_adapter(adapter, "org.bluez.Adapter1", "SetDiscoveryFilter");
    DBusMessageIter iterator;
    dbus_message_iter_init_append(call, &iterator);
    DBusMessageIter filter = open(&iterator, DBUS_TYPE_ARRAY, "{sv}");
    texts_property(&filter, "UUIDs", (const char *const[]){SERVICE, NULL});
    text_property(&filter, "Transport", DBUS_TYPE_STRING, "le");
    dbus_message_iter_close_container(&iterator, &filter);
    send_message(call);
    send_message(call_adapter(adapter, "org.bluez.Adapter1", "StartDiscovery"));
}

static void found(const char *path) {
    if (device) return;
    device = strdup(path);
    send_message(call_adapter(adapter, "org.bluez.Adapter1", "StopDiscovery"));
    connecting = ask(device, DEVICE, "Connect");
}

static void subscribe_when_ready(void) {
    if (!connected || !resolved || subscribing || !characteristic()) return;
    subscribing = ask(characteristic(), CHARACTERISTIC, "StartNotify");
}

static void write_request(void) {
    DBusMessage *call = call_bluez(characteristic(), CHARACTERISTIC, "WriteValue");
    DBusMessageIter iterator;
    dbus_message_iter_init_append(call, &iterator);
    add_bytes(&iterator, request);
    DBusMessageIter options = open(&iterator, DBUS_TYPE_ARRAY, "{sv}");
    text_property(&options, "type", DBUS_TYPE_STRING, "request");
    dbus_message_iter_close_container(&iterator, &options);
    writing = send_message(call);
}

static void told(DBusMessageIter *value) {
    DBusMessageIter bytes;
    const char *start;
    int count;
    if (!writing || disconnecting) return;
    dbus_message_iter_recurse(value, &bytes);
    dbus_message_iter_get_fixed_array(&bytes, &start, &count);
    printf("%.*s\n", count, start);
    fflush(stdout);
    disconnecting = ask(device, DEVICE, "Disconnect");
}

// What bluetoothd says of an object: some properties of one of its interfaces.
static void properties(const char *path, const char *interface, DBusMessageIter dictionary) {
    bool is_device = strcmp(interface, DEVICE) == 0, heard = false;
    if (!is_device && strcmp(interface, CHARACTERISTIC) != 0) return;
    for (; dbus_message_iter_get_arg_type(&dictionary); dbus_message_iter_next(&dictionary)) {
        DBusMessageIter entry, value;
        const char *name, *text;
        dbus_bool_t flag;
        dbus_message_iter_recurse(&dictionary, &entry);
        dbus_message_iter_get_basic(&entry, &name);
        dbus_message_iter_next(&entry);
        dbus_message_iter_recurse(&entry, &value);
        if (is_device && strcmp(name, "UUIDs") == 0) {
            DBusMessageIter uuid;
            dbus_message_iter_recurse(&value, &uuid);
            for (; dbus_message_iter_get_arg_type(&uuid); dbus_message_iter_next(&uuid)) {
                dbus_message_iter_get_basic(&uuid, &text);
                if (strcmp(text, SERVICE) == 0) keep(devices, &device_count, path);
            }
        } else if (is_device && strcmp(name, "RSSI") == 0) {
            heard = true;
        } else if (is_device && strcmp(name, "ServicesResolved") == 0 && device && strcmp(path, device) == 0) {
            dbus_message_iter_get_basic(&value, &flag);
            resolved = flag;
        } else if (!is_device && strcmp(name, "UUID") == 0) {
            dbus_message_iter_get_basic(&value, &text);
            if (strcmp(text, MESSAGE) == 0) keep(characteristics, &characteristic_count, path);
        } else if (!is_device && strcmp(name, "Value") == 0 && device && characteristic()
                   && strcmp(path, characteristic()) == 0) {
            told(&value);
        }
    }
    if (heard && keeps(devices, device_count, path)) found(path);
}

static void object(DBusMessageIter iterator) {
    DBusMessageIter interfaces;
    const char *path, *interface;
    dbus_message_iter_get_basic(&iterator, &path);
    dbus_message_iter_next(&iterator);
    dbus_message_iter_recurse(&iterator, &interfaces);
    for (; dbus_message_iter_get_arg_type(&interfaces); dbus_message_iter_next(&interfaces)) {
        DBusMessageIter entry, dictionary;
        dbus_message_iter_recurse(&interfaces, &entry);
        dbus_message_iter_get_basic(&entry, &interface);
        dbus_message_iter_next(&entry);
        dbus_message_iter_recurse(&entry, &dictionary);
        properties(path, interface, dictionary);
    }
}

static void answered(DBusMessage *reply) {
    dbus_uint32_t serial = dbus_message_get_reply_serial(reply);
    DBusMessageIter iterator, objects, entry;
    if (serial == listing) {
        dbus_message_iter_init(reply, &iterator);
        dbus_message_iter_recurse(&iterator, &objects);
        for (; dbus_message_iter_get_arg_type(&objects); dbus_message_iter_next(&objects)) {
            dbus_message_iter_recurse(&objects, &entry);
            object(entry);
        }
        start_discovery();
    } else if (serial == connecting) {
        connected = true;
    } else if (serial == subscribing) {
        write_request();
    } else if (serial == disconnecting) {
        exit(0);
    }
}

static void receive(DBusMessage *message) {
    DBusMessageIter iterator, dictionary;
    const char *interface;
    if (dbus_message_get_type(message) == DBUS_MESSAGE_TYPE_ERROR) check(false, dbus_message_get_error_name(message));
    if (dbus_message_get_type(message) == DBUS_MESSAGE_TYPE_METHOD_RETURN) {
        answered(message);
    } else if (!dbus_message_iter_init(message, &iterator)) {
        return;
    } else if (dbus_message_is_signal(message, OBJECT_MANAGER, "InterfacesAdded")) {
        object(iterator);
    } else if (dbus_message_is_signal(message, PROPERTIES, "PropertiesChanged")) {
        dbus_message_iter_get_basic(&iterator, &interface);
        dbus_message_iter_next(&iterator);
        dbus_message_iter_recurse(&iterator, &dictionary);
        properties(dbus_message_get_path(message), interface, dictionary);
    }
    subscribe_when_ready();
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: bare_client ADAPTER\n");
        return 2;
    }
    adapter = argv[1];
    open_bus();
    add_match();
    listing = ask("/", OBJECT_MANAGER, "GetManagedObjects");
    while (dbus_connection_read_write(bus, -1)) {
        DBusMessage *message;
        while ((message = dbus_connection_pop_message(bus))) {
            receive(message);
            dbus_message_unref(message);
        }
    }
    return 1;
}
