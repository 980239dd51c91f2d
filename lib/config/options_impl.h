// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CONFIG_OPTIONS_IMPL_H
#define FT_CONFIG_OPTIONS_IMPL_H
/*
 * How a value of an option is written: text to value and back. Used by options.c and program.c
 * only. Owner: the caller of ft_value_clear(). Thread: any.
 */
#include <stddef.h>
#include <stdio.h>

#include "lib/config/options.h"

/* "a number from 1 to 65535": what the option takes, for complaints and the manual page. */
#define FT_VALUE_RANGE_BYTES 256
void ft_value_range(const struct ft_option *option, char text[FT_VALUE_RANGE_BYTES]);

/* "duration": the type's name in the manual page. */
const char *ft_value_type(const struct ft_option *option);

/* Sets the field of an option from a text (FT_OPTION_STRINGS: appends it). -EINVAL when the text
 * does not have the type or out of range, -ENOMEM. */
int ft_value_set(const struct ft_option *option, const char *text, void *target);

/* Frees what the field owns and makes it zero. */
void ft_value_clear(const struct ft_option *option, void *target);

/* Writes the value so that ft_value_set() or the YAML reader takes it again. */
void ft_value_print(const struct ft_option *option, const void *target, FILE *out);

#endif
