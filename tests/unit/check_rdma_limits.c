// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>

#include "agent/rdma/devices.h"
#include "agent/rdma/nldev.h"
#include "agent/rdma/owners.h"
#include "agent/rdma/query.h"
#include "agent/rdma/rdma.h"
#include "agent/rdma/table.h"
#include "lib/io/netlink.h"
#include "tests/unit/nldev_bytes.h"
#include "tests/unit/unit.h"

/* A kernel with as many devices and ports as a test wants, in place of this machine's. */
static uint32_t devices, ports_each;
static int answer_rc;

int __wrap_ft_netlink_new(int protocol, struct ft_netlink **netlink);
void __wrap_ft_netlink_free(struct ft_netlink *netlink);
int __wrap_ft_netlink_request(struct ft_netlink *netlink, uint16_t type, bool dump,
                              const void *attributes, size_t attribute_bytes,
                              ft_netlink_message message, void *arg);

int __wrap_ft_netlink_new(int protocol, struct ft_netlink **netlink)
{
    (void)protocol;
    *netlink = (struct ft_netlink *)(void *)&devices;
    return 0;
}

void __wrap_ft_netlink_free(struct ft_netlink *netlink)
{
    (void)netlink;
}

static void name_device(uint32_t index, ft_netlink_message message, void *arg)
{
    struct nl_bytes n = {.len = 0};
    char name[16];

    snprintf(name, sizeof(name), "mlx5_%u", index);
    nl_u32(&n, RDMA_NLDEV_ATTR_DEV_INDEX, index);
    nl_text(&n, RDMA_NLDEV_ATTR_DEV_NAME, name);
    message(arg, n.b, n.len);
}

int __wrap_ft_netlink_request(struct ft_netlink *netlink, uint16_t type, bool dump,
                              const void *attributes, size_t attribute_bytes,
                              ft_netlink_message message, void *arg)
{
    (void)netlink, (void)dump, (void)attributes, (void)attribute_bytes;
    if (type == ft_nldev_type(FT_NLDEV_DEVICES))
        for (uint32_t i = 0; i < devices; i++)
            name_device(i, message, arg);
    if (type == ft_nldev_type(FT_NLDEV_PORTS))
        for (uint32_t i = 1; i <= ports_each; i++) {
            struct nl_bytes n = {.len = 0};

            nl_u32(&n, RDMA_NLDEV_ATTR_PORT_INDEX, i);
            message(arg, n.b, n.len);
        }
    return type == ft_nldev_type(FT_NLDEV_DEVICES) ? answer_rc : 0;
}

/* A queue pair to ask for, of a process that may not be asked. */
static bool listed;
size_t __wrap_ft_rdma_table_to_query(struct ft_rdma_table *table, struct ft_mono before,
                                     struct ft_rdma_asked_for *asked, size_t max);
const struct ft_rdma_known *__wrap_ft_rdma_devices_find(const struct ft_rdma_devices *d,
                                                        uint32_t index);
const struct ft_owner *__wrap_ft_owners_get(struct ft_owners *owners, uint32_t pid);
int __wrap_ft_rdma_query(const char *proc, uint32_t pid, uint64_t rdev, uint32_t driver,
                         struct ft_rdma_queried *out, size_t max, size_t *count);

size_t __wrap_ft_rdma_table_to_query(struct ft_rdma_table *table, struct ft_mono before,
                                     struct ft_rdma_asked_for *asked, size_t max)
{
    (void)table, (void)before, (void)max;
    asked[0] = (struct ft_rdma_asked_for){.device = 0, .pid = 7};
    return listed;
}

const struct ft_rdma_known *__wrap_ft_rdma_devices_find(const struct ft_rdma_devices *d,
                                                        uint32_t index)
{
    static const struct ft_rdma_known device = {.rdev = 1, .driver = RDMA_DRIVER_RXE};

    (void)d, (void)index;
    return &device;
}

const struct ft_owner *__wrap_ft_owners_get(struct ft_owners *owners, uint32_t pid)
{
    static const struct ft_owner owner = {.process = 7};

    (void)owners, (void)pid;
    return &owner;
}

int __wrap_ft_rdma_query(const char *proc, uint32_t pid, uint64_t rdev, uint32_t driver,
                         struct ft_rdma_queried *out, size_t max, size_t *count)
{
    (void)proc, (void)pid, (void)rdev, (void)driver, (void)out, (void)max, (void)count;
    return -EPERM;
}

static struct ft_rdma *rdma;
static int64_t now_s = 1000;

static struct ft_rdma_config config = {.sysfs = "/tmp",
                                       .proc = "/nowhere",
                                       .qps_max = 16,
                                       .interval_ns = 1000000000,
                                       .counters_ns = 1000000000,
                                       .refresh_ns = 1000000000};

static void begin(void)
{
    const struct ft_rdma_hooks hooks = {.arg = NULL};

    rdma = ft_rdma_new(&config, &hooks);
    ck_assert_ptr_nonnull(rdma);
}

/* The problem after a round, so many seconds later that everything is looked at anew. */
static const char *problem(void)
{
    now_s += 60;
    ft_rdma_poll(rdma, (struct ft_mono){now_s * 1000000000}, (struct ft_wall){now_s * 1000});
    return ft_rdma_problem(rdma);
}

START_TEST(devices_beyond_the_limit_are_a_problem_while_there_are_some)
{
    begin();
    devices = 66;
    ports_each = 1;
    ck_assert_str_eq(problem(), "2 RDMA devices beyond the limit of 64 are ignored");
    devices = 64;
    ck_assert_str_eq(problem(), "");
    answer_rc = -ENODEV;
    ck_assert_ptr_nonnull(strstr(problem(), "RDMA devices: "));
    answer_rc = 0;
    ck_assert_str_eq(problem(), "");
    ft_rdma_free(rdma);
}
END_TEST

START_TEST(ports_beyond_the_limit_are_a_problem_while_there_are_some)
{
    begin();
    devices = 33;
    ports_each = 2;
    ck_assert_str_eq(problem(),
                     "2 ports of RDMA devices beyond the limit of 64 are ignored: neither their "
                     "counters nor flows of their queue pairs are known");
    devices = 32;
    ck_assert_str_eq(problem(), "");
    ft_rdma_free(rdma);
}
END_TEST

START_TEST(what_is_not_queried_any_more_is_not_a_problem)
{
    config.query = true;
    begin();
    devices = ports_each = 1;
    listed = true;
    ck_assert_str_eq(problem(), "queue pairs cannot be queried without CAP_SYS_PTRACE");
    ft_rdma_configure(rdma, &config);
    ck_assert_str_ne(problem(), "");
    config.query = false;
    ft_rdma_configure(rdma, &config);
    ck_assert_str_eq(problem(), "");
    ft_rdma_free(rdma);
}
END_TEST

FT_UNIT_MAIN("rdma_limits", devices_beyond_the_limit_are_a_problem_while_there_are_some,
             ports_beyond_the_limit_are_a_problem_while_there_are_some,
             what_is_not_queried_any_more_is_not_a_problem)
