// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_DIAGNOSIS_TRAINER_H
#define FT_TESTS_DIAGNOSIS_TRAINER_H
/*
 * Memory that the ranks of a job in the lab and the network cards of its hosts share: 64 ranks on 8
 * hosts, data parallel over 4 hosts, tensor parallel within a host, a pipeline of two stages. A
 * file full of zeros at the start; the script writes what is wrong into the words at its beginning.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { RANKS = 64, GPUS = 8, HOSTS = 8, STAGES = 2, REPLICAS = 4, WORDS = 8 };

/* What is wrong with a rank: its words. */
enum {
    FAULT_LATE_US,  /* its computation takes so much longer, each time */
    FAULT_ONCE_MS,  /* likewise, but once */
    FAULT_PROXY,    /* its proxy does nothing any more */
    FAULT_ORDER,    /* its next collective of data parallelism is another function */
    FAULT_SEND,     /* its card sends at this part of its speed, in percent; 0: all of it */
    FAULT_RECEIVE,  /* its card takes packets at this part of its speed */
    FAULT_DRIFT_US, /* FAULT_LATE_US grows by so much a step */
    FAULT_PAUSE_MS, /* computes for so long before its next step: check-pointing */
};

/* Who a queue pair of a rank leads to. */
enum { SLOT_RING, SLOT_RING_BACK, SLOT_PIPE, SLOT_WORLD, SLOTS };

/* One direction: the receiver makes room, the sender posts, its card sends, the other one
 * acknowledges.
 */
struct pair {
    _Atomic uint32_t room, posted, arrived, done;
    _Atomic uint32_t bytes; /* of the message that was posted last */
};

struct shared {
    _Atomic int32_t fault[RANKS][WORDS];
    _Atomic uint32_t steps[RANKS]; /* of training, done */
    _Atomic uint32_t bell[RANKS];
    _Atomic uint32_t barrier[RANKS];
    struct pair pairs[RANKS][SLOTS];
};

#define SPORT_FIRST  0xc100
#define QP_FIRST     1000
#define PACKET_BYTES 1024
#define PACKET_NS    2000000 /* of a card at its usual speed */

static inline int host_of(int rank)
{
    return rank / GPUS;
}

/* The rank at the other end of a queue pair. */
static inline int pair_peer(int rank, int slot)
{
    int gpu = rank % GPUS, host = rank / GPUS, stage = host / REPLICAS, replica = host % REPLICAS;

    switch (slot) {
    case SLOT_RING:
        return (stage * REPLICAS + (replica + 1) % REPLICAS) * GPUS + gpu;
    case SLOT_RING_BACK:
        return (stage * REPLICAS + (replica + REPLICAS - 1) % REPLICAS) * GPUS + gpu;
    case SLOT_PIPE:
        return ((1 - stage) * REPLICAS + replica) * GPUS + gpu;
    default:
        return (host + 1) % HOSTS * GPUS + gpu;
    }
}

/* Maps the file; ends the program when it cannot. */
struct shared *map_shared(const char *file);

/* Wakes the rank. */
void ring_bell(struct shared *s, int rank);

#endif
