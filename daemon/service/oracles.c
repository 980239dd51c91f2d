// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/service/oracles.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/oracle/oracle.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/io/helper.h"

#define NS_PER_MS 1000000
#define TICK_NS   (INT64_C(100) * NS_PER_MS)
/* Flows that are looked at in a tick, which takes a millisecond or two. */
#define LOOKS   4000
#define WARN_NS (INT64_C(60) * 1000 * NS_PER_MS)

struct running {
    struct ft_oracles *all;
    struct ft_helper *helper; /* NULL: free */
    struct ft_oracle_question question;
};

struct ft_oracles {
    uint64_t processes;
    int64_t timeout_ns;
    struct ft_loop *loop;
    struct ft_join *join;
    struct ft_oracle *oracle;
    struct ft_watch *tick;
    struct ft_log_limit limit;
    uint64_t pending;
    struct running running[FT_ORACLES_MAX];
};

static void complain(struct ft_oracles *o, const struct running *r, enum ft_oracle_outcome outcome,
                     const char *error)
{
    int len = (int)strcspn(error, "\r\n");
    uint64_t more;

    if (outcome == FT_ORACLE_ANSWERED || outcome == FT_ORACLE_SILENT ||
        !ft_log_limit_pass(&o->limit, ft_mono_now(), &more))
        return;
    ft_log(FT_LOG_WARNING, "switch '%s': oracle %s: %s%s%.*s", r->question.ask.switch_name,
           r->question.ask.argv[0], ft_oracle_outcome_name(outcome), len ? ": " : "", len, error);
}

static void finish(struct running *r, enum ft_oracle_outcome outcome, const char *text,
                   const char *error)
{
    struct ft_oracles *o = r->all;

    o->pending--;
    outcome = ft_oracle_answer(o->oracle, o->join, &r->question, outcome, text, ft_wall_now().ms);
    complain(o, r, outcome, error);
}

static void on_done(void *arg, const struct ft_helper_result *result)
{
    enum ft_oracle_outcome outcome = FT_ORACLE_ANSWERED;
    struct running *r = arg;

    if (result->end == FT_HELPER_TIMED_OUT)
        outcome = FT_ORACLE_LATE;
    else if (result->end == FT_HELPER_EXITED && result->status == 1)
        outcome = FT_ORACLE_SILENT;
    else if (result->end != FT_HELPER_EXITED || result->status != 0)
        outcome = FT_ORACLE_FAILED;
    else if (result->too_long)
        outcome = FT_ORACLE_GARBLED;
    finish(r, outcome, result->out, result->err);
    ft_helper_free(r->helper);
    r->helper = NULL;
}

static void on_tick(void *arg)
{
    struct ft_oracles *o = arg;

    for (uint64_t i = 0; i < o->processes; i++) {
        struct running *r = &o->running[i];
        int rc;

        if (r->helper)
            continue;
        if (!ft_oracle_next(o->oracle, o->join, ft_wall_now().ms, LOOKS, &r->question))
            return;
        o->pending++;
        rc = ft_helper_start(o->loop, r->question.ask.argv, o->timeout_ns, on_done, r, &r->helper);
        if (rc)
            finish(r, FT_ORACLE_FAILED, "", strerror(-rc));
    }
}

struct ft_oracles *ft_oracles_new(const struct ft_settings *settings, struct ft_loop *loop,
                                  struct ft_join *join)
{
    struct ft_oracle_config config = {.commands = &settings->oracle_commands,
                                      .interval_ms = settings->oracle_interval_ns / NS_PER_MS,
                                      .window_ms = settings->window_ns / NS_PER_MS,
                                      .elephant = settings->elephant};
    struct ft_oracles *o = calloc(1, sizeof(*o));

    if (!o || getrandom(&config.seed, sizeof(config.seed), 0) != sizeof(config.seed)) {
        free(o);
        return NULL;
    }
    o->processes = settings->oracle_processes;
    o->timeout_ns = settings->oracle_timeout_ns;
    o->loop = loop;
    o->join = join;
    o->limit = (struct ft_log_limit){.interval_ns = WARN_NS, .burst = 10};
    for (size_t i = 0; i < FT_ORACLES_MAX; i++)
        o->running[i].all = o;
    o->oracle = ft_oracle_new(&config);
    o->tick = ft_watch_stage(ft_watch_timer(loop, TICK_NS, on_tick, o), "oracle");
    if (o->oracle && o->tick)
        return o;
    ft_oracles_free(o);
    return NULL;
}

void ft_oracles_free(struct ft_oracles *o)
{
    if (!o)
        return;
    ft_watch_free(o->tick);
    for (size_t i = 0; i < FT_ORACLES_MAX; i++)
        ft_helper_free(o->running[i].helper);
    ft_oracle_free(o->oracle);
    free(o);
}

const struct ft_oracle *ft_oracles_oracle(const struct ft_oracles *o)
{
    return o->oracle;
}

void ft_oracles_account(const struct ft_oracles *o, struct ft_account *account)
{
    const struct ft_oracle_stats *s = o ? ft_oracle_stats(o->oracle) : NULL;
    struct ft_account_stage *stage;

    if (!o)
        return;
    stage = ft_account_stage(account, "oracle", "questions");
    stage->received = s->asked;
    stage->processed = s->outcomes[FT_ORACLE_ANSWERED];
    stage->pending = o->pending;
    for (int i = FT_ORACLE_SILENT; i < FT_ORACLE_OUTCOMES; i++)
        ft_account_drop(stage, ft_oracle_outcome_name((enum ft_oracle_outcome)i), s->outcomes[i]);
}
