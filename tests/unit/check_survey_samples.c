// SPDX-License-Identifier: Apache-2.0
/* Switches, links and miscablings that samples alone show: daemon/discovery/survey_samples.c. */
#include "config.h"

#include "daemon/discovery/discovery.h"
#include "daemon/discovery/topology_diff.h"
#include "lib/files/topology_file.h"
#include "tests/unit/wiring_rig.h"

static struct ft_topology *base, *found;
static struct ft_wiring *w;
static struct ft_discovery *discovery;

static void begin(struct ft_topology *file)
{
    const struct ft_discovery_config config = {.switches_max = 100, .addresses_max = 1000};

    rig_reset();
    base = file;
    found = NULL;
    w = ft_wiring_new(&rig_config, base);
    discovery = ft_discovery_new(&config);
    ck_assert_ptr_nonnull(w);
    ck_assert_ptr_nonnull(discovery);
}

static void changed(void *arg, uint32_t port)
{
    (void)arg;
    (void)port;
}

static void run(uint32_t seconds)
{
    rig_run(w, seconds, changed, NULL);
    ft_topology_free(found);
    ft_discovery_see(discovery, ft_wiring_crossings(w), base, NULL);
    found = ft_discovery_build(discovery, base, rig_ms);
    ck_assert_ptr_nonnull(found);
}

static void end(void)
{
    ft_wiring_free(w);
    ft_discovery_free(discovery);
    ft_topology_free(found);
    ft_topology_free(base);
}

/* Findings of a kind at a port; the last of them is returned too. */
static size_t findings(enum ft_finding_kind kind, const char *at, const char *port,
                       const struct ft_finding **last)
{
    const struct ft_findings *f = ft_discovery_findings(discovery);
    size_t count = 0;

    for (size_t i = 0; i < f->count; i++) {
        if (f->items[i].kind != kind || (at && strcmp(f->items[i].switch_name, at) != 0) ||
            (port && strcmp(f->items[i].port, port) != 0))
            continue;
        count++;
        if (last)
            *last = &f->items[i];
    }
    return count;
}

static bool linked(const char *a, const char *a_port, const char *z, const char *z_port)
{
    uint32_t from = ft_topology_find_port(found, ft_topology_find_switch(found, a), a_port);
    uint32_t to = ft_topology_find_port(found, ft_topology_find_switch(found, z), z_port);

    return from != FT_NONE && to != FT_NONE && ft_topology_port(found, from)->peer == to;
}

START_TEST(what_agrees_says_nothing)
{
    struct ft_topology *truth = leafspine(RIG_LEAVES, RIG_SPINES, RIG_HOSTS);

    begin(leafspine(RIG_LEAVES, RIG_SPINES, RIG_HOSTS));
    run(20);
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 0);
    ck_assert_uint_eq(ft_topology_diff(truth, found, NULL, NULL), 0);
    ck_assert(!ft_discovery_sampled(discovery, "leaf0", "up0"));
    ft_topology_free(truth);
    end();
}
END_TEST

START_TEST(a_link_that_nobody_states_is_added)
{
    begin(leafspine_without(RIG_LEAVES, RIG_SPINES, RIG_HOSTS, 0, 0));
    run(1);
    ck_assert(!linked("leaf0", "up0", "spine0", "down0"));
    run(20);
    ck_assert(linked("leaf0", "up0", "spine0", "down0"));
    ck_assert(ft_discovery_sampled(discovery, "leaf0", "up0"));
    ck_assert(ft_discovery_sampled(discovery, "spine0", "down0"));
    ck_assert(!ft_discovery_sampled(discovery, "leaf0", "up1"));
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 0);
    end();
}
END_TEST

/* The two links are each the other's: told at both, with the port that samples show instead. The
 * file keeps its word. */
START_TEST(a_swap_is_named_at_both_links)
{
    begin(leafspine(RIG_LEAVES, RIG_SPINES, RIG_HOSTS));
    rig_swap(0);
    run(25);
    ck_assert_uint_eq(findings(FT_FINDING_MISCABLING, NULL, NULL, NULL), 2);
    for (unsigned up = 0; up < 2; up++) {
        const struct ft_finding *f = NULL;
        char spine[16], other[16], says[64];

        snprintf(spine, sizeof(spine), "spine%u", up);
        snprintf(other, sizeof(other), "spine%u", 1 - up);
        snprintf(says, sizeof(says), "with up%u the other way round: swapped", 1 - up);
        ck_assert_uint_eq(findings(FT_FINDING_MISCABLING, "leaf0", up ? "up1" : "up0", &f), 1);
        ck_assert_str_eq(f->peer, spine);
        ck_assert_str_eq(f->peer_port, "down0");
        ck_assert_str_eq(f->found, other);
        ck_assert_str_eq(f->found_port, "down0");
        ck_assert_ptr_nonnull(strstr(f->text, "the file says it goes to"));
        ck_assert_msg(strstr(f->text, says) != NULL, "%s", f->text);
        ck_assert_uint_ge(f->flows, 2);
        ck_assert_uint_gt(f->samples, 0);
        ck_assert(linked("leaf0", up ? "up1" : "up0", spine, "down0"));
    }
    end();
}
END_TEST

/* It is told as long as samples show it. */
START_TEST(a_miscabling_ends_when_the_cables_are_right)
{
    begin(leafspine(RIG_LEAVES, RIG_SPINES, RIG_HOSTS));
    rig_swap(0);
    run(25);
    ck_assert_uint_eq(findings(FT_FINDING_MISCABLING, NULL, NULL, NULL), 2);
    plug[0][0] = 0;
    plug[0][1] = 1;
    run(240);
    ck_assert_uint_eq(findings(FT_FINDING_MISCABLING, NULL, NULL, NULL), 0);
    end();
}
END_TEST

/* A host's own packets come in at each leaf: what tells leaves from spines. */
static void enter_hosts(void)
{
    for (uint32_t i = 0; i < 20 * RIG_LEAVES; i++) {
        struct ft_ip host = leafspine_host_ip(i % RIG_LEAVES, 0);
        struct ft_ip leaf = leafspine_switch_ip(i % RIG_LEAVES);

        ft_discovery_entered(discovery, &host, &leaf, 1,
                             RIG_START_MS + 1000 * (int64_t)(i / RIG_LEAVES), false);
    }
}

/* Nothing but samples: every exporter is a switch by its address, every link is found. */
START_TEST(switches_that_nobody_knows_are_added)
{
    struct ft_diag *diag = ft_diag_new();

    begin(ft_topology_file_none("lab", diag));
    ft_diag_free(diag);
    ck_assert_ptr_nonnull(base);
    enter_hosts();
    run(20);
    ck_assert_uint_eq(ft_topology_switches(found), RIG_SWITCHES);
    for (uint32_t l = 0; l < RIG_LEAVES; l++)
        for (uint32_t s = 0; s < RIG_SPINES; s++) {
            struct ft_ip leaf = leafspine_switch_ip(l), spine = leafspine_switch_ip(RIG_LEAVES + s);
            char a[FT_IP_TEXT_BYTES], z[FT_IP_TEXT_BYTES], up[16], down[16];

            ft_ip_format(&leaf, a);
            ft_ip_format(&spine, z);
            snprintf(up, sizeof(up), "#%u", 100 + s);
            snprintf(down, sizeof(down), "#%u", 1 + l);
            ck_assert(linked(a, up, z, down));
            ck_assert(ft_discovery_sampled(discovery, a, ""));
        }
    end();
}
END_TEST

static void name_port(struct ft_ip agent, uint32_t ifindex, const char *name)
{
    Fabrictrace__PortCounters poll = FABRICTRACE__PORT_COUNTERS__INIT;
    size_t len;

    poll.has_agent = poll.has_ifindex = poll.has_time_ms = true;
    poll.agent.data = (uint8_t *)(uintptr_t)ft_ip_bytes(&agent, &len);
    poll.agent.len = len;
    poll.ifindex = ifindex;
    poll.time_ms = RIG_START_MS;
    poll.source = FABRICTRACE__COUNTER_SOURCE__COUNTER_SOURCE_SFLOW;
    poll.port = (char *)(uintptr_t)name;
    ck_assert_int_eq(ft_discovery_counters(discovery, &poll, RIG_START_MS), 0);
}

START_TEST(names_in_turn_are_told)
{
    struct ft_ip leaf = leafspine_switch_ip(0);
    struct ft_diag *diag = ft_diag_new();
    const struct ft_finding *last = NULL;
    char address[FT_IP_TEXT_BYTES];

    begin(ft_topology_file_none("lab", diag));
    ft_diag_free(diag);
    ft_ip_format(&leaf, address);
    enter_hosts();
    name_port(leaf, 100, "Ethernet0");
    name_port(leaf, 101, "Ethernet4");
    name_port(leaf, 100, "Ethernet4");
    name_port(leaf, 100, "Ethernet0");
    run(20);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, address, "Ethernet0", &last), 1);
    ck_assert_ptr_nonnull(strstr(last->text, "another name in turn"));
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, address, "Ethernet4", NULL), 0);
    end();
}
END_TEST

FT_UNIT_MAIN("survey_samples", what_agrees_says_nothing, a_link_that_nobody_states_is_added,
             a_swap_is_named_at_both_links, a_miscabling_ends_when_the_cables_are_right,
             switches_that_nobody_knows_are_added, names_in_turn_are_told)
