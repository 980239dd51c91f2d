// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_OUTPUT_MATRIX_H
#define FT_CLI_OUTPUT_MATRIX_H
/*
 * Who sends how much to whom: the answer of /api/v1/matrix (daemon/api/api.h) as a square of
 * numbers, by rank, by GPU or by host, and its forms for programs: CSV and an SVG heat map.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/output/answer.h"

#define FT_MATRIX_LABELS_MAX 2048

enum ft_matrix_by {
    FT_MATRIX_RANK,
    FT_MATRIX_GPU, /* host and PCI bus id; host and pid, or rank, where the GPU is not known */
    FT_MATRIX_HOST,
};

struct ft_matrix_cell {
    double bytes; /* as the sender counted them, else the receiver */
    double messages;
    double formula_bytes; /* by the algorithms of those operations that have a formula */
};

/* Row: who sends. Labels and cells are owned. */
struct ft_matrix {
    size_t label_count;
    char **labels;
    struct ft_matrix_cell *cells; /* rows x rows */
};

/* Of one communicator, an item of "records". -ENOMEM, -E2BIG past FT_MATRIX_LABELS_MAX rows. */
int ft_matrix_new(const struct ft_value *comm, enum ft_matrix_by by, struct ft_matrix **out);
void ft_matrix_free(struct ft_matrix *m);

const struct ft_matrix_cell *ft_matrix_cell(const struct ft_matrix *m, size_t src, size_t dst);

/* Lines "communicator","from","to",bytes,messages,formula bytes, without a header; cells without
 * traffic are left out. */
void ft_matrix_csv(FILE *out, const struct ft_matrix *m, const char *comm_id);

/* A heat map of bytes, or of messages. A cell says its numbers when pointed at. */
void ft_matrix_svg(FILE *out, const struct ft_matrix *m, const char *title, bool messages);

#endif
