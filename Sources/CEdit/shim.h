/* SPDX-License-Identifier: MIT */
#pragma once
/* libedit, through its readline interface. Its global variables are none that Swift 6 lets anybody touch: what needs one
 * is a function here. */
#include <stdlib.h>
#include <editline/readline.h>

/* Signals are the process's own business. */
static inline void nearby_edit_begin(const char *prompt, void (*line)(char *)) {
    rl_catch_signals = 0;
    rl_callback_handler_install(prompt, line);
}
