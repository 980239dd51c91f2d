// SPDX-License-Identifier: Apache-2.0
/*
 * Windows of a group of daemons say what its members did not take in, as one daemon does. The same
 * traffic goes through one pipeline after the other: of each member, then what they say through
 * that of the aggregator.
 */
#include "config.h"

#include <errno.h>

#include "lib/base/partition.h"
#include "tests/unit/window_rig.h"

#define WINDOWS 3
#define FLOWS   40

static char *said[2]; /* the partial loads of the members, a line each */
static double share[WINDOWS];

static int64_t window_at(int i)
{
    return START_MS + i * (int64_t)WINDOW_MS;
}

/* Of the window before come as many again as `late` says, while the second is open; one of each
 * flow in each window. */
static void send_traffic(uint16_t late)
{
    for (int i = 0; i < WINDOWS; i++) {
        for (uint16_t k = 1; i == 1 && k <= late; k++)
            observe(k, 0, 1, 8000000, 100, window_at(0) + 20, 0);
        for (uint16_t k = 1; k <= FLOWS; k++)
            observe(k, 0, 1, 8000000, 100, window_at(i) + 10, 0);
        close_window(window_at(i));
    }
}

/* What each window says that it has seen, 1 where it says nothing. */
static void read_shares(void)
{
    char window[64];
    const char *line;

    for (int i = 0; i < WINDOWS; i++) {
        snprintf(window, sizeof(window), "\"window_start_ms\":%lld,", (long long)window_at(i));
        line = line_with(window, "\"scope\":\"fabric\"");
        ck_assert_ptr_nonnull(line);
        ck_assert_ptr_null(strstr(line, "\"partial\":true"));
        share[i] = strstr(line, "seen_share") ? number(line, "seen_share") : 1;
    }
}

/* Of leaf0's uplinks, in the first window. */
static struct {
    double p, fim_expected;
} up;

static void read_up(void)
{
    const char *line = line_with("\"name\":\"leaf0/up\"", "\"p_value\"");

    ck_assert_ptr_nonnull(line);
    up.p = number(line, "p_value");
    up.fim_expected = number(line, "fim_expected");
}

static void run_alone(uint16_t late)
{
    open_pipeline(2, 4, 1);
    send_traffic(late);
    read_shares();
    read_up();
    close_pipeline();
}

static void run_member(uint32_t partition, uint16_t late)
{
    const struct ft_partial_origin mine = {.source = partition ? "b" : "a",
                                           .partitions = &partition,
                                           .partition_count = 1,
                                           .partitions_all = 2};

    origin = &mine;
    open_pipeline(2, 4, 1);
    send_traffic(late);
    ft_write_u8(&out, 0);
    free(said[partition]);
    said[partition] = strdup((const char *)out.bytes);
    ck_assert_ptr_nonnull(said[partition]);
    close_pipeline();
    origin = NULL;
}

/* Takes members out of all lines of one, as an earlier version writes them. */
static void forget(char *lines, const char *member)
{
    size_t len = strlen(member);
    char *at, *end;

    while ((at = strstr(lines, member))) {
        end = at + len;
        end += strspn(end, "0123456789");
        ck_assert(*end == ',' || *end == '}');
        memmove(at, end, strlen(end) + 1);
    }
}

static void feed_partial(const char *line, size_t len)
{
    Fabrictrace__Record *record = NULL;
    char error[200] = "";

    ck_assert_msg(ft_record_from_json(line, len, &record, error, sizeof(error)) == 0, "%s", error);
    if (record->kind_case == FABRICTRACE__RECORD__KIND_PARTIAL)
        ft_pipeline_record(pipeline, record, (int64_t)record->partial->window_end_ms + 3000);
    ft_record_free(record);
}

/* Lines of one window. */
static void feed_window(const char *lines, int64_t start_ms)
{
    char window[64];
    const char *end, *at;

    snprintf(window, sizeof(window), "\"window_start_ms\":%lld,", (long long)start_ms);
    for (; (end = strchr(lines, '\n')); lines = end + 1) {
        at = strstr(lines, window);
        if (at && at < end && strncmp(lines, "{\"schema\":\"fabrictrace.partial.v1\"", 33) == 0)
            feed_partial(lines, (size_t)(end - lines));
    }
}

static void begin_aggregator(void)
{
    partials = ft_partials_new(2, 1 << 20);
    ck_assert_ptr_nonnull(partials);
    open_pipeline(2, 4, 1);
}

static void end_aggregator(void)
{
    close_pipeline();
    ft_partials_free(partials);
    partials = NULL;
    free(said[0]);
    free(said[1]);
    said[0] = said[1] = NULL;
}

static void aggregate(void)
{
    begin_aggregator();
    for (int i = 0; i < WINDOWS; i++) {
        feed_window(said[0], window_at(i));
        feed_window(said[1], window_at(i));
        close_window(window_at(i));
    }
    read_shares();
}

/* 24 come late beside the 40 of the window that is open. */
START_TEST(what_members_did_not_take_in_is_said)
{
    double alone[WINDOWS];

    run_alone(24);
    memcpy(alone, share, sizeof(alone));
    ck_assert_double_eq_tol(alone[0], 1, 1e-9);
    ck_assert_double_eq_tol(alone[1], 0.625, 1e-9);
    ck_assert_double_eq_tol(alone[2], 1, 1e-9);
    run_member(0, 24);
    run_member(1, 24);
    aggregate();
    for (int i = 0; i < WINDOWS; i++)
        ck_assert_double_eq_tol(share[i], alone[i], 1e-9);
    ck_assert_ptr_nonnull(line_with("\"scope\":\"group\"", "\"seen_share\":0.625"));
    ck_assert_ptr_nonnull(line_with("\"scope\":\"layer\"", "\"seen_share\":0.625"));
    ck_assert_ptr_null(line_with("unaccounted_partitions", ""));
    end_aggregator();
}
END_TEST

/* What chance gives flows that cannot take all links of their group: here each takes one of the
 * three that lead on. */
START_TEST(flows_with_fewer_links_to_choose_from_are_judged_alike)
{
    double p, fim_expected;

    gap_leaf = 1;
    gap_spine = 3;
    run_alone(0);
    p = up.p;
    fim_expected = up.fim_expected;
    ck_assert_double_lt(p, 1e-6);
    run_member(0, 0);
    run_member(1, 0);
    aggregate();
    read_up();
    ck_assert_double_eq_tol(up.p, p, 1e-9 * p);
    ck_assert_double_eq_tol(up.fim_expected, fim_expected, 1e-6);
    ck_assert_ptr_nonnull(line_with("\"name\":\"leaf0/up\"", "\"verdict\":\"fault\""));
    end_aggregator();
    gap_leaf = gap_spine = UINT32_MAX;
}
END_TEST

static uint32_t partition_of(uint16_t sport)
{
    struct ft_tuple tuple = {.src = leafspine_host_ip(0, 0),
                             .dst = leafspine_host_ip(1, 0),
                             .sport = sport,
                             .dport = FT_ROCE_PORT,
                             .proto = FT_PROTO_UDP};

    return ft_partition_of_flow(&tuple, 2);
}

/* A sum of counts, not a mean of shares: one member has fewer flows, and drops none. */
START_TEST(who_has_more_flows_weighs_more)
{
    uint32_t own = 0;

    for (uint16_t k = 1; k <= FLOWS; k++)
        own += partition_of(k) == 0;
    ck_assert_uint_ne(own, FLOWS / 2);
    run_member(0, 0);
    run_member(1, FLOWS);
    aggregate();
    ck_assert_double_eq_tol(share[1], FLOWS / (double)(FLOWS + FLOWS - own), 1e-6);
    end_aggregator();
}
END_TEST

/* A member of before says nothing of it: its partition is named, and the rest says its share. */
START_TEST(what_is_not_said_is_not_whole)
{
    uint32_t others = 0, late = 0;
    const char *line;

    for (uint16_t k = 1; k <= FLOWS; k++)
        others += partition_of(k) == 1;
    for (uint16_t k = 1; k <= 24; k++)
        late += partition_of(k) == 1;
    run_member(0, 24);
    run_member(1, 24);
    forget(said[0], ",\"observations\":");
    forget(said[0], ",\"observations_taken\":");
    aggregate();
    ck_assert_double_eq_tol(share[0], 1, 1e-9);
    ck_assert_double_eq_tol(share[1], others / (double)(others + late), 1e-6);
    line = line_with("\"scope\":\"group\"", "\"unaccounted_partitions\":[0]");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_null(strstr(line, "missing_partitions"));
    end_aggregator();
    /* Half of it is nothing, and no count of what came without being taken. */
    run_member(0, 0);
    run_member(1, 0);
    forget(said[1], ",\"observations_taken\":");
    aggregate();
    ck_assert_double_eq_tol(share[1], 1, 1e-9);
    ck_assert_ptr_nonnull(line_with("\"scope\":\"fabric\"", "\"unaccounted_partitions\":[1]"));
    end_aggregator();
}
END_TEST

/* Pollers account to the aggregator as to one daemon; the shares multiply. */
START_TEST(what_was_thinned_counts_once)
{
    run_member(0, 24);
    run_member(1, 24);
    begin_aggregator();
    account("poller", 1000, 0, window_at(0));
    for (int i = 0; i < WINDOWS; i++) {
        account("poller", 1000 + 1000 * (uint64_t)i, i ? 200 : 0, window_at(i) + 10);
        feed_window(said[0], window_at(i));
        feed_window(said[1], window_at(i));
        close_window(window_at(i));
    }
    read_shares();
    ck_assert_double_eq_tol(share[0], 1, 1e-9);
    ck_assert_double_eq_tol(share[1], 0.8 * 0.625, 1e-9);
    ck_assert_double_eq_tol(share[2], 1, 1e-9);
    end_aggregator();
}
END_TEST

/* Samples of windows that another daemon had and said: neither dropped nor taken in. */
START_TEST(what_is_read_back_does_not_count)
{
    open_pipeline(2, 4, 1);
    observe(1, 0, 1, 8000000, 100, window_at(0) + 10, 0);
    close_window(window_at(0));
    ft_pipeline_recall(pipeline, true);
    for (uint16_t k = 2; k < 10; k++)
        observe(k, 0, 1, 8000000, 100, window_at(0) + 20, 0);
    /* Older than evidence. */
    for (uint16_t k = 2; k < 10; k++)
        observe(k, 0, 1, 8000000, 100, window_at(-9), 0);
    ft_pipeline_recall(pipeline, false);
    observe(1, 0, 1, 8000000, 100, window_at(0) + 20, 0);
    observe(1, 0, 1, 8000000, 100, window_at(1) + 10, 0);
    close_window(window_at(1));
    observe(1, 0, 1, 8000000, 100, window_at(2) + 10, 0);
    close_window(window_at(2));
    read_shares();
    ck_assert_double_eq_tol(share[0], 1, 1e-9);
    ck_assert_double_eq_tol(share[1], 0.5, 1e-9);
    ck_assert_double_eq_tol(share[2], 1, 1e-9);
    close_pipeline();
}
END_TEST

/* The aggregator's clock is set back: windows that it closed before are to come again. */
START_TEST(a_clock_that_was_set_back)
{
    char window[64];
    const char *line;

    run_member(0, 0);
    run_member(1, 0);
    begin_aggregator();
    feed_window(said[0], window_at(2));
    feed_window(said[1], window_at(2));
    close_window(window_at(2));
    feed_window(said[0], window_at(1)); /* late */
    ck_assert_uint_eq(ft_partials_stats(partials)->late, 1);
    run_until(window_at(0) + 1);
    ft_writer_reset(&out);
    feed_window(said[0], window_at(0));
    feed_window(said[1], window_at(0));
    close_window(window_at(0));
    ck_assert_uint_eq(ft_partials_stats(partials)->late, 1);
    snprintf(window, sizeof(window), "\"window_start_ms\":%lld,", (long long)window_at(0));
    line = line_with(window, "\"scope\":\"fabric\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_null(strstr(line, "missing_partitions"));
    ck_assert_double_eq(number(line, "flows"), FLOWS);
    end_aggregator();
}
END_TEST

/* A member whose clock is ahead would fill the memory until the aggregator's is there. */
START_TEST(what_is_ahead_is_not_kept)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Partial m = FABRICTRACE__PARTIAL__INIT;
    uint32_t partition = 0;

    begin_aggregator();
    m.source = (char *)(uintptr_t) "a";
    m.partitions = &partition;
    m.n_partitions = 1;
    m.partitions_all = 2;
    m.has_window_start_ms = m.has_piece = m.has_pieces = true;
    m.pieces = 1;
    record.kind_case = FABRICTRACE__RECORD__KIND_PARTIAL;
    record.partial = &m;
    m.window_start_ms = (uint64_t)window_at(0);
    ft_pipeline_record(pipeline, &record, window_at(1));
    ck_assert_uint_eq(ft_partials_stats(partials)->taken, 1);
    m.window_start_ms += 3600000;
    ft_pipeline_record(pipeline, &record, window_at(1));
    ck_assert_uint_eq(ft_partials_stats(partials)->taken, 1);
    ck_assert_uint_eq(ft_pipeline_stats(pipeline)->fates[FT_RECORD_AHEAD], 1);
    end_aggregator();
}
END_TEST

FT_UNIT_MAIN("partials", a_clock_that_was_set_back, what_is_ahead_is_not_kept,
             what_members_did_not_take_in_is_said,
             flows_with_fewer_links_to_choose_from_are_judged_alike, who_has_more_flows_weighs_more,
             what_is_not_said_is_not_whole, what_was_thinned_counts_once,
             what_is_read_back_does_not_count)
