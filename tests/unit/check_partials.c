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

static int take(uint64_t came, uint64_t taken, uint32_t piece)
{
    struct ft_partials *p = ft_partials_new(1, 1 << 16);
    Fabrictrace__Partial m = FABRICTRACE__PARTIAL__INIT;
    uint32_t partition = 0;
    int rc;

    ck_assert_ptr_nonnull(p);
    m.source = (char *)(uintptr_t) "a";
    m.has_window_start_ms = m.has_observations = m.has_observations_taken = true;
    m.window_start_ms = START_MS;
    m.partitions = &partition;
    m.n_partitions = m.partitions_all = 1;
    m.pieces = 2;
    m.piece = piece;
    m.observations = came;
    m.observations_taken = taken;
    rc = ft_partials_take(p, &m);
    ft_partials_free(p);
    return rc;
}

START_TEST(counts_that_cannot_be_are_not_taken)
{
    const uint64_t most = UINT64_C(1) << 50;

    for (uint32_t piece = 0; piece < 2; piece++) {
        ck_assert_int_eq(take(0, 0, piece), 0);
        ck_assert_int_eq(take(10, 10, piece), 0);
        ck_assert_int_eq(take(most, 0, piece), 0);
        ck_assert_int_eq(take(10, 11, piece), -EINVAL);
        ck_assert_int_eq(take(most + 1, 0, piece), -EINVAL);
        ck_assert_int_eq(take(UINT64_MAX, UINT64_MAX, piece), -EINVAL);
    }
}
END_TEST

/* Of a link, more marked samples than samples would be a share above 1. */
START_TEST(marks_that_cannot_be_are_not_taken)
{
    static const struct {
        uint64_t samples, ce_samples;
        int rc;
    } cases[] = {{10, 10, 0},
                 {UINT64_C(1) << 33, 1, 0},
                 {10, 11, -EINVAL},
                 {0, 1, -EINVAL},
                 {UINT64_MAX, 0, -EINVAL}};
    Fabrictrace__PartialLink link = FABRICTRACE__PARTIAL_LINK__INIT, *links = &link;
    Fabrictrace__Partial m = FABRICTRACE__PARTIAL__INIT;
    uint32_t partition = 0;

    m.source = (char *)(uintptr_t) "a";
    m.has_window_start_ms = true;
    m.window_start_ms = 1000;
    m.partitions = &partition;
    m.n_partitions = m.pieces = 1;
    m.partitions_all = 2;
    m.links = &links;
    m.n_links = 1;
    link.switch_ = (char *)(uintptr_t) "leaf0";
    link.port = (char *)(uintptr_t) "up0";
    link.has_samples = link.has_ce_samples = true;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ft_partials *p = ft_partials_new(2, 1 << 20);

        link.samples = cases[i].samples;
        link.ce_samples = cases[i].ce_samples;
        ck_assert_int_eq(ft_partials_take(p, &m), cases[i].rc);
        ft_partials_free(p);
    }
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

enum { SPOKEN = 6, ROUNDS = 400 };

/* A record of one link, drawn at random from few daemons, partitions and windows, so that many are
 * said twice, overlap or lack pieces. */
struct drawn {
    Fabrictrace__Partial m;
    Fabrictrace__PartialLink link, *links;
    uint32_t partitions[SPOKEN];
    char source[8];
};

static uint32_t rolled = 1;

static uint32_t roll(uint32_t below)
{
    rolled ^= rolled << 13;
    rolled ^= rolled >> 17;
    rolled ^= rolled << 5;
    return rolled % below;
}

static void draw(struct drawn *d, const struct ft_topology *t)
{
    uint32_t first = roll(SPOKEN), count = 1 + roll(SPOKEN - first < 3 ? SPOKEN - first : 3);
    const struct ft_port *port = ft_topology_port(t, roll(ft_topology_ports(t)));

    fabrictrace__partial__init(&d->m);
    fabrictrace__partial_link__init(&d->link);
    snprintf(d->source, sizeof(d->source), "%u", roll(10) ? first : roll(SPOKEN));
    for (uint32_t i = 0; i < count; i++)
        d->partitions[i] = first + i;
    d->link.switch_ = (char *)(uintptr_t)ft_topology_switch(t, port->switch_id)->name;
    d->link.port = (char *)(uintptr_t)port->name;
    d->link.bytes_rest = 1.0 / (1 + roll(1000));
    d->links = &d->link;
    d->m.source = d->source;
    d->m.has_window_start_ms = d->m.has_partitions_all = d->m.has_pieces = d->m.has_piece =
        d->m.has_partial = d->link.has_bytes_rest = true;
    d->m.window_start_ms = (uint64_t)window_at((int)roll(2));
    d->m.partitions = d->partitions;
    d->m.n_partitions = count;
    d->m.partitions_all = SPOKEN;
    d->m.pieces = 1 + roll(2) * 2;
    d->m.piece = roll(d->m.pieces);
    d->m.links = &d->links;
    d->m.n_links = 1;
    d->m.partial = roll(50) == 0;
    d->m.has_observations = d->m.has_observations_taken = roll(3) > 0;
}

static bool of_one(const struct drawn *a, const struct drawn *b)
{
    return strcmp(a->source, b->source) == 0 && a->m.pieces == b->m.pieces &&
           a->m.n_partitions == b->m.n_partitions && a->partitions[0] == b->partitions[0];
}

static bool overlaps(const struct drawn *a, const struct drawn *b)
{
    return a->partitions[0] < b->partitions[0] + b->m.n_partitions &&
           b->partitions[0] < a->partitions[0] + a->m.n_partitions;
}

/* Records that count, by a look at all others. */
static bool counts(const struct drawn *const *held, size_t count, const struct drawn *d)
{
    for (size_t i = 0; i < count; i++) {
        if (held[i]->m.window_start_ms != d->m.window_start_ms || !overlaps(held[i], d))
            continue;
        if (!of_one(held[i], d) || held[i]->m.piece == d->m.piece)
            return false;
    }
    return true;
}

static bool has_all(const struct drawn *const *held, size_t count, const struct drawn *d)
{
    uint32_t pieces = 0;

    for (size_t i = 0; i < count; i++)
        pieces += held[i]->m.window_start_ms == d->m.window_start_ms && of_one(held[i], d);
    return pieces == d->m.pieces;
}

/* The sum of a window by the records that count, and by the partials, to which more come meanwhile.
 */
static void compare_sums(struct ft_partials *p, const struct drawn *const *held, size_t count,
                         struct drawn *more, struct ft_join *join)
{
    const struct ft_topology *t = ft_join_topology(join);
    static struct ft_partition_list missing, unaccounted;
    bool there[SPOKEN] = {false}, silent[SPOKEN] = {false}, partial = false, complete;
    struct ft_loads naive = {.link = NULL}, loads = {.link = NULL};
    uint32_t work, steps = 0;

    ck_assert(ft_loads_init(&naive, t) == 0 && ft_loads_init(&loads, t) == 0);
    for (size_t i = 0; i < count; i++) {
        const struct drawn *d = held[i];
        uint32_t id = ft_topology_find_switch(t, d->link.switch_);

        if (d->m.window_start_ms != (uint64_t)window_at(0) || !has_all(held, count, d))
            continue;
        naive.link[ft_topology_find_port(t, id, d->link.port)].bytes += d->link.bytes_rest;
        partial |= d->m.partial;
        for (size_t k = 0; k < d->m.n_partitions; k++) {
            there[d->partitions[k]] = true;
            silent[d->partitions[k]] |= d->m.piece == 0 && !d->m.has_observations;
        }
    }
    complete = ft_partials_complete(p, window_at(0));
    ft_partials_begin(p, window_at(0), &missing);
    ck_assert(complete == (missing.count == 0));
    while (ft_partials_step(p, 1, &loads, join, &work)) {
        draw(more, t);
        if (steps++ % 3 == 0)
            ft_partials_take(p, &more->m);
    }
    ck_assert(ft_partials_end(p, &unaccounted) == (partial || missing.count));
    for (uint32_t i = 0, m = 0, u = 0; i < SPOKEN; i++) {
        ck_assert(there[i] || (m < missing.count && missing.item[m++] == i));
        ck_assert(!silent[i] || (u < unaccounted.count && unaccounted.item[u++] == i));
    }
    for (uint32_t i = 0; i < ft_topology_ports(t); i++)
        ck_assert_double_eq(loads.link[i].bytes, naive.link[i].bytes);
    ft_loads_free(&naive);
    ft_loads_free(&loads);
}

START_TEST(sums_are_those_of_a_look_at_all)
{
    static const struct ft_join_config config = {.flows_max = 16, .window_ms = WINDOW_MS};
    struct ft_topology *t = leafspine(2, 2, 1);
    struct ft_join *join = ft_join_new(&config, t, &(struct ft_join_hooks){.arg = NULL});
    static struct drawn drawn[40], more;
    const struct drawn *held[40];
    uint32_t whole = 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct ft_partials *p = ft_partials_new(SPOKEN, 1 << 20);
        const struct ft_partials_stats *stats = ft_partials_stats(p);
        size_t count = 0;

        for (int i = 0; i < 40; i++) {
            bool taken;

            draw(&drawn[i], t);
            taken = ft_partials_take(p, &drawn[i].m) == 0;
            ck_assert(taken == counts(held, count, &drawn[i]));
            if (taken)
                held[count++] = &drawn[i];
        }
        ck_assert_uint_eq(stats->taken + stats->duplicates + stats->overlapping, 40);
        whole += ft_partials_complete(p, window_at(0));
        compare_sums(p, held, count, &more, join);
        ft_partials_close(p, window_at(0));
        ck_assert(!ft_partials_complete(p, window_at(0)));
        draw(&more, t);
        more.m.window_start_ms = (uint64_t)window_at(0);
        ck_assert_int_eq(ft_partials_take(p, &more.m), -ESTALE);
        ft_partials_free(p);
    }
    ck_assert_uint_gt(whole, 0);
    ft_join_free(join);
    ft_topology_free(t);
}
END_TEST

FT_UNIT_MAIN("partials", sums_are_those_of_a_look_at_all, a_clock_that_was_set_back,
             what_is_ahead_is_not_kept, what_members_did_not_take_in_is_said,
             flows_with_fewer_links_to_choose_from_are_judged_alike, who_has_more_flows_weighs_more,
             what_is_not_said_is_not_whole, what_was_thinned_counts_once,
             what_is_read_back_does_not_count, counts_that_cannot_be_are_not_taken,
             marks_that_cannot_be_are_not_taken)
