// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "tests/unit/transport_shared.h"

static bool one_connected(void)
{
    return receiver_stats().connected == 1;
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

static uint8_t noticed[FT_TRANSPORT_NOTICE_MAX];
static size_t notices, noticed_len;

static void on_notice(void *arg, const uint8_t *payload, size_t len)
{
    ck_assert_str_eq(arg, "host0");
    memcpy(noticed, payload, len);
    noticed_len = len;
    notices++;
}

static bool has_noticed(void)
{
    return notices == wanted;
}

/* To the sender that is named, whole; records go on. */
START_TEST(notices_reach_the_sender)
{
    struct ft_sender_config config;
    uint8_t bytes[FT_TRANSPORT_NOTICE_MAX];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 7);
    rig_start();
    config = rig_sender_config(0);
    config.on_notice = on_notice;
    config.notice_arg = (char *)"host0";
    rig_sender(0, &config);
    rig_run(connected, "connection");
    ck_assert_int_eq(ft_receiver_notify(rig.receiver, config.program, "host1", bytes, 9),
                     -ENOTCONN);
    ck_assert_int_eq(ft_receiver_notify(rig.receiver, "other", config.source_id, bytes, 9),
                     -ENOTCONN);
    for (wanted = 1; wanted <= 20; wanted++) {
        size_t len = wanted == 20 ? sizeof(bytes) : wanted;

        rig_send(0, wanted, 100);
        while (ft_receiver_notify(rig.receiver, config.program, config.source_id, bytes, len))
            rig_run_for(RIG_MS);
        rig_run(has_noticed, "a notice");
        ck_assert_uint_eq(noticed_len, len);
        ck_assert_mem_eq(noticed, bytes, len);
    }
    rig_run(all_acked, "all acknowledged");
    expect_in_order(1, 20);
    /* Who wants none goes on as well. */
    config = rig_sender_config(1);
    rig_sender(1, &config);
    while (ft_receiver_notify(rig.receiver, config.program, config.source_id, bytes, 9))
        rig_run_for(RIG_MS);
    rig_send(1, 77, 100);
    wanted = 21;
    rig_run(seen_wanted, "its record");
    ck_assert_uint_eq(sender_stats(1).connects, 1);
    rig_stop();
}
END_TEST

FT_UNIT_MAIN("transport", delivers_once_and_in_order, receiver_restarted_in_the_middle,
             sender_cut_off_sends_again_without_doubles, second_connection_replaces_the_first,
             programs_of_one_host_are_two_sources, silent_receivers_are_given_up,
             bad_bytes_cost_only_their_connection, stalled_peers_are_dropped,
             texts_name_the_endpoint, connects_by_name, flush_waits_for_the_last,
             notices_reach_the_sender)
