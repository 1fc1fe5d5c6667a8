// SPDX-License-Identifier: MIT
// Answers Echo(say) with its arguments. The same server stands behind every caller that is compared.
#include "bench.h"
#include <string.h>

static void answer(DBusConnection *connection, DBusMessage *call) {
    const char *text = NULL;
    const unsigned char *bytes = NULL;
    int count = 0;
    DBusError error = DBUS_ERROR_INIT;
    DBusMessage *reply;
    if (dbus_message_get_args(call, &error, DBUS_TYPE_STRING, &text, DBUS_TYPE_ARRAY, DBUS_TYPE_BYTE, &bytes, &count,
                              DBUS_TYPE_INVALID)) {
        reply = dbus_message_new_method_return(call);
        bench_check(reply && dbus_message_append_args(reply, DBUS_TYPE_STRING, &text, DBUS_TYPE_ARRAY, DBUS_TYPE_BYTE,
                                                      &bytes, count, DBUS_TYPE_INVALID),
                    "reply", NULL);
    } else {
        reply = dbus_message_new_error(call, error.name, error.message);
        dbus_error_free(&error);
    }
    bench_check(dbus_connection_send(connection, reply, NULL), "send", NULL);
    dbus_message_unref(reply);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: echo_server ADDRESS\n");
        return 2;
    }
    DBusConnection *connection = bench_connect(argv[1]);
    DBusError error = DBUS_ERROR_INIT;
    int owner = dbus_bus_request_name(connection, BENCH_NAME, DBUS_NAME_FLAG_DO_NOT_QUEUE, &error);
    bench_check(owner == DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER, "request name", &error);
    puts("ready");
    fflush(stdout);
    while (dbus_connection_read_write(connection, -1)) {
        DBusMessage *message;
        while ((message = dbus_connection_pop_message(connection))) {
            if (dbus_message_is_method_call(message, BENCH_INTERFACE, BENCH_MEMBER)) answer(connection, message);
            dbus_message_unref(message);
        }
    }
    return 0;
}
