// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_SHOW_SHOW_MATRIX_H
#define FT_CLI_SHOW_SHOW_MATRIX_H
/*
 * `matrix`: who sends how much to whom, for a person, as CSV, or as a heat map.
 */
#include "cli/args/args.h"
#include "cli/output/answer.h"
#include "cli/output/grid.h"

/* Writes to the screen's output, the heat map to the file of --svg. -ENOMEM; -E2BIG for more rows
 * than a matrix can have; -EMLINK when a heat map would have to show several communicators,
 * -ENODATA none; -errno of fopen(3) and fclose(3). */
int ft_show_matrix(const struct ft_screen *screen, const struct ft_value *root,
                   const struct ft_args *args);

#endif
