// SPDX-License-Identifier: Apache-2.0
/* Nobody waits for what another process made slow to close: lib/io/closer.h. */
#include "config.h"

#include "lib/io/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/unit/lingering.h"
#include "tests/unit/unit.h"

#define NS       INT64_C(1000000000)
#define SHORT_NS (LINGER_S * NS / 2)

static struct ft_closer *closer;
static struct ft_mono began;

static void begin(void)
{
    closer = ft_closer_new();
    ck_assert_ptr_nonnull(closer);
}

static void pair(int ends[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static void start_clock(void)
{
    began = ft_mono_now();
}

static void check_clock(void)
{
    ck_assert_int_lt(ft_mono_since_ns(ft_mono_now(), began), SHORT_NS);
}

static void wait_until_closed(void)
{
    while (ft_closer_stats(closer).closing)
        sched_yield();
}

/* Whether what the other end was connected to is gone, within some seconds. */
static bool is_over(int peer)
{
    struct pollfd over = {.fd = peer, .events = POLLRDHUP};

    return poll(&over, 1, 60000) == 1;
}

START_TEST(what_lingers_in_a_queue_is_closed_at_once)
{
    int ends[2], peer, sent = lingering(&peer);

    begin();
    pair(ends);
    send_descriptors(ends[0], "", 0, &sent, 1);
    start_clock();
    ft_closer_hang_up(closer, ends[1]);
    check_clock();
    ck_assert(is_over(ends[0]));
    wait_until_closed();
    check_clock();
    ck_assert_uint_eq(ft_closer_stats(closer).unwanted, 1);
    /* Nobody holds the connection any more: what it had to send is sent when its peer reads. */
    close(peer);
    close(ends[0]);
    ft_closer_free(closer);
    check_clock();
}
END_TEST

/* The kernel reports that first, and what waits after it. */
START_TEST(a_peer_that_has_not_read_all_hides_nothing)
{
    int ends[2], peer, sent = lingering(&peer);

    begin();
    pair(ends);
    ck_assert_int_eq(send(ends[1], "x", 1, 0), 1);
    send_descriptors(ends[0], "", 0, &sent, 1);
    close(ends[0]);
    start_clock();
    ft_closer_hang_up(closer, ends[1]);
    check_clock();
    wait_until_closed();
    check_clock();
    ck_assert_uint_eq(ft_closer_stats(closer).unwanted, 1);
    close(peer);
    ft_closer_free(closer);
}
END_TEST

START_TEST(what_lingers_and_was_taken_is_closed_at_once)
{
    int peer, sent = lingering(&peer);

    begin();
    start_clock();
    ck_assert(ft_closer_may_take(closer, 7));
    ft_closer_take(closer, sent, 7);
    check_clock();
    wait_until_closed();
    check_clock();
    ck_assert_int_eq(fcntl(sent, F_GETFD), -1);
    ck_assert_uint_eq(ft_closer_stats(closer).unwanted, 0);
    close(peer);
    ft_closer_free(closer);
}
END_TEST

/* What was said without descriptors needs no thread: it is closed when the call returns. */
START_TEST(what_is_plain_is_closed_right_away)
{
    int ends[2];

    begin();
    for (int messages = 0; messages < 3; messages++)
        for (int ended = 0; ended < 2; ended++) {
            pair(ends);
            for (int i = 0; i < messages; i++)
                ck_assert_int_eq(send(ends[0], "x", i % 2, 0), i % 2);
            if (ended)
                close(ends[0]);
            ft_closer_hang_up(closer, ends[1]);
            ck_assert_int_eq(fcntl(ends[1], F_GETFD), -1);
            if (!ended)
                close(ends[0]);
        }
    ck_assert_uint_eq(ft_closer_stats(closer).closing, 0);
    ck_assert_uint_eq(ft_closer_stats(closer).unwanted, 0);
    ft_closer_free(closer);
}
END_TEST

/* They may stand behind messages without any, an empty one too, and the sender may be gone. */
START_TEST(descriptors_are_found_behind_plain_messages)
{
    int ends[2], peer, sent;

    begin();
    for (int plain = 1; plain < 40; plain += 19) {
        pair(ends);
        for (int i = 0; i < plain; i++)
            ck_assert_int_eq(send(ends[0], "x", i % 2, 0), i % 2);
        sent = lingering(&peer);
        send_descriptors(ends[0], "", 0, &sent, 1);
        close(ends[0]);
        start_clock();
        ft_closer_hang_up(closer, ends[1]);
        check_clock();
        close(peer);
    }
    ck_assert_uint_eq(ft_closer_stats(closer).unwanted, 3);
    ft_closer_free(closer);
}
END_TEST

START_TEST(a_message_with_descriptors_is_not_received)
{
    int ends[2], peer, sent = lingering(&peer);
    uint8_t bytes[8];

    begin();
    pair(ends);
    ck_assert_int_eq(ft_closer_receive(ends[1], bytes, sizeof(bytes)), -EAGAIN);
    ck_assert_int_eq(send(ends[0], "abc", 3, 0), 3);
    send_descriptors(ends[0], "d", 1, &sent, 1);
    ck_assert_int_eq(ft_closer_receive(ends[1], bytes, sizeof(bytes)), 3);
    ck_assert_int_eq(bytes[2], 'c');
    start_clock();
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(ft_closer_receive(ends[1], bytes, sizeof(bytes)), -EBADMSG);
    ft_closer_hang_up(closer, ends[1]);
    check_clock();
    close(ends[0]);
    close(peer);
    pair(ends);
    close(ends[0]);
    ck_assert_int_eq(ft_closer_receive(ends[1], bytes, sizeof(bytes)), 0);
    ft_closer_hang_up(closer, ends[1]);
    ft_closer_free(closer);
}
END_TEST

/* close() of these stands until `let` has a byte: as of a file whose file system does not answer.
 */
static int hangs[2] = {-1, -1}, let[2];

int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_close(int fd)
{
    uint8_t byte;

    if (fd >= 0 && (fd == hangs[0] || fd == hangs[1]))
        (void)!read(let[0], &byte, 1);
    return __real_close(fd);
}

static void take_hanging(int i)
{
    hangs[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(hangs[i], 0);
    ck_assert(ft_closer_may_take(closer, 7));
    ft_closer_take(closer, hangs[i], 7);
}

START_TEST(files_that_hang_keep_nobody_and_no_user_has_all_the_room)
{
    int ends[2], peer, sent = lingering(&peer);

    begin();
    ck_assert_int_eq(pipe(let), 0);
    take_hanging(0);
    take_hanging(1);
    ck_assert_uint_eq(ft_closer_stats(closer).closing, 2);
    ck_assert(!ft_closer_may_take(closer, 7));
    ck_assert(ft_closer_may_take(closer, 8));
    /* Connections are closed by another thread. */
    pair(ends);
    send_descriptors(ends[0], "", 0, &sent, 1);
    ft_closer_hang_up(closer, ends[1]);
    ck_assert(is_over(ends[0]));
    close(ends[0]);
    close(peer);
    /* The closer may end before them. */
    start_clock();
    ft_closer_free(closer);
    check_clock();
    ck_assert_int_eq(write(let[1], "xx", 2), 2);
    for (int i = 0; i < 2; i++)
        while (fcntl(hangs[i], F_GETFD) >= 0)
            sched_yield();
}
END_TEST

FT_UNIT_MAIN("closer", a_peer_that_has_not_read_all_hides_nothing,
             a_message_with_descriptors_is_not_received,
             descriptors_are_found_behind_plain_messages,
             files_that_hang_keep_nobody_and_no_user_has_all_the_room,
             what_is_plain_is_closed_right_away, what_lingers_and_was_taken_is_closed_at_once,
             what_lingers_in_a_queue_is_closed_at_once)
