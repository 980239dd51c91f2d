// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_DIAGNOSIS_H
#define FT_DIAGNOSIS_DIAGNOSIS_H
/*
 * What is wrong with a job, by the operations of its ranks: who hangs or is slow, in communication
 * or outside of it.
 *
 * A hang is the root of the wait-for graph: a rank that others wait for and that waits for none
 * (noncomm_hang), or an operation that all have entered and that does not end (comm_hang). Ranks
 * that call different operations, or in different order, are a mismatch. A rank is slow outside of
 * communication where its own time, which is in no operation, is longer than that of its like and
 * others wait for it; communication is slow where a transfer, counted from when all its ranks were
 * there, takes longer than its like or than before. Who only waits is never named. Clocks of hosts
 * need not agree: lengths are compared that one clock measured.
 *
 * Pure: the time is handed in. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/operations.h"

enum ft_syndrome {
    FT_SYNDROME_NONE,
    FT_SYNDROME_NONCOMM_HANG,
    FT_SYNDROME_COMM_HANG,
    FT_SYNDROME_MISMATCH,
    FT_SYNDROME_NONCOMM_SLOW,
    FT_SYNDROME_COMM_SLOW,
    FT_SYNDROME_MIXED,
};

/* Of a transfer, what is slow. */
enum ft_side {
    FT_SIDE_NONE,
    FT_SIDE_SENDER,
    FT_SIDE_RECEIVER,
    FT_SIDE_PAIR,
    FT_SIDE_ANY, /* one of these three; it is not known which */
};

#define FT_DIAGNOSIS_TEXTS      4
#define FT_DIAGNOSIS_TEXT_BYTES 192
#define FT_DIAGNOSIS_CHAIN      16
#define FT_DIAGNOSIS_WAITING    4096
#define FT_DIAGNOSES_MAX        256

struct ft_texts {
    char text[FT_DIAGNOSIS_TEXTS][FT_DIAGNOSIS_TEXT_BYTES];
    size_t count;
};

struct ft_diagnosis {
    enum ft_syndrome syndrome;
    enum ft_side side;
    uint32_t comm;     /* NONE: of no single one */
    uint32_t function; /* NONE: of no single one */
    uint32_t process;  /* the culprit; NONE: not known */
    uint32_t peer;     /* process at the other end; NONE */
    uint32_t others;   /* further ranks of the same host that are as slow */
    uint64_t sequence; /* of a hang or mismatch, UINT64_MAX: none */
    uint64_t since_ns;
    /* Of the communicator of a hang, where nothing is known of some of its ranks; 0: not so. */
    uint32_t ranks, ranks_known;
    double slowdown; /* how many times as long as usual; 0: hangs */
    double confidence;
    uint32_t *waiting; /* processes that wait for it, the first WAITING of them; owned */
    size_t waiting_count;
    uint32_t chain[FT_DIAGNOSIS_CHAIN]; /* one that waits, whom it waits for, ... the culprit */
    size_t chain_count;
    struct ft_texts reasons, doubts; /* evidence for and against */
};

struct ft_diagnoses {
    struct ft_diagnosis *items;
    size_t count, size;
    size_t left_out; /* that were too many */
};

/* Of a finished table, at now_ns: no earlier than its newest time. ended: nothing is added to it
 * any more; a job that continues may have rows of a time to come, by the clock of another host. The
 * worst first. -ENOMEM. */
int ft_diagnose(const struct ft_operations *ops, uint64_t now_ns, bool ended,
                struct ft_diagnoses *found);
void ft_diagnoses_free(struct ft_diagnoses *found);

/* "noncomm_hang"; what to do about it. */
const char *ft_syndrome_name(enum ft_syndrome syndrome);
const char *ft_syndrome_advice(const struct ft_diagnosis *d);

#endif
