// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/devices.h"

#include <stdio.h>

#include "agent/rdma/query.h"
#include "tests/unit/unit.h"

static bool take(struct ft_rdma_devices *d, uint32_t index, const char *name)
{
    struct ft_rdma_device info = {.index = index, .ports = 1};

    snprintf(info.name, sizeof(info.name), "%s", name);
    return ft_rdma_devices_take(d, &info);
}

START_TEST(all_are_looked_at_unless_some_are_named)
{
    static char *const names[] = {(char *)"mlx5_0", (char *)"mlx5_2"};
    struct ft_rdma_devices d = {.count = 0};

    ft_rdma_devices_begin(&d);
    for (uint32_t i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof(name), "mlx5_%u", i);
        ck_assert(take(&d, i, name));
        ck_assert(!take(&d, i, name));
    }
    ck_assert(!ft_rdma_devices_end(&d));
    ck_assert_uint_eq(d.count, 4);
    /* A reload that names two: the others go with the next list. */
    d.names = names;
    d.name_count = 2;
    ft_rdma_devices_begin(&d);
    ck_assert(!take(&d, 0, "mlx5_0"));
    ck_assert(!take(&d, 1, "mlx5_1"));
    ck_assert(!take(&d, 2, "mlx5_2"));
    ck_assert(!take(&d, 12, "mlx5_20"));
    ck_assert(ft_rdma_devices_end(&d));
    ck_assert_uint_eq(d.count, 2);
    ck_assert_str_eq(ft_rdma_devices_find(&d, 0)->info.name, "mlx5_0");
    ck_assert_ptr_null(ft_rdma_devices_find(&d, 1));
    ck_assert_str_eq(ft_rdma_devices_find(&d, 2)->info.name, "mlx5_2");
    ck_assert_ptr_null(ft_rdma_devices_find(&d, 12));
}
END_TEST

START_TEST(what_a_complete_list_leaves_out_is_gone)
{
    struct ft_rdma_devices d = {.count = 0};

    ft_rdma_devices_begin(&d);
    take(&d, 1, "rxe0");
    take(&d, 2, "rxe1");
    d.list[0].rdev = d.list[1].rdev = 99;
    ft_rdma_devices_end(&d);
    ft_rdma_devices_begin(&d);
    take(&d, 2, "rxe1");
    ck_assert(ft_rdma_devices_end(&d));
    ck_assert_uint_eq(d.count, 1);
    ck_assert_uint_eq(d.list[0].rdev, 99);
    /* Its number under another name is another device, of which nothing is known. */
    ft_rdma_devices_begin(&d);
    ck_assert(take(&d, 2, "rxe9"));
    ft_rdma_devices_end(&d);
    ck_assert_uint_eq(d.count, 1);
    ck_assert_uint_eq(d.list[0].rdev, 0);
    ck_assert_str_eq(d.list[0].info.name, "rxe9");
}
END_TEST

START_TEST(more_than_there_is_room_for_are_counted)
{
    struct ft_rdma_devices d = {.count = 0};

    for (int round = 0; round < 2; round++) {
        ft_rdma_devices_begin(&d);
        for (uint32_t i = 0; i < FT_RDMA_DEVICES_MAX + 3; i++) {
            char name[16];

            snprintf(name, sizeof(name), "d%u", i);
            take(&d, i, name);
        }
        ck_assert(!ft_rdma_devices_end(&d));
        ck_assert_uint_eq(d.count, FT_RDMA_DEVICES_MAX);
        ck_assert_uint_eq(d.refused, 3);
    }
}
END_TEST

/* Which of the queue pairs of a process is the one of the list, by what the device says of them. */
START_TEST(a_queried_queue_pair_is_reported_by_its_peer_and_psns)
{
    const struct ft_ip a = ft_ip4((uint8_t[4]){10, 2, 0, 1}), b = ft_ip4((uint8_t[4]){10, 2, 0, 2});
    const struct ft_rdma_queried alone[] = {{.rqpn = 17, .sq_psn = 5000000, .dst = a},
                                            {.rqpn = 18, .sq_psn = 100, .dst = b}};
    const struct ft_rdma_queried two[] = {{.rqpn = 17, .sq_psn = 90, .rq_psn = 40, .dst = a},
                                          {.rqpn = 17, .sq_psn = 110, .rq_psn = 41, .dst = b}};
    const struct ft_rdma_queried near[] = {{.rqpn = 17, .sq_psn = 110, .rq_psn = 41, .dst = a},
                                           {.rqpn = 17, .sq_psn = 111, .rq_psn = 41, .dst = b}};
    /* A descriptor that was duplicated lists everything twice. */
    const struct ft_rdma_queried twice[] = {
        {.rqpn = 17, .sq_psn = 110, .rq_psn = 41, .dst = a, .sgid_index = 3},
        {.rqpn = 18, .sq_psn = 110, .rq_psn = 41, .dst = b, .sgid_index = 3},
        {.rqpn = 17, .sq_psn = 112, .rq_psn = 41, .dst = a, .sgid_index = 3}};

    ck_assert_ptr_eq(ft_rdma_query_pick(alone, 2, 17, 100, 41), &alone[0]);
    ck_assert_ptr_null(ft_rdma_query_pick(alone, 2, 19, 100, 41));
    ck_assert_ptr_null(ft_rdma_query_pick(alone, 0, 17, 100, 41));
    ck_assert_ptr_eq(ft_rdma_query_pick(two, 2, 17, 100, 41), &two[1]);
    ck_assert_ptr_null(ft_rdma_query_pick(near, 2, 17, 100, 41));
    ck_assert_ptr_nonnull(ft_rdma_query_pick(twice, 3, 17, 100, 41));
    ck_assert(ft_ip_equal(&ft_rdma_query_pick(twice, 3, 17, 100, 41)->dst, &a));
}
END_TEST

FT_UNIT_MAIN("rdma_devices", all_are_looked_at_unless_some_are_named,
             what_a_complete_list_leaves_out_is_gone, more_than_there_is_room_for_are_counted,
             a_queried_queue_pair_is_reported_by_its_peer_and_psns)
