// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_SECOND_H
#define FT_DAEMON_DIAGNOSIS_SECOND_H
/*
 * What second sources say to a diagnosis of a hang or a mismatch: NCCL's RAS subsystem by the
 * operations that ranks of a communicator have launched, and dumps of PyTorch's Flight Recorder by
 * those that its ranks queued.
 *
 * They never change who is named. What was said before the fault could show counts for nothing, and
 * neither does what cannot be compared: a RAS whose numbers stand (CUDA graphs), a process group
 * whose dumps are not just the ranks of the communicator. Capped in entries and bytes; what is old
 * is forgotten. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/diagnosis/recent.h"
#include "lib/diagnosis/report.h"

struct ft_task;
struct ft_second;

#define FT_SECOND_ENTRIES_MAX 4096
#define FT_SECOND_BYTES_MAX   (2u << 20) /* with what RAS said, a half */
#define FT_SECOND_SOURCES     2
#define FT_SECOND_TEXT        224

/* What a report borrows. */
struct ft_second_opinions {
    Fabrictrace__SecondOpinion items[FT_SECOND_SOURCES], *list[FT_SECOND_SOURCES];
    char texts[FT_SECOND_SOURCES][FT_SECOND_TEXT];
};

/* The diagnosed case. */
struct ft_second_case {
    const struct ft_recent *recent;
    const struct ft_recent_job *job;
    const struct ft_recent_rank *rank; /* that is named; NULL: none */
    bool numbered;                     /* processes have numbers of the job */
    struct ft_task *task;
};

struct ft_second_stats {
    uint64_t entries;
    uint64_t refused;   /* records that found no room */
    uint64_t agrees;    /* opinions given, each time that a diagnosis was looked at */
    uint64_t disagrees; /* of these the ones that contradict it */
};

/* NULL without memory. */
struct ft_second *ft_second_new(uint64_t seed);
void ft_second_free(struct ft_second *second);

/* Takes a record. -EINVAL: not one; -ENOSPC: no room. */
int ft_second_take(struct ft_second *second, const Fabrictrace__RankStates *m, int64_t now_ms);

/* Adds to a report of a hang or mismatch what is said to it: opinions, which are evidence, too.
 * One that contradicts it takes from its confidence. second may be NULL. */
void ft_second_report(struct ft_second *second, const struct ft_second_case *c,
                      struct ft_diagnosis_report *r, struct ft_second_opinions *room);

struct ft_second_stats ft_second_stats(const struct ft_second *second);

#endif
