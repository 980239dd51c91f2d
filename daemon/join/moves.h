// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_JOIN_MOVES_H
#define FT_DAEMON_JOIN_MOVES_H
/*
 * The paths that a flow left in the windows that are still open, so that what it sent goes to the
 * path that it had then.
 *
 * Sightings of a path that was left carry its number (struct ft_sighting, past) as long as they
 * have volume in an open window. Most flows never move and have none of this. Pure. Thread: one.
 */
#include "daemon/join/join.h"

#define FT_MOVES_MAX 4

struct ft_moves {
    uint8_t count;
    uint8_t last;     /* number given last */
    int64_t moved_ms; /* when the present path began; INT64_MIN: with what is present */
    struct {
        uint8_t number;
        struct ft_path path;
    } left[FT_MOVES_MAX];
};

/* The number under which sightings of the path are filed that the flow left at a moment:
 * FT_PAST_NONE without a path, or memory, or when too many were left. */
uint8_t ft_moves_leave(struct ft_flow *flow, const struct ft_path *path, int64_t moved_ms);

/* Forgets the paths of which no sighting is left. */
void ft_moves_forget(struct ft_flow *flow);

/* A part of what a flow sent in a window. */
struct ft_move_part {
    const struct ft_path *path; /* NULL: not known */
    double share;
};

/* Divides the volume of a window among the present path (the first part, perhaps with share 0) and
 * those that were left in it, by their samples. Returns the number of parts: 1 where it did not
 * move. `path` NULL: the present one is not known. */
#define FT_MOVE_PARTS (FT_MOVES_MAX + 2)
size_t ft_moves_divide(const struct ft_flow *flow, const struct ft_path *path, unsigned slot,
                       struct ft_move_part parts[FT_MOVE_PARTS]);

#endif
