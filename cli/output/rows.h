// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_OUTPUT_ROWS_H
#define FT_CLI_OUTPUT_ROWS_H
/*
 * Tables that more than one command shows: an empty grid of a kind of record, and a record as a row
 * of it. A NULL grid (no memory) may be passed on.
 */
#include "cli/output/answer.h"
#include "cli/output/grid.h"

/* _figures: columns without those that name what the record is of, *count of them; _figure_cells:
 * the cells of a record in these. _timed: with the time before all else, whose cell comes first
 * (ft_text_time_cell()): where records of more than one window are in a table. */
struct ft_grid *ft_rows_imbalance(void);
struct ft_grid *ft_rows_imbalance_timed(void);
void ft_rows_imbalance_add(struct ft_grid *grid, const struct ft_value *record);
const struct ft_column *ft_rows_imbalance_figures(size_t *count);
void ft_rows_imbalance_figure_cells(struct ft_grid *grid, const struct ft_value *record);

struct ft_grid *ft_rows_links(void);
struct ft_grid *ft_rows_links_timed(void);
void ft_rows_links_add(struct ft_grid *grid, const struct ft_value *record);
const struct ft_column *ft_rows_links_figures(size_t *count);
void ft_rows_links_figure_cells(struct ft_grid *grid, const struct ft_value *record);

struct ft_grid *ft_rows_ranks(void);
void ft_rows_ranks_add(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now);

struct ft_grid *ft_rows_paths(void);
struct ft_grid *ft_rows_paths_timed(void);
int ft_rows_paths_add(struct ft_grid *grid, const struct ft_value *record);
/* All of the paths, what carries data first, the fastest first. -ENOMEM, as the above. */
int ft_rows_paths_add_all(struct ft_grid *grid, const struct ft_value *records);

/* The state, rate and path of one: figures, as above. Cells: -ENOMEM. */
const struct ft_column *ft_rows_path_figures(size_t *count);
int ft_rows_path_figure_cells(struct ft_grid *grid, const struct ft_value *record);

/* now decides which times need a date. */
struct ft_grid *ft_rows_events(void);
void ft_rows_events_add(struct ft_grid *grid, const struct ft_value *record, struct ft_wall now);
/* One of which another record said when it was over. */
void ft_rows_events_add_until(struct ft_grid *grid, const struct ft_value *record,
                              uint64_t until_ms, struct ft_wall now);

struct ft_grid *ft_rows_qps(void);
void ft_rows_qps_add(struct ft_grid *grid, const struct ft_value *record);

/* What the doctor finds; with what to do on a row of its own. */
struct ft_grid *ft_rows_findings(void);
void ft_rows_findings_add(struct ft_grid *grid, const struct ft_value *finding);

/* All ports of a switch of the topology, all NICs of a host. -ENOMEM. */
struct ft_grid *ft_rows_ports(void);
void ft_rows_ports_add_all(struct ft_grid *grid, const struct ft_value *sw);
struct ft_grid *ft_rows_nics(void);
int ft_rows_nics_add_all(struct ft_grid *grid, const struct ft_value *host);

/* ", 64 flows over 16 uplinks": what hashing had to spread. Nothing when no record says it. */
void ft_rows_uplinks(const struct ft_screen *screen, const struct ft_value *records);

#endif
