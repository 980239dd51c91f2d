// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/window/stopped.h"

#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define LINKS 4

static struct ft_loads loads;

static const struct ft_group *group_of(const struct ft_topology *t)
{
    for (uint32_t g = 0; g < ft_topology_groups(t); g++)
        if (strcmp(ft_topology_group(t, g)->name, "leaf1/up") == 0)
            return ft_topology_group(t, g);
    ck_abort_msg("no group");
    return NULL;
}

static void note(struct ft_stopped *s, const struct ft_topology *t, const uint64_t flows[LINKS])
{
    const struct ft_group *group = group_of(t);

    ck_assert_int_eq(ft_loads_init(&loads, t), 0);
    for (uint32_t i = 0; i < group->link_count; i++)
        loads.link[group->links[i]].certain = flows[i];
    ft_stopped_note(s, &loads, group);
    ft_loads_free(&loads);
}

static double chance(const struct ft_stopped *s, const struct ft_topology *t, uint32_t first,
                     size_t count, uint64_t flows)
{
    return ft_stopped_by_chance(s, group_of(t)->links + first, count, flows);
}

/* By hand: 1 of 2, then 0 of 2: C(2, 1) / C(4, 1). 2 of 4, then 0 of 4: C(4, 2) / C(8, 2). */
START_TEST(chance_is_that_of_fisher)
{
    struct ft_topology *t = leafspine(2, LINKS, 1);
    struct ft_stopped *s = ft_stopped_new();

    ft_stopped_resize(s, t);
    ck_assert_double_eq(chance(s, t, 0, 1, 100), 1);
    note(s, t, (const uint64_t[]){1, 1, 0, 0});
    ck_assert_double_eq_tol(chance(s, t, 0, 1, 2), 0.5, 1e-9);
    ck_assert_double_eq(chance(s, t, 1, 2, 100), 1); /* one of them never had any */
    ck_assert_double_eq(chance(s, t, 0, 0, 100), 1);
    note(s, t, (const uint64_t[]){1, 1, 1, 1});
    ck_assert_double_eq_tol(chance(s, t, 2, 2, 4), 6.0 / 28, 1e-9);
    ft_stopped_free(s);
    ft_stopped_free(NULL);
    ft_topology_free(t);
}
END_TEST

/* A window with less than half of it does not count, until six of them came; then the sixth does.
 */
START_TEST(a_recent_window_with_many_flows_counts)
{
    struct ft_topology *t = leafspine(2, LINKS, 1);
    struct ft_stopped *s = ft_stopped_new();
    double before;

    ft_stopped_resize(s, t);
    note(s, t, (const uint64_t[]){10, 10, 10, 10});
    before = chance(s, t, 3, 1, 40);
    for (int i = 0; i < 5; i++) {
        note(s, t, (const uint64_t[]){10, 10, 10, 4});
        ck_assert_double_eq(chance(s, t, 3, 1, 40), before);
    }
    note(s, t, (const uint64_t[]){10, 10, 10, 4});
    ck_assert_double_gt(chance(s, t, 3, 1, 40), 2 * before);
    /* Windows without any say nothing of what it had. */
    note(s, t, (const uint64_t[]){10, 10, 10, 10});
    for (int i = 0; i < 10; i++)
        note(s, t, (const uint64_t[]){10, 10, 10, 0});
    ck_assert_double_eq(chance(s, t, 3, 1, 40), before);
    ft_stopped_free(s);
    ft_topology_free(t);
}
END_TEST

/* After a pause of all other flows may come. */
START_TEST(a_group_without_flows_is_begun_anew)
{
    struct ft_topology *t = leafspine(2, LINKS, 1);
    struct ft_stopped *s = ft_stopped_new();

    ft_stopped_resize(s, t);
    note(s, t, (const uint64_t[]){1, 1, 1, 1});
    for (int i = 0; i < 5; i++)
        note(s, t, (const uint64_t[]){0, 0, 0, 0});
    ck_assert_double_eq_tol(chance(s, t, 2, 2, 4), 6.0 / 28, 1e-9);
    note(s, t, (const uint64_t[]){0, 0, 0, 0});
    ck_assert_double_eq(chance(s, t, 2, 2, 4), 1);
    ft_stopped_free(s);
    ft_topology_free(t);
}
END_TEST

/* In another topology ports have other ids; one that has no such port, and comes back, is new. */
START_TEST(ports_are_known_by_name)
{
    struct ft_topology *t = leafspine(2, LINKS, 1), *wider = leafspine(3, LINKS + 2, 3),
                       *less = leafspine(2, LINKS - 1, 1);
    struct ft_stopped *s = ft_stopped_new();
    double before;

    ft_stopped_resize(s, t);
    note(s, t, (const uint64_t[]){7, 8, 9, 10});
    before = chance(s, t, 3, 1, 40);
    ck_assert_uint_ne(group_of(t)->links[3], group_of(wider)->links[3]);
    ft_stopped_resize(s, wider);
    ck_assert_double_eq(chance(s, wider, 3, 1, 40), before);
    ft_stopped_resize(s, less);
    ft_stopped_resize(s, t);
    ck_assert_double_eq(chance(s, t, 3, 1, 40), 1);
    ck_assert_double_lt(chance(s, t, 2, 1, 40), 1);
    ft_stopped_free(s);
    ft_topology_free(t);
    ft_topology_free(wider);
    ft_topology_free(less);
}
END_TEST

FT_UNIT_MAIN("stopped links", a_group_without_flows_is_begun_anew, chance_is_that_of_fisher,
             a_recent_window_with_many_flows_counts, ports_are_known_by_name)
