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
#include "proto/json.h"
#include "proto/record.h"

#define FILE_BYTES_MAX (8ULL << 30)
#define READ_BYTES     (1U << 20)
#define WAITING_MAX    4096
#define MESSAGE_BYTES  512
#define LINE_BYTES_MAX (1U << 20)

/* A diagnosis as a message, and what the message points to. */
struct report {
    Fabrictrace__Diagnosis message;
    char text[MESSAGE_BYTES];
    uint32_t waiting[WAITING_MAX], chain[FT_DIAGNOSIS_CHAIN];
    char *reasons[FT_DIAGNOSIS_TEXTS], *doubts[FT_DIAGNOSIS_TEXTS];
};

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

static Fabrictrace__Syndrome syndrome_of(enum ft_syndrome syndrome)
{
    static const Fabrictrace__Syndrome syndromes[] = {
        [FT_SYNDROME_NONE] = FABRICTRACE__SYNDROME__SYNDROME_UNKNOWN,
        [FT_SYNDROME_NONCOMM_HANG] = FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_HANG,
        [FT_SYNDROME_COMM_HANG] = FABRICTRACE__SYNDROME__SYNDROME_COMM_HANG,
        [FT_SYNDROME_MISMATCH] = FABRICTRACE__SYNDROME__SYNDROME_MISMATCH,
        [FT_SYNDROME_NONCOMM_SLOW] = FABRICTRACE__SYNDROME__SYNDROME_NONCOMM_SLOW,
        [FT_SYNDROME_COMM_SLOW] = FABRICTRACE__SYNDROME__SYNDROME_COMM_SLOW,
        [FT_SYNDROME_MIXED] = FABRICTRACE__SYNDROME__SYNDROME_MIXED,
    };

    return syndromes[syndrome];
}

static Fabrictrace__Side side_of(enum ft_side side)
{
    static const Fabrictrace__Side sides[] = {
        [FT_SIDE_NONE] = FABRICTRACE__SIDE__SIDE_UNKNOWN,
        [FT_SIDE_SENDER] = FABRICTRACE__SIDE__SIDE_SENDER,
        [FT_SIDE_RECEIVER] = FABRICTRACE__SIDE__SIDE_RECEIVER,
        [FT_SIDE_PAIR] = FABRICTRACE__SIDE__SIDE_PAIR,
        [FT_SIDE_ANY] = FABRICTRACE__SIDE__SIDE_ANY,
    };

    return sides[side];
}

static void write_message(struct report *r, const struct ft_operations *ops,
                          const struct ft_diagnosis *d)
{
    static const char *const what[] = {
        [FT_SYNDROME_NONE] = "",
        [FT_SYNDROME_NONCOMM_HANG] = "hangs outside of communication",
        [FT_SYNDROME_COMM_HANG] = "hangs in communication",
        [FT_SYNDROME_MISMATCH] = "calls another operation than its peers",
        [FT_SYNDROME_NONCOMM_SLOW] = "is slow outside of communication",
        [FT_SYNDROME_COMM_SLOW] = "is slow in communication",
        [FT_SYNDROME_MIXED] = "is slow in its own work and in communication",
    };
    const Fabrictrace__Diagnosis *m = &r->message;
    int n = 0;

    if (m->has_rank)
        n = snprintf(r->text, sizeof(r->text), "rank %u on %s", m->rank, m->host ? m->host : "?");
    else
        n = snprintf(r->text, sizeof(r->text), "communicator %s",
                     d->comm == FT_OPERATIONS_NONE ? "?" : ft_operations_comm(ops, d->comm));
    if (m->has_peer && n < (int)sizeof(r->text))
        n += snprintf(r->text + n, sizeof(r->text) - (size_t)n, " with rank %u", m->peer);
    if (n < (int)sizeof(r->text))
        n += snprintf(r->text + n, sizeof(r->text) - (size_t)n, " %s", what[d->syndrome]);
    if (d->reasons.count && n < (int)sizeof(r->text))
        snprintf(r->text + n, sizeof(r->text) - (size_t)n, ": %s", d->reasons.text[0]);
    r->message.message = r->text;
}

static void write_ranks(struct report *r, const struct ft_actor *processes,
                        const struct ft_diagnosis *d)
{
    Fabrictrace__Diagnosis *m = &r->message;

    m->has_waiting = d->waiting_count > 0;
    m->waiting = (uint32_t)d->waiting_count;
    m->ranks_waiting = r->waiting;
    for (size_t i = 0; i < d->waiting_count && i < WAITING_MAX; i++)
        r->waiting[m->n_ranks_waiting++] = processes[d->waiting[i]].rank;
    m->wait_chain = r->chain;
    for (size_t i = 0; i < d->chain_count; i++)
        r->chain[m->n_wait_chain++] = processes[d->chain[i]].rank;
}

/* What a record says of the culprit and its operation. */
static void write_where(struct report *r, const struct ft_operations *ops,
                        const struct ft_actor *processes, const struct ft_diagnosis *d)
{
    Fabrictrace__Diagnosis *m = &r->message;

    if (d->comm != FT_OPERATIONS_NONE)
        m->communicator = (char *)ft_operations_comm(ops, d->comm);
    if (d->function != FT_OPERATIONS_NONE)
        m->operation = (char *)ft_operations_function(ops, d->function);
    m->has_sequence = d->sequence != UINT64_MAX;
    m->sequence = d->sequence;
    if (d->process != FT_OPERATIONS_NONE) {
        m->has_rank = 1;
        m->rank = processes[d->process].rank;
        m->host = (char *)ft_operations_host(ops, processes[d->process].host);
    }
    if (d->peer != FT_OPERATIONS_NONE) {
        m->has_peer = 1;
        m->peer = processes[d->peer].rank;
        m->peer_host = (char *)ft_operations_host(ops, processes[d->peer].host);
    }
    m->has_side = d->side != FT_SIDE_NONE;
    m->side = side_of(d->side);
}

/* The message borrows from ops and d. */
static void fill(struct report *r, const struct ft_operations *ops, struct ft_diagnosis *d,
                 uint64_t now_ns)
{
    Fabrictrace__Diagnosis *m = &r->message;
    const struct ft_actor *processes;
    size_t count;

    memset(r, 0, sizeof(*r));
    fabrictrace__diagnosis__init(m);
    processes = ft_operations_processes(ops, &count);
    m->has_time_ms = m->has_since_ms = m->has_syndrome = m->has_severity = m->has_confidence = 1;
    m->time_ms = now_ns / 1000000;
    m->since_ms = d->since_ns / 1000000;
    m->syndrome = syndrome_of(d->syndrome);
    m->severity = d->slowdown == 0 ? FABRICTRACE__SEVERITY__SEVERITY_CRITICAL
                                   : FABRICTRACE__SEVERITY__SEVERITY_WARNING;
    m->confidence = d->confidence;
    m->has_others = d->others > 0;
    m->others = d->others;
    m->has_slowdown = d->slowdown > 0;
    m->slowdown = d->slowdown;
    m->advice = (char *)ft_syndrome_advice(d);
    write_where(r, ops, processes, d);
    write_ranks(r, processes, d);
    for (size_t i = 0; i < d->reasons.count; i++)
        r->reasons[i] = d->reasons.text[i];
    for (size_t i = 0; i < d->doubts.count; i++)
        r->doubts[i] = d->doubts.text[i];
    m->evidence_for = r->reasons;
    m->n_evidence_for = d->reasons.count;
    m->evidence_against = r->doubts;
    m->n_evidence_against = d->doubts.count;
    write_message(r, ops, d);
}

static int show_json(FILE *out, struct ft_writer *w, struct report *r)
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

static void show_reasons(const struct ft_screen *screen, const struct report *r)
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
                      uint64_t now_ns, struct report *r)
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
        fill(r, ops, &found->items[i], now_ns);
        add_row(grid, &found->items[i], &r->message);
    }
    if (found->count == 0) {
        fputs("nothing is wrong by these operations\n", out);
        ft_grid_free(grid);
        return 0;
    }
    rc = ft_grid_print(grid, &screen, 0);
    ft_grid_free(grid);
    for (size_t i = 0; i < found->count && rc == 0; i++) {
        fill(r, ops, &found->items[i], now_ns);
        show_reasons(&screen, r);
    }
    return rc;
}

static int show(FILE *out, bool json, const struct ft_operations *ops, struct ft_diagnoses *found)
{
    uint64_t now_ns = ft_operations_newest_ns(ops);
    struct report *r = calloc(1, sizeof(*r));
    struct ft_writer w;
    int rc = r ? ft_diagnose(ops, now_ns, found) : -ENOMEM;

    ft_writer_init(&w, LINE_BYTES_MAX);
    if (rc == 0 && !json)
        rc = show_table(out, ops, found, now_ns, r);
    for (size_t i = 0; i < found->count && rc == 0 && json; i++) {
        fill(r, ops, &found->items[i], now_ns);
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
