// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_BLAMED_H
#define FT_DAEMON_DIAGNOSIS_BLAMED_H
/*
 * What the matrix of delay per byte says of a job, as diagnoses: by itself, or of a diagnosis of
 * its operations that does not know who is slow. Where the matrix leaves sender, receiver and the
 * links between possible, counters of switches and hosts decide where they can. A link that makes
 * its pairs stall now and then (stalled.h) explains all of them. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/diagnosis/delays.h"
#include "daemon/diagnosis/stalled.h"
#include "daemon/diagnosis/witness.h"

#define FT_BLAMED_TEXTS 6

/* Of one look at a job. */
struct ft_blamed {
    struct ft_delays_verdict verdicts[FT_DELAYS_VERDICTS];
    bool reported[FT_DELAYS_VERDICTS];
    size_t count;
    struct ft_delays_noise noise;
    struct ft_stalled stalled;
    const struct ft_witnesses *witnesses;
    const struct ft_delays_verdict *now; /* that the report is of; NULL */
    const struct ft_recent *recent;
    const struct ft_recent_job *job;
    bool numbered; /* processes have numbers of the job */
    int64_t now_ms;
    uint64_t left_out; /* pairs that were not compared */
    char texts[FT_BLAMED_TEXTS][FT_TESTIMONY_BYTES];
    size_t text_count;
};

/* Without memory it says nothing. Borrows the witnesses. */
void ft_blamed_look(struct ft_blamed *b, const struct ft_recent *recent, struct ft_recent_job *job,
                    int64_t now_ms, bool numbered, const struct ft_witnesses *w,
                    struct ft_task *task);

/* Of a slow communicator whose culprit is not known, or not at which end: one that the matrix
 * blames; who is named needs no second diagnosis. False: all that the matrix blames was said of
 * others, of which this is a part, or the matrix acquits the end that is named,
 * or says that a link may be it as well; or the matrix is about to say who it is. */
bool ft_blamed_refine(struct ft_blamed *b, struct ft_diagnosis_report *r,
                      const struct ft_recent_rank **rank, const struct ft_recent_rank **peer);

/* Of a rank that is slow by its own work: where the matrix blames its end of transfers as well,
 * that is one diagnosis (mixed), and needs no second one. */
void ft_blamed_join(struct ft_blamed *b, struct ft_diagnosis_report *r,
                    const struct ft_recent_rank *rank);

/* Fills a report of the next that nothing else was said of; false: there is none. */
bool ft_blamed_next(struct ft_blamed *b, struct ft_diagnosis_report *r,
                    const struct ft_recent_rank **rank, const struct ft_recent_rank **peer);

/* After the witnesses were heard: the link, and the side where counters decide it. */
void ft_blamed_decide(struct ft_blamed *b, struct ft_diagnosis_report *r,
                      struct ft_testimony *room);

#endif
