// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_PAIR_RATES_H
#define FT_DAEMON_DIAGNOSIS_PAIR_RATES_H
/*
 * Which pairs of hosts of a job have become slow, by the samples of its flows alone
 * (lib/diagnosis/pair_rate.h): a sender, a receiver, a pair, and the link where clean pairs leave
 * one.
 *
 * A pair is two addresses, so that each NIC of a host is an end. Of a job whose period is known its
 * pairs are judged, and what is usual of them learnt, every half minute to two minutes, as samples
 * allow: a block. Between, the newest time of that length is judged as well. What is found all over
 * half of it, and 20 seconds, is said, and is over where it is not found in two blocks, or where
 * ten of a job that sends cannot be judged. Who only waits in a synchronous exchange is as slow as
 * all: then nothing is said. Nor is it of a job some of whose pairs found no room, for what these
 * pass on is not known. Capped: pairs at a time, of one job, what is found of it; a pair without
 * samples for a quarter of an hour makes room. Owner: rhythms.h. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/join/join.h"
#include "lib/diagnosis/pair_rate.h"
#include "proto/fabrictrace.pb-c.h"

#define FT_PAIR_RATES_PAIRS_MAX 4096 /* of all jobs */
#define FT_PAIR_RATES_OF_JOB    1024
#define FT_PAIR_RATES_FOUND     4
#define FT_PAIR_RATES_NAME      64
#define FT_PAIR_RATES_PORT      128

struct ft_pair_rates;
struct ft_pair_rates_pair;

/* Who is slow. */
struct ft_pair_rates_found {
    enum ft_side side;
    bool line, over; /* several pairs of the end; it is no longer so */
    bool stands;     /* it is said */
    bool sender_clean, receiver_clean, links_clean;
    uint32_t from, to, slow, all, pairs, hits, misses;
    double ratio;
    int64_t since_ms, first_ms; /* and when it was found first */
    struct ft_tuple tuple;      /* of a flow of the worst pair */
    uint32_t qp;                /* its sender's; UINT32_MAX: not known */
    char from_host[FT_PAIR_RATES_NAME], to_host[FT_PAIR_RATES_NAME];
    char switch_name[FT_PAIR_RATES_PORT], port[FT_PAIR_RATES_PORT]; /* "": no one link */
};

/* Of a job; zero is new. */
struct ft_pair_rates_job {
    struct ft_pair_rates_pair *first;
    uint32_t count, ends, serial, odd;
    int64_t folded_ms;                      /* until then samples are in spans; 0: none is */
    int64_t lengths_ms[FT_PAIR_RATE_SPANS]; /* a ring, as theirs */
    uint32_t newest;
    bool open;       /* the newest is not complete */
    uint32_t spans;  /* complete, without a gap */
    uint32_t block;  /* the number of this one */
    uint32_t begun;  /* spans in it */
    uint32_t length; /* of the one before; 0: none */
    bool refused;    /* there was no room for all of its pairs in it */
    struct ft_pair_rates_found found[FT_PAIR_RATES_FOUND];
};

/* NULL without memory. */
struct ft_pair_rates *ft_pair_rates_new(uint64_t seed);
void ft_pair_rates_free(struct ft_pair_rates *p);

/* Samples of a flow of the job. */
void ft_pair_rates_take(struct ft_pair_rates *p, struct ft_pair_rates_job *job,
                        const struct ft_observation *o);

/* While a window closes, before the look: a flow of the job that was sampled in it, and which way
 * it went. */
void ft_pair_rates_flow(struct ft_pair_rates *p, struct ft_pair_rates_job *job,
                        const struct ft_join *join, const struct ft_flow *flow);

/* At the close of a window. period_ms 0: it is not known, and nothing is judged. blur_ms: samples
 * show no shorter times. Calls `changed` for what begins or ends to stand. True: about this much
 * work (lib/base/task.h) is done and there is more: to be called again with the same view before
 * another job is looked at. */
struct ft_pair_rates_view {
    struct ft_pair_rates_job *job;
    int64_t start_ms, end_ms;
    double period_ms, blur_ms;
    bool silent; /* nothing is to be said of the job, nor of what stands */
    void (*changed)(void *arg, const struct ft_pair_rates_found *found);
    void *arg;
};
bool ft_pair_rates_look(struct ft_pair_rates *p, const struct ft_pair_rates_view *view,
                        uint64_t work);

/* Ports have other numbers: no pair has links until its flows are seen again. */
void ft_pair_rates_forget_ports(struct ft_pair_rates *p);

/* The job is gone. */
void ft_pair_rates_drop(struct ft_pair_rates *p, struct ft_pair_rates_job *job);

/* Observations whose pair found no room. */
uint64_t ft_pair_rates_refused(const struct ft_pair_rates *p);

#define FT_PAIR_RATES_TEXT 320

/* The record of what was found and its event, and what they point to. */
struct ft_pair_rates_report {
    Fabrictrace__Diagnosis diagnosis;
    Fabrictrace__Event event;
    Fabrictrace__Evidence evidence;
    Fabrictrace__Flow flow;
    char message[FT_PAIR_RATES_TEXT], subject[FT_PAIR_RATES_TEXT], reasons[4][FT_PAIR_RATES_TEXT];
    char *list[4], *doubts[2];
};

/* Borrows all of it. */
void ft_pair_rates_fill(struct ft_pair_rates_report *r, const struct ft_pair_rates_found *found,
                        const char *job, const char *fabric, int64_t now_ms);

#endif
