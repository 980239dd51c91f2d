// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_PLANS_PLAN_READER_H
#define FT_AGENT_PLANS_PLAN_READER_H
/*
 * Reads files of plans beside the loop, one at a time: one of the largest size takes tens of
 * milliseconds, for which neither queue pairs nor packets wait. Each has a thread of its own, which
 * touches nothing else. Owner: the caller. Thread: the loop's.
 */
#include <stdbool.h>

#include "agent/plans/plan_file.h"

#define FT_PLAN_READ_ERROR 256

struct ft_loop;
struct ft_plan_reader;

/* What came of a file; rc, file and error as ft_plan_file_read() gives them. */
struct ft_plan_read {
    int rc;
    struct ft_plan_file file;
    char error[FT_PLAN_READ_ERROR];
};

/* done() takes the file over, and may begin the next. NULL without memory. */
struct ft_plan_reader *ft_plan_reader_new(struct ft_loop *loop,
                                          void (*done)(void *arg, const struct ft_plan_read *read),
                                          void *arg);

/* Waits for the end of what is being read, and forgets it. Takes NULL. */
void ft_plan_reader_free(struct ft_plan_reader *reader);

bool ft_plan_reader_busy(const struct ft_plan_reader *reader);

/* Begins to read what is open, which it closes in any case; nothing else may be being read. 0 or
 * -errno, where done() is not called. */
int ft_plan_reader_begin(struct ft_plan_reader *reader, int fd, const char *job);

#endif
