// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_WAITS_H
#define FT_DIAGNOSIS_WAITS_H
/*
 * The wait-for graph at the end of a trace, and what is usual in it.
 *
 * Nodes are the processes, then the groups that one of them stands in. A process stands in the
 * first of its operations that did not end; of sends and receives that it began at once, in the one
 * that keeps it there. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/matched.h"

struct ft_waits {
    size_t node_count;
    uint32_t *blocking; /* of a process: the row that it stands in, NONE */
    uint32_t *standing; /* of a process: that row where it is a send or receive that both have
                           entered, NONE */
    bool *several; /* of such a process: what it began at once with it stands with further ranks */
    uint32_t *company;  /* of a process: ranks in the same operation, itself too */
    uint64_t *last_ns;  /* of a process: end of its last operation that ended; 0 */
    uint32_t *last_row; /* that row, NONE */
    size_t *proven;     /* of outlived.h */
    uint32_t *group;    /* of the nodes behind the processes: index of the group */
    uint32_t *out, *in; /* nodes that a node waits for; that wait for it */
    size_t *out_first, *in_first;
};

/* NULL without memory. */
struct ft_waits *ft_waits_new(const struct ft_matched *m);
void ft_waits_free(struct ft_waits *w);

/* What others prove of processes whose newest rows are missing (outlived.h), of each by its clock.
 * seen_ns: until when there are rows of it. no_more: nothing is known of the time after the newest
 * row of all. */
void ft_waits_outlived(const struct ft_matched *m, struct ft_waits *w, const uint64_t *now_ns,
                       bool no_more, uint64_t *seen_ns);

/* The only process whose launch in a communicator stands with several others; NONE. */
uint32_t ft_waits_in_all(const struct ft_waits *w, const struct ft_matched *m, uint32_t comm);

/* The first node that a node waits for, if there is one: by it a circle is walked. From what waits
 * in circles each step leads to what waits in them too; after as many as there are nodes, round
 * one. */
static inline uint32_t ft_waits_next(const struct ft_waits *w, uint32_t node)
{
    return w->out[w->out_first[node]];
}

/* Marks what waits for a node that waits for none; what is left waits in circles. known and room:
 * as many as there are nodes. */
void ft_waits_mark_ends(const struct ft_waits *w, bool *known, uint32_t *room);

/* Of a circle that a node waits in: the rank that is in an operation that few have entered while
 * many wait for it in another, and the one in the operation that the most have. False where all
 * operations of it are entered by all: they only share a queue. */
bool ft_waits_circle(const struct ft_waits *w, const struct ft_matched *m, uint32_t node,
                     uint32_t *least, uint32_t *most);

/* The longest of what ended well. */
struct ft_habits {
    uint64_t own_max_ns;    /* in no operation, of any rank */
    uint64_t wait_max_ns;   /* in an operation, before all had entered */
    uint64_t late_usual_ns; /* the median of what follows */
    uint64_t *late_max_ns;  /* of a process: others in an operation, before it entered */
};

/* -ENOMEM. */
int ft_habits_init(struct ft_habits *habits, const struct ft_matched *m);
void ft_habits_free(struct ft_habits *habits);

/* How long a process usually is in no operation before one like the row's, or before its side of a
 * send or receive that the row of another waits in. */
uint64_t ft_habits_own(const struct ft_matched *m, uint32_t process, uint32_t row);

/* The same before its next one, where its rows repeat themselves, from where it was in them before;
 * FT_OPERATIONS_NEVER: they do not. */
uint64_t ft_habits_own_next(const struct ft_matched *m, uint32_t process);

/* The longest that a process was in no operation. The ranks of a host may work in step: then all of
 * them, so many, are away from the others at once. */
uint64_t ft_habits_longest_own(const struct ft_matched *m, uint32_t process);
size_t ft_habits_host_ranks(const struct ft_matched *m, uint32_t process);

/* The longest that the communicator of a row took for a function like it when all were there; 0:
 * none has ended. */
uint64_t ft_habits_transfer(const struct ft_matched *m, uint32_t row);

#endif
