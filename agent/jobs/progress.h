// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_JOBS_PROGRESS_H
#define FT_AGENT_JOBS_PROGRESS_H
/*
 * How far a process is in each of its communicators: records of its rings and what is in flight in,
 * a report out where it stands still, and while an operation takes long.
 *
 * Nothing is reported of a communicator that moves. One where nothing began or ended for the quiet
 * time is reported once, again when what it waits for changes, and every few seconds while an
 * operation is open; when it continues, that is reported too. Whatever a job wrote, the work of a
 * look is bounded. Pure: `now` is handed in. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/jobs/rings.h"
#include "lib/base/clock.h"

#define FT_PROGRESS_FLIGHTS   512 /* of a process, that a look reads */
#define FT_PROGRESS_TRANSFERS 64  /* of a report */

enum ft_progress_process {
    FT_PROCESS_UNKNOWN,
    FT_PROCESS_RUNNING,
    FT_PROCESS_STOPPED,
    FT_PROCESS_UNINTERRUPTIBLE,
    FT_PROCESS_GONE,
};

enum ft_progress_state {
    FT_PROGRESS_UNKNOWN,
    FT_PROGRESS_BEGUN,
    FT_PROGRESS_IN_FLIGHT,
    FT_PROGRESS_FINISHED,
};

struct ft_progress_config {
    int64_t quiet_ns; /* without a movement: reported. An operation this old is reported as well */
    uint64_t seed;
};

/* An operation, from its records. */
struct ft_progress_op {
    uint64_t number;
    uint32_t comm;
    bool p2p, enqueued, sequence_stands;
    uint32_t ended, kernels_ended; /* transfers; channels of its kernel */
    int64_t start_ns;
    struct ft_segment_op op;
};

struct ft_progress_report {
    const struct ft_rings_comm *comm;
    enum ft_progress_process process;
    int64_t process_since_ns;
    uint64_t finished; /* 0: none is known to have */
    int64_t moved_ns;  /* 0: nothing was seen */
    bool standing;
    bool kernels; /* this job reports them */
    uint64_t number;
    enum ft_progress_state state;
    const struct ft_progress_op *op; /* of that number; NULL: its record was lost */
    uint32_t open, kernels_open;     /* of that operation */
    const struct ft_rings_flight *transfers[FT_PROGRESS_TRANSFERS]; /* the oldest first */
    size_t count, dropped;
};

struct ft_progress;

/* emit is called from the functions below; the report lives until it returns. NULL without memory.
 */
struct ft_progress *ft_progress_new(const struct ft_progress_config *config,
                                    void (*emit)(void *arg, const struct ft_progress_report *r),
                                    void *arg);
void ft_progress_free(struct ft_progress *p);

/* Takes a record of the process's rings. */
void ft_progress_record(struct ft_progress *p, const struct ft_segment_record *r,
                        struct ft_mono now);

/* Looks at all communicators, and reports what there is to report. A process that is gone is
 * reported with each that it left open. */
void ft_progress_look(struct ft_progress *p, struct ft_rings *rings,
                      enum ft_progress_process process, struct ft_mono now);

#endif
