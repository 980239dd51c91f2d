// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_INFERENCE_INFERENCE_H
#define FT_DAEMON_INFERENCE_INFERENCE_H
/*
 * Paths of flows without samples, inferred from what links counted and what hosts sent over many
 * windows (lib/fabric/tomography.h, with its conditions).
 *
 * For each leaf's uplinks: in each window the bytes of flows whose uplink samples do not show, as
 * their hosts report them, and what each uplink counted, without flows whose uplink is known. Each
 * few windows the question is put anew. An answer is a hint of the weakest kind (lib/fabric/
 * hinted.h); one that samples contradict makes all that is known of its leaf be forgotten. Answers
 * that later windows contradict are withdrawn, and windows before these are forgotten: the question
 * is put again once there are enough. No answer is given while the newest windows alone do not rule
 * out that it is of before, nor without counters of them.
 *
 * A window counts when all uplinks have counters for it, which come some windows late. Capped:
 * leaves, flows of a leaf, windows. Good for one topology. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/join/counters.h"
#include "daemon/join/join.h"
#include "lib/fabric/hinted.h"
#include "lib/fabric/tomography.h"

#define FT_INFERENCE_LEAVES  128
#define FT_INFERENCE_FLOWS   64
#define FT_INFERENCE_LINKS   64
#define FT_INFERENCE_WINDOWS 256
/* Rows of floats, flows and windows of each leaf; and what one solution takes. */
#define FT_INFERENCE_LEAF_BYTES                                                                    \
    (FT_INFERENCE_WINDOWS * (FT_INFERENCE_FLOWS + FT_INFERENCE_LINKS + 4) * 4 +                    \
     FT_INFERENCE_FLOWS * (FT_INFERENCE_LINKS * 8 + 64) + FT_INFERENCE_LINKS * 8 + 1024)
#define FT_INFERENCE_BYTES_MAX (FT_INFERENCE_LEAVES * FT_INFERENCE_LEAF_BYTES + 2 * 1024 * 1024)

/* Each window of a leaf ends in one of these, or is pending. */
enum ft_inference_window {
    FT_INFERENCE_USED,
    FT_INFERENCE_UNCOUNTED, /* an uplink has no counters for it */
    FT_INFERENCE_CROWDED,   /* more flows without samples than are kept */
    FT_INFERENCE_PARTIAL,   /* this daemon did not see all of it */
    FT_INFERENCE_FORGOTTEN, /* before its counters came: the topology changed, or an answer was
                               wrong */
    FT_INFERENCE_OUTCOMES,
};

struct ft_inference_stats {
    uint64_t windows[FT_INFERENCE_OUTCOMES];
    uint64_t pending;                     /* windows that wait for counters */
    uint64_t flows[FT_TOMOGRAPHY_STATES]; /* as of the last windows */
    uint64_t leaves;
    uint64_t refused;                 /* flows in a window whose leaf had no room */
    uint64_t confirmed, contradicted; /* answers, by samples that came later */
};

struct ft_inference;

/* NULL without memory. t is borrowed until ft_inference_follow(). */
struct ft_inference *ft_inference_new(const struct ft_topology *t);
void ft_inference_free(struct ft_inference *inf);

/* Takes another topology, and forgets everything. -ENOMEM: then nothing is inferred. */
int ft_inference_follow(struct ft_inference *inf, const struct ft_topology *t);

/* When a window closes: first begin, then its flows, then steps until one returns false. A step is
 * one leaf: up to some milliseconds of work. partial: not all of the window was seen. */
void ft_inference_begin(struct ft_inference *inf, uint32_t window, int64_t start_ms, bool partial);
void ft_inference_flow(struct ft_inference *inf, const struct ft_join *join,
                       const struct ft_flow *flow);
bool ft_inference_step(struct ft_inference *inf, const struct ft_join *join,
                       const struct ft_counters *counters);

/* Whether there is any answer. */
bool ft_inference_is_ready(const struct ft_inference *inf);

/* By which port a flow leaves its leaf, which it enters by `in`; false: that is not known. */
bool ft_inference_predict(const struct ft_inference *inf, const struct ft_topology *t,
                          const struct ft_flow *flow, uint32_t in, struct ft_hint *hint);

void ft_inference_stats(const struct ft_inference *inf, struct ft_inference_stats *out);
const char *ft_inference_window_name(enum ft_inference_window outcome);

/* Leaves whose flows without samples get no answers, and why. */
struct ft_findings;
void ft_inference_find(const struct ft_inference *inf, struct ft_findings *findings);

#endif
