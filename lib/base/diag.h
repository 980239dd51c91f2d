// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_DIAG_H
#define FT_BASE_DIAG_H
/*
 * A list of complaints about an input, so that `--check` names every problem at once.
 *
 * Each complaint is one line of text that begins with where it was found: "FILE:LINE: key: what is
 * wrong". The list is capped; what is over the cap is counted. One of more than 1023 bytes is cut.
 */
#include <stddef.h>

struct ft_diag;

struct ft_diag *ft_diag_new(void);
void ft_diag_free(struct ft_diag *diag);

/* Adds "file:line: " and the text; without a line when line is 0, without both when file is NULL.
 */
void ft_diag_add(struct ft_diag *diag, const char *file, unsigned line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Complaints added, also those over the cap. */
size_t ft_diag_count(const struct ft_diag *diag);

/* The i-th complaint kept, NULL past the last. */
const char *ft_diag_text(const struct ft_diag *diag, size_t i);

#endif
