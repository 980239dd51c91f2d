// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_TOP_TOP_FETCH_H
#define FT_CLI_TOP_TOP_FETCH_H
/*
 * Asks the daemon beside the terminal's loop, so that keys are answered while it does not. One
 * request, of some commands, is in progress at a time; it has a thread of its own. Owner: the
 * caller. Thread: the first.
 */
#include "cli/args/args.h"
#include "cli/output/answer.h"

#define FT_TOP_ANSWERS 3

struct ft_top_fetch;

/* What came of it. */
struct ft_top_result {
    int rc;      /* of ft_fetch() */
    char *error; /* what it said, where rc is none; "" */
    struct ft_answer *answers[FT_TOP_ANSWERS];
};

void ft_top_result_free(struct ft_top_result *result);

/* NULL without memory or descriptors. */
struct ft_top_fetch *ft_top_fetch_new(void);

/* Ends what is in progress. */
void ft_top_fetch_free(struct ft_top_fetch *fetch);

/* Asks for what these commands show, with the other arguments of args, whose texts must stay until
 * it is over; what is in progress is ended first. 0 or -errno. */
int ft_top_fetch_begin(struct ft_top_fetch *fetch, const struct ft_args *args,
                       const enum ft_command *commands, size_t count);

/* Ends what is in progress, if anything. */
void ft_top_fetch_stop(struct ft_top_fetch *fetch);

bool ft_top_fetch_is_in_flight(const struct ft_top_fetch *fetch);

/* Can be read when it is over. */
int ft_top_fetch_fd(const struct ft_top_fetch *fetch);

/* Its result, which is the caller's then; false while it is in progress. */
bool ft_top_fetch_take(struct ft_top_fetch *fetch, struct ft_top_result *result);

#endif
