// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_JOBS_PROCESS_H
#define FT_AGENT_JOBS_PROCESS_H
/*
 * What the kernel says of another process: whether it runs, and when it started, since its number
 * may be another's after it has ended. Thread: any.
 */
#include <stdbool.h>
#include <stdint.h>

struct ft_process_seen {
    char state;           /* as in proc(5): R, S, D, T, t, Z ... */
    uint64_t start_ticks; /* since boot */
};

/* -ESRCH: there is none; -EBADMSG: what the kernel says is not understood; or -errno. */
int ft_process_see(uint32_t pid, struct ft_process_seen *out);

/* The same from the text of its stat file: for tests. */
int ft_process_read(const char *text, struct ft_process_seen *out);

#endif
