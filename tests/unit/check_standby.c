// SPDX-License-Identifier: Apache-2.0
/* A sender with two receivers: the preferred one is a raw socket here, the other one a real
 * receiver. */
#include "config.h"

#include "lib/io/transport/transport.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/transport_rig.h"

#define WELCOME       "\0\0\0\12\2\2\0\0\0\0\0\0\0\0"
#define WELCOME_BYTES 14
#define RECORDS       3 /* that the rig says are in a payload */

static unsigned wanted;
static uint16_t preferred;
static char endpoint[32];

static struct ft_sender_stats stats(void)
{
    struct ft_sender_stats s;

    ft_sender_stats(rig.senders[0], &s);
    return s;
}

static bool all_acked(void)
{
    return stats().payloads_queued == 0;
}

static bool connected(void)
{
    return stats().connected;
}

static bool not_connected(void)
{
    return !stats().connected;
}

static bool seen_wanted(void)
{
    return rig.seen_count >= wanted;
}

/* The preferred receiver is the listener, whether it listens or not; the other one is the rig's. */
static void start(int64_t return_ns)
{
    static const char *others[2];
    struct ft_sender_config config;

    rig_start();
    config = rig_sender_config(0);
    snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", preferred);
    config.endpoint = endpoint;
    others[0] = rig.endpoint;
    config.others = others;
    config.timeout_ns = 2000 * RIG_MS;
    config.return_ns = return_ns;
    rig_sender(0, &config);
}

static void expect_in_order(uint32_t from, uint32_t count)
{
    ck_assert_uint_eq(rig.seen_count, count);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_uint_eq(rig.seen[i], from + i);
}

/* On a free port, or on that of before. */
static int listen_preferred(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_port = htons(preferred)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    socklen_t len = sizeof(address);

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 5), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    preferred = ntohs(address.sin_port);
    return fd;
}

static void read_hello(int fd)
{
    struct ft_frame frame;

    ck_assert(rig_raw_read(fd, &frame));
    ck_assert_int_eq(frame.type, FT_FRAME_HELLO);
}

static void read_records(int fd, uint64_t sequence)
{
    struct ft_frame frame;

    ck_assert(rig_raw_read(fd, &frame));
    ck_assert_int_eq(frame.type, FT_FRAME_RECORDS);
    ck_assert_uint_eq(frame.sequence, sequence);
}

START_TEST(one_that_refuses)
{
    int listener = listen_preferred();

    close(listener);
    start(3600000 * RIG_MS);
    for (uint32_t i = 0; i < 100; i++)
        rig_send(0, i, 500);
    rig_run(all_acked, "all acknowledged by the other one");
    expect_in_order(0, 100);
    ck_assert_uint_eq(stats().records_repeated, 0);
    ck_assert_uint_eq(rig.gaps, 0);
    rig_stop();
}
END_TEST

START_TEST(one_that_is_silent)
{
    int listener = listen_preferred();

    start(3600000 * RIG_MS);
    rig_send(0, 0, 500);
    /* The kernel takes the connection, and nobody answers. */
    rig_run(all_acked, "all acknowledged by the other one");
    expect_in_order(0, 1);
    close(listener);
    rig_stop();
}
END_TEST

/* It was there and stops to answer: the other one gets all at once, without another attempt. */
START_TEST(one_that_falls_silent)
{
    int listener = listen_preferred(), fd;

    start(3600000 * RIG_MS);
    fd = rig_raw_accept(listener);
    read_hello(fd);
    rig_raw_write(fd, WELCOME, WELCOME_BYTES);
    rig_run(connected, "welcome");
    for (uint32_t i = 0; i < 10; i++)
        rig_send(0, i, 500);
    rig_run(all_acked, "all acknowledged by the other one");
    expect_in_order(0, 10);
    ck_assert_uint_eq(stats().records_repeated, 10 * RECORDS);
    ck_assert_int_eq(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(accept(listener, NULL, NULL), -1);
    close(listener);
    close(fd);
    rig_stop();
}
END_TEST

/* What the first one had and did not acknowledge goes to the second, and is counted. */
START_TEST(one_that_ends_with_records_in_flight)
{
    int listener = listen_preferred(), fd;

    start(3600000 * RIG_MS);
    fd = rig_raw_accept(listener);
    read_hello(fd);
    rig_raw_write(fd, WELCOME, WELCOME_BYTES);
    rig_run(connected, "welcome");
    for (uint32_t i = 0; i < 10; i++)
        rig_send(0, i, 500);
    read_records(fd, 1);
    rig_raw_write(fd, "\0\0\0\11\4\0\0\0\0\0\0\0\4", 13);
    for (uint64_t i = 2; i <= 10; i++)
        read_records(fd, i);
    close(listener);
    close(fd);
    rig_run(all_acked, "the rest acknowledged by the other one");
    expect_in_order(4, 6);
    ck_assert_uint_eq(stats().records_repeated, 6 * RECORDS);
    ck_assert_uint_eq(stats().records_acked, 10 * RECORDS);
    ck_assert_uint_eq(rig.gaps, 1);
    rig_stop();
}
END_TEST

/* The preferred one is there again: the sender goes back with nothing in flight, so that neither
 * gets what the other one has. */
START_TEST(back_to_the_preferred_one)
{
    struct ft_receiver_stats r;
    uint32_t sent = 0;
    int listener = listen_preferred(), fd;
    struct ft_frame frame;

    start(100 * RIG_MS);
    fd = rig_raw_accept(listener);
    read_hello(fd);
    rig_raw_write(fd, WELCOME, WELCOME_BYTES);
    rig_run(connected, "welcome");
    /* Refused from now on: it ends before it has acknowledged anything. */
    close(listener);
    close(fd);
    fd = -1;
    rig_run(not_connected, "the end");
    rig_run(connected, "the other one");
    wanted = 50;
    for (; sent < wanted; sent++)
        rig_send(0, sent, 500);
    rig_run(seen_wanted, "records at the other one");
    listener = listen_preferred();
    /* One attempt to connect is to see whether it is there; the next is meant. */
    do {
        if (fd >= 0)
            close(fd);
        fd = rig_raw_accept(listener);
        for (int i = 0; i < 5; i++)
            rig_send(0, sent++, 500);
    } while (!rig_raw_read(fd, &frame));
    ck_assert_int_eq(frame.type, FT_FRAME_HELLO);
    rig_raw_write(fd, WELCOME, WELCOME_BYTES);
    rig_run(connected, "welcome");
    rig_send(0, sent++, 500);
    /* It gets what the other one does not have, and nothing else. */
    expect_in_order(0, rig.seen_count);
    read_records(fd, rig.seen_count + 1);
    ft_receiver_stats(rig.receiver, &r);
    ck_assert_uint_eq(r.duplicates, 0);
    ck_assert_uint_eq(stats().records_repeated, 0);
    close(fd);
    close(listener);
    rig_stop();
}
END_TEST

FT_UNIT_MAIN("standby", one_that_refuses, one_that_is_silent, one_that_falls_silent,
             one_that_ends_with_records_in_flight, back_to_the_preferred_one)
