// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show_matrix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/matrix.h"
#include "cli/output/text.h"
#include "cli/output/units.h"

#define GRID_LABELS_MAX 12
#define EDGES_SHOWN     20

static const struct ft_column edge_columns[] = {
    {.title = "FROM"},
    {.title = "TO"},
    {.title = "OPERATION", .give_up = 3},
    {.title = "SENT", .right = true},
    {.title = "BY FORMULA", .right = true, .give_up = 1},
    {.title = "RATIO", .right = true, .give_up = 2},
    {.title = "MESSAGES", .right = true, .give_up = 4},
    {.title = "STEP", .right = true, .give_up = 5},
    {.title = "LONGEST", .right = true, .give_up = 6},
};

struct edge {
    const struct ft_value *value;
    double order;
};

static int by_order(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    return x->order > y->order ? -1 : x->order < y->order;
}

static double real(const struct ft_value *object, const char *name)
{
    double value = 0;

    ft_value_real(object, name, &value);
    return value;
}

static void endpoint_cell(struct ft_grid *grid, const struct ft_value *members, uint64_t rank)
{
    const char *host = NULL;
    uint64_t r;

    for (size_t i = 0; i < ft_value_count(members) && !host; i++)
        if (ft_value_uint(ft_value_at(members, i), "rank", &r) && r == rank)
            host = ft_value_str(ft_value_at(members, i), "host");
    ft_grid_cell(grid, FT_PLAIN, "%llu%s%s", (unsigned long long)rank, host ? " " : "",
                 host ? host : "");
}

static void time_cell(struct ft_grid *grid, double ns)
{
    char text[FT_UNIT_BYTES];

    if (ns > 0)
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_duration(text, ns));
    else
        ft_grid_skip(grid);
}

static void edge_row(struct ft_grid *grid, const struct ft_value *members,
                     const struct ft_value *edge)
{
    double sent = real(edge, "sent_bytes"), formula = real(edge, "expected_bytes");
    const char *op = ft_value_str(edge, "op");
    uint64_t src = 0, dst = 0;
    char text[FT_UNIT_BYTES];

    ft_value_uint(edge, "src", &src);
    ft_value_uint(edge, "dst", &dst);
    endpoint_cell(grid, members, src);
    endpoint_cell(grid, members, dst);
    ft_grid_cell(grid, FT_PLAIN, "%s", op ? op : "");
    ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_size(text, sent));
    if (formula > 0) {
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_size(text, formula));
        ft_grid_cell(grid, FT_PLAIN, "%.2f", sent / formula);
    } else {
        ft_grid_skip(grid);
        ft_grid_skip(grid);
    }
    ft_grid_cell(grid, FT_PLAIN, "%.0f", real(edge, "sent_messages"));
    time_cell(grid, real(edge, "step_median_ns"));
    time_cell(grid, real(edge, "step_max_ns"));
}

static int show_edges(const struct ft_screen *screen, const struct ft_value *comm, bool messages)
{
    const struct ft_value *list = ft_value_get(comm, "edges");
    size_t count = ft_value_count(list), shown = count < EDGES_SHOWN ? count : EDGES_SHOWN;
    struct ft_grid *grid =
        ft_grid_new(edge_columns, sizeof(edge_columns) / sizeof(edge_columns[0]));
    struct edge *edges = calloc(count + 1, sizeof(*edges));
    int rc = -ENOMEM;

    if (edges) {
        for (size_t i = 0; i < count; i++) {
            edges[i].value = ft_value_at(list, i);
            edges[i].order = real(edges[i].value, messages ? "sent_messages" : "sent_bytes");
        }
        qsort(edges, count, sizeof(*edges), by_order);
        for (size_t i = 0; i < shown; i++)
            edge_row(grid, ft_value_get(comm, "members"), edges[i].value);
        rc = ft_grid_print(grid, screen, 2);
        if (shown < count)
            fprintf(screen->out, "  and %zu more; --json or --csv has them all\n", count - shown);
    }
    free(edges);
    ft_grid_free(grid);
    return rc;
}

static void value_cell(struct ft_grid *grid, double value, bool messages)
{
    char text[FT_UNIT_BYTES];

    if (value <= 0)
        ft_grid_cell(grid, FT_DIM, ".");
    else if (messages)
        ft_grid_cell(grid, FT_PLAIN, "%.0f", value);
    else
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_size(text, value));
}

static int show_square(const struct ft_screen *screen, const struct ft_matrix *m, bool messages)
{
    struct ft_column columns[GRID_LABELS_MAX + 2] = {{.title = "FROM \\ TO"}};
    struct ft_grid *grid;
    int rc;

    for (size_t i = 0; i < m->label_count; i++)
        columns[i + 1] = (struct ft_column){.title = m->labels[i], .right = true};
    columns[m->label_count + 1] = (struct ft_column){.title = "ALL", .right = true};
    grid = ft_grid_new(columns, m->label_count + 2);
    for (size_t i = 0; i < m->label_count; i++) {
        double sum = 0;

        ft_grid_cell(grid, FT_PLAIN, "%s", m->labels[i]);
        for (size_t k = 0; k < m->label_count; k++) {
            const struct ft_matrix_cell *c = ft_matrix_cell(m, i, k);
            double value = messages ? c->messages : c->bytes;

            value_cell(grid, value, messages);
            sum += value;
        }
        value_cell(grid, sum, messages);
    }
    rc = ft_grid_print(grid, screen, 2);
    ft_grid_free(grid);
    return rc;
}

static void show_head(const struct ft_screen *screen, const struct ft_value *comm)
{
    const char *id = ft_value_str(comm, "comm_id"), *name = ft_value_str(comm, "name");
    size_t members = ft_value_count(ft_value_get(comm, "members"));
    uint64_t ranks = members;

    ft_value_uint(comm, "ranks", &ranks);
    fputs("communicator ", screen->out);
    ft_screen_text(screen, FT_BOLD, id ? id : "?");
    if (name) {
        fputs(" (", screen->out);
        ft_screen_text(screen, FT_PLAIN, name);
        fputc(')', screen->out);
    }
    fprintf(screen->out, ", %llu ranks", (unsigned long long)ranks);
    if (members < ranks)
        fprintf(screen->out, ", %zu of them known", members);
    fputc('\n', screen->out);
}

/* What is not in the sums is shown beside them. */
static void show_dropped(const struct ft_screen *screen, const struct ft_value *comm)
{
    const struct ft_value *members = ft_value_get(comm, "members");
    uint64_t transfers = 0, ranks = 0, n;
    char text[FT_UNIT_BYTES];
    double bytes = 0;

    for (size_t i = 0; i < ft_value_count(members); i++) {
        if (!ft_value_uint(ft_value_at(members, i), "transfers_dropped", &n))
            continue;
        transfers += n;
        bytes += real(ft_value_at(members, i), "bytes_dropped");
        ranks++;
    }
    if (transfers == 0)
        return;
    fprintf(screen->out, "  not in it: %llu transfers of %llu rank%s, %s sent and received; ",
            (unsigned long long)transfers, (unsigned long long)ranks, ranks == 1 ? "" : "s",
            ft_unit_size(text, bytes));
    fputs("the lists of their agents were full\n", screen->out);
}

static int show_comm(const struct ft_screen *screen, const struct ft_value *comm,
                     const struct ft_args *args)
{
    struct ft_matrix *m;
    int rc = ft_matrix_new(comm, args->by, &m);

    if (rc)
        return rc;
    show_head(screen, comm);
    show_dropped(screen, comm);
    if (m->label_count <= GRID_LABELS_MAX)
        rc = show_square(screen, m, args->messages);
    if (rc == 0 && ft_value_count(ft_value_get(comm, "edges")) > 0) {
        fputc('\n', screen->out);
        rc = show_edges(screen, comm, args->messages);
    }
    ft_matrix_free(m);
    return rc;
}

static int write_csv(FILE *out, const struct ft_value *records, const struct ft_args *args)
{
    fputs("communicator,from,to,bytes,messages,formula_bytes\n", out);
    for (size_t i = 0; i < ft_value_count(records); i++) {
        const char *id = ft_value_str(ft_value_at(records, i), "comm_id");
        struct ft_matrix *m;
        int rc = ft_matrix_new(ft_value_at(records, i), args->by, &m);

        if (rc)
            return rc;
        ft_matrix_csv(out, m, id ? id : "");
        ft_matrix_free(m);
    }
    return 0;
}

/* One picture shows one communicator. */
static int write_svg(const struct ft_value *records, const struct ft_args *args)
{
    bool standard = strcmp(args->svg, "-") == 0;
    struct ft_matrix *m = NULL;
    const char *id;
    char title[200];
    FILE *out;
    int rc;

    if (ft_value_count(records) == 0)
        return -ENODATA;
    if (ft_value_count(records) > 1)
        return -EMLINK;
    rc = ft_matrix_new(ft_value_at(records, 0), args->by, &m);
    if (rc)
        return rc;
    out = standard ? stdout : fopen(args->svg, "we");
    if (!out) {
        rc = -errno;
        goto out;
    }
    id = ft_value_str(ft_value_at(records, 0), "comm_id");
    snprintf(title, sizeof(title), "communicator %s, %s%s%s", id ? id : "?",
             args->messages ? "messages" : "bytes sent", args->op ? " by " : "",
             args->op ? args->op : "");
    ft_matrix_svg(out, m, title, args->messages);
    if (!standard && fclose(out))
        rc = -errno;
out:
    ft_matrix_free(m);
    return rc;
}

int ft_show_matrix(const struct ft_screen *screen, const struct ft_value *root,
                   const struct ft_args *args)
{
    const struct ft_value *records = ft_value_get(root, "records");
    int rc = 0;

    if (args->svg)
        return write_svg(records, args);
    if (args->csv)
        return write_csv(screen->out, records, args);
    if (ft_value_count(records) == 0 && screen->chosen)
        fputs("no communicator that was asked for is known\n", screen->out);
    else if (ft_value_count(records) == 0)
        fputs("no communicator is known: does a job run with the NCCL profiler plugin, and does "
              "its agent have nccl.socket set?\n",
              screen->out);
    for (size_t i = 0; rc == 0 && i < ft_value_count(records); i++) {
        if (i)
            fputc('\n', screen->out);
        rc = show_comm(screen, ft_value_at(records, i), args);
    }
    return rc;
}
