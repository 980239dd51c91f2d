// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/diagnose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/grid.h"
#include "cli/units.h"
#include "lib/diagnosis/csv.h"
#include "lib/diagnosis/diagnosis.h"
#include "lib/diagnosis/report.h"
#include "proto/json.h"
#include "proto/record.h"

#define FILE_BYTES_MAX (8ULL << 30)
#define READ_BYTES     (1U << 20)
#define LINE_BYTES_MAX (1U << 20)

static int read_all(FILE *in, char **text, size_t *len)
{
    char *bytes = NULL, *grown;
    size_t size = 0, used = 0, n;

    do {
        if (used > FILE_BYTES_MAX ||
            !(grown = realloc(bytes, size = used + used / 2 + READ_BYTES))) {
            free(bytes);
            return used > FILE_BYTES_MAX ? -EFBIG : -ENOMEM;
        }
        bytes = grown;
        n = fread(bytes + used, 1, size - used, in);
        used += n;
    } while (n > 0);
    if (ferror(in)) {
        n = (size_t)errno;
        free(bytes);
        return -(int)n;
    }
    *text = bytes;
    *len = used;
    return 0;
}

static int load(struct ft_operations *ops, const char *file, FILE *err)
{
    bool standard = strcmp(file, "-") == 0;
    FILE *in = standard ? stdin : fopen(file, "r");
    char *text = NULL, error[FT_CSV_ERROR_BYTES];
    size_t len = 0;
    int rc = in ? read_all(in, &text, &len) : -errno;

    if (in && !standard)
        fclose(in);
    if (rc < 0) {
        fprintf(err, "fabrictrace diagnose: %s: %s\n", file, strerror(-rc));
        return rc == -ENOMEM ? EX_OSERR : EX_NOINPUT;
    }
    rc = ft_csv_read(ops, text, len, error);
    free(text);
    if (rc == -EINVAL) {
        fprintf(err, "fabrictrace diagnose: %s:%s\n", standard ? "standard input" : file, error);
        return EX_DATAERR;
    }
    if (rc == 0)
        rc = ft_operations_finish(ops);
    if (rc < 0) {
        fprintf(err, "fabrictrace diagnose: %s: %s\n", file, strerror(-rc));
        return EX_OSERR;
    }
    return 0;
}

static int show_json(FILE *out, struct ft_writer *w, struct ft_diagnosis_report *r)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    record.kind_case = FABRICTRACE__RECORD__KIND_DIAGNOSIS;
    record.diagnosis = &r->message;
    ft_writer_reset(w);
    if (ft_record_to_json(&record, w) < 0)
        return -ENOMEM;
    ft_write_u8(w, '\n');
    return ft_writer_ok(w) && fwrite(w->bytes, 1, w->len, out) == w->len ? 0 : -EIO;
}

static void add_row(struct ft_grid *grid, const struct ft_diagnosis *d,
                    const Fabrictrace__Diagnosis *m)
{
    ft_grid_cell(grid, d->slowdown == 0 ? FT_RED : FT_YELLOW, "%s", ft_syndrome_name(d->syndrome));
    if (m->has_rank)
        ft_grid_cell(grid, FT_BOLD, "%u", m->rank);
    else
        ft_grid_skip(grid);
    ft_grid_cell(grid, FT_PLAIN, "%s", m->host ? m->host : "");
    if (m->has_peer)
        ft_grid_cell(grid, FT_PLAIN, "%u", m->peer);
    else
        ft_grid_skip(grid);
    ft_grid_cell(grid, FT_PLAIN, "%s", m->communicator ? m->communicator : "");
    ft_grid_cell(grid, FT_PLAIN, "%s", m->operation ? m->operation : "");
    if (m->has_slowdown)
        ft_grid_cell(grid, FT_PLAIN, "%.2f", m->slowdown);
    else
        ft_grid_skip(grid);
    if (m->has_waiting)
        ft_grid_cell(grid, FT_PLAIN, "%u", m->waiting);
    else
        ft_grid_skip(grid);
}

static void show_reasons(const struct ft_screen *screen, const struct ft_diagnosis_report *r)
{
    fputc('\n', screen->out);
    ft_screen_text(screen, FT_BOLD, r->message.message);
    for (size_t i = 1; i < r->message.n_evidence_for; i++) {
        fputs("\n  + ", screen->out);
        ft_screen_text(screen, FT_PLAIN, r->reasons[i]);
    }
    for (size_t i = 0; i < r->message.n_evidence_against; i++) {
        fputs("\n  - ", screen->out);
        ft_screen_text(screen, FT_PLAIN, r->doubts[i]);
    }
    fputs("\n  > ", screen->out);
    ft_screen_text(screen, FT_PLAIN, r->message.advice);
    fputc('\n', screen->out);
}

static int show_table(FILE *out, const struct ft_operations *ops, struct ft_diagnoses *found,
                      uint64_t now_ns, struct ft_diagnosis_report *r)
{
    static const struct ft_column columns[] = {
        {.title = "SYNDROME"},
        {.title = "RANK", .right = true},
        {.title = "HOST", .give_up = 3},
        {.title = "PEER", .right = true},
        {.title = "COMMUNICATOR", .elastic = true},
        {.title = "OPERATION", .give_up = 4},
        {.title = "SLOWER", .right = true, .give_up = 1},
        {.title = "WAITING", .right = true, .give_up = 2},
    };
    struct ft_grid *grid = ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
    struct ft_screen screen;
    int rc;

    ft_screen_init(&screen, out);
    for (size_t i = 0; i < found->count; i++) {
        ft_report_fill(r, ops, &found->items[i], now_ns);
        add_row(grid, &found->items[i], &r->message);
    }
    if (found->count == 0) {
        fputs("these operations show no fault\n", out);
        ft_grid_free(grid);
        return 0;
    }
    rc = ft_grid_print(grid, &screen, 0);
    ft_grid_free(grid);
    for (size_t i = 0; i < found->count && rc == 0; i++) {
        ft_report_fill(r, ops, &found->items[i], now_ns);
        show_reasons(&screen, r);
    }
    return rc;
}

static int show(FILE *out, bool json, const struct ft_operations *ops, struct ft_diagnoses *found)
{
    uint64_t now_ns = ft_operations_newest_ns(ops);
    struct ft_diagnosis_report *r = calloc(1, sizeof(*r));
    struct ft_writer w;
    int rc = r ? ft_diagnose(ops, now_ns, found) : -ENOMEM;

    ft_writer_init(&w, LINE_BYTES_MAX);
    if (rc == 0 && !json)
        rc = show_table(out, ops, found, now_ns, r);
    for (size_t i = 0; i < found->count && rc == 0 && json; i++) {
        ft_report_fill(r, ops, &found->items[i], now_ns);
        rc = show_json(out, &w, r);
    }
    ft_writer_free(&w);
    free(r);
    return rc;
}

int ft_diagnose_show(FILE *out, FILE *err, bool json, const char *file)
{
    struct ft_operations *ops = ft_operations_new();
    struct ft_diagnoses found = {0};
    int rc = ops ? load(ops, file, err) : EX_OSERR;

    if (!ops) {
        fprintf(err, "fabrictrace diagnose: no memory\n");
    } else if (rc == 0) {
        rc = show(out, json, ops, &found);
        if (rc < 0) {
            fprintf(err, "fabrictrace diagnose: %s\n", strerror(-rc));
            rc = EX_OSERR;
        }
    }
    ft_diagnoses_free(&found);
    ft_operations_free(ops);
    return rc;
}
