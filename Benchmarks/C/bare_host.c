// SPDX-License-Identifier: MIT
// The least that a host can cost: serves one characteristic, advertises, and answers every write with one notification.
//
//   bare_host ADAPTER [follow]        such as hci0, on the system bus (DBUS_SYSTEM_BUS_ADDRESS names another one)
//
// It does nothing else: no check of the request, no second client, no recovery, no advertising beside a connection. With
// `follow` it also gets bluetoothd's signals, and asks for its advertisement to be given again as `nearby host` does:
// whatever that costs beyond the bare one is D-Bus's price for knowing who is there.
// Prints "serving" once it is registered.
#include "bare.h"

#include <time.h>

#define ROOT "/bare"
#define SERVICE_PATH ROOT "/service0"
#define MESSAGE_PATH SERVICE_PATH "/char0"
#define ADVERTISEMENT_PATH "/bare_advertisement"
#define ADVERTISE_AGAIN_MS 100

static const char answer[] = "{\"type\":\"handoff\",\"protocolVersion\":1,\"appId\":\"com.example.lab\",\"sessionId\":"
                             "\"550e8400-e29b-41d4-a716-446655440000\",\"payload\":{\"roomCode\":\"SWIFT42\"}}";

static bool follows;
// When the advertisement is to be given again; 0: not.
static long long again_at;

static long long now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

static void flag_property(DBusMessageIter *dictionary, const char *name, dbus_bool_t flag) {
    property(dictionary, name, DBUS_TYPE_BOOLEAN, &flag);
}

static void number_property(DBusMessageIter *dictionary, const char *name, dbus_uint32_t number) {
    property(dictionary, name, DBUS_TYPE_UINT32, &number);
}

// MARK: Objects

static void service_properties(DBusMessageIter *dictionary) {
    text_property(dictionary, "UUID", DBUS_TYPE_STRING, SERVICE);
    flag_property(dictionary, "Primary", TRUE);
}

static void message_properties(DBusMessageIter *dictionary) {
    text_property(dictionary, "UUID", DBUS_TYPE_STRING, MESSAGE);
    text_property(dictionary, "Service", DBUS_TYPE_OBJECT_PATH, SERVICE_PATH);
    texts_property(dictionary, "Flags", (const char *const[]){"write", "notify", NULL});
    flag_property(dictionary, "NotifyAcquired", FALSE);
}

static void advertisement_properties(DBusMessageIter *dictionary) {
    text_property(dictionary, "Type", DBUS_TYPE_STRING, "peripheral");
    texts_property(dictionary, "ServiceUUIDs", (const char *const[]){SERVICE, NULL});
    text_property(dictionary, "LocalName", DBUS_TYPE_STRING, "BARE");
    flag_property(dictionary, "Discoverable", TRUE);
    number_property(dictionary, "MinInterval", 100);
    number_property(dictionary, "MaxInterval", 150);
}

static void managed_object(DBusMessageIter *objects, const char *path, const char *interface,
                           void (*properties)(DBusMessageIter *)) {
    DBusMessageIter object = open(objects, DBUS_TYPE_DICT_ENTRY, NULL);
    add_text(&object, DBUS_TYPE_OBJECT_PATH, path);
    DBusMessageIter interfaces = open(&object, DBUS_TYPE_ARRAY, "{sa{sv}}");
    DBusMessageIter entry = open(&interfaces, DBUS_TYPE_DICT_ENTRY, NULL);
    add_text(&entry, DBUS_TYPE_STRING, interface);
    DBusMessageIter dictionary = open(&entry, DBUS_TYPE_ARRAY, "{sv}");
    properties(&dictionary);
    dbus_message_iter_close_container(&entry, &dictionary);
    dbus_message_iter_close_container(&interfaces, &entry);
    dbus_message_iter_close_container(&object, &interfaces);
    dbus_message_iter_close_container(objects, &object);
}

// MARK: What is sent

static void register_object(const char *adapter, const char *interface, const char *member, const char *path) {
    DBusMessage *call = call_adapter(adapter, interface, member);
    DBusMessageIter iterator;
    dbus_message_iter_init_append(call, &iterator);
    add_text(&iterator, DBUS_TYPE_OBJECT_PATH, path);
    DBusMessageIter options = open(&iterator, DBUS_TYPE_ARRAY, "{sv}");
    dbus_message_iter_close_container(&iterator, &options);
    send_message(call);
}

static void properties_changed(const char *path, const char *interface, const char *name, int type, const void *value) {
    DBusMessage *signal = dbus_message_new_signal(path, PROPERTIES, "PropertiesChanged");
    check(signal != NULL, "memory");
    DBusMessageIter iterator;
    dbus_message_iter_init_append(signal, &iterator);
    add_text(&iterator, DBUS_TYPE_STRING, interface);
    DBusMessageIter changed = open(&iterator, DBUS_TYPE_ARRAY, "{sv}");
    if (type == DBUS_TYPE_ARRAY) {
        DBusMessageIter entry = open(&changed, DBUS_TYPE_DICT_ENTRY, NULL);
        add_text(&entry, DBUS_TYPE_STRING, name);
        DBusMessageIter variant = open(&entry, DBUS_TYPE_VARIANT, "ay");
        add_bytes(&variant, value);
        dbus_message_iter_close_container(&entry, &variant);
        dbus_message_iter_close_container(&changed, &entry);
    } else {
        property(&changed, name, type, value);
    }
    dbus_message_iter_close_container(&iterator, &changed);
    DBusMessageIter invalidated = open(&iterator, DBUS_TYPE_ARRAY, "s");
    dbus_message_iter_close_container(&iterator, &invalidated);
    send_message(signal);
}

static void advertise_again(void) {
    dbus_uint16_t forever = 0;
    properties_changed(ADVERTISEMENT_PATH, "org.bluez.LEAdvertisement1", "Duration", DBUS_TYPE_UINT16, &forever);
}

// MARK: What is received

static void answer_call(DBusMessage *call) {
    const char *member = dbus_message_get_member(call), *path = dbus_message_get_path(call);
    bool is_write = strcmp(member, "WriteValue") == 0;
    DBusMessage *reply;
    if (strcmp(member, "AcquireNotify") == 0) {
        reply = dbus_message_new_error(call, "org.bluez.Error.NotSupported", "notifications go by PropertiesChanged");
    } else {
        reply = dbus_message_new_method_return(call);
        check(reply != NULL, "memory");
        DBusMessageIter iterator;
        dbus_message_iter_init_append(reply, &iterator);
        if (strcmp(member, "GetManagedObjects") == 0) {
            DBusMessageIter objects = open(&iterator, DBUS_TYPE_ARRAY, "{oa{sa{sv}}}");
            if (strcmp(path, ROOT) == 0) {
                managed_object(&objects, SERVICE_PATH, "org.bluez.GattService1", service_properties);
                managed_object(&objects, MESSAGE_PATH, "org.bluez.GattCharacteristic1", message_properties);
            }
            dbus_message_iter_close_container(&iterator, &objects);
        } else if (strcmp(member, "GetAll") == 0) {
            DBusMessageIter dictionary = open(&iterator, DBUS_TYPE_ARRAY, "{sv}");
            if (strcmp(path, ADVERTISEMENT_PATH) == 0) advertisement_properties(&dictionary);
            dbus_message_iter_close_container(&iterator, &dictionary);
        }
    }
    if (dbus_message_get_no_reply(call)) dbus_message_unref(reply);
    else send_message(reply);
    if (is_write) {
        properties_changed(MESSAGE_PATH, "org.bluez.GattCharacteristic1", "Value", DBUS_TYPE_ARRAY, answer);
    }
}

// Whether a central has come or gone: a device is added, or one of its first changed properties is Connected.
static bool tells_of_a_link(DBusMessage *signal) {
    DBusMessageIter iterator, dictionary;
    const char *text;
    if (!dbus_message_iter_init(signal, &iterator)) return false;
    if (dbus_message_is_signal(signal, OBJECT_MANAGER, "InterfacesAdded")) {
        dbus_message_iter_get_basic(&iterator, &text);
        const char *element = strrchr(text, '/');
        return element && strncmp(element, "/dev_", 5) == 0;
    }
    if (!dbus_message_is_signal(signal, PROPERTIES, "PropertiesChanged")) return false;
    dbus_message_iter_get_basic(&iterator, &text);
    if (strcmp(text, "org.bluez.Device1") != 0) return false;
    dbus_message_iter_next(&iterator);
    dbus_message_iter_recurse(&iterator, &dictionary);
    for (; dbus_message_iter_get_arg_type(&dictionary); dbus_message_iter_next(&dictionary)) {
        DBusMessageIter entry;
        dbus_message_iter_recurse(&dictionary, &entry);
        dbus_message_iter_get_basic(&entry, &text);
        if (strcmp(text, "Connected") == 0) return true;
    }
    return false;
}

static void receive(DBusMessage *message, int *registered) {
    switch (dbus_message_get_type(message)) {
    case DBUS_MESSAGE_TYPE_METHOD_CALL:
        answer_call(message);
        break;
    case DBUS_MESSAGE_TYPE_METHOD_RETURN:
        if (*registered >= 0 && ++*registered == (follows ? 3 : 2)) {
            *registered = -1;
            puts("serving");
            fflush(stdout);
        }
        break;
    case DBUS_MESSAGE_TYPE_ERROR:
        check(false, dbus_message_get_error_name(message));
        break;
    default:
        if (follows && tells_of_a_link(message)) again_at = now_ms() + ADVERTISE_AGAIN_MS;
    }
}

int main(int argc, char **argv) {
    follows = argc == 3 && strcmp(argv[2], "follow") == 0;
    if (argc != 2 && !follows) {
        fprintf(stderr, "usage: bare_host ADAPTER [follow]\n");
        return 2;
    }
    open_bus();
    if (follows) add_match();
    register_object(argv[1], "org.bluez.GattManager1", "RegisterApplication", ROOT);
    register_object(argv[1], "org.bluez.LEAdvertisingManager1", "RegisterAdvertisement", ADVERTISEMENT_PATH);
    int registered = 0;
    while (true) {
        long long left = again_at ? again_at - now_ms() : -1;
        if (again_at && left <= 0) {
            again_at = 0;
            advertise_again();
            continue;
        }
        if (!dbus_connection_read_write(bus, (int)left)) return 0;
        DBusMessage *message;
        while ((message = dbus_connection_pop_message(bus))) {
            receive(message, &registered);
            dbus_message_unref(message);
        }
    }
}
