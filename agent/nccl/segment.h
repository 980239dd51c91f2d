// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_NCCL_SEGMENT_H
#define FT_AGENT_NCCL_SEGMENT_H
/*
 * The memory that a training process shares with the agent: communicators, counters, one ring of
 * records for each thread that NCCL calls from, and what is in flight.
 *
 * A memfd of fixed size, sealed against any change of it, made by the plugin and handed to the
 * agent over its Unix socket. One thread writes a ring, the agent reads it; head and tail count
 * records since the start. To the agent everything in here is untrusted: it copies, then checks.
 * Both run on one machine, so integers are the machine's own. Times are CLOCK_MONOTONIC.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define FT_SEGMENT_MAGIC   UINT64_C(0x0a4c43434e2d5446)
#define FT_SEGMENT_VERSION 2

#define FT_SEGMENT_RINGS 64   /* threads at a time; the events of further ones are counted */
#define FT_SEGMENT_SLOTS 2048 /* records of a ring, a power of 2 */
#define FT_SEGMENT_COMMS 256  /* communicators remembered, open or not */
#define FT_SEGMENT_OPEN  512  /* transfers and kernels in flight, of a thread */
#define FT_SEGMENT_STEPS 16   /* NCCL has 8 in progress, of a transfer */
#define FT_SEGMENT_NAME  64
#define FT_SEGMENT_TEXT  16 /* names of functions, types, algorithms, cut off */

#define FT_RECORD_QPS       4
#define FT_RECORD_BUCKETS   48
#define FT_RECORD_UNIT_BITS 8 /* step times are counted from 256 ns, two buckets an octave */

enum ft_segment_kind {
    FT_SEGMENT_OP = 1,     /* a collective or point-to-point operation began */
    FT_SEGMENT_END = 2,    /* it was enqueued; the network may still be at it */
    FT_SEGMENT_PROXY = 3,  /* one channel's transfer to or from one peer is done */
    FT_SEGMENT_KERNEL = 4, /* a channel of its kernel is done */
};

enum {
    FT_SEGMENT_P2P = 1 << 0,
    FT_SEGMENT_SEND = 1 << 1,
    FT_SEGMENT_FOREIGN = 1 << 2,    /* the operation is another process's (PXN): op says nothing */
    FT_SEGMENT_INCOMPLETE = 1 << 3, /* never stopped */
};

struct ft_segment_op {
    uint64_t sequence; /* NCCL's, of collectives */
    uint64_t count;
    int32_t peer; /* root of a collective */
    uint8_t channels, warps, unused[2];
    char func[FT_SEGMENT_TEXT], datatype[FT_SEGMENT_TEXT];
    char algo[FT_SEGMENT_TEXT], proto[FT_SEGMENT_TEXT];
};

struct ft_segment_proxy {
    int32_t peer;
    uint32_t channel;
    uint32_t steps; /* that ended */
    uint32_t unused;
    uint64_t bytes;
    uint64_t step_min_ns, step_max_ns, step_sum_ns;
    uint32_t qps[FT_RECORD_QPS]; /* local queue pairs, 0 ends the list */
    uint16_t buckets[FT_RECORD_BUCKETS];
};

struct ft_segment_record {
    uint16_t kind;
    uint16_t flags;
    uint32_t events; /* calls of NCCL that are folded in here */
    uint64_t comm_id;
    int32_t rank, ranks;
    uint64_t op; /* names the operation within the process */
    int64_t start_ns, end_ns;
    uint32_t comm; /* index of its communicator */
    uint32_t unused;
    uint64_t number; /* of the operation in it, from 1; 0: not known, or another process's */
    union {
        struct ft_segment_op op;
        struct ft_segment_proxy proxy;
        struct {
            uint64_t start_ns, end_ns; /* of the GPU's clock */
            uint32_t channel;
        } kernel;
    } u;
    uint8_t room[256 - 224];
};
_Static_assert(sizeof(struct ft_segment_record) == 256, "records are four cache lines");

/* What a step waits for; the first two are of a transfer without steps. */
enum ft_segment_wait {
    FT_WAIT_UNKNOWN,
    FT_WAIT_QUEUED, /* the proxy has not begun with it */
    FT_WAIT_IDLE,   /* it has, and no step is in progress */
    FT_WAIT_SEND_GPU,
    FT_WAIT_SEND_PEER,
    FT_WAIT_SEND,
    FT_WAIT_RECV,
    FT_WAIT_RECV_FLUSH,
    FT_WAIT_RECV_GPU,
    FT_WAITS,
};

/* A step in progress, in one word, so that it is never read in parts: what it waits for in the
 * highest 8 bits, and since when, in units of 16 ns. 0: no step. */
#define FT_SEGMENT_SINCE_BITS 56
#define FT_SEGMENT_SINCE_UNIT 4

static inline uint64_t ft_segment_step(enum ft_segment_wait wait, int64_t since_ns)
{
    return (uint64_t)wait << FT_SEGMENT_SINCE_BITS | ((uint64_t)since_ns >> FT_SEGMENT_SINCE_UNIT &
                                                      ((UINT64_C(1) << FT_SEGMENT_SINCE_BITS) - 1));
}

static inline unsigned ft_segment_step_wait(uint64_t step)
{
    return (unsigned)(step >> FT_SEGMENT_SINCE_BITS);
}

static inline int64_t ft_segment_step_since_ns(uint64_t step)
{
    return (int64_t)((step & ((UINT64_C(1) << FT_SEGMENT_SINCE_BITS) - 1))
                         << FT_SEGMENT_SINCE_UNIT &
                     INT64_MAX);
}

/* A transfer (FT_SEGMENT_PROXY) or a channel of a kernel (FT_SEGMENT_KERNEL) in flight. Up to
 * `expected` a seqlock, odd while that is written; the rest is written word by word. */
struct ft_segment_flight {
    _Alignas(64) _Atomic uint32_t sequence;
    uint16_t kind; /* 0: none */
    uint16_t flags;
    uint64_t op, number; /* of the operation; 0: not known, or another process's */
    int64_t start_ns;
    uint32_t comm; /* index of its communicator */
    int32_t rank, peer;
    uint32_t channel;
    uint32_t expected;      /* steps in all, as NCCL announced */
    _Atomic uint32_t done;  /* steps that ended */
    _Atomic uint64_t moved; /* as a step: when the proxy began, or a step last began or ended */
    _Atomic uint64_t step[FT_SEGMENT_STEPS];
};
_Static_assert(sizeof(struct ft_segment_flight) == 192, "three cache lines");

/* Why events were dropped. */
enum ft_segment_drop {
    FT_DROP_RING_FULL,
    FT_DROP_POOL_FULL,
    FT_DROP_STALE,     /* stopped twice, never started, or no handle of ours */
    FT_DROP_CONTENDED, /* two threads at one event */
    FT_DROP_CONTEXT,   /* no communicator of ours */
    FT_DROP_UNKNOWN,   /* kind of event that this version does not know */
    FT_DROPS,
};

struct ft_segment_ring {
    _Alignas(64) _Atomic uint64_t head; /* written by the job from here ... */
    _Atomic uint64_t events;            /* calls of NCCL */
    _Atomic uint64_t drops[FT_DROPS];
    _Alignas(64) _Atomic uint64_t open[FT_SEGMENT_OPEN / 64]; /* a bit for each that is in flight */
    _Alignas(64) _Atomic uint64_t tail;                       /* ... and by the agent from here */
    _Atomic uint64_t events_read;
};

/* A seqlock: odd while it is written. */
struct ft_segment_comm {
    _Alignas(64) _Atomic uint32_t sequence;
    uint32_t open;
    uint64_t comm_id;
    int32_t rank, ranks, nodes, abi;
    int64_t opened_ns;
    char name[FT_SEGMENT_NAME];
    char gpu[FT_SEGMENT_TEXT]; /* PCI bus id, empty when not known */
    _Atomic uint64_t begun;    /* operations; outside of the seqlock */
};

struct ft_segment {
    uint64_t magic;
    uint32_t version;
    uint32_t rings, slots, comms, record_bytes, flight_bytes;
    char job[FT_SEGMENT_NAME];
    /* Of threads that found no ring, and of communicators that found no room. */
    _Alignas(64) _Atomic uint64_t outside_events;
    _Atomic uint64_t comms_refused;
    _Atomic uint64_t events_sent; /* by agents: events_read of what they have published, or reported
                                   * as lost */
    _Atomic uint64_t drops_reported[FT_DROPS]; /* that an agent has in its account */
    _Atomic uint64_t outside_reported;
    struct ft_segment_comm comm[FT_SEGMENT_COMMS];
    struct ft_segment_ring ring[FT_SEGMENT_RINGS];
    _Alignas(4096) struct ft_segment_flight flight[FT_SEGMENT_RINGS][FT_SEGMENT_OPEN];
    _Alignas(4096) struct ft_segment_record record[FT_SEGMENT_RINGS][FT_SEGMENT_SLOTS];
};

/* What the plugin sends with the descriptor: magic and version, big endian. */
#define FT_SEGMENT_HELLO_BYTES 12

static inline unsigned ft_segment_bucket(int64_t ns)
{
    uint64_t t = (uint64_t)ns >> FT_RECORD_UNIT_BITS;
    unsigned octave, bucket;

    if (ns <= 0 || t == 0)
        return 0;
    octave = 63 - (unsigned)__builtin_clzll(t);
    bucket = 1 + 2 * octave + (unsigned)((uint64_t)ns >> (FT_RECORD_UNIT_BITS - 1 + octave) & 1);
    return bucket < FT_RECORD_BUCKETS ? bucket : FT_RECORD_BUCKETS - 1;
}

/* Lower bound of a bucket. */
static inline int64_t ft_segment_bucket_ns(unsigned bucket)
{
    unsigned octave = (bucket - 1) / 2;
    int64_t unit = INT64_C(1) << FT_RECORD_UNIT_BITS;

    if (bucket == 0)
        return 0;
    return (unit << octave) + ((bucket - 1) % 2 ? (unit << octave) / 2 : 0);
}

#endif
