// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/http/common_metrics.h"

#include <string.h>

#include "lib/base/process.h"

#define NS_PER_S 1e9

static void write_process(struct ft_prom *p)
{
    struct ft_process s;

    if (!ft_process_look(&s))
        return;
    ft_prom_one_double(p, FT_METRIC_CPU, s.cpu_seconds);
    ft_prom_one(p, FT_METRIC_RESIDENT, s.resident_bytes);
    ft_prom_one(p, FT_METRIC_VIRTUAL, s.virtual_bytes);
    ft_prom_one(p, FT_METRIC_OPEN_FILES, s.open_files);
    ft_prom_one(p, FT_METRIC_FILES_MAX, s.files_max);
    ft_prom_one_double(p, FT_METRIC_START, s.start_seconds);
}

static void write_loop(struct ft_prom *p, const struct ft_loop *loop)
{
    const char *stage;
    int64_t busy_ns;

    ft_prom_family(p, FT_METRIC_LOOP_BUSY);
    for (size_t i = 0; (stage = ft_loop_stage(loop, i, &busy_ns)); i++)
        ft_prom_double(p, FT_PROM_LABELS(stage), (double)busy_ns / NS_PER_S);
    ft_prom_one_double(p, FT_METRIC_LOOP_LONGEST, (double)ft_loop_longest_ns(loop) / NS_PER_S);
    ft_prom_one(p, FT_METRIC_LOOP_SLOW, ft_loop_slow(loop));
}

static void write_http(struct ft_prom *p, const struct ft_http *http)
{
    struct ft_http_stats s;

    ft_http_stats(http, &s);
    ft_prom_one(p, FT_METRIC_HTTP_CONNECTED, s.connected);
    ft_prom_one(p, FT_METRIC_HTTP_CONNECTIONS, s.connections);
    ft_prom_one(p, FT_METRIC_HTTP_ACCEPT_FAILURES, s.accept_failures);
    ft_prom_family(p, FT_METRIC_HTTP_CUT_OFF);
    for (int i = 0; i < FT_HTTP_CUTS; i++)
        ft_prom_u64(p, FT_PROM_LABELS(ft_http_cut_text((enum ft_http_cut)i)), s.cut_off[i]);
    ft_prom_one(p, FT_METRIC_HTTP_REFUSED, s.answers_refused);
    ft_prom_one(p, FT_METRIC_HTTP_SHARED, s.answers_shared);
}

/* Whether an earlier stage has the same name: two sinks of one kind. */
static bool is_shown(const struct ft_account *a, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(a->stages[k].name, a->stages[i].name) == 0)
            return true;
    return false;
}

static uint64_t figure_of(const struct ft_account_stage *s, enum ft_common_metric metric, size_t d)
{
    switch (metric) {
    case FT_METRIC_RECEIVED:
        return s->received;
    case FT_METRIC_PROCESSED:
        return s->processed;
    case FT_METRIC_PENDING:
        return s->pending;
    default:
        return s->drops[d].count;
    }
}

static uint64_t sum_of(const struct ft_account *a, size_t i, enum ft_common_metric metric, size_t d)
{
    uint64_t sum = 0;

    for (size_t k = i; k < a->stage_count; k++)
        if (strcmp(a->stages[k].name, a->stages[i].name) == 0)
            sum += figure_of(&a->stages[k], metric, d);
    return sum;
}

static void write_account(struct ft_prom *p, const struct ft_account *a)
{
    static const enum ft_common_metric plain[] = {FT_METRIC_RECEIVED, FT_METRIC_PROCESSED,
                                                  FT_METRIC_PENDING};

    for (size_t m = 0; m < sizeof(plain) / sizeof(plain[0]); m++) {
        ft_prom_family(p, plain[m]);
        for (size_t i = 0; i < a->stage_count; i++)
            if (!is_shown(a, i))
                ft_prom_u64(p, FT_PROM_LABELS(a->stages[i].name, a->stages[i].unit),
                            sum_of(a, i, plain[m], 0));
    }
    ft_prom_family(p, FT_METRIC_DROPPED);
    for (size_t i = 0; i < a->stage_count; i++)
        for (size_t d = 0; !is_shown(a, i) && d < a->stages[i].drop_count; d++)
            ft_prom_u64(
                p,
                FT_PROM_LABELS(a->stages[i].name, a->stages[i].unit, a->stages[i].drops[d].reason),
                sum_of(a, i, FT_METRIC_DROPPED, d));
}

void ft_common_metrics_write(struct ft_prom *p, const struct ft_common_facts *facts)
{
    ft_prom_family(p, FT_METRIC_BUILD_INFO);
    ft_prom_u64(p, FT_PROM_LABELS(PACKAGE_VERSION), 1);
    write_process(p);
    if (facts->loop)
        write_loop(p, facts->loop);
    if (facts->http)
        write_http(p, facts->http);
    if (facts->account)
        write_account(p, facts->account);
}
