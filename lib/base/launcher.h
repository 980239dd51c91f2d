// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_LAUNCHER_H
#define FT_BASE_LAUNCHER_H
/*
 * Runs one program again and again, each time with a text on its standard input, in a process of
 * its own that was forked early: before the caller is large, has threads, and gives up being root.
 *
 * The program is called by its arguments, never by a shell, in /, with PATH, LANG, HOME and USER
 * alone in its environment, no descriptor but the first three, and no privilege to gain. Its output
 * is read, up to a mebibyte, and its first line kept. It is killed with its process group when its
 * time is over, when it ends, and when the caller does. One runs at a time. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>

struct ft_launcher_config {
    const char *const *argv; /* ends with NULL; the first is the program's path */
    const char *user;        /* NULL: the caller's */
    int64_t timeout_ns;
};

enum ft_launch_end {
    FT_LAUNCH_DONE,
    FT_LAUNCH_STATUS,  /* code: its exit status, not 0 */
    FT_LAUNCH_SIGNAL,  /* code: that killed it */
    FT_LAUNCH_TIMEOUT, /* it was killed */
    FT_LAUNCH_UNBORN,  /* code: errno of why it was not started */
};

#define FT_LAUNCH_SAID 200

struct ft_launched {
    enum ft_launch_end end;
    int code;
    char said[FT_LAUNCH_SAID]; /* the first line of what it wrote, in printable ASCII */
};

struct ft_launcher;

/* Thread: the process's only one. Borrows the config for the call. -errno with a complaint, also
 * where the user cannot be, or may not execute the program. */
int ft_launcher_new(struct ft_launcher **out, const struct ft_launcher_config *config, char *error,
                    size_t error_bytes);

/* Kills what runs. Takes NULL. */
void ft_launcher_free(struct ft_launcher *launcher);

/* Readable when a run has ended, or the launcher itself has. */
int ft_launcher_fd(const struct ft_launcher *launcher);

/* -errno where nothing was begun. A run must not be in progress. */
int ft_launcher_run(struct ft_launcher *launcher, const char *text, size_t len);

/* How a run ended. -EAGAIN: it has not; -EPIPE: the launcher is gone. */
int ft_launcher_take(struct ft_launcher *launcher, struct ft_launched *out);

#endif
