// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_DELAYS_H
#define FT_DAEMON_DIAGNOSIS_DELAYS_H
/*
 * How long a rank's network steps to each of its peers take, by the byte: the matrix of a job,
 * sender by receiver, of which lib/diagnosis/blame.h finds who is slow.
 *
 * A cell is the median over the last seconds, for steps of like size of operations of one function,
 * algorithm and protocol, in relation to the other pairs of that kind, or with few of them to its
 * own past. Steps of receiving wait for the sender and count for nothing. Owner: the rank.
 * Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/blame.h"
#include "proto/fabrictrace.pb-c.h"

#define FT_DELAYS_VALUES 12

/* Steps to a peer, of one kind. */
struct ft_delays_cell {
    uint32_t peer, kind;
    uint32_t count, next;            /* of the ring of values */
    float values[FT_DELAYS_VALUES];  /* logarithm of nanoseconds a byte */
    float longest[FT_DELAYS_VALUES]; /* the same of the longest step; no less than the value */
    int64_t times_ms[FT_DELAYS_VALUES];
    double usual; /* as long as it was not slow */
    uint32_t usual_count;
    float wobble;      /* how far it was from that, lately at most */
    int64_t slow_ms;   /* since when it is slow; 0: it is not */
    int64_t judged_ms; /* when it was last judged */
    bool even;         /* then: neither slow nor slower than before */
    bool known;        /* then it was known what is usual */
    float off;         /* then: logarithm over that */
};

/* Of a rank; zero is empty. */
struct ft_delays {
    struct ft_delays_cell *cells;
    uint32_t count, size;
};

/* Rows of recent.h that have the size of a cell. */
#define FT_DELAYS_CELL_ROWS 4

void ft_delays_free(struct ft_delays *d);

/* [logarithm of bytes] Of a cell's steps, to within a fifth. */
double ft_delays_step(const struct ft_delays_cell *cell);

/* Whether steps to the peer were judged at that time, and none were slow. */
bool ft_delays_even(const struct ft_delays *d, uint32_t peer, int64_t judged_ms);

/* Counts the pairs that were judged at that time against their past, and those of them that take
 * longer by a logarithm of more than least. */
void ft_delays_count(const struct ft_delays *d, int64_t judged_ms, double least, size_t *longer,
                     size_t *all);

/* Takes what an operation sent; may add cells while that is no more than room. How many it added;
 * adds to refused what found no cell. */
uint32_t ft_delays_take(struct ft_delays *d, const Fabrictrace__Collective *c, int64_t now_ms,
                        size_t room, uint64_t *refused);

struct ft_recent;
struct ft_task;
struct ft_recent_job;
struct ft_recent_rank;

/* Who knows by which links a pair's flows certainly go: fills those of a cell, which stay good. */
struct ft_delays_paths {
    void (*of)(const void *arg, const struct ft_recent_rank *from, uint32_t to,
               struct ft_blame_cell *cell);
    const void *arg;
};

struct ft_delays_verdict {
    struct ft_blame blame;
    const struct ft_recent_rank *from, *to; /* of the worst pair */
    int64_t since_ms;
    uint32_t pairs; /* that were compared */
    bool changed;   /* it was not so before */
    bool stalls;    /* a link makes its pairs stall now and then (stalled.h) */
};

#define FT_DELAYS_VERDICTS 8

/* Cells that are compared at a time. */
#define FT_DELAYS_JUDGED 65536

/* What goes with the verdicts of a job. */
struct ft_delays_noise {
    /* A logarithm: slow by less is how pairs come and go. NAN: not known yet. */
    double bar;
    bool pending; /* somebody is slow, and was not for long enough; or it is not known yet */
};

/* Who of a job is slow, by the last seconds; the worst first. Adds to left_out what it did not
 * compare. Learns what is usual of who is not. -ENOMEM. */
int ft_delays_judge(const struct ft_recent *recent, const struct ft_recent_job *job, int64_t now_ms,
                    const struct ft_delays_paths *paths, struct ft_task *task,
                    struct ft_delays_verdict out[FT_DELAYS_VERDICTS], size_t *count,
                    struct ft_delays_noise *noise, uint64_t *left_out);

#endif
