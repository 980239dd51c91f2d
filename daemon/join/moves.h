// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_MOVES_H
#define FT_DAEMON_JOIN_MOVES_H
/*
 * The paths that a flow left in the windows that are still open, so that its bytes are counted on
 * the path that it had then.
 *
 * Sightings of a path that was left carry its number (struct ft_sighting, past) as long as they
 * have volume in an open window. Most flows never move and have none of this.
 *
 * A move lies between the last sample of the path before and moved_ms, the first of the present
 * one. Samples at hops that both paths share do not show when. So a window that began before
 * moved_ms and has no sample that is of one path alone, or later than moved_ms, is certainly of
 * neither path. A path that was left is never certain: neither the moment nor another path in
 * between is known. Uncertain volume is counted only on links on which the flow was sampled in the
 * window (ft_join_links()). Pure. Thread: one.
 */
#include "daemon/join/join.h"

#define FT_MOVES_MAX 4

struct ft_moves {
    uint8_t count;
    uint8_t last;     /* number given last */
    bool unnamed;     /* the path that was left last found no room */
    int64_t moved_ms; /* when the present path began; INT64_MIN: with what is present */
    struct {
        uint8_t number;
        struct ft_path path;
    } left[FT_MOVES_MAX];
};

/* The number under which sightings of the path are filed that the flow left at a moment:
 * FT_PAST_NONE without a path, or memory, or when too many were left. */
uint8_t ft_moves_leave(struct ft_flow *flow, const struct ft_path *path, int64_t moved_ms);

/* Forgets the paths of which no sighting is left, but for the last one while the move lies in a
 * window that is open: open_ms is when the first of them began. */
void ft_moves_forget(struct ft_flow *flow, int64_t open_ms);

/* A part of what a flow sent in a window. */
struct ft_move_part {
    const struct ft_path *path; /* NULL: not known */
    double share;
    uint8_t past; /* number of the path, FT_PRESENT */
    bool certain; /* the flow was on all of it in this window */
};

/* Divides the volume of a window, which began at from_ms, among the present path (the first part,
 * perhaps with share 0) and those that were left in it, by their samples. Returns the number of
 * parts: 1 where samples are of no other path. `path` NULL: the present one is not known; certain:
 * it is, but for moves of the flow itself. */
#define FT_MOVE_PARTS (FT_MOVES_MAX + 2)
size_t ft_moves_divide(const struct ft_flow *flow, const struct ft_topology *t,
                       const struct ft_path *path, bool certain, unsigned slot, int64_t from_ms,
                       struct ft_move_part parts[FT_MOVE_PARTS]);

#endif
