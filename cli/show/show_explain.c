// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/text.h"
#include "cli/output/units.h"
#include "cli/show/show_lossy.h"

static const struct ft_column hop_columns[] = {
    {.title = NULL},                  /* switch */
    {.title = NULL},                  /* in */
    {.title = NULL},                  /* > out */
    {.title = NULL},                  /* use of the link */
    {.elastic = true, .wraps = true}, /* samples */
};

/* The link record of an egress port, NULL when the answer has none. */
static const struct ft_value *link_of(const struct ft_value *links, const char *name,
                                      const char *port)
{
    for (size_t i = 0; name && port && i < ft_value_count(links); i++) {
        const struct ft_value *link = ft_value_at(links, i);

        if (ft_value_is(link, "switch", name) && ft_value_is(link, "port", port))
            return link;
    }
    return NULL;
}

static int show_end(const struct ft_screen *screen, const struct ft_value *path, const char *prefix,
                    const char *qp)
{
    char *end = ft_text_end(path, prefix);
    uint64_t number;

    if (!end)
        return -ENOMEM;
    ft_screen_text(screen, FT_PLAIN, end);
    if (ft_value_uint(ft_value_get(path, "qp"), qp, &number))
        fprintf(screen->out, ", QP %llu", (unsigned long long)number);
    free(end);
    return 0;
}

/* "(train.py, pid 4121, job 88)" of what is known. */
static void show_process(const struct ft_screen *screen, const struct ft_value *path)
{
    const char *comm = ft_value_str(path, "comm"), *job = ft_value_str(path, "job");
    const char *separator = "   (";
    uint64_t pid;

    if (comm) {
        fputs(separator, screen->out);
        ft_screen_text(screen, FT_PLAIN, comm);
        separator = ", ";
    }
    if (ft_value_uint(path, "pid", &pid)) {
        fprintf(screen->out, "%spid %llu", separator, (unsigned long long)pid);
        separator = ", ";
    }
    if (job) {
        fprintf(screen->out, "%sjob ", separator);
        ft_screen_text(screen, FT_PLAIN, job);
        separator = ", ";
    }
    if (separator[0] == ',')
        fputc(')', screen->out);
}

static int show_head(const struct ft_screen *screen, const struct ft_value *path)
{
    char flow[FT_TUPLE_TEXT_BYTES];
    int rc;

    ft_screen_text(screen, FT_BOLD, ft_text_flow(flow, ft_value_get(path, "flow")));
    fputs("   ", screen->out);
    rc = show_end(screen, path, "src", "local");
    fputs(" > ", screen->out);
    if (rc == 0)
        rc = show_end(screen, path, "dst", "remote");
    show_process(screen, path);
    fputc('\n', screen->out);
    if (*ft_text_flow(flow, ft_value_get(path, "outer"))) {
        fputs("  in a tunnel, which is what switches hash: ", screen->out);
        ft_screen_text(screen, FT_PLAIN, flow);
        fputc('\n', screen->out);
    }
    if (ft_value_true(path, "source_routed"))
        fputs("  its address bears its path: its sender chose it, no switch by a hash\n",
              screen->out);
    return rc;
}

/* A port, or the aggregate that it is in where that is all that is known. */
static const char *end_of(const struct ft_value *hop, const char *port, const char *lag)
{
    const char *name = ft_value_str(hop, port);

    return name ? name : ft_value_str(hop, lag);
}

/* Of a hop without samples: what it is known by; false where samples at its neighbours prove it. */
static bool weaker_cell(struct ft_grid *grid, const struct ft_value *hop)
{
    static const struct {
        const char *evidence;
        const char *text;
    } weaker[] = {
        {"predicted", "predicted: by the switch's hash, as learnt"},
        {"oracle", "oracle: the switch answers that it would"},
        {"probed", "probed: a packet of this 5-tuple was answered"},
        {"inferred", "inferred: from counters of uplinks and what hosts sent"},
    };
    double accuracy;

    for (size_t i = 0; i < sizeof(weaker) / sizeof(weaker[0]); i++)
        if (ft_value_is(hop, "evidence", weaker[i].evidence)) {
            if (ft_value_real(hop, "accuracy", &accuracy))
                ft_grid_cell(grid, FT_YELLOW, "%s, which was right for %.1f%% of other flows",
                             weaker[i].text, accuracy * 100);
            else
                ft_grid_cell(grid, FT_YELLOW, "%s; no samples here", weaker[i].text);
            return true;
        }
    return false;
}

static void samples_cell(struct ft_grid *grid, const struct ft_value *hop)
{
    const char *out_kind = ft_value_str(hop, "out_lag") ? "aggregate" : "port";
    char share_text[FT_UNIT_BYTES], lo_text[FT_UNIT_BYTES];
    uint64_t samples = 0;
    double share = 1, lo = 0;

    ft_value_uint(hop, "samples", &samples);
    ft_value_real(hop, "share", &share);
    ft_value_real(hop, "share_lo", &lo);
    if (samples == 0 && weaker_cell(grid, hop))
        return;
    if (samples == 0 && !end_of(hop, "out", "out_lag"))
        ft_grid_cell(grid, FT_DIM, "no samples here; its way out is not known");
    else if (samples == 0)
        ft_grid_cell(grid, FT_DIM, "no samples here; known from its neighbours");
    else if (share >= 1)
        ft_grid_cell(grid, FT_PLAIN, "%llu sample%s, all by this %s", (unsigned long long)samples,
                     samples == 1 ? "" : "s", out_kind);
    else
        ft_grid_cell(grid, FT_PLAIN, "%llu samples, %s by this %s (at least %s)",
                     (unsigned long long)samples, ft_unit_percent(share_text, share), out_kind,
                     ft_unit_percent(lo_text, lo));
}

static void add_hop(struct ft_grid *grid, const struct ft_value *hop, const struct ft_value *links)
{
    const char *name = ft_value_str(hop, "switch"), *in = end_of(hop, "in", "in_lag");
    const char *out = end_of(hop, "out", "out_lag");
    char text[FT_UNIT_BYTES];
    double used;

    ft_grid_cell(grid, FT_PLAIN, "%s", name ? name : "?");
    ft_grid_cell(grid, FT_PLAIN, "%s", in ? in : "?");
    ft_grid_cell(grid, FT_PLAIN, "> %s", out ? out : "?");
    if (ft_value_real(link_of(links, name, out), "utilization", &used))
        ft_grid_cell(grid, used >= 0.9 ? FT_YELLOW : FT_PLAIN, "%s used",
                     ft_unit_percent(text, used));
    else
        ft_grid_skip(grid);
    samples_cell(grid, hop);
}

static int show_hops(const struct ft_screen *screen, const struct ft_value *hops,
                     const struct ft_value *links, unsigned indent)
{
    struct ft_grid *grid = ft_grid_new(hop_columns, sizeof(hop_columns) / sizeof(hop_columns[0]));
    int rc;

    for (size_t i = 0; i < ft_value_count(hops); i++)
        add_hop(grid, ft_value_at(hops, i), links);
    rc = ft_grid_print(grid, screen, indent);
    ft_grid_free(grid);
    return rc;
}

static int show_state(const struct ft_screen *screen, const struct ft_value *path)
{
    const struct ft_value *shares = ft_value_get(path, "shares");
    const char *state = ft_value_str(path, "state");
    char percent[FT_UNIT_BYTES], text[FT_REASON_TEXT_BYTES];
    const char *reason = ft_text_reason(text, path);
    uint64_t candidates;
    int rc = 0;

    if (!state || strcmp(state, "resolved") == 0)
        return 0;
    fputs("  ", screen->out);
    ft_screen_text(screen, strcmp(state, "unresolved") == 0 ? FT_RED : FT_YELLOW, state);
    if (reason) {
        fputs(": ", screen->out);
        ft_screen_text(screen, FT_PLAIN, reason);
    }
    if (ft_value_uint(path, "candidates", &candidates) && candidates > 0)
        fprintf(screen->out, "; %llu equal-cost path%s left", (unsigned long long)candidates,
                candidates == 1 ? " is" : "s are");
    fputc('\n', screen->out);
    for (size_t i = 0; rc == 0 && i < ft_value_count(shares); i++) {
        const struct ft_value *share = ft_value_at(shares, i);
        double part = 0;

        ft_value_real(share, "share", &part);
        fprintf(screen->out, "  %s of the samples:\n", ft_unit_percent(percent, part));
        rc = show_hops(screen, ft_value_get(share, "hops"), NULL, 4);
    }
    if (rc == 0 && ft_value_count(ft_value_get(path, "likely")) > 0) {
        fputs("  likely, by evidence weaker than samples:\n", screen->out);
        rc = show_hops(screen, ft_value_get(path, "likely"), NULL, 4);
    }
    return rc;
}

static void show_rate(const struct ft_screen *screen, const struct ft_value *path)
{
    const char *source = ft_value_str(path, "rate_source");
    char a[FT_UNIT_BYTES], b[FT_UNIT_BYTES], c[FT_UNIT_BYTES];
    double bps, lo, hi;
    uint64_t since;

    if (!ft_value_real(path, "rate_bps", &bps)) {
        fputs("  rate not known", screen->out);
    } else {
        fprintf(screen->out, "  %s", ft_unit_rate(a, bps));
        if (source && strcmp(source, "host") == 0)
            fputs(" (counted by the host)", screen->out);
        else if (ft_value_real(path, "rate_lo_bps", &lo) && ft_value_real(path, "rate_hi_bps", &hi))
            fprintf(screen->out, " (95 %%: %s to %s, %s)", ft_unit_rate_like(b, lo, bps),
                    ft_unit_rate_like(c, hi, bps),
                    source && strcmp(source, "psn") == 0
                        ? "by packet numbers, with what exporters hold back"
                        : "from sFlow, with what exporters are known to hold back");
    }
    if (ft_value_uint(path, "path_since_ms", &since) && ft_value_count(ft_value_get(path, "hops")))
        fprintf(screen->out, "; on this path since %s", ft_unit_time(a, since, screen->now));
    else if (ft_value_uint(path, "first_seen_ms", &since))
        fprintf(screen->out, "; first seen %s", ft_unit_time(a, since, screen->now));
    fputc('\n', screen->out);
}

/* What numbered packets show besides the rate. A lower number than before is of a packet that was
 * sent again, or that another one overtook, on its way or as a sample. */
static void show_messages(const struct ft_screen *screen, const struct ft_value *path)
{
    uint64_t messages, bytes, begin, end, samples, back;
    char size[FT_UNIT_BYTES];
    const char *separator = "  ";

    if (ft_value_uint(path, "messages", &messages) && ft_value_uint(path, "bytes", &bytes) &&
        ft_value_uint(path, "window_start_ms", &begin) &&
        ft_value_uint(path, "window_end_ms", &end) && messages > 0 && end > begin) {
        double each_second = (double)messages * 1000 / (double)(end - begin);

        fprintf(screen->out, "%s%.*f messages a second, about %s each", separator,
                each_second < 10 ? 1 : 0, each_second,
                ft_unit_size(size, (double)bytes / (double)messages));
        separator = "; ";
    }
    if (ft_value_uint(path, "psn_back_samples", &back) &&
        ft_value_uint(path, "numbered_samples", &samples) && back > 0) {
        fprintf(screen->out, "%s%llu of %llu samples sent again or overtaken", separator,
                (unsigned long long)back, (unsigned long long)samples);
        separator = "; ";
    }
    if (separator[0] == ';')
        fputc('\n', screen->out);
}

/* What makes the daemon believe where a flow goes that its host could not report. */
static void show_pairing(const struct ft_screen *screen, const struct ft_value *path)
{
    static const struct {
        const char *by;
        const char *text;
    } reasons[] = {
        {"both_hosts", ", to which samples show it sends"},
        {"communicator", ", inside communicator "},
        {"fabric", ", the only two queue pairs of the fabric that name each other"},
        {"peer", ", whose host knows that it sends here"},
    };
    const struct ft_value *pairing = ft_value_get(path, "pairing");
    const char *by = ft_value_str(pairing, "by"), *comm = ft_value_str(pairing, "comm_id");
    const char *host = ft_value_str(pairing, "host");
    uint64_t qp;

    if (!by)
        return;
    if (strcmp(by, "samples") == 0) {
        fputs("  Destination by samples: the only flow that the queue pair can be behind\n",
              screen->out);
        return;
    }
    fputs("  Destination by pairing with ", screen->out);
    ft_screen_text(screen, FT_PLAIN, host ? host : "another host");
    if (ft_value_uint(pairing, "qp", &qp))
        fprintf(screen->out, " QP %llu", (unsigned long long)qp);
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (strcmp(by, reasons[i].by) == 0)
            fputs(reasons[i].text, screen->out);
    if (strcmp(by, "communicator") == 0)
        ft_screen_text(screen, FT_PLAIN, comm ? comm : "?");
    fputc('\n', screen->out);
}

static void show_collision(const struct ft_screen *screen, const struct ft_value *event,
                           const struct ft_value *links)
{
    const struct ft_value *evidence = ft_value_get(event, "evidence");
    const char *name = ft_value_str(evidence, "switch"), *port = ft_value_str(evidence, "port");
    uint64_t elephants;
    char text[FT_UNIT_BYTES];
    double even, share;

    if (!name || !port || !ft_value_uint(evidence, "elephants", &elephants) || elephants < 2) {
        fputs("  ", screen->out);
        ft_screen_text(screen, FT_YELLOW, ft_value_str(event, "message"));
        fputc('\n', screen->out);
        return;
    }
    fputs("  Shares ", screen->out);
    ft_screen_text(screen, FT_YELLOW, name);
    ft_screen_text(screen, FT_YELLOW, " ");
    ft_screen_text(screen, FT_YELLOW, port);
    fprintf(screen->out, " with %llu other elephant%s", (unsigned long long)elephants - 1,
            elephants == 2 ? "" : "s");
    if (ft_value_real(evidence, "elephants_even", &even))
        fprintf(screen->out, "; the even share is %.3g", even);
    fputc('.', screen->out);
    if (ft_value_real(link_of(links, name, port), "share", &share))
        fprintf(screen->out, " The link carries %s of its group's bytes.",
                ft_unit_percent(text, share));
    fputc('\n', screen->out);
}

/* Of what the flow's receiver answers. */
static void show_refusals(const struct ft_screen *screen, const struct ft_value *path)
{
    uint64_t naks = 0, rnrs = 0, no_credits;

    ft_value_uint(path, "nak_samples", &naks);
    ft_value_uint(path, "rnr_samples", &rnrs);
    if (naks || rnrs)
        fprintf(screen->out, "; samples that refuse: %llu negative, %llu not ready",
                (unsigned long long)naks, (unsigned long long)rnrs);
    if (ft_value_uint(path, "no_credit_samples", &no_credits))
        fprintf(screen->out, "; samples of a receiver without credits: %llu",
                (unsigned long long)no_credits);
}

static int show_reverse(const struct ft_screen *screen, const struct ft_value *reverse)
{
    for (size_t i = 0; i < ft_value_count(reverse); i++) {
        const struct ft_value *path = ft_value_at(reverse, i);
        const char *role = ft_value_str(path, "role"), *state = ft_value_str(path, "state");
        char *hops =
            ft_text_hops(ft_value_get(path, "hops"), ft_value_is(path, "state", "resolved"));

        if (!hops)
            return -ENOMEM;
        fprintf(screen->out, "  Back (%s, %s)%s", role ? role : "unknown", state ? state : "?",
                *hops ? ": " : "");
        ft_screen_text(screen, FT_PLAIN, hops);
        show_refusals(screen, path);
        fputc('\n', screen->out);
        free(hops);
    }
    return 0;
}

int ft_show_explain(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    const struct ft_value *links = ft_value_get(root, "links");
    const struct ft_value *collisions = ft_value_get(root, "collisions");
    const struct ft_value *losses = ft_value_get(root, "losses");
    int rc = 0;

    if (ft_value_get(root, "host") || ft_value_get(root, "switch"))
        return ft_show_explain_node(screen, root);
    if (ft_value_get(root, "paths"))
        return ft_show_explain_named(screen, root);
    for (size_t i = 0; rc == 0 && i < ft_value_count(records); i++) {
        const struct ft_value *path = ft_value_at(records, i);

        rc = show_head(screen, path);
        if (rc == 0)
            rc = show_hops(screen, ft_value_get(path, "hops"), links, 2);
        if (rc == 0)
            rc = show_state(screen, path);
        if (rc == 0) {
            show_rate(screen, path);
            show_messages(screen, path);
            show_pairing(screen, path);
        }
    }
    for (size_t i = 0; rc == 0 && i < ft_value_count(collisions); i++)
        show_collision(screen, ft_value_at(collisions, i), links);
    for (size_t i = 0; rc == 0 && i < ft_value_count(losses); i++)
        ft_show_loss_of(screen, ft_value_at(losses, i), ft_value_at(records, 0));
    return rc ? rc : show_reverse(screen, ft_value_get(root, "reverse"));
}
