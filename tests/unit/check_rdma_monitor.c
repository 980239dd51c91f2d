// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/rdma/monitor.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>

#include "agent/rdma/nldev.h"
#include "tests/unit/unit.h"

#define MS INT64_C(1000000)

/* What Linux 6.12.95 sent when a Soft-RoCE device came and went (little-endian, without the header;
 * the kernel that the guest of tests/rxe has sends nothing), */
static const uint8_t came[] = {8,   0,   1,   0,   1, 0, 0, 0, 11,  0, 2, 0, 'r', 'x',
                               'e', '_', 'h', '2', 0, 0, 5, 0, 102, 0, 0, 0, 0,   0};
static const uint8_t attached[] = {
    8, 0, 1, 0, 1,  0, 0, 0, 11, 0, 2, 0, 'r', 'x', 'e', '_', 'h', '2', 0, 0, 8,   0, 3, 0, 1, 0,
    0, 0, 8, 0, 50, 0, 5, 0, 0,  0, 7, 0, 51,  0,   'h', '2', 0,   0,   5, 0, 102, 0, 2, 0, 0, 0};
static const uint8_t went[] = {8,   0,   1,   0,   1, 0, 0, 0, 11,  0, 2, 0, 'r', 'x',
                               'e', '_', 'h', '2', 0, 0, 5, 0, 102, 0, 1, 0, 0,   0};

/* and what later ones send besides, put together in the same way. */
#define DEVICE_1 8, 0, 1, 0, 1, 0, 0, 0
#define RXE_H2   11, 0, 2, 0, 'r', 'x', 'e', '_', 'h', '2', 0, 0
#define PORT_1   8, 0, 3, 0, 1, 0, 0, 0
#define INDEX_5  8, 0, 50, 0, 5, 0, 0, 0
#define H2       7, 0, 51, 0, 'h', '2', 0, 0
#define TYPE(n)  5, 0, 102, 0, n, 0, 0, 0

static const uint8_t detached[] = {DEVICE_1, RXE_H2, PORT_1, TYPE(3)};
static const uint8_t renamed[] = {DEVICE_1, RXE_H2, TYPE(4)};
static const uint8_t interface_renamed[] = {INDEX_5, H2, TYPE(5)};
static const uint8_t of_a_kernel_to_come[] = {DEVICE_1, TYPE(77)};

static const struct {
    const uint8_t *bytes;
    size_t len;
    enum ft_rdma_change change;
    const char *device, *netdev;
} messages[] = {
    {came, sizeof(came), FT_RDMA_CAME, "rxe_h2", ""},
    {went, sizeof(went), FT_RDMA_WENT, "rxe_h2", ""},
    {attached, sizeof(attached), FT_RDMA_ATTACHED, "rxe_h2", "h2"},
    {detached, sizeof(detached), FT_RDMA_DETACHED, "rxe_h2", ""},
    {renamed, sizeof(renamed), FT_RDMA_RENAMED, "rxe_h2", ""},
    {interface_renamed, sizeof(interface_renamed), FT_RDMA_INTERFACE_RENAMED, "", "h2"},
    {of_a_kernel_to_come, sizeof(of_a_kernel_to_come), FT_RDMA_CHANGED, "", ""},
};

#define MESSAGES (sizeof(messages) / sizeof(messages[0]))

static struct ft_loop *loop;
static int looks;

static void look(void *arg)
{
    (void)arg;
    looks++;
}

static void stop(void *arg)
{
    (void)arg;
    ft_loop_exit(loop, 0);
}

static void run_for(int64_t ns)
{
    struct ft_watch *end = ft_watch_once(loop, stop, NULL);

    ck_assert_ptr_nonnull(end);
    ft_watch_once_arm(end, ns);
    ck_assert_int_eq(ft_loop_run(loop), 0);
    ft_watch_free(end);
}

START_TEST(messages_are_read)
{
    struct ft_rdma_event event;

    ck_assert_uint_eq(ft_nldev_event_type(), 5 << 10 | 28);
    for (size_t i = 0; i < MESSAGES; i++) {
        ck_assert_int_eq(ft_nldev_event(messages[i].bytes, messages[i].len, &event), 0);
        ck_assert_int_eq(event.change, messages[i].change);
        ck_assert_str_eq(event.device, messages[i].device);
        ck_assert_str_eq(event.netdev, messages[i].netdev);
        /* What the type is missing from says nothing; it comes last. The padding of the last value
         * may be missing. */
        for (size_t len = 0; len < messages[i].len - 3; len++)
            ck_assert_int_eq(ft_nldev_event(messages[i].bytes, len, &event), -EBADMSG);
    }
}
END_TEST

START_TEST(a_kernel_says_whether_it_tells)
{
    /* The answer of Linux 6.12.95. */
    static const uint8_t tells[] = {5, 0, 66,  0, 1, 0, 0, 0, 5, 0, 96, 0, 0, 0, 0, 0,
                                    5, 0, 103, 0, 1, 0, 0, 0, 5, 0, 93, 0, 1, 0, 0, 0};
    static const uint8_t wide[] = {8, 0, 103, 0, 1, 0, 0, 0};
    bool monitors = false;

    ck_assert_int_eq(ft_nldev_monitors(tells, sizeof(tells), &monitors), 0);
    ck_assert(monitors);
    ck_assert_int_eq(ft_nldev_monitors(tells, 16, &monitors), 0);
    ck_assert(!monitors);
    ck_assert_int_eq(ft_nldev_monitors(tells, 18, &monitors), -EBADMSG);
    ck_assert_int_eq(ft_nldev_monitors(wide, sizeof(wide), &monitors), -EBADMSG);
}
END_TEST

START_TEST(a_burst_is_one_look)
{
    struct ft_rdma_monitor_stats stats;
    struct ft_rdma_monitor *m;

    loop = ft_loop_new();
    ck_assert_ptr_nonnull(loop);
    m = ft_rdma_monitor_new(loop, look, NULL);
    ck_assert_ptr_nonnull(m);
    looks = 0;
    for (size_t i = 0; i < MESSAGES; i++)
        ft_rdma_monitor_message(m, ft_nldev_event_type(), messages[i].bytes, messages[i].len);
    ck_assert_int_eq(looks, 0);
    run_for(300 * MS);
    ck_assert_int_eq(looks, 1);
    ft_rdma_monitor_message(m, ft_nldev_event_type(), messages[0].bytes, messages[0].len);
    run_for(300 * MS);
    ck_assert_int_eq(looks, 2);
    /* Neither what cannot be read nor what is something else makes it look. */
    ft_rdma_monitor_message(m, ft_nldev_event_type(), messages[0].bytes, 7);
    ft_rdma_monitor_message(m, 16, messages[0].bytes, messages[0].len);
    run_for(300 * MS);
    ck_assert_int_eq(looks, 2);
    ft_rdma_monitor_stats(m, &stats);
    ck_assert_uint_eq(stats.messages, MESSAGES + 2);
    ck_assert_uint_eq(stats.malformed, 1);
    ck_assert_uint_eq(stats.lost, 0);
    ft_rdma_monitor_free(m);
    ft_loop_free(loop);
}
END_TEST

/* Whatever the kernel of this machine is: it tells or it does not, and then nothing is left open.
 */
START_TEST(without_it_there_is_the_schedule)
{
    struct ft_netlink *netlink;
    struct ft_rdma_monitor *m;
    int rc;

    loop = ft_loop_new();
    m = ft_rdma_monitor_new(loop, look, NULL);
    ck_assert_ptr_nonnull(m);
    ck_assert(!ft_rdma_monitor_listens(m));
    if (ft_netlink_new(NETLINK_RDMA, &netlink) == 0) {
        rc = ft_rdma_monitor_start(m, netlink);
        ck_assert_int_eq(ft_rdma_monitor_listens(m), rc == 0);
        ft_netlink_free(netlink);
    }
    ft_rdma_monitor_stop(m);
    ck_assert(!ft_rdma_monitor_listens(m));
    ft_rdma_monitor_free(m);
    ft_loop_free(loop);
}
END_TEST

FT_UNIT_MAIN("rdma_monitor", messages_are_read, a_kernel_says_whether_it_tells, a_burst_is_one_look,
             without_it_there_is_the_schedule)
