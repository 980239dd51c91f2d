// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/detour.h"

#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define LEAVES  3
#define SPINES  2
#define HOSTS   2
#define NOW_MS  INT64_C(1700000000000)
#define SECONDS 5000

static struct ft_topology *t;
static struct ft_sighting list[FT_SIGHTINGS_MAX];
static uint32_t count;

static void begin(void)
{
    t = leafspine(LEAVES, SPINES, HOSTS);
    count = 0;
}

static void end(void)
{
    ft_topology_free(t);
}

static uint32_t port(const char *switch_name, const char *name)
{
    uint32_t id = ft_topology_find_port(t, ft_topology_find_switch(t, switch_name), name);

    ck_assert_uint_ne(id, FT_NONE);
    return id;
}

static void see(const char *switch_name, const char *in, const char *out, int64_t last_ms)
{
    list[count] = (struct ft_sighting){.last_ms = last_ms, .counts = {1, 0}};
    ft_sighting_set_hop(&list[count++], ft_topology_find_switch(t, switch_name),
                        in ? port(switch_name, in) : FT_NONE,
                        out ? port(switch_name, out) : FT_NONE);
}

/* From host 0 of leaf0 to host 0 of leaf1, by spine0, leaf2 and spine1. */
static void see_detour(int64_t last_ms)
{
    see("leaf1", "up1", "host0", last_ms);
    see("spine0", "down0", "down2", last_ms - 1000);
    see("leaf0", "host0", "up0", last_ms - 500);
    see("spine1", "down2", "down1", last_ms);
    see("leaf2", "up0", "up1", last_ms - 100);
}

static bool find(struct ft_detour *d)
{
    return ft_detour_find(list, count, t, 0, HOSTS, SECONDS, d);
}

START_TEST(a_valley_is_found_hop_by_hop)
{
    struct ft_detour d;

    begin();
    see_detour(NOW_MS);
    ck_assert(find(&d));
    ck_assert_uint_eq(d.hop_count, 5);
    ck_assert_uint_eq(d.shortest, 3);
    ck_assert_uint_eq(d.at, 1);
    ck_assert_uint_eq(d.hops[0].in, port("leaf0", "host0"));
    ck_assert_uint_eq(d.hops[1].in, port("spine0", "down0"));
    ck_assert_uint_eq(d.hops[1].out, port("spine0", "down2"));
    ck_assert_uint_eq(d.hops[2].in, port("leaf2", "up0"));
    ck_assert_uint_eq(d.hops[3].out, port("spine1", "down1"));
    ck_assert_uint_eq(d.hops[4].out, port("leaf1", "host0"));
    end();
}
END_TEST

/* Each link needs the samples of both its ends, each hop both its ports, and all of them one time.
 */
START_TEST(what_is_not_sampled_is_not_filled_in)
{
    struct ft_detour d;

    begin();
    see_detour(NOW_MS);
    for (uint32_t i = 0; i < 5; i++) {
        struct ft_sighting kept = list[i];

        list[i].last_ms = NOW_MS - SECONDS - 1;
        ck_assert_int_eq(find(&d), false);
        list[i].last_ms = NOW_MS - SECONDS;
        ck_assert(find(&d));
        ft_sighting_set_hop(&list[i], ft_sighting_switch(&kept), FT_NONE, ft_sighting_out(&kept));
        ck_assert(!find(&d));
        list[i] = kept;
        ft_sighting_set_hop(&list[i], ft_sighting_switch(&kept), ft_sighting_in(&kept), FT_NONE);
        ck_assert(!find(&d));
        list[i] = kept;
        ft_sighting_set_hop(&list[i], FT_SWITCH_UNKNOWN, ft_sighting_in(&kept),
                            ft_sighting_out(&kept));
        ck_assert(!find(&d));
        list[i] = kept;
    }
    ck_assert(find(&d));
    ck_assert(!ft_detour_find(list, count, t, FT_NONE, HOSTS, SECONDS, &d));
    ck_assert(!ft_detour_find(list, count, t, 0, 2 * HOSTS, SECONDS, &d));
    end();
}
END_TEST

START_TEST(an_equal_cost_path_is_none)
{
    struct ft_detour d;

    begin();
    see("leaf0", "host0", "up0", NOW_MS);
    see("spine0", "down0", "down1", NOW_MS);
    see("leaf1", "up0", "host0", NOW_MS);
    ck_assert(!find(&d));
    /* It takes both: that is another thing. */
    see_detour(NOW_MS);
    ck_assert(!find(&d));
    end();
}
END_TEST

/* A loop on the way does not make it longer, and ends. */
START_TEST(a_loop_is_cut_short)
{
    struct ft_detour d;

    begin();
    see_detour(NOW_MS);
    see("leaf2", "up1", "up0", NOW_MS);
    see("spine0", "down2", "down2", NOW_MS);
    see("spine1", "down2", "down2", NOW_MS);
    ck_assert(find(&d));
    ck_assert_uint_eq(d.hop_count, 5);
    count = 0;
    see("leaf0", "host0", "up0", NOW_MS);
    see("spine0", "down0", "down0", NOW_MS);
    see("leaf0", "up0", "up0", NOW_MS);
    ck_assert(!find(&d));
    end();
}
END_TEST

/* Back to the leaf that it came from, by the spine: the spine is what turns. */
START_TEST(a_spine_that_sends_back)
{
    struct ft_detour d;

    begin();
    see("leaf0", "host0", "up0", NOW_MS);
    see("spine0", "down0", "down0", NOW_MS);
    see("leaf0", "up0", "up1", NOW_MS);
    see("spine1", "down0", "down1", NOW_MS);
    see("leaf1", "up1", "host0", NOW_MS);
    ck_assert(find(&d));
    ck_assert_uint_eq(d.hop_count, 5);
    ck_assert_uint_eq(d.at, 1);
    end();
}
END_TEST

FT_UNIT_MAIN("detour", a_valley_is_found_hop_by_hop, what_is_not_sampled_is_not_filled_in,
             an_equal_cost_path_is_none, a_loop_is_cut_short, a_spine_that_sends_back)
