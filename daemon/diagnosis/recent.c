// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/recent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/diagnosis/numbering.h"
#include "daemon/diagnosis/recent_impl.h"

#define ROWS_FIRST 16
#define ROWS_LAST  1024
#define NS_PER_MS  1000000
#define NS_PER_US  1000
/* Without transfers for so long: it has none. */
#define QUIET_NS UINT64_C(10000000000)
/* Of operations within a host alone so many are kept: there may be hundreds in a step. */
#define LAUNCHES_LAST 256
/* 90 years: sums and differences of three times stay within 63 bits. */
#define MS_MAX (90LL * 366 * 86400 * 1000)
#define NS_MAX ((uint64_t)MS_MAX * NS_PER_MS)
#define US_MAX (86400ULL * 1000 * 1000 * 366)

struct ft_recent *ft_recent_new(const struct ft_recent_config *config)
{
    struct ft_recent *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->rows_max = config->rows_max;
    ft_functions_init(&r->functions);
    r->ranks = ft_table_new(sizeof(struct ft_recent_rank_entry), sizeof(struct ft_recent_rank_key),
                            config->ranks_max, config->seed);
    r->processes =
        ft_table_new(sizeof(struct ft_recent_process_entry), sizeof(struct ft_recent_process_key),
                     config->ranks_max, config->seed);
    r->jobs = ft_table_new(sizeof(struct ft_recent_job_entry), sizeof(struct ft_recent_job_key),
                           config->ranks_max, config->seed);
    r->comms = ft_table_new(sizeof(struct ft_recent_comm_entry), sizeof(struct ft_recent_comm_key),
                            config->ranks_max, config->seed);
    r->links = ft_table_new(sizeof(struct ft_recent_link_entry), sizeof(struct ft_recent_link_key),
                            config->ranks_max, config->seed);
    if (!r->ranks || !r->processes || !r->jobs || !r->comms || !r->links) {
        ft_recent_free(r);
        return NULL;
    }
    return r;
}

void ft_recent_free(struct ft_recent *r)
{
    struct ft_recent_rank_entry *e;
    uint32_t index = 0;

    if (!r)
        return;
    while (r->ranks && (e = ft_table_next(r->ranks, &index))) {
        free(e->r.rows);
        ft_delays_free(&e->r.delays);
    }
    ft_table_free(r->ranks);
    ft_table_free(r->processes);
    ft_table_free(r->jobs);
    ft_table_free(r->comms);
    ft_table_free(r->links);
    free(r);
}

/* An agent of another PID namespace than a job's does not know its processes: each rank is one
 * then. */
static struct ft_recent_process *process_of(struct ft_recent *r,
                                            const struct ft_recent_rank_key *rank, const char *host,
                                            uint32_t pid)
{
    struct ft_recent_process_key key;
    struct ft_recent_process_entry *e;
    bool fresh;

    memset(&key, 0, sizeof(key));
    snprintf(key.host, sizeof(key.host), "%s", host);
    key.pid = pid;
    if (pid == 0)
        key.rank = *rank;
    e = ft_table_insert(r->processes, &key, &fresh);
    if (!e)
        return NULL;
    if (fresh) {
        memcpy(e->p.host, key.host, sizeof(e->p.host));
        e->p.pid = pid;
    }
    return &e->p;
}

static void leave_process(struct ft_recent *r, struct ft_recent_process *p)
{
    if (p && --p->ranks == 0)
        ft_table_remove(r->processes,
                        (char *)(void *)p - offsetof(struct ft_recent_process_entry, p));
}

static struct ft_recent_rank_key rank_key(const char *comm_id, uint32_t rank)
{
    struct ft_recent_rank_key key;

    memset(&key, 0, sizeof(key));
    snprintf(key.comm_id, sizeof(key.comm_id), "%s", comm_id);
    key.rank = rank;
    return key;
}

static void forget_rows(struct ft_recent *r, struct ft_recent_rank_entry *e)
{
    r->rows -= e->r.size + (size_t)FT_DELAYS_CELL_ROWS * e->r.delays.count;
    ft_delays_free(&e->r.delays);
    e->job->rows -= e->r.count;
    for (size_t i = 0; i < e->r.count; i++)
        r->functions.uses[ft_recent_row(&e->r, i)->function]--;
    free(e->r.rows);
    e->r.rows = NULL;
    e->r.size = e->r.count = e->r.first = 0;
    e->r.wrapped = false;
    ft_numbering_forget(&e->r);
}

/* Whoever reports a rank that another process is has to wait until that is over. */
static bool is_held(const struct ft_recent_rank *rank, int64_t now_ms)
{
    return !ft_recent_is_gone(rank) && now_ms - rank->heard_ms <= FT_RECENT_SILENT_MS;
}

static bool is_process(const struct ft_recent_process *p, const struct ft_recent_claim *claim)
{
    return p->pid == claim->pid && strncmp(p->host, claim->host, sizeof(p->host) - 1) == 0;
}

static int make_rank(struct ft_recent *r, const struct ft_recent_claim *claim,
                     struct ft_recent_rank_entry **out)
{
    const struct ft_recent_rank_key key = rank_key(claim->comm_id, claim->rank);
    struct ft_recent_rank_entry *e;
    bool fresh;
    int rc;

    e = ft_table_insert(r->ranks, &key, &fresh);
    if (!e)
        return -ENOSPC;
    rc = ft_recent_join(r, e, claim);
    if (rc) {
        ft_table_remove(r->ranks, e);
        return rc;
    }
    memcpy(e->r.comm_id, key.comm_id, sizeof(key.comm_id));
    e->r.rank = claim->rank;
    e->r.process = process_of(r, &e->key, claim->host, claim->pid);
    if (!e->r.process) {
        ft_recent_forget(r, &e->r);
        return -ENOSPC;
    }
    e->r.process->ranks++;
    *out = e;
    return 0;
}

/* The entry of a rank that is this process, or is it from now on. */
static int rank_of(struct ft_recent *r, const struct ft_recent_claim *claim, int64_t now_ms,
                   struct ft_recent_rank_entry **out)
{
    struct ft_recent_rank *rank;
    int rc = 0;

    if (!claim->comm_id || !*claim->comm_id || strlen(claim->comm_id) >= FT_RECENT_ID ||
        !claim->host || !*claim->host)
        return -EINVAL;
    rank = ft_recent_find(r, claim->comm_id, claim->rank);
    if ((claim->ranks && claim->rank >= claim->ranks) ||
        (rank && (is_process(rank->process, claim) ? !ft_recent_agree(rank->ranks, claim->ranks)
                                                   : is_held(rank, now_ms)))) {
        r->contested++;
        return -EEXIST;
    }
    /* What its forerunner did is of another run. */
    if (rank && !is_process(rank->process, claim)) {
        ft_recent_forget(r, rank);
        rank = NULL;
    }
    if (rank)
        *out = ft_recent_entry(rank);
    else
        rc = make_rank(r, claim, out);
    if (rc)
        return rc;
    (*out)->r.heard_ms = (*out)->r.process->heard_ms = now_ms;
    (*out)->r.ranks = claim->ranks ? claim->ranks : (*out)->r.ranks;
    return 0;
}

/* Doubles the ring, its rows from the oldest on; false where it stays as it is. */
static bool grow(struct ft_recent *r, struct ft_recent_rank *rank, bool launched)
{
    size_t size = rank->size ? 2 * rank->size : ROWS_FIRST;
    struct ft_recent_row *rows;

    if (size > (launched ? LAUNCHES_LAST : ROWS_LAST) || r->rows - rank->size + size > r->rows_max)
        return false;
    rows = malloc(size * sizeof(*rows));
    if (!rows)
        return false;
    for (size_t i = 0; i < rank->count; i++)
        rows[i] = *ft_recent_row(rank, i);
    free(rank->rows);
    rank->rows = rows;
    rank->first = 0;
    r->rows += size - rank->size;
    rank->size = size;
    return true;
}

static void add_row(struct ft_recent *r, struct ft_recent_rank_entry *e,
                    const struct ft_recent_row *row)
{
    struct ft_recent_rank *rank = &e->r;

    if (rank->count == rank->size && !grow(r, rank, row->launched)) {
        rank->wrapped = true;
        if (rank->size == 0)
            return;
        r->functions.uses[rank->rows[rank->first].function]--;
        rank->rows[rank->first] = *row;
        rank->first = (rank->first + 1) % rank->size;
    } else {
        rank->rows[(rank->first + rank->count++) % rank->size] = *row;
        e->job->rows++;
    }
    r->functions.uses[row->function]++;
    ft_numbering_order(rank);
    e->job->fresh++;
}

/* A moment by the clock of its process: Unix time as its first record had it, and from there on
 * what the monotonic clock counted. Of what has no time by that, less what the wall clock was set
 * by since then, as far as that is known. */
static int64_t moment_of(struct ft_recent_process *p, uint64_t ms, bool has_ns, uint64_t ns)
{
    int64_t wall_ns = (int64_t)ms * NS_PER_MS;

    if (!has_ns)
        return wall_ns - p->set_ns;
    if (!p->offset_known)
        p->offset_ns = wall_ns - (int64_t)ns;
    p->offset_known = true;
    p->set_ns = wall_ns - (int64_t)ns - p->offset_ns;
    return (int64_t)ns + p->offset_ns;
}

static bool times_of(struct ft_recent_process *p, const Fabrictrace__Collective *c,
                     struct ft_recent_row *row)
{
    int64_t start_ns;

    if (!c->has_start_ms || !c->has_duration_us || c->start_ms > MS_MAX ||
        c->duration_us > US_MAX || (c->has_started_ns && c->started_ns > NS_MAX))
        return false;
    start_ns = moment_of(p, c->start_ms, c->has_started_ns, c->started_ns);
    if (start_ns <= 0)
        return false;
    row->start_ns = (uint64_t)start_ns;
    row->end_ns = row->start_ns + c->duration_us * NS_PER_US;
    return true;
}

static void take_delays(struct ft_recent *r, struct ft_recent_rank_entry *e,
                        const Fabrictrace__Collective *c, int64_t now_ms)
{
    size_t room = r->rows < r->rows_max ? (r->rows_max - r->rows) / FT_DELAYS_CELL_ROWS : 0;
    uint32_t added = ft_delays_take(&e->r.delays, c, now_ms, room, &r->delays_refused);

    r->rows += (size_t)FT_DELAYS_CELL_ROWS * added;
    /* A sum of operations adds no row that would let a job be looked at. */
    e->job->fresh += c->operations > 1 && e->r.delays.count > 0;
}

/* Whether no rank leaves it before all have entered. */
static bool waits_for_all(const Fabrictrace__Collective *c)
{
    static const char *const names[] = {"AllReduce", "AllGather", "ReduceScatter", "AlltoAll"};

    for (size_t i = 0; c->has_sequence && i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(c->op, names[i]) == 0)
            return true;
    return false;
}

/* What is in progress began behind what has a lower number, though its time be of milliseconds. */
static void order_flight(struct ft_recent_rank *rank)
{
    struct ft_recent_row *row = &rank->progress.row;

    for (size_t i = rank->count; rank->progress.in_flight && i-- > 0;) {
        const struct ft_recent_row *before = ft_recent_row(rank, i);

        if (before->number >= row->number)
            continue;
        if (row->start_ns < before->start_ns)
            row->start_ns = before->start_ns;
        return;
    }
}

/* An operation of which only the launch is known: when the others have entered, it continues. It is
 * reported before those with transfers that began earlier, and so says nothing of these, unless its
 * process has none. */
static void add_launch(struct ft_recent *r, struct ft_recent_rank_entry *e,
                       const Fabrictrace__Collective *c, size_t function, struct ft_recent_row *row)
{
    row->function = (uint16_t)function;
    row->bytes = c->bytes;
    row->sequence = c->sequence;
    row->number = c->number;
    row->end_ns = row->start_ns;
    if (row->start_ns > e->r.process->newest_ns && row->start_ns > e->r.process->sent_ns + QUIET_NS)
        e->r.process->newest_ns = row->start_ns;
    add_row(r, e, row);
    order_flight(&e->r);
}

/* What ended before the operation in progress may be reported after that. */
static void renumber_flight(struct ft_recent *r, struct ft_recent_rank_entry *e)
{
    struct ft_recent_row *row = &e->r.progress.row;

    if (e->r.progress.in_flight && row->peer != FT_RECENT_NO_PEER)
        row->sequence = ft_numbering_next(
            &e->r, row->peer, strcmp(ft_recent_function(r, row->function), "Recv") == 0);
}

int ft_recent_collective(struct ft_recent *r, const Fabrictrace__Collective *c, int64_t now_ms)
{
    struct ft_recent_row row = {.peer = FT_RECENT_NO_PEER};
    const struct ft_recent_claim claim = {c->job, c->comm_id, c->host, c->pid, c->rank, c->ranks};
    struct ft_recent_rank_entry *e;
    size_t function;
    int rc;

    if (!c->has_rank)
        return -EINVAL;
    /* Without a name it is the rest of one that was reported. */
    if (!c->op || !*c->op || c->foreign || c->incomplete)
        return 0;
    rc = rank_of(r, &claim, now_ms, &e);
    if (rc)
        return rc;
    row.launched = c->n_peers == 0;
    if (c->operations > 1 && !row.launched)
        e->r.folded_ms = now_ms;
    take_delays(r, e, c, now_ms);
    ft_numbering_take(&e->r, c, &row);
    if (c->operations > 1 || (row.launched && !waits_for_all(c)) ||
        !times_of(e->r.process, c, &row))
        return 0;
    function = ft_functions_number(&r->functions, c->op);
    if (function == FT_FUNCTIONS_MAX)
        return 0;
    if (row.launched) {
        add_launch(r, e, c, function, &row);
        return 0;
    }
    row.function = (uint16_t)function;
    row.bytes = c->bytes;
    if (e->r.progress.in_flight && c->number >= e->r.progress.row.number)
        e->r.progress.in_flight = false;
    renumber_flight(r, e);
    if (row.peer == FT_RECENT_NO_PEER)
        row.sequence = c->sequence;
    row.number = c->number;
    if (e->r.process->sent_ns < row.end_ns)
        e->r.process->sent_ns = row.end_ns;
    if (e->r.process->newest_ns < row.end_ns)
        e->r.process->newest_ns = row.end_ns;
    add_row(r, e, &row);
    order_flight(&e->r);
    return 0;
}

/* A time that a report names, by the caller's clock; 0 stays. */
static uint64_t here_ms(const Fabrictrace__Progress *p, uint64_t ms, int64_t now_ms)
{
    uint64_t ago_ms = p->time_ms > ms ? p->time_ms - ms : 0, now = (uint64_t)now_ms;

    if (ms == 0)
        return 0;
    if (!p->has_time_ms)
        return ms < now ? ms : now;
    return ago_ms < now ? now - ago_ms : 1;
}

/* Those made for other processes are theirs. */
static void take_transfers(struct ft_recent_progress *to, const Fabrictrace__Progress *p)
{
    for (size_t i = 0; i < p->n_transfers && to->transfer_count < FT_RECENT_TRANSFERS; i++) {
        const Fabrictrace__Transfer *t = p->transfers[i];

        if (t->foreign || !t->has_peer)
            continue;
        to->transfers[to->transfer_count++] = (struct ft_recent_transfer){
            .state = t->state,
            .peer = t->peer,
            .channel = t->channel,
            .steps_done = t->steps_done,
            .steps = t->steps,
            .since_ms = here_ms(p, t->since_ms, to->heard_ms),
            .sends = t->send,
            .current = t->number && t->number == p->number,
        };
    }
}

/* The operation in progress as a row that did not end. */
static bool take_flight(struct ft_recent *r, struct ft_recent_rank_entry *e,
                        const Fabrictrace__Progress *p, struct ft_recent_row *row)
{
    size_t function =
        p->op && *p->op ? ft_functions_number(&r->functions, p->op) : FT_FUNCTIONS_MAX;
    int64_t start_ns;

    if ((p->state != FABRICTRACE__OPERATION_STATE__OPERATION_STATE_IN_FLIGHT &&
         p->state != FABRICTRACE__OPERATION_STATE__OPERATION_STATE_BEGUN) ||
        function == FT_FUNCTIONS_MAX || !p->has_start_ms || p->start_ms == 0 ||
        p->start_ms > MS_MAX || (p->has_started_ns && p->started_ns > NS_MAX))
        return false;
    start_ns = moment_of(e->r.process, p->start_ms, p->has_started_ns, p->started_ns);
    if (start_ns <= 0)
        return false;
    *row = (struct ft_recent_row){.start_ns = (uint64_t)start_ns,
                                  .end_ns = UINT64_MAX,
                                  .number = p->number,
                                  .sequence = p->sequence,
                                  .bytes = p->bytes,
                                  .peer = FT_RECENT_NO_PEER,
                                  .function = (uint16_t)function};
    if (!p->has_sequence && p->has_peer) {
        row->peer = p->peer;
        row->sequence = ft_numbering_next(&e->r, p->peer, strcmp(p->op, "Recv") == 0);
    }
    return true;
}

int ft_recent_progress(struct ft_recent *r, const Fabrictrace__Progress *p, int64_t now_ms)
{
    const struct ft_recent_claim claim = {p->job, p->comm_id, p->host, p->pid, p->rank, p->ranks};
    struct ft_recent_progress *to;
    struct ft_recent_rank_entry *e;
    int rc;

    if (!p->has_rank)
        return -EINVAL;
    rc = rank_of(r, &claim, now_ms, &e);
    if (rc)
        return rc;
    to = &e->r.progress;
    *to = (struct ft_recent_progress){
        .heard_ms = now_ms,
        .moved_ms = here_ms(p, p->moved_ms, now_ms),
        .process_since_ms = here_ms(p, p->process_since_ms, now_ms),
        .since_ms = (int64_t)here_ms(p, p->start_ms, now_ms),
        .begun = p->begun,
        .finished = p->finished,
        .standing = p->standing,
        .process = p->process,
        .state = p->state,
        .has_kernels = p->has_kernels_open,
        .kernels_open = p->kernels_open,
    };
    to->in_flight = take_flight(r, e, p, &to->row);
    order_flight(&e->r);
    if (to->in_flight)
        r->sweep.kept[to->row.function] = true;
    take_transfers(to, p);
    if (p->has_time_ms && p->time_ms <= MS_MAX) {
        e->r.process->lag_ms = now_ms - (int64_t)p->time_ms + e->r.process->set_ns / NS_PER_MS;
        e->r.process->lag_known = true;
    }
    e->job->fresh += to->standing;
    return 0;
}

void ft_recent_forget(struct ft_recent *r, struct ft_recent_rank *rank)
{
    struct ft_recent_rank_entry *e = ft_recent_entry(rank);

    ft_recent_part(r, e);
    forget_rows(r, e);
    leave_process(r, rank->process);
    ft_table_remove(r->ranks, e);
}

void ft_recent_leave(struct ft_recent *r, const char *comm_id, uint32_t rank, const char *host,
                     uint32_t pid)
{
    const struct ft_recent_claim claim = {.host = host, .pid = pid};
    struct ft_recent_rank *member = ft_recent_find(r, comm_id, rank);
    struct ft_recent_job *job;

    if (!member || !is_process(member->process, &claim) || ft_recent_is_gone(member))
        return;
    job = ft_recent_entry(member)->job;
    ft_recent_forget(r, member);
    ft_recent_leave_job(r, job);
}

struct ft_recent_job *ft_recent_next(const struct ft_recent *r, uint32_t *index)
{
    struct ft_recent_job_entry *e = ft_table_next(r->jobs, index);

    return e ? &e->j : NULL;
}

struct ft_recent_rank *ft_recent_find(const struct ft_recent *r, const char *comm_id, uint32_t rank)
{
    const struct ft_recent_rank_key key = rank_key(comm_id, rank);
    struct ft_recent_rank_entry *e = ft_table_find(r->ranks, &key);

    return e ? &e->r : NULL;
}

const char *ft_recent_function(const struct ft_recent *r, uint16_t function)
{
    return r->functions.names[function];
}

size_t ft_recent_ranks(const struct ft_recent *r)
{
    return ft_table_count(r->ranks);
}

uint64_t ft_recent_delays_refused(const struct ft_recent *r)
{
    return r->delays_refused;
}

uint64_t ft_recent_refused(const struct ft_recent *r)
{
    return ft_table_refused(r->ranks) + r->functions.refused + r->refused;
}

uint64_t ft_recent_contested(const struct ft_recent *r)
{
    return r->contested;
}

uint64_t ft_recent_outdated(const struct ft_recent *r)
{
    return r->outdated;
}
