// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_LIVE_CHILDREN_H
#define FT_CLI_LIVE_CHILDREN_H
/*
 * The programs that a command starts, without any configuration: found beside the tool or where
 * they are installed, ended with it whatever happens to it, and heard of when they end too early.
 *
 * While there are children, SIGINT, SIGTERM, SIGHUP and SIGCHLD are blocked and read here. Children
 * are in process groups of their own: Ctrl-C reaches the tool alone, which ends them in order.
 * Owner: the caller. Thread: the main one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct ft_children;

/* NULL without memory or descriptors. */
struct ft_children *ft_children_new(void);

/* Ends all that run first: SIGTERM, the first started last, and SIGKILL to those that do not obey
 * within 10 s. Takes NULL. */
void ft_children_free(struct ft_children *children);

struct ft_child_start {
    const char *program;     /* "fabrictraced" */
    const char *const *args; /* after the program's name, ended by NULL */
    int in, out;             /* its standard input and output; -1: /dev/null. Stay the caller's */
    bool ports;              /* it takes --ports, and says so when it answers */
};

/* Starts a program, whose log is kept. EX_OK and its number, from 0 on, in *child; else the exit
 * status after a complaint to err: EX_UNAVAILABLE where there is no such program. */
int ft_children_launch(struct ft_children *children, const char *command,
                       const struct ft_child_start *start, int *child, FILE *err);

enum ft_children_news {
    FT_CHILDREN_NOTHING, /* the time is over */
    FT_CHILDREN_FD,      /* the descriptor can be read, or nobody writes to it any more */
    FT_CHILDREN_READY,   /* a child answers */
    FT_CHILDREN_ENDED,   /* a child has ended */
    FT_CHILDREN_STOP,    /* a signal asks to end; it stays so */
    FT_CHILDREN_FAILED,  /* poll(2) */
};

/* Where a daemon of ours may serve: the usual endpoint, where nobody has it and no other tool has
 * reserved it, else port 0. Reserved until ft_children_free(). */
#define FT_CHILDREN_HTTP      "127.0.0.1:9478"
#define FT_CHILDREN_HTTP_PORT 9478
const char *ft_children_http(struct ft_children *children);

/* Waits for the next of these; timeout_ms -1: as long as it takes. fd -1: none. */
enum ft_children_news ft_children_wait(struct ft_children *children, int fd, int timeout_ms);

/* Until a child answers: true. False when a signal came, or one of the children ended. */
bool ft_children_await(struct ft_children *children, int child);

/* A port that a child that answers has bound ("http"); 0: it has none. */
uint16_t ft_children_port(const struct ft_children *children, int child, const char *name);

pid_t ft_children_pid(const struct ft_children *children, int child);

/* True when it has ended; *status as of waitpid(2). */
bool ft_children_ended(const struct ft_children *children, int child, int *status);

/* While something else runs in this process, which reads no news: signals end the process at once,
 * and the kernel ends the children then. Until ft_children_block(). */
void ft_children_unblock(const struct ft_children *children);
void ft_children_block(const struct ft_children *children);

/* True when a signal has asked to end. */
bool ft_children_stopped(const struct ft_children *children);

/* The lines that a child logged last, i from 0 on; NULL: there are no more. Borrowed. */
const char *ft_children_line(const struct ft_children *children, int child, size_t i);

/* The last lines of a child's log so far. */
void ft_children_log(const struct ft_children *children, int child, FILE *out);

/* Of a child that has ended, the first with a status other than 0: its name, how it ended, and the
 * last lines of its log. The exit status that the tool should have: the child's where it is one of
 * sysexits.h, else EX_SOFTWARE; EX_OK where none has ended. */
int ft_children_complain(const struct ft_children *children, const char *command, FILE *err);

#endif
