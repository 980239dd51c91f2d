// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define MS INT64_C(1000000)

/* The kernel's list of interfaces stands in for the RDMA lists that few kernels have. */
static struct ft_loop *loop;
static int links, lost;

static void on_link(void *arg, const uint8_t *bytes, size_t len)
{
    (void)arg;
    (void)bytes;
    ck_assert_uint_ge(len, sizeof(struct ifinfomsg));
    links++;
}

static void on_notice(void *arg, uint16_t type, const uint8_t *bytes, size_t len)
{
    (void)arg;
    (void)bytes;
    ck_assert_uint_ge(len, sizeof(struct ifinfomsg));
    if (type == RTM_NEWLINK)
        links++;
    ft_loop_exit(loop, 0);
}

static void on_lost(void *arg)
{
    (void)arg;
    lost++;
}

static void give_up(void *arg)
{
    (void)arg;
    ft_loop_exit(loop, 1);
}

START_TEST(a_dump_comes_complete)
{
    const struct ifinfomsg all = {.ifi_family = AF_UNSPEC};
    struct ft_netlink *n;

    ck_assert_int_eq(ft_netlink_new(NETLINK_ROUTE, &n), 0);
    links = 0;
    ck_assert_int_eq(ft_netlink_request(n, RTM_GETLINK, true, &all, sizeof(all), on_link, NULL), 0);
    ck_assert_int_ge(links, 1);
    ck_assert_int_eq(ft_netlink_request(n, RTM_GETLINK, false, &all, sizeof(all), on_link, NULL),
                     -EINVAL);
    ft_netlink_free(n);
}
END_TEST

/* The loopback device of a network namespace of its own goes up and down. */
static void flip_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ioctl(fd, SIOCGIFFLAGS, &request), 0);
    request.ifr_flags ^= IFF_UP;
    ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &request), 0);
    close(fd);
}

START_TEST(a_group_is_heard)
{
    struct ft_netlink_listener_config config = {
        .protocol = NETLINK_ROUTE, .group = RTNLGRP_LINK, .message = on_notice, .lost = on_lost};
    struct ft_netlink_listener *l;
    struct ft_watch *end;

    if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
        printf("skipped: a group is heard: needs root, for a network namespace: %s\n",
               strerror(errno));
        return;
    }
    loop = ft_loop_new();
    ck_assert_ptr_nonnull(loop);
    ck_assert_int_eq(ft_netlink_listen(loop, &config, &l), 0);
    end = ft_watch_once(loop, give_up, NULL);
    links = lost = 0;
    for (int i = 1; i <= 2; i++) {
        flip_loopback();
        ft_watch_once_arm(end, 120000 * MS);
        ck_assert_int_eq(ft_loop_run(loop), 0);
        ck_assert_int_ge(links, i);
    }
    ft_netlink_listener_free(l);
    /* More than the socket holds: the loss is told, and what comes later is heard again. */
    ck_assert_int_eq(ft_netlink_listen(loop, &config, &l), 0);
    for (int i = 0; i < 2000; i++)
        flip_loopback();
    ft_watch_once_arm(end, 120000 * MS);
    while (lost == 0)
        ck_assert_int_eq(ft_loop_run(loop), 0);
    links = 0;
    flip_loopback();
    while (links == 0)
        ck_assert_int_eq(ft_loop_run(loop), 0);
    ft_netlink_listener_free(l);
    ft_watch_free(end);
    ft_loop_free(loop);
}
END_TEST

/* The kernel alone is believed: every process may send to this protocol's groups. */
START_TEST(a_notice_of_another_process_is_none)
{
    struct ft_netlink_listener_config config = {
        .protocol = NETLINK_USERSOCK, .group = 1, .message = on_notice, .lost = on_lost};
    const struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_groups = 1};
    struct {
        struct nlmsghdr header;
        struct ifinfomsg link;
    } forged = {.header = {.nlmsg_len = sizeof(forged), .nlmsg_type = RTM_NEWLINK}};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);
    struct ft_netlink_listener *l;
    struct ft_watch *end;

    loop = ft_loop_new();
    ck_assert_int_eq(ft_netlink_listen(loop, &config, &l), 0);
    links = lost = 0;
    /* It goes to the kernel, too, which does not listen there. */
    ck_assert_int_lt(
        sendto(fd, &forged, sizeof(forged), 0, (const struct sockaddr *)&to, sizeof(to)), 0);
    ck_assert_int_eq(errno, ECONNREFUSED);
    /* It is there already: both turns of the loop begin with what can be read. */
    end = ft_watch_once(loop, give_up, NULL);
    for (int i = 0; i < 2; i++) {
        ft_watch_once_arm(end, 0);
        ck_assert_int_eq(ft_loop_run(loop), 1);
    }
    ck_assert_int_eq(links, 0);
    ck_assert_int_eq(lost, 0);
    ft_watch_free(end);
    ft_netlink_listener_free(l);
    ft_loop_free(loop);
    close(fd);
}
END_TEST

START_TEST(what_cannot_be_asked_is_refused)
{
    static const uint8_t much[256];
    struct ft_netlink *n = NULL;
    struct rlimit none;

    ck_assert_int_eq(ft_netlink_new(31, &n), -EPROTONOSUPPORT);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &none), 0);
    none.rlim_cur = 0;
    ck_assert_int_eq(ft_netlink_new(NETLINK_ROUTE, &n), 0);
    ck_assert_int_eq(ft_netlink_request(n, RTM_GETLINK, true, much, sizeof(much), on_link, NULL),
                     -EMSGSIZE);
    ft_netlink_free(n);
    n = NULL;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(ft_netlink_new(NETLINK_ROUTE, &n), -EMFILE);
    ck_assert_ptr_null(n);
    /* Sanitizers and coverage have files to open at the end. */
    none.rlim_cur = none.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
}
END_TEST

START_TEST(a_group_that_is_none)
{
    struct ft_netlink_listener_config config = {
        .protocol = NETLINK_ROUTE, .group = 4000, .message = on_notice, .lost = on_lost};
    struct ft_netlink_listener *l = NULL;

    loop = ft_loop_new();
    ck_assert_int_eq(ft_netlink_listen(loop, &config, &l), -ENOENT);
    config.protocol = 31; /* MAX_LINKS - 1: nobody has it */
    ck_assert_int_lt(ft_netlink_listen(loop, &config, &l), 0);
    ck_assert_ptr_null(l);
    ft_loop_free(loop);
}
END_TEST

FT_UNIT_MAIN("netlink", a_dump_comes_complete, a_group_is_heard,
             a_notice_of_another_process_is_none, what_cannot_be_asked_is_refused,
             a_group_that_is_none)
