// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/oracle/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/join/hints.h"
#include "daemon/join/likely.h"
#include "daemon/publish/emit.h"
#include "daemon/publish/findings.h"
#include "lib/base/table.h"

/* A switch whose command failed is left alone for so many intervals. */
#define REST_INTERVALS 30
/* Of the questions, one of so many at most is about a flow whose path is known. */
#define CHECKED_OF 4
/* Answers are used unless so many were held against samples and fewer than this part was right. */
#define CHECKED_LEAST 8
#define RIGHT_LEAST   0.9
/* More than so many checks count half: switches are changed. */
#define CHECKED_MOST 1024

struct ft_oracle {
    struct ft_oracle_config config;
    struct ft_strings commands; /* copies: the configuration may be replaced */
    struct ft_table *switches;
    uint32_t hand, cursor;
    uint64_t checks;
    struct ft_oracle_stats stats;
};

const char *ft_oracle_outcome_name(enum ft_oracle_outcome outcome)
{
    static const char *const names[] = {
        [FT_ORACLE_ANSWERED] = "answered",    [FT_ORACLE_SILENT] = "no_answer",
        [FT_ORACLE_FAILED] = "failed",        [FT_ORACLE_LATE] = "timed_out",
        [FT_ORACLE_GARBLED] = "not_readable", [FT_ORACLE_STRANGE] = "unknown_port",
    };

    return names[outcome];
}

struct ft_oracle *ft_oracle_new(const struct ft_oracle_config *config)
{
    struct ft_oracle *o = calloc(1, sizeof(*o));

    _Static_assert(sizeof(struct ft_oracle_of_switch) <= 400, "FT_ORACLE_BYTES_MAX");
    if (!o)
        return NULL;
    o->config = *config;
    o->switches = ft_table_new(sizeof(struct ft_oracle_of_switch), FT_ORACLE_NAME,
                               FT_ORACLE_SWITCHES, config->seed);
    o->commands.items = calloc(config->commands->count + 1, sizeof(*o->commands.items));
    for (; o->commands.items && o->commands.count < config->commands->count; o->commands.count++) {
        char *item = strdup(config->commands->items[o->commands.count]);

        if (!item)
            break;
        o->commands.items[o->commands.count] = item;
    }
    if (o->switches && o->commands.items && o->commands.count == config->commands->count)
        return o;
    ft_oracle_free(o);
    return NULL;
}

void ft_oracle_free(struct ft_oracle *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->commands.count; i++)
        free(o->commands.items[i]);
    free(o->commands.items);
    ft_table_free(o->switches);
    free(o);
}

static bool has_rest(void *arg, void *entry)
{
    const struct ft_oracle_of_switch *s = entry;

    return s->next_ms < *(const int64_t *)arg;
}

static struct ft_oracle_of_switch *switch_of(struct ft_oracle *o, const char *name, int64_t now_ms)
{
    char key[FT_ORACLE_NAME] = "";
    struct ft_oracle_of_switch *s;
    bool fresh;

    snprintf(key, sizeof(key), "%s", name);
    s = ft_table_find(o->switches, key);
    if (s)
        return s;
    if (ft_table_count(o->switches) >= FT_ORACLE_SWITCHES)
        ft_table_make_room(o->switches, &o->hand, FT_ORACLE_SWITCHES, has_rest, &now_ms);
    return ft_table_insert(o->switches, key, &fresh);
}

static bool is_right(const struct ft_oracle_of_switch *s)
{
    double checked = s->right + s->wrong;

    return checked < CHECKED_LEAST || s->right >= RIGHT_LEAST * checked;
}

static void count_check(struct ft_oracle *o, struct ft_oracle_of_switch *s, bool agrees)
{
    if (s->right + s->wrong >= CHECKED_MOST) {
        s->right /= 2;
        s->wrong /= 2;
    }
    s->right += agrees;
    s->wrong += !agrees;
    s->agreed += agrees;
    s->differed += !agrees;
    o->stats.agreed += agrees;
    o->stats.differed += !agrees;
}

/* Holds an answer against the path that the flow had when it was given, as samples show it. */
static void check_said(struct ft_oracle *o, const struct ft_join *join, const struct ft_flow *flow,
                       struct ft_said *said)
{
    const struct ft_topology *t = ft_join_topology(join);
    struct ft_oracle_of_switch *s;
    uint32_t out = FT_NONE;

    /* By samples is what was not used: by that alone it shows when answers are right again. */
    if (said->checked || said->hint.out == FT_NONE ||
        (said->hint.by != FT_BY_ORACLE && said->hint.by != FT_BY_SAMPLES) ||
        flow->state != FT_PATH_RESOLVED)
        return;
    for (uint32_t h = 0; h < flow->path.hop_count; h++)
        if (ft_topology_end_switch(t, flow->path.hops[h].out) == said->hint.switch_id)
            out = flow->path.hops[h].out;
    /* Of a path that it had before nothing is known any more. */
    if (flow->path_since_ms > said->at_ms)
        return;
    said->checked = true;
    s = out != FT_NONE
            ? switch_of(o, ft_topology_switch(t, said->hint.switch_id)->name, said->at_ms)
            : NULL;
    if (s)
        count_check(o, s, ft_topology_ends_agree(t, out, said->hint.out));
}

/* Whether the switch was asked about the flow, as far as that is remembered. What it said before
 * the path was known cannot be held against that: it is asked again. */
static bool was_asked(const struct ft_said_of_flow *said, const struct ft_flow *flow,
                      uint32_t switch_id)
{
    for (uint32_t i = 0; said && i < said->count; i++)
        if (said->said[i].hint.switch_id == switch_id)
            return flow->state != FT_PATH_RESOLVED || said->said[i].checked ||
                   said->said[i].at_ms >= flow->path_since_ms;
    return false;
}

/* What lies further ahead is by a clock that was set back since. */
static bool is_resting(const struct ft_oracle *o, const struct ft_oracle_of_switch *s,
                       int64_t now_ms)
{
    return now_ms < s->next_ms && s->next_ms - now_ms <= REST_INTERVALS * o->config.interval_ms;
}

static bool ask_about(struct ft_oracle *o, const struct ft_join *join, const struct ft_flow *flow,
                      int64_t now_ms, struct ft_oracle_question *q)
{
    const struct ft_topology *t = ft_join_topology(join);
    struct ft_said_of_flow *said = ft_hints_of(ft_join_hints(join), &flow->tuple);
    const struct ft_tuple *header = ft_flow_tunnel(flow) ? ft_flow_outer(join, flow) : &flow->tuple;
    bool known = flow->state == FT_PATH_RESOLVED;
    struct ft_oracle_of_switch *s;
    const char *name, *in, *command;
    uint32_t switch_id, port;

    for (uint32_t i = 0; said && i < said->count; i++)
        check_said(o, join, flow, &said->said[i]);
    if (!header || (known && o->checks * CHECKED_OF > o->stats.asked) ||
        !ft_flow_is_elephant(join, flow, o->config.window_ms, o->config.elephant) ||
        !ft_flow_unknown(join, flow, &switch_id, &port) || was_asked(said, flow, switch_id))
        return false;
    name = ft_topology_switch(t, switch_id)->name;
    in = ft_topology_port(t, port)->name;
    command = ft_asking_command(&o->commands, name);
    if (!command)
        return false;
    if (!ft_asking_is_safe(name) || !ft_asking_is_safe(in)) {
        o->stats.unsafe++;
        return false;
    }
    s = switch_of(o, name, now_ms);
    if (!s || is_resting(o, s, now_ms) || !ft_asking_write(&q->ask, command, name, in, header))
        return false;
    q->flow = flow->tuple;
    q->header = *header;
    /* Until it answers, so that nobody asks twice. */
    ft_hints_put(ft_join_hints(join), &flow->tuple,
                 &(struct ft_hint){switch_id, FT_NONE, FT_BY_ORACLE, 0});
    s->next_ms = now_ms + o->config.interval_ms;
    o->checks += known;
    o->stats.asked++;
    return true;
}

bool ft_oracle_next(struct ft_oracle *o, const struct ft_join *join, int64_t now_ms, uint32_t looks,
                    struct ft_oracle_question *question)
{
    uint32_t limit = ft_join_limit(join);

    ft_hints_advance(ft_join_hints(join), now_ms);
    if (ft_join_judging_all(join))
        return false;
    for (uint32_t i = 0; i < looks && i < limit; i++) {
        const struct ft_flow *flow;

        if (o->cursor >= limit)
            o->cursor = 0;
        flow = ft_join_at(join, o->cursor++);
        if (flow && ask_about(o, join, flow, now_ms, question))
            return true;
    }
    return false;
}

static uint32_t end_named(const struct ft_topology *t, uint32_t switch_id, const char *name)
{
    uint32_t port = ft_topology_find_port(t, switch_id, name);

    return port != FT_NONE ? port : ft_topology_find_lag(t, switch_id, name);
}

/* Whether the flow has the header that a switch was asked about, and had it all the while: else it
 * is forgotten that the switch was asked. */
static bool is_still_asked(const struct ft_join *join, const struct ft_flow *flow,
                           const struct ft_oracle_question *q, uint32_t switch_id)
{
    const struct ft_flow_tunnel *tunnel = ft_flow_tunnel(flow);
    const struct ft_tuple *header = tunnel ? &tunnel->outer : &flow->tuple;
    const struct ft_said_of_flow *said = ft_hints_of(ft_join_hints(join), &flow->tuple);

    for (uint32_t i = 0; said && i < said->count; i++)
        if (said->said[i].hint.switch_id == switch_id)
            return ft_tuple_equal(header, &q->header);
    return false;
}

enum ft_oracle_outcome ft_oracle_answer(struct ft_oracle *o, const struct ft_join *join,
                                        const struct ft_oracle_question *q,
                                        enum ft_oracle_outcome outcome, const char *text,
                                        int64_t now_ms)
{
    const struct ft_topology *t = ft_join_topology(join);
    const struct ft_flow *flow = ft_join_find(join, &q->flow);
    struct ft_hint hint = {ft_topology_find_switch(t, q->ask.switch_name), FT_NONE, FT_BY_ORACLE,
                           0};
    struct ft_oracle_of_switch *s = switch_of(o, q->ask.switch_name, now_ms);
    char name[FT_ORACLE_NAME];

    if (outcome == FT_ORACLE_ANSWERED && !ft_asking_read(text, name))
        outcome = FT_ORACLE_GARBLED;
    if (outcome == FT_ORACLE_ANSWERED && hint.switch_id != FT_NONE)
        hint.out = end_named(t, hint.switch_id, name);
    if (outcome == FT_ORACLE_ANSWERED && hint.out == FT_NONE)
        outcome = FT_ORACLE_STRANGE;
    o->stats.outcomes[outcome]++;
    if (s) {
        s->outcomes[outcome]++;
        if (outcome == FT_ORACLE_FAILED || outcome == FT_ORACLE_LATE)
            s->next_ms = now_ms + REST_INTERVALS * o->config.interval_ms;
        if (outcome == FT_ORACLE_ANSWERED && !is_right(s)) {
            s->refused++;
            o->stats.refused++;
            hint.by = FT_BY_SAMPLES;
        }
    }
    ft_hints_advance(ft_join_hints(join), now_ms);
    if (hint.switch_id == FT_NONE || !flow || !is_still_asked(join, flow, q, hint.switch_id))
        return outcome;
    ft_hints_put(ft_join_hints(join), &q->flow, &hint);
    if (outcome == FT_ORACLE_ANSWERED && !ft_join_judging_all(join)) {
        struct ft_said_of_flow *said = ft_hints_of(ft_join_hints(join), &q->flow);

        for (uint32_t i = 0; said && i < said->count; i++)
            check_said(o, join, flow, &said->said[i]);
    }
    return outcome;
}

const struct ft_oracle_stats *ft_oracle_stats(const struct ft_oracle *o)
{
    return &o->stats;
}

const struct ft_oracle_of_switch *ft_oracle_next_switch(const struct ft_oracle *o, uint32_t *index)
{
    return ft_table_next(o->switches, index);
}

void ft_oracle_find(const struct ft_oracle *o, struct ft_findings *findings)
{
    const struct ft_oracle_of_switch *s;
    uint32_t index = 0;

    while ((s = ft_table_next(o->switches, &index))) {
        uint64_t failed = s->outcomes[FT_ORACLE_FAILED] + s->outcomes[FT_ORACLE_LATE] +
                          s->outcomes[FT_ORACLE_GARBLED] + s->outcomes[FT_ORACLE_STRANGE];

        if (!is_right(s))
            ft_findings_add(
                findings, FT_FINDING_NOTE, s->name, NULL,
                "its answers are not used: compare the command of its oracle with the "
                "switch by hand, fabrictrace-oracle(7)",
                "%llu of %llu answers by which port it sends a flow differ from samples",
                (unsigned long long)s->differed, (unsigned long long)s->agreed + s->differed);
        if (failed && !s->outcomes[FT_ORACLE_ANSWERED])
            ft_findings_add(findings, FT_FINDING_NOTE, s->name, NULL,
                            "run the command of its oracle by hand, as the daemon's user, "
                            "fabrictrace-oracle(7)",
                            "it was asked %llu times by which port it sends a flow, and never "
                            "answered with one of its ports",
                            (unsigned long long)failed);
    }
}
