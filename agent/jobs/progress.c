// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/jobs/progress.h"

#include <stdlib.h>
#include <string.h>

#define NS_PER_S  INT64_C(1000000000)
#define AGAIN_NS  (5 * NS_PER_S)  /* while an operation is open, or the process does not run */
#define IDLE_NS   (60 * NS_PER_S) /* while none is */
#define CHANGE_NS NS_PER_S        /* between reports of changes */
#define PAUSE_NS  (10 * NS_PER_S) /* between two pauses that are reported */

/* Operations that are remembered, of all communicators: those of one set are kept as long as they
 * are open or new. As many as CUDA queues are begun before the first of them ends. */
#define SETS      256
#define OPS_A_SET 4

struct comm {
    int64_t opened_ns;
    uint64_t ended; /* the newest of which a transfer or a kernel ended */
    uint64_t finished;
    int64_t moved_ns;
    bool reported_before; /* reported: that it stands, or takes long */
    bool gone;            /* reported: that the process is */
    uint64_t what;        /* a digest of the last report */
    int64_t reported_ns, pause_ns;
    /* The first operation that says it begins in the future, or before all time, and when that was
     * seen. */
    uint64_t odd_number;
    int64_t odd_ns;
};

struct ft_progress {
    struct ft_progress_config config;
    void (*emit)(void *arg, const struct ft_progress_report *r);
    void *arg;
    enum ft_progress_process process;
    int64_t process_since_ns;
    bool kernels;
    struct comm comms[FT_SEGMENT_COMMS];
    struct ft_progress_op ops[SETS][OPS_A_SET];
    struct ft_rings_flight flights[FT_PROGRESS_FLIGHTS];
    size_t count; /* of flights */
    bool more;
};

struct ft_progress *ft_progress_new(const struct ft_progress_config *config,
                                    void (*emit)(void *arg, const struct ft_progress_report *r),
                                    void *arg)
{
    struct ft_progress *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->config = *config;
    p->emit = emit;
    p->arg = arg;
    return p;
}

void ft_progress_free(struct ft_progress *p)
{
    free(p);
}

static struct ft_progress_op *set_of(struct ft_progress *p, uint32_t comm, uint64_t number)
{
    uint64_t mix = (number + (uint64_t)comm * 97 + p->config.seed % SETS) % SETS;

    return p->ops[mix];
}

static struct ft_progress_op *find_op(struct ft_progress *p, uint32_t comm, uint64_t number)
{
    struct ft_progress_op *set = set_of(p, comm, number);

    for (int i = 0; number && i < OPS_A_SET; i++)
        if (set[i].number == number && set[i].comm == comm)
            return &set[i];
    return NULL;
}

/* A free slot, else one of an operation that is over, else the oldest. */
static struct ft_progress_op *slot_for_op(struct ft_progress *p, uint32_t comm, uint64_t number)
{
    struct ft_progress_op *set = set_of(p, comm, number), *best = NULL;
    bool best_over = false;

    for (int i = 0; i < OPS_A_SET; i++) {
        struct ft_progress_op *op = &set[i];
        bool over = op->number <= p->comms[op->comm].finished;

        if (op->number == 0 || (op->number == number && op->comm == comm))
            return op;
        if (!best || over > best_over || (over == best_over && op->start_ns < best->start_ns)) {
            best = op;
            best_over = over;
        }
    }
    return best;
}

/* A CUDA graph that is launched again brings the number that NCCL counted when it was captured. */
static bool sequence_stands(struct ft_progress *p, const struct ft_segment_record *r)
{
    const struct ft_segment_op *op = &r->u.op;

    for (uint64_t back = 1; back <= 8 && back < r->number; back++) {
        const struct ft_progress_op *before = find_op(p, r->comm, r->number - back);

        if (before && !before->p2p && strcmp(before->op.func, op->func) == 0)
            return before->op.sequence == op->sequence;
    }
    return false;
}

static void take_op(struct ft_progress *p, const struct ft_segment_record *r, int64_t start_ns)
{
    struct ft_progress_op *op;
    bool p2p = r->flags & FT_SEGMENT_P2P;

    if (r->number == 0)
        return;
    op = slot_for_op(p, r->comm, r->number);
    *op = (struct ft_progress_op){
        .number = r->number,
        .comm = r->comm,
        .p2p = p2p,
        .sequence_stands = !p2p && sequence_stands(p, r),
        .start_ns = start_ns,
        .op = r->u.op,
    };
}

void ft_progress_record(struct ft_progress *p, const struct ft_segment_record *r,
                        struct ft_mono now)
{
    int64_t end_ns = r->end_ns < 0 ? 0 : r->end_ns > now.ns ? now.ns : r->end_ns;
    struct ft_progress_op *op;
    struct comm *comm;

    if (r->comm >= FT_SEGMENT_COMMS || r->kind < FT_SEGMENT_OP || r->kind > FT_SEGMENT_KERNEL)
        return;
    comm = &p->comms[r->comm];
    if (end_ns > comm->moved_ns)
        comm->moved_ns = end_ns;
    if (r->kind == FT_SEGMENT_OP) {
        take_op(p, r, r->start_ns < 0 || r->start_ns > now.ns ? now.ns : r->start_ns);
        return;
    }
    op = find_op(p, r->comm, r->number);
    if (r->kind == FT_SEGMENT_END) {
        if (op)
            op->enqueued = true;
        return;
    }
    if (r->number > comm->ended && !(r->flags & (FT_SEGMENT_FOREIGN | FT_SEGMENT_INCOMPLETE)))
        comm->ended = r->number;
    p->kernels |= r->kind == FT_SEGMENT_KERNEL;
    if (op && r->kind == FT_SEGMENT_PROXY)
        op->ended++;
    else if (op)
        op->kernels_ended++;
}

static void note_process(struct ft_progress *p, enum ft_progress_process process, int64_t now)
{
    if (process != p->process || p->process_since_ns == 0)
        p->process_since_ns = now;
    p->process = process;
}

/* What is in flight in a communicator, with times that can be, and the operation that is first. */
struct look {
    uint64_t first, open;
    int64_t moved_ns, oldest_ns;
};

static bool is_odd(const struct ft_rings_flight *f, uint32_t index, int64_t now)
{
    return f->comm == index && (f->start_ns < 0 || f->start_ns > now);
}

/* When what cannot have begun when it says was seen first: were that now at each look, it would
 * never stand. */
static int64_t begun_ns(struct ft_progress *p, uint32_t index, int64_t now)
{
    struct comm *c = &p->comms[index];
    uint64_t number = 0;
    bool some = false;

    for (size_t i = 0; i < p->count; i++) {
        const struct ft_rings_flight *f = &p->flights[i];

        if (!is_odd(f, index, now))
            continue;
        number = !some || f->number < number ? f->number : number;
        some = true;
    }
    if (!some || !c->odd_ns || number != c->odd_number)
        c->odd_ns = some ? now : 0;
    c->odd_number = number;
    return some ? c->odd_ns : now;
}

static void look_at(struct ft_progress *p, uint32_t index, int64_t now, struct look *look)
{
    int64_t begun = begun_ns(p, index, now);

    *look = (struct look){.oldest_ns = now};
    for (size_t i = 0; i < p->count; i++) {
        struct ft_rings_flight *f = &p->flights[i];

        if (f->comm != index)
            continue;
        if (is_odd(f, index, now))
            f->start_ns = begun;
        if (f->since_ns < f->start_ns || f->since_ns > now)
            f->since_ns = f->start_ns;
        if (f->moved_ns < f->start_ns || f->moved_ns > now)
            f->moved_ns = f->since_ns;
        if (f->moved_ns > look->moved_ns)
            look->moved_ns = f->moved_ns;
        if (f->start_ns < look->oldest_ns)
            look->oldest_ns = f->start_ns;
        if (f->number && (look->first == 0 || f->number < look->first))
            look->first = f->number;
        p->kernels |= f->kernel;
        look->open++;
    }
}

/* The operation behind which all others stand, and how far it is. */
static void fill_op(struct ft_progress *p, uint32_t index, const struct look *look,
                    struct ft_progress_report *r)
{
    const struct comm *c = &p->comms[index];

    r->number = look->first ? look->first : r->comm->begun;
    /* Begun behind the newest that has ended, and not in flight. */
    if (!look->first && c->finished && r->comm->begun > c->finished)
        r->number = c->finished + 1;
    r->op = find_op(p, index, r->number);
    if (look->first)
        r->state = FT_PROGRESS_IN_FLIGHT;
    else if (r->number && r->number <= c->finished)
        r->state = FT_PROGRESS_FINISHED;
    else if (r->number)
        r->state = FT_PROGRESS_BEGUN;
    for (size_t i = 0; i < p->count; i++) {
        const struct ft_rings_flight *f = &p->flights[i];

        if (f->comm != index || f->number == 0 || f->number != r->number)
            continue;
        r->kernels_open += f->kernel;
        r->open += !f->kernel;
    }
}

static bool before(const struct ft_rings_flight *a, const struct ft_rings_flight *b)
{
    return a->number != b->number ? a->number < b->number : a->start_ns < b->start_ns;
}

static void fill_transfers(const struct ft_progress *p, uint32_t index,
                           struct ft_progress_report *r)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct ft_rings_flight *f = &p->flights[i];
        size_t at = r->count;

        if (f->comm != index || f->kernel)
            continue;
        if (at == FT_PROGRESS_TRANSFERS) {
            r->dropped++;
            if (!before(f, r->transfers[at - 1]))
                continue;
            at--;
        } else {
            r->count++;
        }
        for (; at > 0 && before(f, r->transfers[at - 1]); at--)
            r->transfers[at] = r->transfers[at - 1];
        r->transfers[at] = f;
    }
    r->dropped += p->more;
}

static uint64_t mix(uint64_t digest, uint64_t value)
{
    return (digest ^ value) * UINT64_C(0x100000001b3);
}

static uint64_t digest(const struct ft_progress_report *r)
{
    uint64_t d = mix(mix(UINT64_C(0xcbf29ce484222325), r->number), r->state);

    d = mix(mix(d, r->process), r->standing);
    for (size_t i = 0; i < r->count; i++) {
        const struct ft_rings_flight *f = r->transfers[i];

        d = mix(mix(mix(d, (uint64_t)f->peer), f->channel), f->wait * 2u + f->send);
    }
    return d;
}

/* Of ranks that have nothing in the network it is not known whether their operations have ended. */
static bool is_open(const struct comm *c, const struct ft_progress_report *r)
{
    return r->state == FT_PROGRESS_IN_FLIGHT || (r->state == FT_PROGRESS_BEGUN && c->finished);
}

static bool is_due(const struct comm *c, const struct ft_progress_report *r, uint64_t what,
                   int64_t now)
{
    bool halted = r->process == FT_PROCESS_STOPPED || r->process == FT_PROCESS_GONE;
    bool open = is_open(c, r);

    if (r->process == FT_PROCESS_GONE && !c->gone)
        return true;
    /* A rank that pauses between two steps of training does so for ever. */
    if (!c->reported_before)
        return halted || open || !c->pause_ns || now - c->pause_ns >= PAUSE_NS;
    if (what != c->what && now - c->reported_ns >= CHANGE_NS)
        return true;
    return now - c->reported_ns >= (open || halted ? AGAIN_NS : IDLE_NS);
}

static void note_finished(const struct ft_progress *p, struct comm *c, const struct look *look)
{
    uint64_t ended = look->first && look->first <= c->ended ? look->first - 1 : c->ended;

    /* What is not seen may be open. */
    if (ended > c->finished && !p->more)
        c->finished = ended;
}

static void look_at_comm(struct ft_progress *p, uint32_t index, const struct ft_rings_comm *comm,
                         int64_t now)
{
    struct comm *c = &p->comms[index];
    struct ft_progress_report r = {
        .comm = comm, .process = p->process, .process_since_ns = p->process_since_ns};
    struct look look;
    uint64_t what;
    bool reported;

    look_at(p, index, now, &look);
    if (look.moved_ns > c->moved_ns)
        c->moved_ns = look.moved_ns;
    note_finished(p, c, &look);
    r.finished = c->finished;
    r.kernels = p->kernels;
    r.moved_ns = c->moved_ns;
    r.standing = now - (c->moved_ns ? c->moved_ns : c->opened_ns) >= p->config.quiet_ns;
    fill_op(p, index, &look, &r);
    fill_transfers(p, index, &r);
    reported = r.standing || p->process == FT_PROCESS_STOPPED || p->process == FT_PROCESS_GONE ||
               (look.open && now - look.oldest_ns >= p->config.quiet_ns);
    what = digest(&r);
    if (reported ? is_due(c, &r, what, now) : c->reported_before) {
        p->emit(p->arg, &r);
        if (!c->reported_before)
            c->pause_ns = now;
        c->reported_ns = now;
        c->what = what;
        c->gone = r.process == FT_PROCESS_GONE;
        c->reported_before = reported;
    }
}

/* Another communicator has the slot of one that was closed. */
static void reopen(struct ft_progress *p, uint32_t index, int64_t opened_ns)
{
    p->comms[index] = (struct comm){.opened_ns = opened_ns};
    for (int i = 0; i < SETS; i++)
        for (int k = 0; k < OPS_A_SET; k++)
            if (p->ops[i][k].comm == index && p->ops[i][k].start_ns < opened_ns)
                p->ops[i][k].number = 0;
}

void ft_progress_look(struct ft_progress *p, struct ft_rings *rings,
                      enum ft_progress_process process, struct ft_mono now)
{
    note_process(p, process, now.ns);
    p->count = ft_rings_flights(rings, p->flights, FT_PROGRESS_FLIGHTS, &p->more);
    for (uint32_t i = 0; i < FT_SEGMENT_COMMS; i++) {
        struct ft_rings_comm comm;
        struct comm *c = &p->comms[i];

        if (!ft_rings_comm(rings, i, &comm) || !comm.open)
            continue;
        if (c->opened_ns && c->opened_ns != comm.opened_ns)
            reopen(p, i, comm.opened_ns);
        c->opened_ns = comm.opened_ns;
        look_at_comm(p, i, &comm, now.ns);
    }
}
