// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_LOG_H
#define FT_BASE_LOG_H
/*
 * The programs' log: standard error, one line a message.
 *
 * Under systemd (stderr is the journal) a line begins with the priority in the form of
 * sd-daemon(3), "<4>"; elsewhere with the level's name. Subject first: "switch 'leaf3': ...".
 * A message that somebody may look for has journal fields, too: ft_log_about().
 * Libraries return errors and do not log; a program logs once, where the error is handled.
 * Thread: any; a line is one write(2), or one entry of the journal.
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

/* What kinds of message can be looked for, and are explained in the journal's catalog
 * (packaging/systemd/fabrictrace.catalog). The identifiers never change. */
enum ft_log_id {
    FT_LOG_ID_RELOADED,
    FT_LOG_ID_RELOAD_FAILED,
    FT_LOG_ID_DAEMON,    /* a sender's connection to the daemon: made, lost */
    FT_LOG_ID_PEER,      /* the daemon's connection to a sender: made, refused, ended */
    FT_LOG_ID_REFUSED,   /* a record that its sender's certificate does not allow */
    FT_LOG_ID_SWITCH,    /* a switch over SNMP: what is wrong with it, and that it is over */
    FT_LOG_ID_DATA_LOST, /* packets, samples or reports */
    FT_LOG_ID_INTERFACE, /* capture on it: ended, begun again */
    FT_LOG_ID_JOB,       /* a job's reports: followed, refused, ended */
    FT_LOG_ID_SINK,      /* records cannot be written or sent */
};

/* What a message is about. `field` is one of FT_LOG_*_FIELD; NULL with `name` NULL where there is
 * no such thing. Text from peers is allowed in `name`. */
struct ft_log_subject {
    enum ft_log_id id;
    const char *field, *name;
};

#define FT_LOG_SWITCH_FIELD    "FABRICTRACE_SWITCH"
#define FT_LOG_PEER_FIELD      "FABRICTRACE_PEER"
#define FT_LOG_INTERFACE_FIELD "FABRICTRACE_INTERFACE"
#define FT_LOG_JOB_FIELD       "FABRICTRACE_JOB_PID"
#define FT_LOG_SINK_FIELD      "FABRICTRACE_SINK"

/* The same line as ft_log() writes. Where stderr is the journal the entry has MESSAGE_ID and the
 * subject's field beside it (systemd.journal-fields(7)). */
void ft_log_about(enum ft_log_level level, const struct ft_log_subject *subject, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));

/* Sends one entry with the journal's fields; false where that cannot be: it becomes a line then. */
typedef bool ft_log_journal_fn(enum ft_log_level level, const struct ft_log_subject *subject,
                               const char *message_id, const char *text);

/* How ft_log_about() reaches the journal; NULL: not at all, the default (lib/io/journal.c). */
void ft_log_journal_set(ft_log_journal_fn *send);

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
    struct ft_log_subject subject;
    struct ft_log_limit limit;
    bool known, up, reported;
    struct ft_mono reported_at;
    char text[320]; /* the last that was said of it */
};

/* Logs what has changed: up as information, down as a warning. */
void ft_log_change(struct ft_log_state *state, bool up, const char *text, struct ft_mono now);

#endif
