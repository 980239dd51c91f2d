// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_ORACLE_ORACLE_H
#define FT_DAEMON_ORACLE_ORACLE_H
/*
 * What switches answer when they are asked by which port they would send a flow: whom to ask of
 * which flow and when, and how far the answers can be trusted. Whoever runs the commands
 * (daemon/service/oracles.h) takes a question and brings the answer back.
 *
 * Asked of are elephants without samples at a switch with a choice; and, as one question of four at
 * most, elephants whose path samples show: how many of the answers agree with it is counted for
 * each switch. An answer becomes a hint (daemon/join/hints.h), unless the switch's answers were
 * found to be wrong, and as long as the flow has the header that was asked about: where it is seen
 * in a tunnel, in another one or in none any more, answers are dropped (daemon/join/flow_tunnel.h),
 * those that are still to come, too, and the switch is asked again.
 *
 * How a question is put: lib/config/asking.h. Capped: switches, flows looked at in a call. Pure.
 * Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/join/join.h"
#include "lib/config/asking.h"

#define FT_ORACLE_SWITCHES  4096
#define FT_ORACLE_BYTES_MAX (FT_ORACLE_SWITCHES * 512)
#define FT_ORACLE_NAME      FT_ASKING_NAME

struct ft_oracle_config {
    const struct ft_strings *commands; /* PATTERN=COMMAND */
    int64_t interval_ms;               /* between two questions to a switch */
    int64_t window_ms;
    double elephant; /* as in struct ft_settings */
    uint64_t seed;
};

struct ft_oracle_question {
    struct ft_tuple flow, header; /* header: what is asked about, that of the flow's tunnel */
    struct ft_asking ask;
};

enum ft_oracle_outcome {
    FT_ORACLE_ANSWERED, /* a port of the switch */
    FT_ORACLE_SILENT,   /* the command knows no answer: exit status 1 */
    FT_ORACLE_FAILED,   /* it ended in another way, or could not be started */
    FT_ORACLE_LATE,     /* it was killed at its timeout */
    FT_ORACLE_GARBLED,  /* it wrote something other than one name */
    FT_ORACLE_STRANGE,  /* a name that no port of the switch has */
    FT_ORACLE_OUTCOMES,
};

struct ft_oracle_of_switch {
    char name[FT_ORACLE_NAME];
    int64_t next_ms; /* it is not asked before */
    uint64_t outcomes[FT_ORACLE_OUTCOMES];
    uint64_t agreed, differed; /* answers that samples confirmed or contradicted, in all */
    double right, wrong;       /* likewise, the older ones less */
    uint64_t refused;          /* answers that were not used because too many were wrong */
};

struct ft_oracle_stats {
    uint64_t asked;
    uint64_t outcomes[FT_ORACLE_OUTCOMES];
    uint64_t agreed, differed, refused;
    uint64_t unsafe; /* questions not asked: a name has characters that are not passed on */
};

struct ft_oracle;

/* NULL without memory. */
struct ft_oracle *ft_oracle_new(const struct ft_oracle_config *config);
void ft_oracle_free(struct ft_oracle *o);

/* The next question, looking at `looks` flows at most; false: none. */
bool ft_oracle_next(struct ft_oracle *o, const struct ft_join *join, int64_t now_ms, uint32_t looks,
                    struct ft_oracle_question *question);

/* How a question ended; text: what the command wrote, where it ended with status 0. */
enum ft_oracle_outcome ft_oracle_answer(struct ft_oracle *o, const struct ft_join *join,
                                        const struct ft_oracle_question *question,
                                        enum ft_oracle_outcome outcome, const char *text,
                                        int64_t now_ms);

const struct ft_oracle_stats *ft_oracle_stats(const struct ft_oracle *o);
const char *ft_oracle_outcome_name(enum ft_oracle_outcome outcome);

/* Switches whose answers are wrong, or whose commands fail. */
struct ft_findings;
void ft_oracle_find(const struct ft_oracle *o, struct ft_findings *findings);

/* Switches that were asked: index begins at 0; NULL: that was all. */
const struct ft_oracle_of_switch *ft_oracle_next_switch(const struct ft_oracle *o, uint32_t *index);

#endif
