// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_LOG_H
#define FT_BASE_LOG_H
/*
 * The programs' log: standard error, one line a message.
 *
 * Under systemd (stderr is the journal) a line begins with the priority in the form of
 * sd-daemon(3), "<4>"; elsewhere with the level's name. Subject first: "switch 'leaf3': ...".
 * Libraries return errors and do not log; a program logs once, where the error is handled.
 * Thread: any; a line is one write(2).
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/diag.h"

/* Values are those of syslog(3). */
enum ft_log_level {
    FT_LOG_ERROR = 3,
    FT_LOG_WARNING = 4,
    FT_LOG_NOTICE = 5,
    FT_LOG_INFO = 6,
    FT_LOG_DEBUG = 7,
};

/* Lines above `level` are dropped. Default: FT_LOG_INFO. */
void ft_log_level_set(enum ft_log_level level);

/* The level of a name as written in a config ("info"); -EINVAL if there is none. */
int ft_log_level_parse(const char *name, enum ft_log_level *level);

void ft_log(enum ft_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Each complaint as an error. */
void ft_log_complaints(const struct ft_diag *diag);

/* A text as a warning: the function for libraries that report trouble (lib/io/loop.h). */
void ft_log_trouble(const char *text);

/* At most `burst` messages an `interval_ns`; the rest is counted. For faults of peers. */
struct ft_log_limit {
    int64_t interval_ns;
    uint32_t burst;
    struct ft_mono since;
    uint32_t passed;
    uint64_t held;
};

/* True when a message may go out now. *held receives how many were held back since the last one
 * that passed, to be logged with it. */
bool ft_log_limit_pass(struct ft_log_limit *limit, struct ft_mono now, uint64_t *held);

/* Something that is up or down, such as a connection: each change is logged once, and another
 * reason of being down once an interval of the limit. */
struct ft_log_state {
    struct ft_log_limit limit;
    bool known, up, reported;
    struct ft_mono reported_at;
    char text[320]; /* the last that was said of it */
};

/* Logs what has changed: up as information, down as a warning. */
void ft_log_change(struct ft_log_state *state, bool up, const char *text, struct ft_mono now);

#endif
