// SPDX-License-Identifier: Apache-2.0
/*
 * trainer PLUGIN FILE RANK SEED COMPUTE_MS JITTER UNEVEN EVALUATE LAST_STAGE: one rank of the lab's
 * training job (trainer.h), which calls the profiler plugin as NCCL does, from one thread, and has
 * its transfers carried by the cards of the hosts.
 *
 * A step: for each of two micro batches forward, then backward, compute, an AllReduce within the
 * host, which has no network, and what the next stage needs; AllReduce over the replicas, by two
 * rings of opposite order; a small AllReduce of all ranks. JITTER and UNEVEN (sequence lengths,
 * the same for a replica's ranks) are parts of the computation; after EVALUATE steps two have no
 * backward; LAST_STAGE is how much longer the last stage computes. Ends with SIGTERM.
 */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/diagnosis/trainer.h"
#include "tests/nccl/driver.h"

#define MICRO       2
#define STEP_BYTES  (4 * PACKET_BYTES)
#define RING_STEPS  (2 * (REPLICAS - 1))
#define PIPE_STEPS  2
#define WORLD_STEPS (HOSTS - 1)

/* A transfer of an operation in one direction. A sender's step n has its data when the step n - 1
 * of the one in after is over. */
struct transfer {
    struct pair *pair;
    void *op, *step;
    const struct transfer *after;
    uint32_t base; /* messages of the pair before */
    uint32_t done, steps, bytes;
    int peer; /* global */
    int state;
    bool send;
};

struct comm {
    void *context;
    uint64_t sequence;
    int ranks, rank;
};

static const struct ft_nccl_plugin_v5 *p;
static struct shared *s;
static int me, stage, replica, card;
static struct comm world, ring, pipe_comm, tensor;
static double compute_ms, jitter, uneven, last_stage;
static int evaluate;
static uint64_t own_seed, job_seed;
static uint32_t step_number, gate;
static volatile sig_atomic_t over;

static void on_term(int number)
{
    (void)number;
    over = 1;
}

static double uniform(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static double normal(uint64_t *seed)
{
    double a = uniform(seed), b = uniform(seed);

    return sqrt(-2 * log(1 - a)) * cos(6.283185307179586 * b);
}

static void rest(double ms)
{
    struct timespec t = {(time_t)(ms / 1000), (long)(fmod(ms, 1000) * 1e6)};

    while (!over && nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

/* Until the bell was rung since it read so, or for a second. */
static void await(uint32_t before)
{
    const struct timespec t = {1, 0};

    syscall(SYS_futex, &s->bell[me], FUTEX_WAIT, before, &t, NULL, 0);
}

static void wake_card(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "\0card"};

    if (sendto(card, "", 1, MSG_DONTWAIT, (struct sockaddr *)&at,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 5)) < 0 &&
        errno != EAGAIN && errno != EINTR)
        over = 1; /* the host's card is gone: so is the job */
}

static void begin_transfer(struct comm *c, void *op, struct transfer *w, int peer, int channel)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_PROXY_OP, .parent = op};

    e.u.proxy_op.pid = getpid();
    e.u.proxy_op.channel = (uint8_t)channel;
    e.u.proxy_op.peer = peer;
    e.u.proxy_op.steps = (int)w->steps;
    e.u.proxy_op.is_send = w->send;
    w->base = w->send ? atomic_load(&w->pair->posted) : atomic_load(&w->pair->room);
    p->start(c->context, &w->op, &e);
}

static void begin_step(struct comm *c, struct transfer *w)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_PROXY_STEP, .parent = w->op};

    e.u.proxy_step.step = (int)w->done;
    p->start(c->context, &w->step, &e);
    w->state = w->send ? FT_NCCL_STEP_SEND_GPU_WAIT : FT_NCCL_STEP_RECV_WAIT;
    p->state(w->step, w->state, NULL);
    if (!w->send) {
        atomic_fetch_add(&w->pair->room, 1);
        ring_bell(s, w->peer);
    }
}

static void end_step(struct transfer *w)
{
    p->stop(w->step);
    w->step = NULL;
    w->done++;
}

static bool move_send(struct transfer *w)
{
    union ft_nccl_state args = {.proxy_step.bytes = w->bytes};
    uint32_t next = w->base + w->done + 1;

    if (w->state == FT_NCCL_STEP_SEND_WAIT) {
        if (atomic_load(&w->pair->done) < next)
            return false;
        end_step(w);
        return true;
    }
    if (w->after && w->after->done < w->done)
        return false;
    if (atomic_load(&w->pair->room) < next) {
        w->state = FT_NCCL_STEP_SEND_PEER_WAIT;
        p->state(w->step, w->state, NULL);
        return false;
    }
    w->state = FT_NCCL_STEP_SEND_WAIT;
    p->state(w->step, w->state, &args);
    atomic_store(&w->pair->bytes, w->bytes);
    atomic_store(&w->pair->posted, next);
    wake_card();
    return true;
}

static bool move_recv(struct transfer *w)
{
    union ft_nccl_state args = {.proxy_step.bytes = w->bytes};

    if (atomic_load(&w->pair->arrived) < w->base + w->done + 1)
        return false;
    p->state(w->step, FT_NCCL_STEP_RECV_FLUSH, &args);
    p->state(w->step, FT_NCCL_STEP_RECV_GPU_WAIT, NULL);
    end_step(w);
    return true;
}

/* What NCCL's proxy thread does until all of an operation's transfers are over. */
static void progress(struct comm *c, struct transfer *transfers, int count)
{
    int left = count;

    for (int i = 0; i < count; i++)
        transfers[i].state = 0;
    while (left && !over) {
        uint32_t bell = atomic_load(&s->bell[me]);
        bool moved = false;

        if (atomic_load(&s->fault[me][FAULT_PROXY])) {
            rest(100);
            continue;
        }
        for (int i = 0; i < count; i++) {
            struct transfer *w = &transfers[i];

            if (w->done == w->steps)
                continue;
            if (!w->step) {
                if (w->done == 0)
                    p->state(w->op, FT_NCCL_PROXY_IN_PROGRESS, NULL);
                begin_step(c, w);
            }
            if (w->send ? !move_send(w) : !move_recv(w))
                continue;
            moved = true;
            if (w->done == w->steps) {
                p->stop(w->op);
                left--;
            }
        }
        if (left && !moved)
            await(bell);
    }
}

static void *begin_coll(struct comm *c, const char *function, size_t bytes, int channels)
{
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_COLL, .rank = c->rank};
    void *handle = NULL;

    e.u.coll.sequence = c->sequence++;
    e.u.coll.func = function;
    e.u.coll.count = bytes / 4;
    e.u.coll.datatype = "ncclFloat32";
    e.u.coll.channels = (uint8_t)channels;
    e.u.coll.algo = "RING";
    e.u.coll.proto = "SIMPLE";
    p->start(c->context, &handle, &e);
    p->stop(handle);
    return handle;
}

/* All ranks of the host wait for each other, by its own fast links. */
static void gather_host(void)
{
    int first = me / GPUS * GPUS;

    atomic_store(&s->barrier[me], ++gate);
    for (int r = first; r < first + GPUS; r++)
        ring_bell(s, r);
    for (int r = first; r < first + GPUS && !over;) {
        uint32_t bell = atomic_load(&s->bell[me]);

        if (atomic_load(&s->barrier[r]) >= gate)
            r++;
        else
            await(bell);
    }
}

static void within_host(void)
{
    begin_coll(&tensor, "AllReduce", 4 << 20, 1);
    gather_host();
}

static void over_replicas(void)
{
    int next = pair_peer(me, SLOT_RING), last = pair_peer(me, SLOT_RING_BACK);
    bool odd = atomic_exchange(&s->fault[me][FAULT_ORDER], 0) > 0;
    struct transfer transfers[4] = {
        {.pair = &s->pairs[me][SLOT_RING], .send = true, .peer = next, .after = &transfers[1]},
        {.pair = &s->pairs[last][SLOT_RING], .peer = last},
        {.pair = &s->pairs[me][SLOT_RING_BACK], .send = true, .peer = last, .after = &transfers[3]},
        {.pair = &s->pairs[next][SLOT_RING_BACK], .peer = next},
    };
    void *op = begin_coll(&ring, odd ? "AllGather" : "AllReduce", 4 * 2 * STEP_BYTES, 2);

    /* Whoever calls another function sends other steps: none fits. */
    for (int i = 0; i < 4; i++) {
        int host = host_of(transfers[i].peer) % REPLICAS;

        transfers[i].steps = RING_STEPS;
        transfers[i].bytes = STEP_BYTES;
        begin_transfer(&ring, op, &transfers[i], host, i / 2);
    }
    while (odd && !over)
        rest(100);
    progress(&ring, transfers, 4);
}

static void over_stages(bool send)
{
    int peer = pair_peer(me, SLOT_PIPE);
    struct transfer w = {.pair = &s->pairs[send ? me : peer][SLOT_PIPE],
                         .send = send,
                         .peer = peer,
                         .steps = PIPE_STEPS,
                         .bytes = STEP_BYTES};
    struct ft_nccl_event_v5 e = {.type = FT_NCCL_P2P, .rank = stage};
    void *op = NULL;

    e.u.p2p.func = send ? "Send" : "Recv";
    e.u.p2p.datatype = "ncclFloat32";
    e.u.p2p.count = PIPE_STEPS * STEP_BYTES / 4;
    e.u.p2p.peer = 1 - stage;
    e.u.p2p.channels = 1;
    p->start(pipe_comm.context, &op, &e);
    p->stop(op);
    begin_transfer(&pipe_comm, op, &w, 1 - stage, 0);
    progress(&pipe_comm, &w, 1);
}

static void over_all(void)
{
    int next = pair_peer(me, SLOT_WORLD), last = (me + RANKS - GPUS) % RANKS;
    struct transfer transfers[2] = {
        {.pair = &s->pairs[me][SLOT_WORLD], .send = true, .peer = next, .after = &transfers[1]},
        {.pair = &s->pairs[last][SLOT_WORLD], .peer = last},
    };
    void *op = begin_coll(&world, "AllReduce", 8, 1);

    for (int i = 0; i < 2; i++) {
        transfers[i].steps = WORLD_STEPS;
        transfers[i].bytes = 8;
        begin_transfer(&world, op, &transfers[i], transfers[i].peer, 0);
    }
    gather_host();
    progress(&world, transfers, 2);
}

static void compute(double share)
{
    double ms = compute_ms * share * fmax(0.2, 1 + jitter * normal(&own_seed));
    uint64_t lengths = job_seed + 1000003u * step_number + (uint64_t)replica;
    int32_t drift = atomic_load(&s->fault[me][FAULT_DRIFT_US]);

    if (uneven > 0)
        ms *= exp(uneven * normal(&lengths));
    if (stage == STAGES - 1)
        ms *= last_stage;
    if (drift && share > 1)
        atomic_fetch_add(&s->fault[me][FAULT_LATE_US], drift);
    ms += atomic_load(&s->fault[me][FAULT_LATE_US]) / 1000.0;
    ms += atomic_exchange(&s->fault[me][FAULT_ONCE_MS], 0);
    rest(ms);
}

static void train(void)
{
    bool forward_only = evaluate && step_number % (uint32_t)evaluate >= (uint32_t)evaluate - 2;

    rest(atomic_exchange(&s->fault[me][FAULT_PAUSE_MS], 0));
    for (int back = 0; back < (forward_only ? 1 : 2); back++) {
        bool first = (stage == 0) != (back == 1);

        for (int i = 0; i < MICRO && !over; i++) {
            if (!first)
                over_stages(false);
            compute(back ? 1.8 : 1);
            within_host();
            if (first)
                over_stages(true);
        }
    }
    if (!forward_only && !over)
        over_replicas();
    if (!over)
        over_all();
    if (!over)
        atomic_store(&s->steps[me], ++step_number);
}

static void open_comm(struct comm *c, uint64_t id, const char *name, int nodes, int ranks, int rank)
{
    int mask = 0;

    c->ranks = ranks;
    c->rank = rank;
    if (p->init(&c->context, job_seed << 16 | id, &mask, name, nodes, ranks, rank, NULL))
        exit(1);
}

int main(int argc, char **argv)
{
    struct sigaction on = {.sa_handler = on_term};
    struct driver d;

    if (argc != 10) {
        fprintf(stderr, "usage: trainer PLUGIN FILE RANK SEED COMPUTE_MS JITTER UNEVEN EVALUATE "
                        "LAST_STAGE\n");
        return 2;
    }
    s = map_shared(argv[2]);
    me = atoi(argv[3]);
    if (me < 0 || me >= RANKS)
        return 2;
    job_seed = strtoull(argv[4], NULL, 10) & 0xffffffff;
    own_seed = job_seed * 64 + (uint64_t)me;
    compute_ms = atof(argv[5]);
    jitter = atof(argv[6]);
    uneven = atof(argv[7]);
    evaluate = atoi(argv[8]);
    last_stage = atof(argv[9]);
    stage = host_of(me) / REPLICAS;
    replica = host_of(me) % REPLICAS;
    card = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sigaction(SIGTERM, &on, NULL);
    driver_load(&d, argv[1]);
    p = d.v5;
    open_comm(&world, 1, "world", HOSTS, RANKS, me);
    open_comm(&ring, 0x100 + (uint64_t)(stage * GPUS + me % GPUS), "data", REPLICAS, REPLICAS,
              replica);
    open_comm(&pipe_comm, 0x200 + (uint64_t)(replica * GPUS + me % GPUS), "pipeline", STAGES,
              STAGES, stage);
    open_comm(&tensor, 0x300 + (uint64_t)host_of(me), "tensor", 1, GPUS, me % GPUS);
    while (!over)
        train();
    p->finalize(tensor.context);
    p->finalize(pipe_comm.context);
    p->finalize(ring.context);
    p->finalize(world.context);
    return 0;
}
