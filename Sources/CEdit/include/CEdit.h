/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdbool.h>

/* libedit, through its readline interface; see libedit's <editline/readline.h>. Loaded when somebody edits a line: the
 * other commands shall not carry it and its three libraries in memory, nor need them to be installed. One thread. */

/* Before anything else here; false where libedit is not installed. */
bool nearby_edit_load(void);

/* rl_callback_handler_install, with signals left to the process. */
void nearby_edit_begin(const char *prompt, void (*line)(char *));
/* rl_callback_handler_remove */
void nearby_edit_end(void);
/* rl_callback_read_char */
void nearby_edit_read_char(void);
/* rl_forced_update_display */
void nearby_edit_show_again(void);
/* add_history */
void nearby_edit_remember(const char *line);
