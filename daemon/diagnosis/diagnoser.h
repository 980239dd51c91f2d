// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_DIAGNOSER_H
#define FT_DAEMON_DIAGNOSIS_DIAGNOSER_H
/*
 * Which rank of a running job hangs or is slow, in communication or outside of it.
 *
 * Keeps what the ranks did recently (recent.h), puts it before lib/diagnosis every few seconds,
 * each second where an operation stands for long, and adds what the rest of the daemon knows
 * (witness.h). What is found twice in a row is published as fabrictrace.diagnosis.v1 and raises an
 * event; what is not found any more for several times is over. Bounded: ranks, rows, rows of one
 * look, what stands. Time is passed in. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/diagnosis/recent.h"
#include "daemon/diagnosis/second.h"
#include "daemon/diagnosis/witness.h"
#include "daemon/publish/emit.h"
#include "daemon/publish/events.h"

struct ft_diagnoser_config {
    struct ft_recent_config recent;
    size_t rows_look;    /* of one job at a time; 0: 65,536 */
    size_t standing_max; /* diagnoses at a time */
    int64_t hang_ms;     /* what stands for less does not hang */
};

/* What it works with; all borrowed. */
struct ft_diagnoser_surroundings {
    const char *fabric;
    uint32_t window; /* of the events */
    struct ft_events *events;
    const struct ft_emitter *emitter;
    struct ft_witnesses witnesses;
    struct ft_second *second; /* NULL: none */
};

struct ft_diagnoser_stats {
    uint64_t looks;          /* at a job */
    uint64_t folded;         /* of these in vain: operations came in sums */
    uint64_t gaps;           /* operations of which a record was missing */
    uint64_t refused;        /* diagnoses that found no room */
    uint64_t pairs_left_out; /* of the matrix of delays: more than are compared at a time */
};

/* Operations that one look at a job takes, where nobody says, or six of each rank; and what it
 * needs for them at a time, with what is found: in any case, and for each rank that may be kept. */
#define FT_DIAGNOSER_ROWS_LOOK  65536
#define FT_DIAGNOSER_BYTES_MAX  (20u << 20)
#define FT_DIAGNOSER_RANK_BYTES 2048

struct ft_diagnoser;

/* NULL without memory. */
struct ft_diagnoser *ft_diagnoser_new(const struct ft_diagnoser_config *config);
void ft_diagnoser_free(struct ft_diagnoser *d);

/* Both take a record that is in order. */
void ft_diagnoser_collective(struct ft_diagnoser *d, const Fabrictrace__Collective *c,
                             int64_t now_ms);
void ft_diagnoser_progress(struct ft_diagnoser *d, const Fabrictrace__Progress *p, int64_t now_ms);

/* A process opened a communicator, or left it. */
void ft_diagnoser_communicator(struct ft_diagnoser *d, const Fabrictrace__Communicator *c);

/* Continues the look at a job, or begins the next that is due, for about this much work: 1 is what
 * a row costs in some step. What it works with must not change while a look is in progress; a
 * record for the diagnoser ends it in one step. False: none is due any more. */
bool ft_diagnoser_step(struct ft_diagnoser *d, int64_t now_ms, uint64_t work,
                       const struct ft_diagnoser_surroundings *around);
bool ft_diagnoser_looking(const struct ft_diagnoser *d);

/* Ends the look that is in progress. */
void ft_diagnoser_finish(struct ft_diagnoser *d);

/* Before the close of a window: names links of what stands, as far as the flows of the window
 * before show them by now, and raises its events. */
void ft_diagnoser_raise(struct ft_diagnoser *d, const struct ft_diagnoser_surroundings *around,
                        int64_t now_ms);

/* Emits the next diagnosis that stands. index begins at 0; false: that was all. */
bool ft_diagnoser_next(const struct ft_diagnoser *d, uint32_t *index,
                       const struct ft_emitter *emitter);

/* Those of a syndrome that stand. */
size_t ft_diagnoser_count(const struct ft_diagnoser *d, Fabrictrace__Syndrome syndrome);
const struct ft_recent *ft_diagnoser_recent(const struct ft_diagnoser *d);
const struct ft_diagnoser_stats *ft_diagnoser_stats(const struct ft_diagnoser *d);

#endif
