// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/diagnose.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "cli/output/grid.h"
#include "cli/output/units.h"
#include "lib/diagnosis/csv.h"
#include "lib/diagnosis/diagnosis.h"
#include "lib/diagnosis/flight.h"
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

/* What a file or folder of operations is read into. */
struct input {
    struct ft_operations *ops;
    struct ft_flight *flight;
    size_t dumps;
    uint64_t now_ns; /* when the newest dump was written; 0: the operations themselves say */
    FILE *err;
};

static int complain(const struct input *in, const char *file, const char *what)
{
    fprintf(in->err, "fabrictrace diagnose: %s: %s\n", file, what);
    return EX_DATAERR;
}

static int fail(const struct input *in, const char *file, int rc)
{
    complain(in, file, strerror(-rc));
    return rc == -E2BIG ? EX_DATAERR : EX_OSERR;
}

/* nccl_trace_rank_12, and the like: the number at the end. */
static bool rank_of(const char *file, uint32_t *rank)
{
    size_t len = strlen(file), at;

    if (len > 5 && strcmp(file + len - 5, ".json") == 0)
        len -= 5;
    for (at = len; at > 0 && isdigit((unsigned char)file[at - 1]);)
        at--;
    if (at == len || len - at > 7)
        return false;
    *rank = (uint32_t)strtoul(file + at, NULL, 10);
    return true;
}

static int load_dump(struct input *in, const char *file, char *text, size_t len, time_t written)
{
    char error[FT_FLIGHT_ERROR_BYTES];
    uint32_t rank;
    int rc;

    if (!rank_of(file, &rank))
        return complain(in, file, "the name of a dump ends in the rank of its process");
    rc = ft_flight_add(in->flight, rank, text, len, error);
    if (rc == -EINVAL)
        return complain(in, file, error);
    if (rc)
        return fail(in, file, rc);
    in->dumps++;
    if ((uint64_t)written * 1000000000 > in->now_ns)
        in->now_ns = (uint64_t)written * 1000000000;
    return EX_OK;
}

static int load_table(struct input *in, const char *file, const char *text, size_t len)
{
    char error[FT_CSV_ERROR_BYTES];
    int rc = ft_csv_read(in->ops, text, len, error);

    if (rc == -EINVAL) {
        fprintf(in->err, "fabrictrace diagnose: %s:%s\n", file, error);
        return EX_DATAERR;
    }
    return rc ? fail(in, file, rc) : EX_OK;
}

/* A table, or a dump, as the file begins. */
static int load_file(struct input *in, const char *file)
{
    bool standard = strcmp(file, "-") == 0;
    FILE *from = standard ? stdin : fopen(file, "r");
    struct stat status = {.st_mtime = 0};
    char *text = NULL;
    size_t len = 0;
    int rc = from ? read_all(from, &text, &len) : -errno;

    if (from)
        fstat(fileno(from), &status);
    if (from && !standard)
        fclose(from);
    if (rc < 0) {
        fail(in, file, rc);
        return rc == -ENOMEM ? EX_OSERR : EX_NOINPUT;
    }
    rc = ft_flight_is(text, len) ? load_dump(in, file, text, len, status.st_mtime)
                                 : load_table(in, standard ? "standard input" : file, text, len);
    free(text);
    return rc;
}

static int is_seen(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* A folder of dumps. */
static int load_folder(struct input *in, const char *folder)
{
    struct dirent **list = NULL;
    int n = scandir(folder, &list, is_seen, alphasort), rc = EX_OK;
    char file[PATH_MAX];

    for (int i = 0; i < n; i++) {
        if (rc == EX_OK &&
            snprintf(file, sizeof(file), "%s/%s", folder, list[i]->d_name) >= (int)sizeof(file))
            rc = fail(in, folder, -ENAMETOOLONG);
        if (rc == EX_OK)
            rc = load_file(in, file);
        free(list[i]);
    }
    free(list);
    if (n < 0) {
        fail(in, folder, -errno);
        return EX_NOINPUT;
    }
    return n == 0 ? complain(in, folder, "nothing is in it") : rc;
}

static int load(struct input *in, const char *path)
{
    struct stat status;
    uint64_t left_out = 0;
    int rc;

    rc = stat(path, &status) == 0 && S_ISDIR(status.st_mode) ? load_folder(in, path)
                                                             : load_file(in, path);
    if (rc != EX_OK)
        return rc;
    rc = ft_flight_finish(in->flight, in->ops, &left_out);
    if (rc == 0)
        rc = ft_operations_finish(in->ops);
    if (rc == -EINVAL)
        return complain(in, path, "a rank is in a group twice");
    if (rc < 0)
        return fail(in, path, rc);
    if (left_out)
        fprintf(in->err,
                "fabrictrace diagnose: %s: %llu entries are left out: they are of no operation "
                "by themselves\n",
                path, (unsigned long long)left_out);
    return EX_OK;
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

/* A watchdog's times say who stands, and not who is slow. */
static void drop_slow(struct ft_diagnoses *found)
{
    size_t kept = 0;

    for (size_t i = 0; i < found->count; i++) {
        if (found->items[i].slowdown == 0)
            found->items[kept++] = found->items[i];
        else
            free(found->items[i].waiting);
    }
    found->count = kept;
}

static int show(FILE *out, bool json, const struct input *in, struct ft_diagnoses *found)
{
    const struct ft_operations *ops = in->ops;
    uint64_t now_ns = ft_operations_newest_ns(ops);
    struct ft_diagnosis_report *r = calloc(1, sizeof(*r));
    struct ft_writer w;
    int rc = -ENOMEM;

    if (in->now_ns > now_ns)
        now_ns = in->now_ns;
    if (r)
        rc = ft_diagnose(ops, now_ns, now_ns == ft_operations_newest_ns(ops), found);
    if (rc == 0 && in->dumps)
        drop_slow(found);
    ft_writer_init(&w, LINE_BYTES_MAX);
    if (rc == 0 && !json)
        rc = show_table(out, ops, found, now_ns, r);
    for (size_t i = 0; i < found->count && rc == 0 && json; i++) {
        ft_report_fill(r, ops, &found->items[i], now_ns);
        rc = show_json(out, &w, r);
    }
    ft_writer_free(&w);
    free(r);
    /* Of dumps what is slow is not shown, which is what is left out first. */
    if (rc == 0 && found->left_out && (!in->dumps || found->count == FT_DIAGNOSES_MAX))
        fprintf(in->err, "fabrictrace diagnose: %zu more were found than there is room for\n",
                found->left_out);
    return rc;
}

int ft_diagnose_show(FILE *out, FILE *err, bool json, const char *path)
{
    struct input in = {.ops = ft_operations_new(), .flight = ft_flight_new(), .err = err};
    struct ft_diagnoses found = {0};
    int rc = EX_OSERR;

    if (!in.ops || !in.flight)
        fprintf(err, "fabrictrace diagnose: no memory\n");
    else
        rc = load(&in, path);
    if (rc == EX_OK) {
        rc = show(out, json, &in, &found);
        if (rc < 0) {
            fprintf(err, "fabrictrace diagnose: %s\n", strerror(-rc));
            rc = EX_OSERR;
        }
    }
    ft_diagnoses_free(&found);
    ft_flight_free(in.flight);
    ft_operations_free(in.ops);
    return rc;
}
