// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_OUTPUT_TEXT_H
#define FT_CLI_OUTPUT_TEXT_H
/*
 * Texts that several commands show: flows, hops, ends of a flow, the window.
 */
#include "cli/output/answer.h"
#include "cli/output/grid.h"
#include "lib/base/tuple.h"

/* A flow record as a person writes it, to be pasted behind `fabrictrace explain`; port 4791 and UDP
 * are left out. Empty when a part is missing. Returns text. */
char *ft_text_flow(char text[FT_TUPLE_TEXT_BYTES], const struct ft_value *flow);

/* "leaf1 Ethernet51 > spine1 Ethernet4 > leaf4": each switch with the port that the flow leaves by,
 * but, in a complete path, for the port to the host. free() it; NULL without memory. */
char *ft_text_hops(const struct ft_value *hops, bool all);

#define FT_REASON_TEXT_BYTES 256

/* Why a path is not resolved: a clause for what its record says, or that word where it is not
 * known here; NULL without one. */
const char *ft_text_reason(char text[FT_REASON_TEXT_BYTES], const struct ft_value *path);

/* What an event record says: its message, and of a flow that changed its path the two paths. free()
 * it; NULL without memory. */
char *ft_text_event(const struct ft_value *record);

/* "gpu01 rank 3" from the members PREFIX_host and PREFIX_rank, else the flow's address. free() it;
 * NULL without memory. */
char *ft_text_end(const struct ft_value *record, const char *prefix);

/* The next cell: a member's text, or its number; empty when it is absent. */
void ft_text_cell(struct ft_grid *grid, const struct ft_value *record, const char *name);
void ft_text_number_cell(struct ft_grid *grid, const struct ft_value *record, const char *name);
/* Likewise of Unix milliseconds; now decides which times need a date. */
void ft_text_time_cell(struct ft_grid *grid, const struct ft_value *record, const char *name,
                       struct ft_wall now);

/* "lab, window 10:41:20 to 10:41:30", without a newline; says so when no window has closed. */
void ft_text_window(const struct ft_screen *screen, const struct ft_value *root);

/* The "records" of an answer as a table of so many columns, a row each; without any, the line none.
 * 0, or what ft_grid_print() returns. */
int ft_text_records(const struct ft_screen *screen, const struct ft_value *root, const char *none,
                    const struct ft_column *columns, size_t count,
                    void (*add_row)(struct ft_grid *grid, const struct ft_value *record,
                                    struct ft_wall now));

/* ", 5 of 27 shown" where the layout's limit leaves some of so many out. */
void ft_text_limit(const struct ft_screen *screen, size_t count);

#endif
