// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_OUTPUT_CHOICE_H
#define FT_CLI_OUTPUT_CHOICE_H
/*
 * Which records of an answer to show: a mark for each. Pure. All return NULL
 * without memory; free() what they return.
 */
#include "cli/output/answer.h"

/* Events of this severity and above: "info", "warning" or "critical". One of a severity that is not
 * known here is kept. */
bool *ft_choice_severity(const struct ft_value *records, const char *least);

/* The events that began last, at most so many. */
bool *ft_choice_newest(const struct ft_value *records, size_t limit);

/* The first ones, at most so many; the last ones. */
bool *ft_choice_first(const struct ft_value *records, size_t limit);
bool *ft_choice_last(const struct ft_value *records, size_t limit);

#endif
