// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cli/output/safe.h"
#include "cli/show/show.h"

/* Always in quotes: "#51" would be a comment, "fd00::1" a map. Names come from switches. */
static void put_text(FILE *out, const char *text)
{
    ft_safe_put_yaml(out, text ? text : "");
}

static void put_member(FILE *out, const char *before, const char *key, const struct ft_value *of,
                       const char *name)
{
    fprintf(out, "%s%s: ", before, key);
    put_text(out, ft_value_str(of, name));
}

static void put_number(FILE *out, const char *key, const struct ft_value *of, const char *name)
{
    uint64_t value;

    if (ft_value_uint(of, name, &value))
        fprintf(out, ", %s: %llu", key, (unsigned long long)value);
}

static void put_texts(FILE *out, const char *before, const struct ft_value *list)
{
    fprintf(out, "%s[", before);
    for (size_t i = 0; i < ft_value_count(list); i++) {
        fputs(i ? ", " : "", out);
        put_text(out, ft_value_text(ft_value_at(list, i)));
    }
    fputc(']', out);
}

static void put_ports(FILE *out, const struct ft_value *ports)
{
    if (ft_value_count(ports))
        fputs("    ports:\n", out);
    for (size_t i = 0; i < ft_value_count(ports); i++) {
        const struct ft_value *port = ft_value_at(ports, i);

        put_member(out, "      - {", "name", port, "name");
        put_number(out, "ifindex", port, "ifindex");
        put_number(out, "speed_bps", port, "speed_bps");
        fputs("}\n", out);
    }
}

static void put_lags(FILE *out, const struct ft_value *lags)
{
    if (ft_value_count(lags))
        fputs("    lags:\n", out);
    for (size_t i = 0; i < ft_value_count(lags); i++) {
        const struct ft_value *lag = ft_value_at(lags, i);

        put_member(out, "      - {", "name", lag, "name");
        put_number(out, "ifindex", lag, "ifindex");
        put_texts(out, ", members: ", ft_value_get(lag, "members"));
        fputs("}\n", out);
    }
}

static void put_switch(FILE *out, const struct ft_value *sw)
{
    const char *tier = ft_value_str(sw, "tier");

    put_member(out, "  - ", "name", sw, "name");
    fputc('\n', out);
    if (tier && strcmp(tier, "unknown") != 0) {
        put_member(out, "    ", "tier", sw, "tier");
        fputc('\n', out);
    }
    put_texts(out, "    addresses: ", ft_value_get(sw, "addresses"));
    fputc('\n', out);
    put_ports(out, ft_value_get(sw, "ports"));
    put_lags(out, ft_value_get(sw, "lags"));
}

/* Who says so, in a comment: nothing of it may begin another line. */
static void put_evidence(FILE *out, const struct ft_value *port)
{
    const char *source = ft_value_str(port, "source");
    uint64_t samples = 0, flows = 0;

    fputs("  # ", out);
    for (const char *c = source ? source : "?"; *c; c++)
        fputc(*c >= 'a' && *c <= 'z' ? *c : '?', out);
    if (ft_value_uint(port, "samples", &samples) && ft_value_uint(port, "flows", &flows))
        fprintf(out, ", confirmed by %llu samples of %llu flows", (unsigned long long)samples,
                (unsigned long long)flows);
    else
        fputs(ft_value_true(port, "confirmed") ? ", confirmed" : ", not confirmed", out);
    fputc('\n', out);
}

static bool comes_before(const struct ft_value *sw, const struct ft_value *port)
{
    const char *a = ft_value_str(sw, "name"), *z = ft_value_str(port, "peer");
    const char *a_port = ft_value_str(port, "name"), *z_port = ft_value_str(port, "peer_port");
    int by = a && z ? strcmp(a, z) : 0;

    return by < 0 || (by == 0 && a_port && z_port && strcmp(a_port, z_port) < 0);
}

/* Each link once, at the switch that comes first by its name. */
static void put_links(FILE *out, const struct ft_value *switches)
{
    bool some = false;

    for (size_t i = 0; i < ft_value_count(switches); i++) {
        const struct ft_value *sw = ft_value_at(switches, i), *ports = ft_value_get(sw, "ports");

        for (size_t k = 0; k < ft_value_count(ports); k++) {
            const struct ft_value *port = ft_value_at(ports, k);

            if (!ft_value_str(port, "peer") || !comes_before(sw, port))
                continue;
            fputs(some ? "" : "links:\n", out);
            some = true;
            put_member(out, "  - {", "a", sw, "name");
            put_member(out, ", ", "a_port", port, "name");
            put_member(out, ", ", "b", port, "peer");
            put_member(out, ", ", "b_port", port, "peer_port");
            fputc('}', out);
            put_evidence(out, port);
        }
    }
}

static void put_nic(FILE *out, const struct ft_value *nic)
{
    const struct ft_value *attach = ft_value_get(nic, "attach");

    put_texts(out, "      - {addresses: ", ft_value_get(nic, "addresses"));
    put_number(out, "rail", nic, "rail");
    fputs(", attach: [", out);
    for (size_t i = 0; i < ft_value_count(attach); i++) {
        put_member(out, i ? ", {" : "{", "switch", ft_value_at(attach, i), "switch");
        put_member(out, ", ", "port", ft_value_at(attach, i), "port");
        fputc('}', out);
    }
    fputs("]}\n", out);
}

int ft_export_topology(FILE *out, const struct ft_value *root)
{
    const struct ft_value *switches = ft_value_get(root, "switches");
    const struct ft_value *hosts = ft_value_get(root, "hosts");

    fputs(
        "# The fabric as fabrictraced knows it: links that are down, or that stay inside a tier,\n"
        "# are not among these.\n",
        out);
    put_member(out, "", "fabric", root, "fabric");
    fputc('\n', out);
    if (ft_value_count(switches))
        fputs("switches:\n", out);
    for (size_t i = 0; i < ft_value_count(switches); i++)
        put_switch(out, ft_value_at(switches, i));
    put_links(out, switches);
    if (ft_value_count(hosts))
        fputs("hosts:\n", out);
    for (size_t i = 0; i < ft_value_count(hosts); i++) {
        const struct ft_value *host = ft_value_at(hosts, i), *nics = ft_value_get(host, "nics");

        put_member(out, "  - ", "name", host, "name");
        fputs("\n    nics:\n", out);
        for (size_t n = 0; n < ft_value_count(nics); n++)
            put_nic(out, ft_value_at(nics, n));
    }
    return 0;
}
