// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_HANG_IMPL_H
#define FT_DIAGNOSIS_HANG_IMPL_H
/*
 * What the parts of ft_find_hangs() share: hang.c finds roots, hang_said.c says what is known of
 * one. Private to them. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/diagnosis.h"
#include "lib/diagnosis/waits.h"

/* All of the job waits, and the table ends there: one that was cut there looks the same. */
#define ENDS_THERE 0.6

struct ft_hangs {
    const struct ft_matched *m;
    struct ft_waits *waits;
    struct ft_habits habits;
    struct ft_diagnoses *found;
    uint64_t *now_ns;  /* of each process, by its clock */
    uint64_t *seen_ns; /* the same, until when its rows reach */
    uint32_t *reached; /* nodes that wait for a root, from it outwards */
    uint32_t *toward;  /* of each node: the next one on the way to the root; NONE: not reached */
    size_t reached_count;
    bool *known;  /* nodes that are reported already, or lead to an end */
    bool ahead;   /* hosts call ahead: who is in an operation may not have begun it */
    bool no_more; /* nothing is known of the time after the newest row */
    bool closed;  /* the table has ended, and starts are when operations begin */
};

static inline uint64_t ft_hangs_since(uint64_t now_ns, uint64_t then_ns)
{
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* How long the longest of those reached has waited. */
uint64_t ft_hangs_waited(const struct ft_hangs *h);

/* How long a rank is in an operation, or was when the table ended. */
uint64_t ft_hangs_age_of(const struct ft_hangs *h, uint32_t row);

/* How long ago the last of a group entered. */
uint64_t ft_hangs_entered_ago(const struct ft_hangs *h, const struct ft_gathering *group);

/* The operation that a root's nearest waiter stands in. */
uint32_t ft_hangs_awaited(const struct ft_hangs *h);

/* A diagnosis of the operation of a row. NULL: no memory. */
struct ft_diagnosis *ft_hangs_add(struct ft_hangs *h, enum ft_syndrome syndrome, uint32_t row);

/* Who waits, and for whom. */
int ft_hangs_say_waiting(struct ft_hangs *h, struct ft_diagnosis *d);

/* Each adds a diagnosis of the root that was reached: -ENOMEM. A process, and others of its host;
 * a group that all have entered; a transfer; sends and receives that were begun at once, where one
 * rank, or NONE, is at one end of each. */
int ft_hangs_say_process(struct ft_hangs *h, uint32_t process, uint32_t others, bool certain);
int ft_hangs_say_group(struct ft_hangs *h, const struct ft_gathering *group, double confidence);
int ft_hangs_say_pair(struct ft_hangs *h, const struct ft_pair *pair, uint32_t row,
                      double confidence);
int ft_hangs_say_launches(struct ft_hangs *h, uint32_t row, uint32_t rank, double confidence);

#endif
