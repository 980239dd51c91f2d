// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <inttypes.h>

#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/units.h"

#define ROWS_MAX 20 /* of queue pairs and flows; the commands that list them have all */

/* A table under its title; the grid is freed. */
static int put_table(const struct ft_screen *screen, const char *title, struct ft_grid *grid)
{
    int rc;

    fprintf(screen->out, "\n%s\n", title);
    rc = ft_grid_print(grid, screen, 2);
    ft_grid_free(grid);
    return rc;
}

/* "Flows: 64, the first 20 of them; fabrictrace paths --host gpu01 lists them". */
static void put_count(const struct ft_screen *screen, const char *what, uint64_t total,
                      const char *command, const char *option, const char *name)
{
    fprintf(screen->out, "\n%s: %" PRIu64, what, total);
    if (total > ROWS_MAX) {
        fprintf(screen->out, ", the first %d; fabrictrace %s --%s ", ROWS_MAX, command, option);
        ft_screen_text(screen, FT_PLAIN, name);
        fputs(" lists them", screen->out);
    }
    fputc('\n', screen->out);
}

static uint64_t total_of(const struct ft_value *root, const char *total,
                         const struct ft_value *list)
{
    uint64_t n = ft_value_count(list);

    ft_value_uint(root, total, &n);
    return n;
}

static int show_events(const struct ft_screen *screen, const struct ft_value *events)
{
    struct ft_grid *grid;

    if (ft_value_count(events) == 0) {
        fputs("\nNo active events\n", screen->out);
        return 0;
    }
    grid = ft_rows_events();
    for (size_t i = 0; i < ft_value_count(events); i++)
        ft_rows_events_add(grid, ft_value_at(events, i), screen->now);
    return put_table(screen, "Active events", grid);
}

static int show_findings(const struct ft_screen *screen, const struct ft_value *findings)
{
    struct ft_grid *grid;

    if (ft_value_count(findings) == 0) {
        fputs("\nNo finding of the doctor is about it\n", screen->out);
        return 0;
    }
    grid = ft_rows_findings();
    for (size_t i = 0; i < ft_value_count(findings); i++)
        ft_rows_findings_add(grid, ft_value_at(findings, i));
    return put_table(screen, "What is missing (doctor)", grid);
}

static int show_paths(const struct ft_screen *screen, const struct ft_value *root,
                      const char *option, const char *name)
{
    const struct ft_value *paths = ft_value_get(root, "paths");
    struct ft_screen some = *screen;
    struct ft_grid *grid;
    int rc;

    put_count(screen, "Flows", total_of(root, "paths_total", paths), "paths", option, name);
    grid = ft_rows_paths();
    some.layout.limit = ROWS_MAX;
    rc = ft_rows_paths_add_all(grid, paths);
    if (rc == 0)
        rc = ft_grid_print(grid, &some, 2);
    ft_grid_free(grid);
    return rc;
}

/* "8 queue pairs: 6 with their flows, 2 whose destination the host cannot read". */
static void put_pairs(const struct ft_screen *screen, const struct ft_value *agent)
{
    static const struct {
        const char *name, *text;
    } parts[] = {
        {"resolved", "with their flows"},
        {"unconnected", "without a peer"},
        {"no_destination", "whose destination the host cannot read"},
        {"no_source_port", "whose source port is not known"},
        {"refused", "without room"},
    };
    const char *before = ": ";
    uint64_t n;

    if (!ft_value_uint(agent, "queue_pairs", &n))
        return;
    fprintf(screen->out, "; %" PRIu64 " queue pair%s", n, n == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (ft_value_uint(agent, parts[i].name, &n) && n) {
            fprintf(screen->out, "%s%" PRIu64 " %s", before, n, parts[i].text);
            before = ", ";
        }
}

static void show_agent(const struct ft_screen *screen, const struct ft_value *agent)
{
    const struct ft_value *missing = ft_value_get(agent, "missing_capabilities");
    const char *user = ft_value_str(agent, "user"), *problem = ft_value_str(agent, "problem");
    char time[FT_UNIT_BYTES];
    uint64_t ms;

    fputs("\nAgent: ", screen->out);
    ft_screen_text(screen, FT_PLAIN, ft_value_str(agent, "source"));
    if (user) {
        fputs(", user ", screen->out);
        ft_screen_text(screen, FT_PLAIN, user);
    }
    if (ft_value_uint(agent, "time_ms", &ms))
        fprintf(screen->out, ", reported at %s", ft_unit_time(time, ms, screen->now));
    put_pairs(screen, agent);
    fputc('\n', screen->out);
    if (problem) {
        fputs("  ", screen->out);
        ft_screen_text(screen, FT_YELLOW, problem);
        fputc('\n', screen->out);
    }
    for (size_t i = 0; i < ft_value_count(missing); i++) {
        const struct ft_value *m = ft_value_at(missing, i);
        const char *what = ft_value_str(m, "what"), *needs = ft_value_str(m, "capability");
        const char *setting = ft_value_str(m, "setting");

        fputs("  does not see ", screen->out);
        ft_screen_text(screen, FT_YELLOW, what ? what : "?");
        if (needs || setting)
            fputs(": needs ", screen->out);
        ft_screen_text(screen, FT_PLAIN, needs);
        if (needs && setting)
            fputs(" and ", screen->out);
        ft_screen_text(screen, FT_PLAIN, setting);
        fputc('\n', screen->out);
    }
}

static int show_qps(const struct ft_screen *screen, const struct ft_value *root, const char *name)
{
    const struct ft_value *qps = ft_value_get(root, "queue_pairs");
    struct ft_screen some = *screen;
    struct ft_grid *grid;
    int rc;

    put_count(screen, "Connected queue pairs", total_of(root, "queue_pairs_total", qps), "qps",
              "host", name);
    grid = ft_rows_qps();
    some.layout.limit = ROWS_MAX;
    for (size_t i = 0; i < ft_value_count(qps); i++)
        ft_rows_qps_add(grid, ft_value_at(qps, i));
    rc = ft_grid_print(grid, &some, 2);
    ft_grid_free(grid);
    return rc;
}

static int show_host(const struct ft_screen *screen, const struct ft_value *root,
                     const struct ft_value *host, const char *name)
{
    const struct ft_value *agents = ft_value_get(root, "agents");
    struct ft_grid *grid = ft_rows_nics();
    int rc = ft_rows_nics_add_all(grid, host);

    if (rc == 0)
        rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    if (ft_value_count(agents) == 0)
        fputs("\nNo agent reports from this host\n", screen->out);
    for (size_t i = 0; i < ft_value_count(agents); i++)
        show_agent(screen, ft_value_at(agents, i));
    return rc ? rc : show_qps(screen, root, name);
}

static void put_addresses(const struct ft_screen *screen, const struct ft_value *addresses)
{
    for (size_t i = 0; i < ft_value_count(addresses); i++) {
        fputs(i ? ", " : "Addresses: ", screen->out);
        ft_screen_text(screen, FT_PLAIN, ft_value_text(ft_value_at(addresses, i)));
    }
    fputs(ft_value_count(addresses) ? "\n\n" : "No address of it is known\n\n", screen->out);
}

/* Links of which a port's counters came. */
static size_t counted(const struct ft_value *links)
{
    size_t n = 0;

    for (size_t i = 0; i < ft_value_count(links); i++)
        n += ft_value_get(ft_value_at(links, i), "counter_bytes") != NULL;
    return n;
}

static int show_switch(const struct ft_screen *screen, const struct ft_value *root,
                       const struct ft_value *sw)
{
    const struct ft_value *links = ft_value_get(root, "links");
    const struct ft_value *groups = ft_value_get(root, "groups");
    struct ft_grid *grid = ft_rows_ports();
    int rc;

    put_addresses(screen, ft_value_get(sw, "addresses"));
    ft_rows_ports_add_all(grid, sw);
    rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    if (rc == 0 && ft_value_count(groups)) {
        grid = ft_rows_imbalance();
        for (size_t i = 0; i < ft_value_count(groups); i++)
            ft_rows_imbalance_add(grid, ft_value_at(groups, i));
        rc = put_table(screen, "Groups", grid);
    }
    if (rc || ft_value_count(links) == 0)
        return rc;
    fprintf(screen->out, "\nLinks: %zu, counters of %zu", ft_value_count(links), counted(links));
    grid = ft_rows_links();
    for (size_t i = 0; i < ft_value_count(links); i++)
        ft_rows_links_add(grid, ft_value_at(links, i));
    fputc('\n', screen->out);
    rc = ft_grid_print(grid, screen, 2);
    ft_grid_free(grid);
    return rc;
}

int ft_show_explain_node(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *host = ft_value_get(root, "host"), *sw = ft_value_get(root, "switch");
    const char *name = ft_value_str(host ? host : sw, "name");
    int rc;

    ft_text_window(screen, root);
    fprintf(screen->out, ", %s ", host ? "host" : "switch");
    ft_screen_text(screen, FT_BOLD, name);
    if (sw && ft_value_str(sw, "tier"))
        fprintf(screen->out, " (%s)", ft_value_str(sw, "tier"));
    fputs("\n\n", screen->out);
    rc = host ? show_host(screen, root, host, name) : show_switch(screen, root, sw);
    if (rc == 0)
        rc = show_findings(screen, ft_value_get(root, "findings"));
    if (rc == 0)
        rc = show_events(screen, ft_value_get(root, "events"));
    return rc ? rc : show_paths(screen, root, host ? "host" : "switch", name);
}
