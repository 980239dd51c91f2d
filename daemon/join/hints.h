// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_HINTS_H
#define FT_DAEMON_JOIN_HINTS_H
/*
 * What is said of the ways of flows besides samples (lib/fabric/hinted.h): for a flow and a switch
 * the port out, by whom and when; or that nothing could be said, so that nobody asks again soon.
 * Good for one topology: the join forgets all of them when it takes another. Capped: the oldest
 * goes first. Pure: times come in. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/tuple.h"
#include "lib/fabric/hinted.h"

/* Of a flow: every switch of a path. */
#define FT_HINTS_FLOW FT_PATH_HOPS_MAX
/* Flows that have any. */
#define FT_HINTS_FLOWS     4096
#define FT_HINTS_BYTES_MAX (FT_HINTS_FLOWS * 256)

struct ft_said {
    struct ft_hint hint; /* out FT_NONE: nothing could be said */
    bool checked;        /* held against samples */
    int64_t at_ms;
};

struct ft_said_of_flow {
    struct ft_tuple tuple;
    uint32_t count;
    int64_t newest_ms;
    struct ft_said said[FT_HINTS_FLOW];
};

struct ft_hints;

/* keep_ms: how long one is good. NULL without memory. */
struct ft_hints *ft_hints_new(int64_t keep_ms, uint64_t seed);
void ft_hints_free(struct ft_hints *h);

/* The time that the calls below are of. */
void ft_hints_advance(struct ft_hints *h, int64_t now_ms);

/* Replaces what was said of the flow at this switch. */
void ft_hints_put(struct ft_hints *h, const struct ft_tuple *tuple, const struct ft_hint *hint);

/* What was said of a flow, without what is older than keep_ms; NULL: nothing. Good until the next
 * call that changes anything. */
struct ft_said_of_flow *ft_hints_of(struct ft_hints *h, const struct ft_tuple *tuple);

/* The hints among them. Returns how many were stored. */
size_t ft_hints_list(const struct ft_said_of_flow *said, struct ft_hint list[FT_HINTS_FLOW]);

/* Forgets what switches answered of a flow, and that they were asked: probes go where the flow
 * does, questions are about a header that it may have no more. */
void ft_hints_drop_answers(struct ft_hints *h, const struct ft_tuple *tuple);

void ft_hints_clear(struct ft_hints *h);

#endif
