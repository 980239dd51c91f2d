// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/transport.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/transport_rig.h"

static unsigned wanted;

static struct ft_sender_stats sender_stats(int number)
{
    struct ft_sender_stats s;

    ft_sender_stats(rig.senders[number], &s);
    return s;
}

static struct ft_receiver_stats receiver_stats(void)
{
    struct ft_receiver_stats r;

    ft_receiver_stats(rig.receiver, &r);
    return r;
}

static bool seen_wanted(void)
{
    return rig.seen_count >= wanted;
}

static bool all_acked(void)
{
    return sender_stats(0).payloads_queued == 0;
}

static bool connected(void)
{
    return sender_stats(0).connected;
}

static bool ten_acked(void)
{
    return sender_stats(0).payloads_acked == 10;
}

static bool nobody_connected(void)
{
    return receiver_stats().connected == 0;
}

static bool one_connected(void)
{
    return receiver_stats().connected == 1;
}

static bool sender_told(void)
{
    return rig.sender_text[0];
}

static bool one_down(void)
{
    return rig.downs > 0;
}

static void start_with_sender(void)
{
    struct ft_sender_config config;

    rig_start();
    config = rig_sender_config(0);
    rig_sender(0, &config);
}

static void expect_in_order(uint32_t from, uint32_t count)
{
    ck_assert_uint_eq(rig.seen_count, count);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_uint_eq(rig.seen[i], from + i);
}

START_TEST(delivers_once_and_in_order)
{
    enum { COUNT = 5000 };
    int inherited_before, inherited;
    int fds = rig_open_fds(&inherited_before);

    start_with_sender();
    for (uint32_t i = 0; i < COUNT; i++)
        ck_assert_int_eq(rig_send(0, i, 4 + i * 7 % 3000), 0);
    ck_assert_int_eq(rig_send(0, COUNT, FT_FRAME_PAYLOAD_BYTES_MAX), 0);
    ck_assert_int_eq(rig_send(0, COUNT + 1, 4), 0);
    rig_run(all_acked, "all acknowledged");
    expect_in_order(0, COUNT + 2);
    ck_assert_uint_eq(sender_stats(0).payloads_acked, COUNT + 2);
    ck_assert_uint_eq(sender_stats(0).connects, 1);
    ck_assert_uint_eq(receiver_stats().duplicates, 0);
    ck_assert_int_eq(rig.ups, 1);
    rig_open_fds(&inherited);
    ck_assert_int_eq(inherited, inherited_before);
    rig_stop();
    ck_assert_int_eq(rig_open_fds(&inherited), fds);
}
END_TEST

static uint32_t trickled;

static void trickle(void *arg)
{
    for (int i = 0; i < 20 && trickled < *(uint32_t *)arg; i++)
        rig_send(0, trickled++, 500);
}

START_TEST(receiver_restarted_in_the_middle)
{
    uint32_t count = 6000;
    struct ft_watch *source;
    int restarts = 0;

    start_with_sender();
    source = ft_watch_timer(rig.loop, RIG_MS, trickle, &count);
    for (wanted = 300; wanted < count; wanted += 700) {
        rig_run(seen_wanted, "more to arrive");
        rig_receiver_down();
        if (restarts % 2)
            rig_run_for(30 * RIG_MS);
        rig_receiver_up();
        restarts++;
    }
    wanted = count;
    rig_run(seen_wanted, "the rest to arrive");
    rig_run(all_acked, "the rest to be acknowledged");
    expect_in_order(0, count);
    ck_assert_int_ge(restarts, 8);
    ck_assert_uint_ge(sender_stats(0).connects, 5);
    ck_assert_uint_eq(sender_stats(0).payloads_dropped, 0);
    ft_watch_free(source);
    rig_stop();
}
END_TEST

START_TEST(sender_cut_off_sends_again_without_doubles)
{
    struct ft_frame frame;
    int fd;

    rig_start();
    fd = rig_raw_connect();
    rig_raw_hello(fd, "gpu01", 5);
    ck_assert(rig_raw_read(fd, &frame));
    ck_assert_int_eq(frame.type, FT_FRAME_WELCOME);
    ck_assert_uint_eq(frame.sequence, 0);
    for (uint32_t i = 1; i <= 5; i++)
        rig_raw_data(fd, i, i);
    wanted = 5;
    rig_run(seen_wanted, "five to arrive");
    close(fd);
    rig_run(nobody_connected, "the end to be seen");

    fd = rig_raw_connect();
    rig_raw_hello(fd, "gpu01", 5);
    ck_assert(rig_raw_read(fd, &frame));
    ck_assert_uint_eq(frame.sequence, 5);
    for (uint32_t i = 3; i <= 8; i++)
        rig_raw_data(fd, i, i);
    wanted = 8;
    rig_run(seen_wanted, "three more");
    expect_in_order(1, 8);
    ck_assert_uint_eq(receiver_stats().duplicates, 3);

    /* A new start of the program numbers anew. */
    close(fd);
    fd = rig_raw_connect();
    rig_raw_hello(fd, "gpu01", 6);
    ck_assert(rig_raw_read(fd, &frame));
    ck_assert_uint_eq(frame.sequence, 0);
    rig_raw_data(fd, 1, 9);
    wanted = 9;
    rig_run(seen_wanted, "one of the new boot");
    expect_in_order(1, 9);
    close(fd);
    rig_stop();
}
END_TEST

START_TEST(second_connection_replaces_the_first)
{
    struct ft_frame frame;
    int first, second;

    rig_start();
    first = rig_raw_connect();
    rig_raw_hello(first, "gpu01", 5);
    ck_assert(rig_raw_read(first, &frame));
    second = rig_raw_connect();
    rig_raw_hello(second, "gpu01", 5);
    ck_assert(rig_raw_read(second, &frame));
    ck_assert_int_eq(frame.type, FT_FRAME_WELCOME);
    ck_assert(!rig_raw_read(first, &frame));
    ck_assert_str_eq(rig.down_reason, "replaced by a newer connection");
    rig_raw_data(second, 1, 1);
    wanted = 1;
    rig_run(seen_wanted, "data of the second");
    close(first);
    close(second);
    rig_stop();
}
END_TEST

static bool two_are_up(void)
{
    return rig.ups == 2;
}

/* An agent and a poller on one host both go by its name. */
START_TEST(programs_of_one_host_are_two_sources)
{
    struct ft_sender_config agent, poller;

    rig_start();
    agent = poller = rig_sender_config(0);
    agent.program = "agent";
    poller.program = "poller";
    poller.boot_id = 4712;
    rig_sender(0, &agent);
    rig_sender(1, &poller);
    rig_run(two_are_up, "both connections");
    for (uint32_t i = 1; i <= 10; i++) {
        rig_send(0, i, 100);
        rig_send(1, 100 + i, 100);
    }
    wanted = 20;
    rig_run(seen_wanted, "data of both");
    ck_assert_int_eq(rig.ups, 2);
    ck_assert_int_eq(rig.downs, 0);
    ck_assert_uint_eq(receiver_stats().duplicates, 0);
    rig_stop();
}
END_TEST

START_TEST(overflow_drops_the_oldest)
{
    enum { COUNT = 100, LEN = 1000 };
    struct ft_sender_config config;
    struct ft_sender_stats s;

    rig_start();
    rig_receiver_down();
    config = rig_sender_config(0);
    config.queue_bytes_max = 20 * 1100;
    rig_sender(0, &config);
    rig_run_for(20 * RIG_MS);
    for (uint32_t i = 0; i < COUNT; i++) {
        ck_assert_int_eq(rig_send(0, i, LEN), 0);
        s = sender_stats(0);
        ck_assert_uint_le(s.queue_bytes, config.queue_bytes_max);
    }
    ck_assert_uint_ge(s.payloads_queued, 20);
    ck_assert_uint_eq(s.payloads_dropped, COUNT - s.payloads_queued);
    ck_assert_int_eq(rig_send(0, 0, FT_FRAME_PAYLOAD_BYTES_MAX + 1), -EMSGSIZE);
    ck_assert_int_eq(rig_send(0, 0, 20 * 1100), -ENOBUFS);
    ck_assert_uint_eq(sender_stats(0).payloads_dropped, s.payloads_dropped + 2);
    ck_assert_uint_eq(sender_stats(0).payloads_queued, s.payloads_queued);
    rig_receiver_up();
    rig_run(all_acked, "the rest to be acknowledged");
    expect_in_order((uint32_t)(COUNT - s.payloads_queued), (uint32_t)s.payloads_queued);
    rig_stop();
}
END_TEST

START_TEST(what_is_in_flight_is_not_dropped)
{
    struct ft_sender_config config;
    struct ft_frame frame;
    struct ft_sender_stats s;
    uint16_t port;
    char endpoint[32];
    int listener = rig_raw_listen(&port), fd;

    rig_start();
    snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", port);
    config = rig_sender_config(0);
    config.endpoint = endpoint;
    config.queue_bytes_max = 20 * 1100;
    rig_sender(0, &config);
    fd = rig_raw_accept(listener);
    ck_assert(rig_raw_read(fd, &frame));
    ck_assert_int_eq(frame.type, FT_FRAME_HELLO);
    ck_assert_str_eq(frame.source_id, "host0");
    ck_assert_str_eq(frame.program, "check");
    ck_assert_uint_eq(frame.boot_id, 4711);
    rig_raw_write(fd, "\0\0\0\12\2\2\0\0\0\0\0\0\0\0", 14);
    rig_run(connected, "welcome");
    for (uint32_t i = 0; i < 100; i++)
        rig_send(0, i, 1000);
    /* Half of the queue is on its way: numbers 1 to about 11, which this end now acknowledges. */
    s = sender_stats(0);
    ck_assert_uint_ge(s.payloads_dropped, 70);
    rig_raw_write(fd, "\0\0\0\11\4\0\0\0\0\0\0\0\12", 13);
    rig_run(ten_acked, "the acknowledgement of ten");
    /* What this end never saw it must not acknowledge. */
    rig_raw_write(fd, "\0\0\0\11\4\0\0\0\0\0\0\1\0", 13);
    rig.sender_text[0] = '\0';
    rig_run(sender_told, "the false acknowledgement to be seen");
    ck_assert_ptr_nonnull(strstr(rig.sender_text, "acknowledges what was not sent"));
    ck_assert_ptr_nonnull(strstr(rig.sender_text, endpoint));
    ck_assert_uint_eq(sender_stats(0).payloads_acked, 10);
    close(fd);
    close(listener);
    rig_stop();
}
END_TEST

START_TEST(silent_receivers_are_given_up)
{
    struct ft_sender_config config;
    struct ft_frame frame;
    uint16_t port;
    char endpoint[32];
    int listener = rig_raw_listen(&port), fd = -1;

    rig_start();
    snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", port);
    config = rig_sender_config(0);
    config.endpoint = endpoint;
    config.timeout_ns = 300 * RIG_MS;
    rig_sender(0, &config);
    rig_run(sender_told, "a text about no WELCOME");
    ck_assert_ptr_nonnull(strstr(rig.sender_text, "does not answer"));
    /* The first connections have been given up by now. */
    while (!connected()) {
        close(fd);
        fd = rig_raw_accept(listener);
        if (rig_raw_read(fd, &frame) &&
            send(fd, "\0\0\0\12\2\2\0\0\0\0\0\0\0\0", 14, MSG_NOSIGNAL) == 14)
            rig_run_for(30 * RIG_MS);
    }
    /* Nothing is owed: silence is fine. */
    rig_run_for(500 * RIG_MS);
    ck_assert(connected());
    rig_send(0, 1, 4);
    rig.sender_text[0] = '\0';
    rig_run(sender_told, "a text about no acknowledgement");
    ck_assert_ptr_nonnull(strstr(rig.sender_text, "acknowledges nothing"));
    ck_assert_uint_eq(sender_stats(0).payloads_queued, 1);
    close(fd);
    close(listener);
    rig_stop();
}
END_TEST

/* One bad client after the other beside a good sender, which must not notice. */
START_TEST(bad_bytes_cost_only_their_connection)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27}, /* a giant length */
        {"\377\377\377\377", 4},
        {"\0\100\0\0\3", 5}, /* fine after a HELLO, too long before it */
        {"\0\0\0\0", 4},
        {"\0\0\0\1\11", 5},
        {"\0\0\0\11\3\0\0\0\0\0\0\0\1", 13}, /* DATA before HELLO */
        {"\0\0\0\2\1\3", 6},                 /* another version */
    };
    uint64_t malformed;

    start_with_sender();
    rig_send(0, 0, 100);
    rig_run(all_acked, "the good sender to get through");
    for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int fd = rig_raw_connect();
        struct ft_frame frame;

        malformed = receiver_stats().malformed;
        rig_raw_write(fd, bad[i].bytes, bad[i].len);
        ck_assert_msg(rig_raw_read(fd, &frame), "%u", i);
        ck_assert_int_eq(frame.type, FT_FRAME_REFUSE);
        ck_assert(!rig_raw_read(fd, &frame));
        ck_assert_uint_eq(receiver_stats().malformed, malformed + 1);
        close(fd);
        rig_send(0, i + 1, 100);
        rig_run(all_acked, "the good sender to get through");
    }
    expect_in_order(0, 8);
    ck_assert_uint_eq(sender_stats(0).connects, 1);
    rig_run(one_connected, "only the good one is left");
    rig_stop();
}
END_TEST

START_TEST(stalled_peers_are_dropped)
{
    struct ft_frame frame;
    int half_hello, half_data, idle;

    rig.receiver_config.timeout_ns = 150 * RIG_MS;
    rig_start();
    idle = rig_raw_connect();
    rig_raw_hello(idle, "idle", 1);
    ck_assert(rig_raw_read(idle, &frame));
    half_hello = rig_raw_connect();
    rig_raw_write(half_hello, "\0\0\0\20\1\1", 6);
    rig_run(one_down, "the half HELLO to be dropped");
    ck_assert_str_eq(rig.down_source, "");
    half_data = rig_raw_connect();
    rig_raw_hello(half_data, "half", 1);
    ck_assert(rig_raw_read(half_data, &frame));
    rig_raw_write(half_data, "\0\0\0\20\3\0", 6);
    rig.downs = 0;
    rig_run(one_down, "the half frame to be dropped");
    ck_assert_str_eq(rig.down_source, "half");
    ck_assert(!rig_raw_read(half_data, &frame));
    /* Silence between frames is no stall. */
    ck_assert(one_connected());
    rig_raw_data(idle, 1, 1);
    wanted = 1;
    rig_run(seen_wanted, "data of the idle one");
    close(idle);
    close(half_hello);
    close(half_data);
    rig_stop();
}
END_TEST

static int raw_peer(const char *name, struct ft_frame *frame)
{
    int fd = rig_raw_connect();

    rig_raw_hello(fd, name, 1);
    ck_assert(rig_raw_read(fd, frame));
    return fd;
}

static void leave(int fd)
{
    rig.downs = 0;
    close(fd);
    rig_run(one_down, "the end to be seen");
}

START_TEST(sources_over_the_cap)
{
    struct ft_frame frame;
    int a, b, c;

    rig.receiver_config.sources_max = 2;
    rig_start();
    a = raw_peer("a", &frame);
    rig_raw_data(a, 7, 1);
    ck_assert(rig_raw_read(a, &frame));
    b = raw_peer("b", &frame);
    rig_raw_data(b, 8, 2);
    ck_assert(rig_raw_read(b, &frame));
    ck_assert_int_eq(frame.type, FT_FRAME_ACK);
    ck_assert_uint_eq(frame.sequence, 8);
    c = raw_peer("c", &frame);
    ck_assert_int_eq(frame.type, FT_FRAME_REFUSE);
    ck_assert_str_eq(frame.reason, "too many sources");
    ck_assert_uint_eq(receiver_stats().connections_refused, 1);
    close(c);
    leave(b);
    rig_run_for(5 * RIG_MS);
    leave(a);
    /* b has been silent longer than a. */
    c = raw_peer("c", &frame);
    ck_assert_int_eq(frame.type, FT_FRAME_WELCOME);
    a = raw_peer("a", &frame);
    ck_assert_uint_eq(frame.sequence, 7);
    leave(c);
    b = raw_peer("b", &frame);
    ck_assert_uint_eq(frame.sequence, 0);
    close(a);
    close(b);
    rig_stop();
}
END_TEST

START_TEST(connections_over_the_cap)
{
    struct ft_frame frame;
    int a, b;

    rig.receiver_config.connections_max = 1;
    rig_start();
    a = raw_peer("a", &frame);
    b = rig_raw_connect();
    ck_assert(rig_raw_read(b, &frame));
    ck_assert_str_eq(frame.reason, "too many connections");
    ck_assert(!rig_raw_read(b, &frame));
    rig_raw_data(a, 1, 1);
    ck_assert(rig_raw_read(a, &frame));
    ck_assert_int_eq(frame.type, FT_FRAME_ACK);
    close(a);
    close(b);
    rig_stop();
}
END_TEST

START_TEST(refused_payload_is_not_asked_for_again)
{
    start_with_sender();
    rig_send(0, 0, 10);
    rig_run(all_acked, "the first");
    rig.refuse_next = true;
    rig_send(0, 99, 10);
    rig_send(0, 1, 10);
    rig_run(all_acked, "the last");
    expect_in_order(0, 2);
    ck_assert_uint_eq(receiver_stats().refused, 1);
    ck_assert_uint_eq(sender_stats(0).connects, 2);
    rig_stop();
}
END_TEST

START_TEST(texts_name_the_endpoint)
{
    struct ft_sender_config config;
    char error[256];

    rig_start();
    rig_receiver_down();
    config = rig_sender_config(0);
    rig_sender(0, &config);
    rig_run(sender_told, "a refused connection");
    ck_assert_ptr_nonnull(strstr(rig.sender_text, rig.endpoint));
    ck_assert_ptr_nonnull(strstr(rig.sender_text, "Connection refused"));
    rig.sender_text[0] = '\0';
    config = rig_sender_config(1);
    config.endpoint = "fabrictrace.invalid:9477";
    ft_sender_free(rig.senders[0]);
    rig.senders[0] = NULL;
    rig_sender(1, &config);
    rig_run(sender_told, "a name that is not found");
    ck_assert_msg(strstr(rig.sender_text, "'fabrictrace.invalid:9477': host name not found"), "%s",
                  rig.sender_text);
    config.endpoint = "nothing";
    ck_assert_ptr_null(ft_sender_new(rig.loop, &config, error, sizeof(error)));
    ck_assert_str_eq(error, "'nothing' is not HOST:PORT");
    rig_receiver_up();
    rig.receiver_config.listen = rig.endpoint;
    ck_assert_ptr_null(ft_receiver_new(rig.loop, &rig.receiver_config, error, sizeof(error)));
    ck_assert_msg(strstr(error, rig.endpoint) && strstr(error, "in use"), "%s", error);
    rig_stop();
}
END_TEST

START_TEST(connects_by_name)
{
    struct ft_sender_config config;
    char endpoint[32];

    rig_start();
    snprintf(endpoint, sizeof(endpoint), "localhost:%u", rig.port);
    config = rig_sender_config(0);
    config.endpoint = endpoint;
    rig_sender(0, &config);
    rig_send(0, 0, 4);
    rig_run(all_acked, "delivery");
    rig_stop();
}
END_TEST

static int flushes;

static void flushed(void *arg)
{
    flushes++;
    ft_sender_free(rig.senders[*(int *)arg]);
    rig.senders[*(int *)arg] = NULL;
}

static bool has_flushed(void)
{
    return flushes > 0;
}

START_TEST(flush_waits_for_the_last)
{
    struct ft_sender_config config;
    int zero = 0, one = 1;

    start_with_sender();
    for (uint32_t i = 0; i < 500; i++)
        rig_send(0, i, 1000);
    ft_sender_flush(rig.senders[0], 10000 * RIG_MS, flushed, &zero);
    rig_run(has_flushed, "flush");
    expect_in_order(0, 500);
    rig_receiver_down();
    config = rig_sender_config(1);
    rig_sender(1, &config);
    rig_send(1, 1, 100);
    flushes = 0;
    ft_sender_flush(rig.senders[1], 50 * RIG_MS, flushed, &one);
    rig_run(has_flushed, "flush without a receiver");
    expect_in_order(0, 500);
    rig_stop();
}
END_TEST

/* A sender that ends within a payload: where it goes on, the payload comes again; where it begins
 * anew, what it had in memory is gone, and that much is known. */
START_TEST(what_was_cut_off_is_lost_with_its_sender)
{
    struct ft_receiver_stats stats;
    struct ft_frame frame;
    int fd;

    rig_start();
    for (uint64_t life = 0; life < 3; life++) {
        fd = rig_raw_connect();
        rig_raw_hello(fd, "gpu01", life < 2 ? 5 : 6);
        ck_assert(rig_raw_read(fd, &frame));
        ck_assert_uint_eq(frame.sequence, life < 2 ? life : 0);
        wanted = (unsigned)life + 1;
        rig_raw_data(fd, life < 2 ? life + 1 : 1, 9);
        rig_run(seen_wanted, "a payload");
        /* The head of the next, and some of it. */
        rig_raw_write(
            fd, life < 1 ? "\0\0\0\24\3\0\0\0\0\0\0\0\2xyz" : "\0\0\0\24\3\0\0\0\0\0\0\0\3xyz", 16);
        close(fd);
        rig_run(nobody_connected, "its end");
        ft_receiver_stats(rig.receiver, &stats);
        ck_assert_uint_eq(stats.lost, life == 2);
        ck_assert_uint_eq(stats.payloads,
                          stats.applied + stats.duplicates + stats.refused + stats.lost);
    }
    rig_stop();
}
END_TEST

static void raw_records(int fd, uint64_t sequence, uint64_t last, uint32_t count, uint64_t newest)
{
    const struct ft_frame_numbers numbers = {last, count, newest};
    uint8_t bytes[FT_FRAME_RECORDS_HEAD_BYTES + 4] = {0};

    ft_frame_records_head(bytes, sequence, &numbers, 4);
    rig_raw_write(fd, bytes, sizeof(bytes));
}

static int raw_life(uint64_t boot_id)
{
    struct ft_frame frame;
    int fd = rig_raw_connect();

    rig_raw_hello(fd, "gpu01", boot_id);
    ck_assert(rig_raw_read(fd, &frame));
    ck_assert_int_eq(frame.type, FT_FRAME_WELCOME);
    return fd;
}

static void end_life(int fd)
{
    close(fd);
    rig_run(nobody_connected, "its end");
}

static void check_records(uint64_t applied, uint64_t skipped, uint64_t lost, uint64_t pending)
{
    struct ft_receiver_stats s = receiver_stats();

    ck_assert_uint_eq(s.records_applied, applied);
    ck_assert_uint_eq(s.records_skipped, skipped);
    ck_assert_uint_eq(s.records_lost, lost);
    ck_assert_uint_eq(s.records_pending, pending);
    ck_assert_uint_eq(s.records_numbered, applied + skipped + lost + pending + s.records_refused);
}

/* Records have numbers: what a killed sender had, and never sent, is known as far as it had said.
 */
START_TEST(records_of_a_sender_that_begins_anew_are_lost_by_number)
{
    int fd;

    rig_start();
    fd = raw_life(5);
    /* Of what came before the first number nobody here knows. */
    raw_records(fd, 1, 1010, 10, 1050);
    wanted = 1;
    rig_run(seen_wanted, "a payload");
    check_records(10, 0, 0, 40);
    /* Five were dropped by the sender itself before it could send them. */
    raw_records(fd, 2, 1025, 10, 1060);
    wanted = 2;
    rig_run(seen_wanted, "another payload");
    check_records(20, 5, 0, 35);
    end_life(fd);
    /* The same sender comes back: nothing is lost, and what it had sent counts once. */
    fd = raw_life(5);
    raw_records(fd, 2, 1025, 10, 1070);
    raw_records(fd, 3, 1035, 10, 1070);
    wanted = 3;
    rig_run(seen_wanted, "what is new to it");
    check_records(30, 5, 0, 35);
    /* The head of the next says of more, and no more of it comes. */
    rig_raw_write(fd, "\0\0\0\43\6\0\0\0\0\0\0\0\4\0\0\0\0\0\0\4\20\0\0\0\1\0\0\0\0\0\0\4\60xyz",
                  36);
    end_life(fd);
    check_records(30, 5, 0, 37);
    fd = raw_life(6);
    check_records(30, 5, 37, 0);
    raw_records(fd, 1, 4, 4, 4);
    wanted = 4;
    rig_run(seen_wanted, "a payload of its new life");
    check_records(34, 5, 37, 0);
    end_life(fd);
    rig_stop();
}
END_TEST

static bool some_applied(void)
{
    return receiver_stats().records_applied > 0;
}

static bool second_acked(void)
{
    return sender_stats(1).payloads_acked == 1;
}

/* A sender ends with most of what it had still in its queue. */
START_TEST(what_a_dead_sender_had_queued_is_lost_by_number)
{
    enum { COUNT = 3000, BYTES = 20000 };
    struct ft_sender_config config;
    struct ft_receiver_stats s;

    rig_start();
    config = rig_sender_config(0);
    rig_sender(0, &config);
    for (uint32_t i = 0; i < COUNT; i++)
        ck_assert_int_eq(rig_send(0, i, BYTES), 0);
    rig_run(some_applied, "some of it");
    ft_sender_free(rig.senders[0]);
    rig.senders[0] = NULL;
    rig_run(nobody_connected, "its end");
    config.boot_id++;
    rig_sender(1, &config);
    ck_assert_int_eq(rig_send(1, 1, 4), 0);
    rig_run(second_acked, "its new life");
    s = receiver_stats();
    ck_assert_uint_gt(s.records_lost, 0);
    ck_assert_uint_eq(s.records_numbered, 3 * COUNT + 3);
    ck_assert_uint_eq(s.records_applied + s.records_lost, s.records_numbered);
    rig_stop();
}
END_TEST

FT_UNIT_MAIN("transport", records_of_a_sender_that_begins_anew_are_lost_by_number,
             what_a_dead_sender_had_queued_is_lost_by_number,
             what_was_cut_off_is_lost_with_its_sender, delivers_once_and_in_order,
             receiver_restarted_in_the_middle, sender_cut_off_sends_again_without_doubles,
             second_connection_replaces_the_first, programs_of_one_host_are_two_sources,
             overflow_drops_the_oldest, what_is_in_flight_is_not_dropped,
             silent_receivers_are_given_up, bad_bytes_cost_only_their_connection,
             stalled_peers_are_dropped, sources_over_the_cap, connections_over_the_cap,
             refused_payload_is_not_asked_for_again, texts_name_the_endpoint, connects_by_name,
             flush_waits_for_the_last)
