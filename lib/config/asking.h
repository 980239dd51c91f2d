// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CONFIG_ASKING_H
#define FT_CONFIG_ASKING_H
/*
 * Commands that ask a switch by which port it sends a flow (fabrictrace-oracle(7)): PATTERN=COMMAND
 * items, the arguments of a question, the name in an answer.
 *
 * Names of switches and ports come from the network: only letters, digits and a few other
 * characters are passed on, since a command may hand them to a shell at the other end. Pure.
 */
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/tuple.h"
#include "lib/config/options.h"

#define FT_ASKING_ARGS 40
#define FT_ASKING_TEXT 2048
#define FT_ASKING_NAME 128

/* One question; pointers into itself. */
struct ft_asking {
    const char *switch_name, *in;
    char *argv[FT_ASKING_ARGS];
    char text[FT_ASKING_TEXT];
};

/* Why an item cannot be used, NULL: it can. */
const char *ft_asking_complaint(const char *item);

/* The command of the first item whose pattern fits the switch; NULL: of none. */
const char *ft_asking_command(const struct ft_strings *items, const char *switch_name);

/* What neither a shell nor a switch's command line takes for anything but a name. */
bool ft_asking_is_safe(const char *name);

/* Fills a question about a flow that enters the switch by a port; false where there is no room. */
bool ft_asking_write(struct ft_asking *q, const char *command, const char *switch_name,
                     const char *in, const struct ft_tuple *tuple);

/* The one name in a text of one line; false where it is something else. */
bool ft_asking_read(const char *text, char name[FT_ASKING_NAME]);

#endif
