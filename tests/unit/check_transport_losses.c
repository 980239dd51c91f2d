// SPDX-License-Identifier: Apache-2.0
/*
 * What the transport drops or refuses, and what is lost with a sender: each is counted once.
 */
#include "config.h"

#include "tests/unit/transport_shared.h"

static bool ten_acked(void)
{
    return sender_stats(0).payloads_acked == 10;
}

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

/* Who says nothing, or half of a HELLO, keeps nobody out; who is welcome stays. */
START_TEST(silent_connections_make_room)
{
    struct ft_frame frame;
    int a, b, c, silent[8];

    rig.receiver_config.connections_max = 3;
    rig_start();
    a = raw_peer("a", &frame);
    ck_assert_int_eq(frame.type, FT_FRAME_WELCOME);
    for (int i = 0; i < 8; i++) {
        silent[i] = rig_raw_connect();
        ck_assert_int_eq(send(silent[i], "\0\0", 2, 0), 2);
    }
    b = raw_peer("b", &frame);
    ck_assert_int_eq(frame.type, FT_FRAME_WELCOME);
    c = raw_peer("c", &frame);
    ck_assert_int_eq(frame.type, FT_FRAME_WELCOME);
    for (int i = 0; i < 8; i++) {
        ck_assert(!rig_raw_read(silent[i], &frame));
        close(silent[i]);
    }
    ck_assert_uint_eq(receiver_stats().connections_refused, 8);
    ck_assert_uint_eq(receiver_stats().connected, 3);
    /* All have a name now. */
    silent[0] = rig_raw_connect();
    ck_assert(rig_raw_read(silent[0], &frame));
    ck_assert_str_eq(frame.reason, "too many connections");
    ck_assert_uint_eq(receiver_stats().connections_refused, 9);
    rig_raw_data(a, 1, 1);
    ck_assert(rig_raw_read(a, &frame));
    ck_assert_int_eq(frame.type, FT_FRAME_ACK);
    close(a);
    close(b);
    close(c);
    close(silent[0]);
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

static unsigned gaps_behind(uint64_t boot_id, uint64_t sequence)
{
    struct ft_frame frame;
    int fd = rig_raw_connect();

    rig_raw_hello(fd, "gpu01", boot_id);
    ck_assert(rig_raw_read(fd, &frame));
    wanted++;
    rig_raw_data(fd, sequence, 9);
    rig_run(seen_wanted, "a payload");
    /* What its sender drops while it is connected is no gap. */
    wanted++;
    rig_raw_data(fd, sequence + 2, 9);
    rig_run(seen_wanted, "another payload");
    close(fd);
    rig_run(nobody_connected, "its end");
    return rig.gaps;
}

START_TEST(a_connection_that_does_not_follow_on_is_a_gap)
{
    wanted = 0;
    rig_start();
    ck_assert_uint_eq(gaps_behind(5, 1), 0);
    ck_assert_uint_eq(gaps_behind(5, 4), 0);
    ck_assert_uint_eq(gaps_behind(5, 9), 1); /* somebody else has 7 and 8 */
    ck_assert_uint_eq(gaps_behind(6, 1), 1);
    ck_assert_uint_eq(gaps_behind(7, 2), 2);
    /* It is not known any more what was here before. */
    rig_receiver_down();
    rig_receiver_up();
    ck_assert_uint_eq(gaps_behind(7, 5), 3);
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

FT_UNIT_MAIN("transport, losses", records_of_a_sender_that_begins_anew_are_lost_by_number,
             what_a_dead_sender_had_queued_is_lost_by_number,
             what_was_cut_off_is_lost_with_its_sender, overflow_drops_the_oldest,
             what_is_in_flight_is_not_dropped, sources_over_the_cap, connections_over_the_cap,
             silent_connections_make_room, refused_payload_is_not_asked_for_again,
             a_connection_that_does_not_follow_on_is_a_gap)
