// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_FETCH_HISTORY_H
#define FT_CLI_FETCH_HISTORY_H
/*
 * What the daemon keeps of one link, ECMP group or flow, window by window.
 */
#include "cli/args/args.h"
#include "cli/output/answer.h"

/* As ft_fetch(): the records of what args names, the oldest window first, of args->limit the
 * newest. FT_EXIT_NOT_FOUND after a complaint where no window that is kept has it. */
int ft_fetch_history(const struct ft_args *args, struct ft_answer **answer, FILE *err);

#endif
