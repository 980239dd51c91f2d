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

/* The same of one that was seen before, start_ticks 0: that was not. -ESRCH also where another
 * process has its number now; -EACCES: it cannot be seen at all, being of a PID namespace of its
 * own, or hidden (proc(5), hidepid), which does not say that it has ended. */
int ft_process_see_again(uint32_t pid, const struct ft_process_seen *before,
                         struct ft_process_seen *out);

/* What ft_process_see() reads of the text of a stat file: for tests. */
int ft_process_read(const char *text, struct ft_process_seen *out);

#endif
