// SPDX-License-Identifier: Apache-2.0
/* What is made of a device's GID table. The functions of libibverbs are this test's own: real
 * devices are in tests/rxe. */
#include "config.h"

#include "lib/io/verbs.h"

#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "tests/unit/unit.h"

#define MAX 4

static struct ibv_device devices[2];
static struct ibv_device *list[3] = {&devices[0], &devices[1], NULL};
static struct ibv_context context;
static struct ibv_gid_entry table[8];
static size_t table_count;
static int list_error, open_error, query_error;
static int lists, contexts; /* that are open */
static struct ft_verbs_gid gids[MAX];
static size_t count;

struct ibv_device **ibv_get_device_list(int *num)
{
    ck_assert_ptr_null(num);
    errno = list_error;
    lists += !list_error;
    return list_error ? NULL : list;
}

void ibv_free_device_list(struct ibv_device **of)
{
    ck_assert_ptr_eq(of, list);
    lists--;
    errno = EBADF;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device == &devices[0] ? "mlx5_0" : "mlx5_1";
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    ck_assert_ptr_eq(device, &devices[1]);
    if (open_error) {
        errno = open_error > 0 ? open_error : 0;
        return NULL;
    }
    contexts++;
    return &context;
}

int ibv_close_device(struct ibv_context *of)
{
    ck_assert_ptr_eq(of, &context);
    contexts--;
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *of, struct ibv_gid_entry *entries, size_t max,
                             uint32_t flags, size_t entry_size)
{
    ck_assert_ptr_eq(of, &context);
    ck_assert_uint_eq(flags, 0);
    ck_assert_uint_eq(entry_size, sizeof(*entries));
    ck_assert_uint_ge(max, table_count);
    memcpy(entries, table, table_count * sizeof(*entries));
    return query_error ? -query_error : (ssize_t)table_count;
}

static void add(uint32_t index, uint32_t port, uint32_t type, uint8_t last)
{
    struct ibv_gid_entry *e = &table[table_count++];

    *e = (struct ibv_gid_entry){.gid_index = index, .port_num = port, .gid_type = type};
    if (last) {
        e->gid.raw[10] = e->gid.raw[11] = 0xff;
        e->gid.raw[12] = 10;
        e->gid.raw[15] = last;
    }
}

static int ask(const char *name, size_t max)
{
    int rc = ft_verbs_gids(name, 1, gids, max, &count);

    ck_assert_int_eq(lists, 0);
    ck_assert_int_eq(contexts, 0);
    return rc;
}

START_TEST(entries_of_the_port_by_index)
{
    const struct ft_ip first = ft_ip4((uint8_t[4]){10, 0, 0, 3}),
                       second = ft_ip4((uint8_t[4]){10, 0, 0, 5});

    add(7, 1, IBV_GID_TYPE_ROCE_V2, 5);
    add(1, 1, IBV_GID_TYPE_ROCE_V1, 1);
    add(2, 2, IBV_GID_TYPE_ROCE_V2, 2);
    add(4, 1, IBV_GID_TYPE_ROCE_V2, 0); /* empty */
    add(3, 1, IBV_GID_TYPE_ROCE_V2, 3);
    ck_assert_int_eq(ask("mlx5_1", MAX), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(gids[0].index, 3);
    ck_assert(ft_ip_equal(&gids[0].ip, &first));
    ck_assert_uint_eq(gids[1].index, 7);
    ck_assert(ft_ip_equal(&gids[1].ip, &second));
    /* Those that there is no room for are told. */
    gids[1].index = 99;
    ck_assert_int_eq(ask("mlx5_1", 1), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(gids[1].index, 99);
}
END_TEST

/* The reason is what libibverbs said, not what freeing its list did to errno. */
START_TEST(a_device_that_cannot_be_asked_is_said)
{
    count = 9;
    list_error = ENOSYS;
    ck_assert_int_eq(ask("mlx5_1", MAX), -ENOSYS);
    list_error = 0;
    ck_assert_int_eq(ask("mlx5_7", MAX), -ENODEV);
    open_error = EACCES;
    ck_assert_int_eq(ask("mlx5_1", MAX), -EACCES);
    /* Some drivers say nothing. */
    open_error = -1;
    ck_assert_int_eq(ask("mlx5_1", MAX), -ENODEV);
    open_error = 0;
    query_error = EOPNOTSUPP;
    ck_assert_int_eq(ask("mlx5_1", MAX), -EOPNOTSUPP);
    ck_assert_uint_eq(count, 9);
}
END_TEST

FT_UNIT_MAIN("verbs", entries_of_the_port_by_index, a_device_that_cannot_be_asked_is_said)
