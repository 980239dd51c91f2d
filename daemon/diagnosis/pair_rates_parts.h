// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_PAIR_RATES_PARTS_H
#define FT_DAEMON_DIAGNOSIS_PAIR_RATES_PARTS_H
/*
 * What the parts of pair_rates.h share: a pair, pairs that are judged, and what stands of what was
 * found. Owner: pair_rates.c. Thread: one.
 */
#include "daemon/diagnosis/pair_rates.h"
#include "lib/base/task.h"

#define FT_PAIR_RATES_PORTS 16

struct ft_pair_rates_key {
    uint32_t job;
    struct ft_ip src, dst;
};

struct ft_pair_rates_pair {
    struct ft_pair_rates_key key;
    struct ft_pair_rates_pair *next;
    struct ft_pair_rate rate;
    int64_t last_ms;
    /* What its flows cross, each counted once a window, since a number of the job's block. */
    uint32_t ports[FT_PAIR_RATES_PORTS], port_count;
    uint16_t crossed[FT_PAIR_RATES_PORTS];
    bool last[FT_PAIR_RATES_PORTS]; /* whether it is the last one of a flow */
    uint32_t block, flows;
    bool unsure; /* not all of its flows have a certain path */
    struct ft_tuple tuple;
    uint32_t qp;
    char from_host[FT_PAIR_RATES_NAME], to_host[FT_PAIR_RATES_NAME];
};

/* The pairs of a job are judged. What is taken meanwhile is of bins that it does not read. */
struct ft_pair_rates_judging {
    struct ft_task *task;
    struct ft_pair_rates_pair **pairs;
    struct ft_pair_rate **rates;
    uint32_t count, ends;
    double bins, least;
    uint32_t spans;
    int64_t span_ms; /* all of them */
    bool block;      /* not the newest time, between two of these */
    enum ft_pair_rate_outcome outcome;
    struct ft_blames blames;
    bool vain; /* of ports that have other numbers by now */
};

/* What is found, and what is no longer, of pairs that were judged; so many were compared. */
void ft_pair_rates_conclude(const struct ft_join *join, const struct ft_pair_rates_view *view,
                            const struct ft_pair_rates_judging *j, uint32_t compared);

/* They could not be judged: what stands is no longer borne out, but by a job that pauses. */
void ft_pair_rates_pass_over(const struct ft_pair_rates_view *view,
                             const struct ft_pair_rates_judging *j);

/* It is over; where it stood, that is said. */
void ft_pair_rates_end(struct ft_pair_rates_found *found, const struct ft_pair_rates_view *view);

#endif
