/* SPDX-License-Identifier: MIT */
#include "CEdit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <editline/readline.h>

static struct {
    __typeof__(&rl_callback_handler_install) install;
    __typeof__(&rl_callback_handler_remove) remove;
    __typeof__(&rl_callback_read_char) read_char;
    __typeof__(&rl_forced_update_display) update_display;
    __typeof__(&add_history) add_history;
    __typeof__(&rl_catch_signals) catch_signals;
} edit;

bool nearby_edit_load(void) {
    void *library = edit.install ? NULL : dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library) {
        edit.remove = (__typeof__(edit.remove))dlsym(library, "rl_callback_handler_remove");
        edit.read_char = (__typeof__(edit.read_char))dlsym(library, "rl_callback_read_char");
        edit.update_display = (__typeof__(edit.update_display))dlsym(library, "rl_forced_update_display");
        edit.add_history = (__typeof__(edit.add_history))dlsym(library, "add_history");
        edit.catch_signals = (__typeof__(edit.catch_signals))dlsym(library, "rl_catch_signals");
        edit.install = (__typeof__(edit.install))dlsym(library, "rl_callback_handler_install");
    }
    return edit.install && edit.remove && edit.read_char && edit.update_display && edit.add_history &&
           edit.catch_signals;
}

void nearby_edit_begin(const char *prompt, void (*line)(char *)) {
    *edit.catch_signals = 0;
    edit.install(prompt, line);
}

void nearby_edit_end(void) { edit.remove(); }

void nearby_edit_read_char(void) { edit.read_char(); }

void nearby_edit_show_again(void) { edit.update_display(); }

void nearby_edit_remember(const char *line) { edit.add_history(line); }
