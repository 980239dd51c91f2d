// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_DIAGNOSIS_STANDING_H
#define FT_DAEMON_DIAGNOSIS_STANDING_H
/*
 * The diagnoses that stand: what was found in two looks in a row is said and raises an event; what
 * three looks did not find any more is over. Capped; keeps each as the record that it was found as
 * last. Jobs are known by their numbers (recent.h). Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/emit.h"
#include "daemon/publish/events.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_standing;

/* Where they go to; all borrowed. */
struct ft_standing_out {
    struct ft_events *events;
    const struct ft_emitter *emitter;
    uint32_t window; /* of the events */
    int64_t now_ms;
};

/* max: at a time. NULL without memory. */
struct ft_standing *ft_standing_new(size_t max, uint64_t seed);
void ft_standing_free(struct ft_standing *s);

bool ft_standing_is_hang(uint32_t syndrome);

/* A look at the job found it; numbered: ranks have numbers of the job. False: no room. */
bool ft_standing_hit(struct ft_standing *s, uint32_t job, const Fabrictrace__Diagnosis *m,
                     bool numbered, const struct ft_standing_out *out);

/* A look at the job is over: counts it for what it did not find. hangs_alone: nothing else was
 * looked for; hangs: the job stands. */
void ft_standing_miss(struct ft_standing *s, uint32_t job, bool hangs_alone, bool hangs,
                      const struct ft_standing_out *out);

/* The job is gone, and with it what stood. */
void ft_standing_over(struct ft_standing *s, uint32_t job, const struct ft_standing_out *out);

bool ft_standing_has_hang(const struct ft_standing *s, uint32_t job);

/* Offers each that was said and names no link to a function that may name one, by which it returns
 * true: it is said anew then. */
void ft_standing_offer(struct ft_standing *s,
                       bool (*name)(const void *arg, Fabrictrace__Diagnosis *m), const void *arg,
                       const struct ft_standing_out *out);

/* Raises the events of what stands. */
void ft_standing_raise(struct ft_standing *s, struct ft_events *events, uint32_t window);

/* Emits the next that stands. index begins at 0; false: that was all. */
bool ft_standing_next(const struct ft_standing *s, uint32_t *index,
                      const struct ft_emitter *emitter);

/* Those of a syndrome. */
size_t ft_standing_count(const struct ft_standing *s, Fabrictrace__Syndrome syndrome);

#endif
