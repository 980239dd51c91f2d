// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_HELPER_H
#define FT_IO_HELPER_H
/*
 * A program of the administrator's that answers one question: started with arguments, never through
 * a shell, with an environment of its own (PATH, HOME, LC_ALL=C) and no descriptor of ours; what it
 * writes is read once it has ended, up to a limit. It is the leader of a process group, all of
 * which is killed when its time is over, when it has ended and when the helper is freed.
 *
 * It runs as this process's user. Owner: the caller. Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/loop.h"

#define FT_HELPER_OUT_BYTES 4096
#define FT_HELPER_ERR_BYTES 256

enum ft_helper_end {
    FT_HELPER_EXITED,
    FT_HELPER_SIGNALLED,
    FT_HELPER_TIMED_OUT,
};

struct ft_helper_result {
    enum ft_helper_end end;
    int status;      /* exit status, or number of the signal */
    bool too_long;   /* it wrote more than `out` holds */
    const char *out; /* its standard output, up to the first NUL byte; ends with one */
    const char *err; /* the beginning of its standard error, likewise */
};

struct ft_helper;

/* argv[0] is an absolute path. done() is called once, later, and may free the helper; `result` is
 * good until then. -errno where it cannot be started: -ENOENT, -EACCES. */
int ft_helper_start(struct ft_loop *loop, char *const argv[], int64_t timeout_ns,
                    void (*done)(void *arg, const struct ft_helper_result *result), void *arg,
                    struct ft_helper **helper);

/* Kills what still runs. Takes NULL. */
void ft_helper_free(struct ft_helper *helper);

#endif
