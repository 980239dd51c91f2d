// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_OUTPUT_SAFE_H
#define FT_CLI_OUTPUT_SAFE_H
/*
 * Which characters a terminal may see. Names come from switches, users and jobs: control characters
 * drive a terminal, marks of direction and tags make a text look like another one. Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Bytes of the UTF-8 character at s, which does not begin with 0, and whether it may be shown: no
 * C0, DEL or C1, no mark or override of direction (Unicode's Bidi_Control), no tag (U+E0000 to
 * U+E007F), no byte that is not UTF-8. */
size_t ft_safe_character(const char *s, bool *shown);

/* In place: what may not be shown becomes '?'. */
void ft_safe_text(char *text);

/* A line of JSON: what may not be shown is escaped, so that it is the same JSON. */
void ft_safe_put_json(FILE *out, const char *json);

/* A YAML text in quotes: what may not be shown is escaped, so that it is the same text. */
void ft_safe_put_yaml(FILE *out, const char *text);

#endif
