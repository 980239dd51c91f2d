// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_CAPTURE_AGGREGATES_H
#define FT_AGENT_CAPTURE_AGGREGATES_H
/*
 * Interfaces that stand for several (bonding, team): which members a frame may pass, as far as
 * sysfs reports (Linux Documentation/ABI/testing/sysfs-class-net and
 * Documentation/networking/bonding.rst).
 *
 * Which of several members a network card picks for a queue pair is not reported: all that
 * it may pick are named, and one alone only when there is no other. A VLAN over an aggregate counts
 * as the aggregate. Owner: the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FT_AGGREGATE_NAME_BYTES 64
#define FT_AGGREGATE_MEMBERS    16

struct ft_aggregate_member {
    char name[FT_AGGREGATE_NAME_BYTES];
    bool up;
    bool has_used, used; /* by the aggregate, to send; not reported for teams */
    uint64_t speed_bps;  /* 0: not reported */
};

struct ft_aggregate {
    char name[FT_AGGREGATE_NAME_BYTES];
    char mode[FT_AGGREGATE_NAME_BYTES]; /* as the kernel names it, "" for teams */
    size_t count;
    struct ft_aggregate_member members[FT_AGGREGATE_MEMBERS];
    /* Names of those that a frame may leave by, and come in by. */
    const char *sending[FT_AGGREGATE_MEMBERS], *receiving[FT_AGGREGATE_MEMBERS];
    size_t sending_count, receiving_count;
};

struct ft_aggregates;

/* root is "/sys/class/net" but in tests, borrowed. NULL without memory. */
struct ft_aggregates *ft_aggregates_new(const char *root);
void ft_aggregates_free(struct ft_aggregates *aggregates);

/* Reads anew all that was asked for since the last look, and forgets the others. What was returned
 * before is gone. */
void ft_aggregates_look(struct ft_aggregates *aggregates);

/* The aggregate that an interface is or stands on; NULL when it is none, or past 64 interfaces
 * (then nothing is said of their members). Lives until the next look. */
const struct ft_aggregate *ft_aggregates_get(struct ft_aggregates *aggregates,
                                             const char *interface);

/* The i-th that is known, in the order of asking; NULL past the last. */
const struct ft_aggregate *ft_aggregates_at(const struct ft_aggregates *aggregates, size_t i);

#endif
