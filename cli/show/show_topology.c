// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/show/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/units.h"

static const struct ft_column port_columns[] = {
    {.title = "SWITCH"},
    {.title = "TIER", .give_up = 3},
    {.title = "PORT"},
    {.title = "IFINDEX", .right = true, .give_up = 2},
    {.title = "SPEED", .right = true, .give_up = 1},
    {.title = "TO", .elastic = true},
    {.title = "GROUP", .give_up = 4},
    {.title = "AGGREGATE", .give_up = 6},
    {.title = "SOURCE", .give_up = 5},
};

static const struct ft_column nic_columns[] = {
    {.title = "HOST"},
    {.title = "RAIL", .right = true, .give_up = 1},
    {.title = "ATTACHED TO"},
    {.title = "ADDRESSES", .elastic = true},
};

/* "a, b, c" of a list; item writes one. free() it; NULL without memory. */
static char *join(const struct ft_value *list, void (*item)(FILE *, const struct ft_value *))
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return NULL;
    for (size_t i = 0; i < ft_value_count(list); i++) {
        fputs(i ? ", " : "", out);
        item(out, ft_value_at(list, i));
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void put_text(FILE *out, const struct ft_value *item)
{
    const char *text = ft_value_text(item);

    fputs(text ? text : "?", out);
}

static void put_attach(FILE *out, const struct ft_value *item)
{
    const char *name = ft_value_str(item, "switch"), *port = ft_value_str(item, "port");

    fprintf(out, "%s %s", name ? name : "?", port ? port : "?");
}

/* The aggregate of a switch that a port is a member of, NULL. */
static const char *lag_of(const struct ft_value *sw, const char *port)
{
    const struct ft_value *lags = ft_value_get(sw, "lags");

    for (size_t i = 0; port && i < ft_value_count(lags); i++) {
        const struct ft_value *lag = ft_value_at(lags, i);
        const struct ft_value *members = ft_value_get(lag, "members");

        for (size_t k = 0; k < ft_value_count(members); k++) {
            const char *member = ft_value_text(ft_value_at(members, k));

            if (member && strcmp(member, port) == 0)
                return ft_value_str(lag, "name");
        }
    }
    return NULL;
}

/* "spine1 Ethernet1, shut down": where it leads, or would. */
static void add_end(struct ft_grid *grid, const struct ft_value *port)
{
    const char *state = ft_value_str(port, "state"), *host = ft_value_str(port, "host");
    const char *peer = ft_value_str(port, "peer"), *peer_port = ft_value_str(port, "peer_port");
    const char *why = "";

    if (state)
        why = strcmp(state, "shut") == 0        ? ", shut down"
              : strcmp(state, "peer_shut") == 0 ? ", shut down there"
                                                : ", down";
    if (!peer && ft_value_str(port, "down_peer")) {
        peer = ft_value_str(port, "down_peer");
        peer_port = ft_value_str(port, "down_peer_port");
    }
    if (peer)
        ft_grid_cell(grid, *why ? FT_YELLOW : FT_PLAIN, "%s %s%s", peer, peer_port ? peer_port : "",
                     why);
    else
        ft_grid_cell(grid, *why ? FT_YELLOW : FT_PLAIN, "%s%s", host ? host : "", why);
}

static void add_port(struct ft_grid *grid, const struct ft_value *sw, const struct ft_value *port)
{
    const char *name = ft_value_str(sw, "name"), *tier = ft_value_str(sw, "tier");
    const char *own = ft_value_str(port, "name");
    const char *group = ft_value_str(port, "group"), *source = ft_value_str(port, "source");
    const char *lag = lag_of(sw, own);
    char text[FT_UNIT_BYTES];
    uint64_t ifindex;
    double speed;

    ft_grid_cell(grid, FT_PLAIN, "%s", name ? name : "");
    ft_grid_cell(grid, FT_PLAIN, "%s", tier ? tier : "");
    ft_grid_cell(grid, FT_PLAIN, "%s", own ? own : "");
    if (ft_value_uint(port, "ifindex", &ifindex))
        ft_grid_cell(grid, FT_PLAIN, "%llu", (unsigned long long)ifindex);
    else
        ft_grid_skip(grid);
    if (ft_value_real(port, "speed_bps", &speed))
        ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_rate(text, speed));
    else
        ft_grid_skip(grid);
    add_end(grid, port);
    ft_grid_cell(grid, FT_PLAIN, "%s", group ? group : "");
    ft_grid_cell(grid, FT_PLAIN, "%s", lag ? lag : "");
    if (source && ft_value_get(port, "confirmed"))
        ft_grid_cell(grid, FT_PLAIN, "%s, %s", source,
                     ft_value_true(port, "confirmed") ? "confirmed" : "unconfirmed");
    else
        ft_grid_cell(grid, FT_PLAIN, "%s", source ? source : "");
}

static int add_nic(struct ft_grid *grid, const struct ft_value *host, const struct ft_value *nic)
{
    char *addresses = join(ft_value_get(nic, "addresses"), put_text);
    char *attach = join(ft_value_get(nic, "attach"), put_attach);
    const char *name = ft_value_str(host, "name");
    int rc = addresses && attach ? 0 : -ENOMEM;
    uint64_t rail;

    if (rc == 0) {
        ft_grid_cell(grid, FT_PLAIN, "%s", name ? name : "");
        if (ft_value_uint(nic, "rail", &rail))
            ft_grid_cell(grid, FT_PLAIN, "%llu", (unsigned long long)rail);
        else
            ft_grid_skip(grid);
        ft_grid_cell(grid, FT_PLAIN, "%s", attach);
        ft_grid_cell(grid, FT_PLAIN, "%s", addresses);
    }
    free(addresses);
    free(attach);
    return rc;
}

struct ft_grid *ft_rows_ports(void)
{
    return ft_grid_new(port_columns, sizeof(port_columns) / sizeof(port_columns[0]));
}

void ft_rows_ports_add_all(struct ft_grid *grid, const struct ft_value *sw)
{
    const struct ft_value *ports = ft_value_get(sw, "ports");

    for (size_t k = 0; k < ft_value_count(ports); k++)
        add_port(grid, sw, ft_value_at(ports, k));
}

struct ft_grid *ft_rows_nics(void)
{
    return ft_grid_new(nic_columns, sizeof(nic_columns) / sizeof(nic_columns[0]));
}

int ft_rows_nics_add_all(struct ft_grid *grid, const struct ft_value *host)
{
    const struct ft_value *nics = ft_value_get(host, "nics");
    int rc = 0;

    for (size_t k = 0; rc == 0 && k < ft_value_count(nics); k++)
        rc = add_nic(grid, host, ft_value_at(nics, k));
    return rc;
}

static int show_ports(const struct ft_screen *screen, const struct ft_value *switches)
{
    struct ft_grid *grid = ft_rows_ports();
    int rc;

    for (size_t i = 0; i < ft_value_count(switches); i++)
        ft_rows_ports_add_all(grid, ft_value_at(switches, i));
    rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

static int show_nics(const struct ft_screen *screen, const struct ft_value *hosts)
{
    struct ft_grid *grid = ft_rows_nics();
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < ft_value_count(hosts); i++)
        rc = ft_rows_nics_add_all(grid, ft_value_at(hosts, i));
    if (rc == 0)
        rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

static void show_open(const struct ft_screen *screen, const struct ft_value *open)
{
    if (ft_value_count(open) == 0)
        return;
    fputs("\nFlows of other switches cross, not known yet where they lead:\n ", screen->out);
    for (size_t i = 0; i < ft_value_count(open); i++) {
        const char *name = ft_value_str(ft_value_at(open, i), "switch");
        const char *port = ft_value_str(ft_value_at(open, i), "port");

        fprintf(screen->out, "%s %s %s", i ? "," : "", name ? name : "?", port ? port : "?");
    }
    fputc('\n', screen->out);
}

int ft_show_topology(const struct ft_screen *screen, const struct ft_value *root)
{
    const struct ft_value *switches = ft_value_get(root, "switches");
    const struct ft_value *hosts = ft_value_get(root, "hosts");
    const char *fabric = ft_value_str(root, "fabric");
    int rc;

    ft_screen_text(screen, FT_BOLD, fabric ? fabric : "fabric");
    fprintf(screen->out, ", %zu switch%s, %zu host%s\n", ft_value_count(switches),
            ft_value_count(switches) == 1 ? "" : "es", ft_value_count(hosts),
            ft_value_count(hosts) == 1 ? "" : "s");
    rc = show_ports(screen, switches);
    if (rc == 0 && ft_value_count(hosts)) {
        fputc('\n', screen->out);
        rc = show_nics(screen, hosts);
    }
    if (rc == 0)
        show_open(screen, ft_value_get(root, "open"));
    return rc;
}
