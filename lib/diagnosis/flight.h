// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_FLIGHT_H
#define FT_DIAGNOSIS_FLIGHT_H
/*
 * Operations from the dumps of PyTorch's Flight Recorder, one of each rank: a pickle, or JSON where
 * it was asked for that.
 *
 * A dump has the last operations of its rank, of each group by number, and until when they were
 * seen. Its times are those of a watchdog that looks now and then, and of when an operation was
 * queued, so that they show who stands and not who is slow. What the oldest operation of any rank
 * in a group was is where the table begins: before it, some ranks have forgotten. Sends and
 * receives of two ranks that have no number in common begin where both have ended as many. Owner:
 * the caller. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/diagnosis/operations.h"

#define FT_FLIGHT_ERROR_BYTES 256

#define FT_FLIGHT_NAME_BYTES 64

struct ft_flight;
struct ft_task;

/* How far the ranks of the dumps are in the collectives of a process group, by its own numbers. */
struct ft_flight_group {
    char name[FT_FLIGHT_NAME_BYTES];
    char function[FT_FLIGHT_NAME_BYTES]; /* of the newest */
    uint64_t queued;                     /* number of the newest */
    uint64_t completed;                  /* of the newest that has ended */
    bool any, any_completed;
};

/* NULL without memory. */
struct ft_flight *ft_flight_new(void);
void ft_flight_free(struct ft_flight *f);

/* Whether bytes begin as a dump does, and not as a table of comma-separated values. */
bool ft_flight_is(const char *bytes, size_t len);

/* Takes the dump of a rank, and changes the bytes. -EINVAL with what is wrong in error, -E2BIG,
 * -ENOMEM. */
int ft_flight_add(struct ft_flight *f, uint32_t rank, char *bytes, size_t len,
                  char error[FT_FLIGHT_ERROR_BYTES]);

/* Bounds what one dump may take, 0: as tree.h does, and counts the work for a task, which may be
 * NULL. */
void ft_flight_pace(struct ft_flight *f, uint32_t nodes_max, struct ft_task *task);

/* The groups of the dumps that were added, of which one makes sense. How many; adds to left_out the
 * operations of further ones. */
size_t ft_flight_groups(const struct ft_flight *f, struct ft_flight_group *out, size_t max,
                        uint64_t *left_out);

/* Adds what all dumps say. Entries that are of no operation by themselves, such as groups of
 * sends, are left out; how many. -ENOMEM, -EOVERFLOW. */
int ft_flight_finish(struct ft_flight *f, struct ft_operations *ops, uint64_t *left_out);

#endif
