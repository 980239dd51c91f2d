// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_STALL_H
#define FT_DAEMON_DIAGNOSIS_STALL_H
/*
 * Whether a job stands still or has become slow, by when its flows are sampled alone.
 *
 * A standstill: a job whose period was known sends nothing any more, for two minutes, ten of its
 * periods and three times as long as it ever paused, while agents still report its queue pairs
 * and other traffic is sampled. A slowdown: its period is at least 1.3 times what is usual for it,
 * and it sends as much less a second, in three windows in a row. Which rank it is nobody knows from
 * flows, and where the plugin reports the job, nothing is said.
 *
 * What is usual follows the job slowly. Another period, if it does not count as slow, as after the
 * first minutes of a job or with other input, is usual after five minutes; to return within an hour
 * to the one before it does not count as slow: the other may have been an evaluation. Pure. Owner:
 * the caller. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "proto/fabrictrace.pb-c.h"

/* At the close of a window; times in Unix milliseconds, 0: never. */
struct ft_stall_view {
    int64_t end_ms;     /* of the window */
    int64_t last_ms;    /* newest sample of the job */
    int64_t alive_ms;   /* newest report of one of its queue pairs */
    int64_t sampled_ms; /* newest sample of any flow, or counter sample */
    int64_t plugin_ms;  /* newest report of the plugin about the job */
    int64_t pause_ms;   /* longest time without samples that is kept */
    double period_ms;   /* by the last periods; 0: not known */
    double rate;        /* of what was sampled, while these lasted */
};

/* A job; zero is new. */
struct ft_stall {
    double period_ms, rate;      /* usual */
    double other_ms, other_rate; /* those of windows with another period */
    double former_ms;            /* the period that was usual before; 0: none, or long ago */
    double ratio;                /* of the slowdown */
    int64_t pause_ms;            /* the longest that ended */
    int64_t since_ms, heard_ms, slow_ms;
    uint32_t known, slow, calm;     /* windows: with a period, slow in a row, not slow in a row */
    uint32_t other;                 /* windows with another period, in a row */
    uint32_t since_former;          /* windows with a period since another was usual */
    uint32_t in_a_row;              /* the most that were slow so, of what stands */
    Fabrictrace__Syndrome syndrome; /* that stands; UNKNOWN: none */
};

/* Whether something begins or ends to stand: then *ended is what ended, UNKNOWN where nothing did.
 */
bool ft_stall_look(struct ft_stall *s, const struct ft_stall_view *view, struct ft_stall *ended);

/* [ms] Its usual period, once enough windows had one; 0: not known. */
double ft_stall_period_ms(const struct ft_stall *s);

/* Whether its queue pairs are gone, and nothing of it is sampled: what is reported of that name
 * later is another run. */
bool ft_stall_is_gone(int64_t alive_ms, int64_t last_ms, int64_t end_ms);

/* Whether the plugin reports the job, or its queue pairs are gone: nothing is said of it. */
bool ft_stall_is_over(int64_t alive_ms, int64_t last_ms, int64_t plugin_ms, int64_t end_ms);

#define FT_STALL_TEXT 256

/* The record of what stands, and its event, and what they point to. */
struct ft_stall_report {
    Fabrictrace__Diagnosis diagnosis;
    Fabrictrace__Event event;
    char message[FT_STALL_TEXT], reasons[3][FT_STALL_TEXT], *list[3], *doubts[1];
};

/* Borrows job and fabric. */
void ft_stall_fill(struct ft_stall_report *r, const struct ft_stall *s, const char *job,
                   const char *fabric, int64_t now_ms, bool cleared);

#endif
