// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/output/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/units.h"

char *ft_text_flow(char text[FT_TUPLE_TEXT_BYTES], const struct ft_value *flow)
{
    const char *src = ft_value_str(flow, "src"), *dst = ft_value_str(flow, "dst");
    uint64_t sport, dport, proto = FT_PROTO_UDP;
    bool six = src && strchr(src, ':');
    char port[32] = "", number[32] = "";

    text[0] = 0;
    if (!src || !dst || !ft_value_uint(flow, "sport", &sport) ||
        !ft_value_uint(flow, "dport", &dport))
        return text;
    ft_value_uint(flow, "proto", &proto);
    if (dport != FT_ROCE_PORT)
        snprintf(port, sizeof(port), ":%llu", (unsigned long long)dport);
    if (proto != FT_PROTO_UDP)
        snprintf(number, sizeof(number), "/%llu", (unsigned long long)proto);
    snprintf(text, FT_TUPLE_TEXT_BYTES, six ? "[%s]:%llu-[%s]%s%s" : "%s:%llu-%s%s%s", src,
             (unsigned long long)sport, dst, port, number);
    return text;
}

char *ft_text_hops(const struct ft_value *hops, bool all)
{
    size_t count = ft_value_count(hops), bytes;
    char *text = NULL;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const struct ft_value *hop = ft_value_at(hops, i);
        const char *name = ft_value_str(hop, "switch"), *port = ft_value_str(hop, "out");

        if (!port)
            port = ft_value_str(hop, "out_lag");
        fprintf(out, "%s%s", i ? " > " : "", name ? name : "?");
        if (port && (!all || i + 1 < count))
            fprintf(out, " %s", port);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

const char *ft_text_reason(char text[FT_REASON_TEXT_BYTES], const struct ft_value *path)
{
    static const struct {
        const char *word, *sentence;
    } reasons[] = {
        {"ambiguous", "samples leave several paths"},
        {"changing", "the change of its path is not complete"},
        {"unconfirmed", "a link of the path was sampled at one end only"},
        {"few_samples", "others here take several paths, and it has few samples"},
        {"no_samples", "no switch has sampled it lately"},
        {"unknown_switch", "only switches that the topology does not know have sampled it"},
        {"no_route", "the topology has no path between its hosts"},
        {"off_path", "it was sampled where none of its equal-cost paths leads"},
        {"several_networks", "flows of several networks have its 5-tuple"},
    };
    const char *word = ft_value_str(path, "reason");
    const struct ft_value *flow = ft_value_get(path, "flow");
    const char *end = NULL;
    uint64_t vni, other;

    if (word && strcmp(word, "unknown_source") == 0)
        end = ft_value_str(flow, "src");
    if (word && strcmp(word, "unknown_destination") == 0)
        end = ft_value_str(flow, "dst");
    if (word && strcmp(word, "several_networks") == 0 && ft_value_uint(path, "vni", &vni) &&
        ft_value_uint(path, "other_vni", &other)) {
        snprintf(text, FT_REASON_TEXT_BYTES,
                 "flows of VNI %" PRIu64 " and of VNI %" PRIu64 " have its 5-tuple", vni, other);
        return text;
    }
    if (end) {
        snprintf(text, FT_REASON_TEXT_BYTES, "the topology does not know %s", end);
        return text;
    }
    for (size_t i = 0; word && i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (strcmp(reasons[i].word, word) == 0)
            return reasons[i].sentence;
    return word;
}

char *ft_text_event(const struct ft_value *record)
{
    const struct ft_value *evidence = ft_value_get(record, "evidence");
    const struct ft_value *old = ft_value_get(evidence, "old_hops");
    const struct ft_value *new = ft_value_get(evidence, "new_hops");
    const char *message = ft_value_str(record, "message");
    char flow[FT_TUPLE_TEXT_BYTES], *before, *after, *text = NULL;

    if (!message)
        message = ft_value_str(record, "subject");
    ft_text_flow(flow, ft_value_get(evidence, "flow"));
    if (!ft_value_is(record, "kind", "path_change") || !*flow || !ft_value_count(old) ||
        !ft_value_count(new))
        return strdup(message ? message : "");
    before = ft_text_hops(old, true);
    after = ft_text_hops(new, true);
    if (before && after && asprintf(&text, "%s from %s to %s", flow, before, after) < 0)
        text = NULL;
    free(before);
    free(after);
    return text;
}

char *ft_text_end(const struct ft_value *record, const char *prefix)
{
    char member[32], *text;
    const char *name;
    uint64_t rank;
    int rc;

    snprintf(member, sizeof(member), "%s_host", prefix);
    name = ft_value_str(record, member);
    if (!name)
        name = ft_value_str(ft_value_get(record, "flow"), prefix);
    snprintf(member, sizeof(member), "%s_rank", prefix);
    if (ft_value_uint(record, member, &rank))
        rc = asprintf(&text, "%s rank %llu", name ? name : "?", (unsigned long long)rank);
    else
        rc = asprintf(&text, "%s", name ? name : "?");
    return rc < 0 ? NULL : text;
}

void ft_text_cell(struct ft_grid *grid, const struct ft_value *record, const char *name)
{
    const char *text = ft_value_str(record, name);

    ft_grid_cell(grid, FT_PLAIN, "%s", text ? text : "");
}

void ft_text_number_cell(struct ft_grid *grid, const struct ft_value *record, const char *name)
{
    uint64_t n;

    if (ft_value_uint(record, name, &n))
        ft_grid_cell(grid, FT_PLAIN, "%llu", (unsigned long long)n);
    else
        ft_grid_skip(grid);
}

void ft_text_time_cell(struct ft_grid *grid, const struct ft_value *record, const char *name,
                       struct ft_wall now)
{
    char text[FT_UNIT_BYTES];
    uint64_t ms;

    if (ft_value_uint(record, name, &ms))
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_time(text, ms, now));
    else
        ft_grid_skip(grid);
}

void ft_text_window(const struct ft_screen *screen, const struct ft_value *root)
{
    const char *fabric = ft_value_str(root, "fabric");
    uint64_t start, end;
    char a[FT_UNIT_BYTES], b[FT_UNIT_BYTES];
    const struct ft_value *first;
    double seen;

    ft_screen_text(screen, FT_BOLD, fabric ? fabric : "fabric");
    if (screen->window)
        root = screen->window;
    if (ft_value_uint(root, "window_start_ms", &start) &&
        ft_value_uint(root, "window_end_ms", &end))
        fprintf(screen->out, ", window %s to %s", ft_unit_time(a, start, screen->now),
                ft_unit_time(b, end, screen->now));
    else
        fprintf(screen->out, ", no window has closed yet");
    first = ft_value_at(ft_value_get(root, "records"), 0);
    if (ft_value_true(first, "partial"))
        fprintf(screen->out, " (only a part of it was seen: fabrictraced began within it)");
    if (ft_value_real(first, "seen_share", &seen))
        fprintf(screen->out, " (%.1f %% of the observations were taken in: see the doctor)",
                100 * seen);
    if (ft_value_get(first, "unaccounted_partitions"))
        fprintf(screen->out, " (daemons of an earlier version do not say what they took in)");
}

int ft_text_records(const struct ft_screen *screen, const struct ft_value *root, const char *none,
                    const struct ft_column *columns, size_t count,
                    void (*add_row)(struct ft_grid *grid, const struct ft_value *record,
                                    struct ft_wall now))
{
    const struct ft_value *records = ft_value_get(root, "records");
    struct ft_grid *grid;
    int rc;

    if (ft_value_count(records) == 0) {
        fprintf(screen->out, "%s\n", none);
        return 0;
    }
    grid = ft_grid_new(columns, count);
    for (size_t i = 0; i < ft_value_count(records); i++)
        add_row(grid, ft_value_at(records, i), screen->now);
    rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

void ft_text_limit(const struct ft_screen *screen, size_t count)
{
    if (screen->layout.limit && screen->layout.limit < count)
        fprintf(screen->out, ", %zu of %zu shown", screen->layout.limit, count);
}
