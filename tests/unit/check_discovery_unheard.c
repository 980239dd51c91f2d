// SPDX-License-Identifier: Apache-2.0
/* Links of which LLDP is not heard any more, while flows cross them or do not. */
#include "config.h"

#define LEAVES 3
#define SPINES 2
#include "tests/unit/discovery_rig.h"
#include "tests/unit/wiring_rig.h"

#define UNHEARD "neither side receives LLDP"
#define CROSSED "yet flows cross the link"

static struct ft_wiring *w;

static void changed(void *arg, uint32_t port)
{
    (void)arg;
    (void)port;
}

/* Traffic for so many seconds, then what is found. */
static void run(uint32_t seconds)
{
    struct ft_topology *before = found;

    rig_run(w, seconds, changed, NULL);
    found = NULL;
    now_ms = rig_ms;
    send_all();
    ft_discovery_see(discovery, ft_wiring_crossings(w), before, NULL);
    build();
    ck_assert_int_eq(ft_wiring_follow(w, found), 0);
    ft_topology_free(before);
}

static void start(void)
{
    begin(true);
    rig_reset();
    w = ft_wiring_new(&rig_config, base);
    ck_assert_ptr_nonnull(w);
    run(1);
    run(25);
    assert_differs(0);
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 0);
}

static void stop(void)
{
    ft_wiring_free(w);
    end();
}

static void unhear(uint32_t leaf, uint32_t spine)
{
    uplink(leaf, spine)->hears = downlink(leaf, spine)->hears = false;
}

START_TEST(a_link_that_flows_cross_is_not_down)
{
    start();
    unhear(1, 0);
    for (int i = 0; i < 5; i++) {
        run(5);
        assert_differs(0);
        ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, NULL, NULL, NULL), 0);
        ck_assert_uint_eq(findings(FT_FINDING_NOTE, "leaf1", "up0", CROSSED), 1);
        ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 1);
    }
    stop();
}
END_TEST

/* Samples come from the other spine alone, as where the cable was pulled; what they showed before
 * is not of now. */
START_TEST(a_link_that_no_flow_crosses_any_more_is_down)
{
    start();
    unhear(1, 0);
    run(5);
    silent[RIG_LEAVES] = true;
    run(20);
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, "leaf1", "up0", UNHEARD), 1);
    ck_assert_uint_eq(ft_discovery_findings(discovery)->count, 1);
    stop();
}
END_TEST

START_TEST(a_port_that_is_down_is_believed_at_once)
{
    start();
    unhear(1, 0);
    downlink(1, 0)->info.oper_up = false;
    run(5);
    ck_assert_uint_eq(findings(FT_FINDING_LINK_DOWN, "leaf1", "up0", NULL), 1);
    ck_assert_uint_eq(findings(FT_FINDING_NOTE, NULL, NULL, CROSSED), 0);
    stop();
}
END_TEST

FT_UNIT_MAIN("discovery_unheard", a_link_that_flows_cross_is_not_down,
             a_link_that_no_flow_crosses_any_more_is_down, a_port_that_is_down_is_believed_at_once)
