// SPDX-License-Identifier: MIT
// The yardstick: Echo(say) with dbus_connection_send_with_reply_and_block, one call after another, one thread.
// Prints one JSON object: what each caller that is compared prints.
#include "bench.h"
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int ascending(const void *left, const void *right) {
    long long a = *(const long long *)left, b = *(const long long *)right;
    return (a > b) - (a < b);
}

static void call(DBusConnection *connection) {
    static const unsigned char sent[BENCH_BYTES] = {1, 2, 3, 4, 5};
    const unsigned char *bytes = sent;
    const char *text = BENCH_TEXT;
    DBusError error = DBUS_ERROR_INIT;
    DBusMessage *message = dbus_message_new_method_call(BENCH_NAME, BENCH_PATH, BENCH_INTERFACE, BENCH_MEMBER);
    bench_check(message && dbus_message_append_args(message, DBUS_TYPE_STRING, &text, DBUS_TYPE_ARRAY, DBUS_TYPE_BYTE,
                                                    &bytes, BENCH_BYTES, DBUS_TYPE_INVALID),
                "message", NULL);
    DBusMessage *reply = dbus_connection_send_with_reply_and_block(connection, message, 25000, &error);
    bench_check(reply != NULL, "call", &error);
    int count = 0;
    bench_check(dbus_message_get_args(reply, &error, DBUS_TYPE_STRING, &text, DBUS_TYPE_ARRAY, DBUS_TYPE_BYTE, &bytes,
                                      &count, DBUS_TYPE_INVALID),
                "answer", &error);
    bench_check(count == BENCH_BYTES && memcmp(bytes, sent, BENCH_BYTES) == 0, "echo", NULL);
    dbus_message_unref(reply);
    dbus_message_unref(message);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: blocking_caller ADDRESS WARM_UP CALLS\n");
        return 2;
    }
    int warm_up = atoi(argv[2]), calls = atoi(argv[3]);
    bench_check(calls > 0, "CALLS", NULL);
    DBusConnection *connection = bench_connect(argv[1]);
    long long *times = malloc(sizeof *times * (size_t)calls);
    bench_check(times != NULL, "memory", NULL);
    for (int i = 0; i < warm_up; i++) call(connection);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    long long start = now(), last = start;
    for (int i = 0; i < calls; i++) {
        call(connection);
        long long time = now();
        times[i] = time - last;
        last = time;
    }
    getrusage(RUSAGE_SELF, &after);
    qsort(times, (size_t)calls, sizeof *times, ascending);
    printf("{\"calls\":%d,\"mean_ns\":%lld,\"median_ns\":%lld,\"switches\":%.3f}\n", calls, (last - start) / calls,
           times[calls / 2], (double)(after.ru_nvcsw - before.ru_nvcsw) / calls);
    return 0;
}
