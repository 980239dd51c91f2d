// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/fetch/history.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/fetch/fetch.h"
#include "cli/output/choice.h"
#include "cli/output/units.h"

#define TARGET_BYTES_MAX 4096
#define KEY_BYTES_MAX    1024

/* A name is looked for as these, in this order: what stands before it in the key of a record. */
static const struct {
    const char *kind, *before;
} kinds[] = {
    {"link", ""},
    {"imbalance", "group/"},
    {"imbalance", "layer/"},
    {"imbalance", "fabric/"},
};

static int fetch_key(const struct ft_args *args, const char *kind, const char *key,
                     struct ft_answer **answer, FILE *err)
{
    struct ft_writer target;
    int rc = EX_USAGE;

    ft_writer_init(&target, TARGET_BYTES_MAX);
    ft_write_fmt(&target, "/api/v1/history?kind=%s&key=", kind);
    ft_fetch_add_text(&target, key);
    if (args->has_from)
        ft_write_fmt(&target, "&from_ms=%llu", (unsigned long long)args->from_ms);
    if (args->has_to)
        ft_write_fmt(&target, "&to_ms=%llu", (unsigned long long)args->to_ms);
    ft_write_u8(&target, 0);
    if (ft_writer_ok(&target))
        rc = ft_fetch_target(args, (const char *)target.bytes, answer, err);
    else
        fputs("fabrictrace: the name is too long\n", err);
    ft_writer_free(&target);
    return rc;
}

static bool is_empty(const struct ft_answer *answer)
{
    return ft_value_count(ft_value_get(ft_answer_root(answer), "records")) == 0;
}

static int fetch_flow(const struct ft_args *args, struct ft_answer **answer, FILE *err)
{
    char src[FT_IP_TEXT_BYTES], dst[FT_IP_TEXT_BYTES], key[FT_TUPLE_TEXT_BYTES];

    ft_ip_format(&args->flow.src, src);
    ft_ip_format(&args->flow.dst, dst);
    snprintf(key, sizeof(key), "%s,%s,%u,%u,%u", src, dst, args->flow.sport, args->flow.dport,
             args->flow.proto);
    return fetch_key(args, "path", key, answer, err);
}

static int fetch_named(const struct ft_args *args, struct ft_answer **answer, FILE *err)
{
    size_t count = args->port ? 1 : sizeof(kinds) / sizeof(kinds[0]);
    char key[KEY_BYTES_MAX];
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < count; i++) {
        int n = snprintf(key, sizeof(key), "%s%s%s%s", kinds[i].before, args->name,
                         args->port ? "/" : "", args->port ? args->port : "");

        if (n >= (int)sizeof(key)) {
            fputs("fabrictrace: the name is too long\n", err);
            return EX_USAGE;
        }
        rc = fetch_key(args, kinds[i].kind, key, answer, err);
        if (rc || !is_empty(*answer) || i + 1 == count)
            break;
        ft_answer_free(*answer);
        *answer = NULL;
    }
    return rc;
}

/* Which windows are kept is said, too: without it nobody knows whether the name or the time is
 * wrong. */
static int not_found(const struct ft_args *args, FILE *err)
{
    char flow[FT_TUPLE_TEXT_BYTES], from[FT_UNIT_BYTES], to[FT_UNIT_BYTES];
    const struct ft_value *records;
    uint64_t first = 0, last = 0;
    struct ft_answer *windows;
    int rc = ft_fetch_target(args, "/api/v1/windows", &windows, err);

    if (rc)
        return rc;
    records = ft_value_get(ft_answer_root(windows), "records");
    ft_value_uint(ft_value_at(records, 0), "window_start_ms", &first);
    ft_value_uint(ft_value_at(records, ft_value_count(records) - 1), "window_end_ms", &last);
    if (args->has_flow)
        ft_tuple_format(&args->flow, flow);
    fprintf(err, "fabrictrace history: no window %s has the %s '%s%s%s'",
            args->has_from ? "of that time" : "that fabrictraced keeps",
            args->has_flow ? "flow"
            : args->port   ? "link"
                           : "link or group",
            args->has_flow ? flow : args->name, args->port ? "/" : "",
            args->port ? args->port : "");
    if (ft_value_count(records))
        fprintf(err, "; its windows are from %s to %s\n", ft_unit_time(from, first, args->now),
                ft_unit_time(to, last, args->now));
    else
        fputs("; none has closed yet\n", err);
    ft_answer_free(windows);
    fputs(args->has_flow ? "  Flows are kept of windows in which they were elephants.\n"
                         : "  fabrictrace links lists links, fabrictrace imbalance groups.\n",
          err);
    return FT_EXIT_NOT_FOUND;
}

/* The windows of the limit, which are the last ones. */
static int keep_last(const struct ft_args *args, struct ft_answer *answer, FILE *err)
{
    const struct ft_value *records = ft_value_get(ft_answer_root(answer), "records");
    bool *keep;

    if (!args->limit || args->limit >= ft_value_count(records))
        return 0;
    keep = ft_choice_last(records, args->limit);
    if (!keep) {
        fputs("fabrictrace: no memory\n", err);
        return EX_OSERR;
    }
    ft_answer_keep(answer, keep);
    free(keep);
    return 0;
}

int ft_fetch_history(const struct ft_args *args, struct ft_answer **answer, FILE *err)
{
    int rc = args->name ? fetch_named(args, answer, err) : fetch_flow(args, answer, err);

    if (rc)
        return rc;
    rc = is_empty(*answer) ? not_found(args, err) : keep_last(args, *answer, err);
    if (rc) {
        ft_answer_free(*answer);
        *answer = NULL;
    } else if (!args->json) {
        ft_answer_clean(*answer);
    }
    return rc;
}
