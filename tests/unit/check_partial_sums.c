// SPDX-License-Identifier: Apache-2.0
/* Which partial loads of members are taken, and what they add up to: daemon/window/partial.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/join/join.h"
#include "daemon/window/partial.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define WINDOW_MS 10000
#define START_MS  (1000 * (int64_t)WINDOW_MS)

static int64_t window_at(int i)
{
    return START_MS + i * (int64_t)WINDOW_MS;
}

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

/* When samples last showed the port, after a member's word. */
static int64_t shown_ms(uint64_t said_ms)
{
    static const struct ft_join_config config = {.flows_max = 16, .window_ms = WINDOW_MS};
    struct ft_topology *t = leafspine(1, 1, 1);
    struct ft_join *join = ft_join_new(&config, t, &(struct ft_join_hooks){.arg = NULL});
    struct ft_partials *p = ft_partials_new(1, 1 << 20);
    Fabrictrace__PartialLink link = FABRICTRACE__PARTIAL_LINK__INIT, *links = &link;
    Fabrictrace__Partial m = FABRICTRACE__PARTIAL__INIT;
    uint32_t partition = 0, work, port;
    struct ft_loads loads = {.link = NULL};
    struct ft_partition_list missing;
    int64_t ms;

    ck_assert(t && join && p && ft_loads_init(&loads, t) == 0);
    m.source = (char *)(uintptr_t) "a";
    m.has_window_start_ms = m.has_partitions_all = m.has_pieces = m.has_piece = true;
    m.window_start_ms = (uint64_t)window_at(0);
    m.partitions = &partition;
    m.n_partitions = m.partitions_all = m.pieces = 1;
    m.links = &links;
    m.n_links = 1;
    link.switch_ = (char *)(uintptr_t) "leaf0";
    link.port = (char *)(uintptr_t) "up0";
    link.has_last_ms = true;
    link.last_ms = said_ms;
    ck_assert_int_eq(ft_partials_take(p, &m), 0);
    ft_partials_begin(p, window_at(0), &missing);
    while (ft_partials_step(p, (uint32_t)(window_at(0) / WINDOW_MS), &loads, join, &work))
        ;
    port = ft_topology_find_port(t, ft_topology_find_switch(t, "leaf0"), "up0");
    ms = ft_join_marks(join, port)->last_ms;
    ft_loads_free(&loads);
    ft_partials_free(p);
    ft_join_free(join);
    ft_topology_free(t);
    return ms;
}

/* A member's clock, or its ill will, makes no link one that was idle since the year 9999. */
START_TEST(a_time_to_come_is_not_taken)
{
    ck_assert_int_eq(shown_ms((uint64_t)window_at(0) - 1), window_at(0) - 1);
    ck_assert_int_eq(shown_ms((uint64_t)window_at(2) - 1), window_at(2) - 1);
    ck_assert_int_eq(shown_ms((uint64_t)window_at(2)), 0);
    ck_assert_int_eq(shown_ms(UINT64_C(253402300799000)), 0);
    ck_assert_int_eq(shown_ms(INT64_MAX), 0);
    ck_assert_int_eq(shown_ms(UINT64_MAX), 0);
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

/* What came of a member's records. */
static struct {
    uint32_t records, pieces, links, groups, elephants;
} heard;

static void hear(void *arg, const Fabrictrace__Record *record)
{
    const Fabrictrace__Partial *m = record->partial;

    (void)arg;
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_PARTIAL);
    ck_assert_uint_eq(m->piece, heard.records++);
    ck_assert(heard.records == 1 || m->pieces == heard.pieces);
    ck_assert(m->has_flows == (m->piece == 0));
    ck_assert_uint_le(m->n_links + m->n_groups + m->n_elephants, 1000);
    ck_assert(m->n_links + m->n_groups + m->n_elephants > 0 || m->pieces == 1);
    heard.pieces = m->pieces;
    heard.links += (uint32_t)m->n_links;
    heard.groups += (uint32_t)m->n_groups;
    heard.elephants += (uint32_t)m->n_elephants;
}

/* Of a fabric with 1,152 ports and 64 groups up. */
static void say_some(uint32_t links, uint32_t groups, uint32_t elephants)
{
    static const struct ft_join_config config = {.flows_max = 16, .window_ms = WINDOW_MS};
    struct ft_topology *t = leafspine(64, 8, 2);
    struct ft_join *join = ft_join_new(&config, t, &(struct ft_join_hooks){.arg = NULL});
    const struct ft_span span = {window_at(0), window_at(1)};
    const struct ft_emitter emitter = {hear, NULL};
    const uint32_t partition = 0;
    const struct ft_partial_origin origin = {
        .source = "a", .partitions = &partition, .partition_count = 1, .partitions_all = 2};
    Fabrictrace__Victim victim = FABRICTRACE__VICTIM__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;
    struct ft_loads loads = {.link = NULL};
    struct ft_partial_said *said;
    uint32_t work;

    ck_assert(t && join && ft_loads_init(&loads, t) == 0);
    ck_assert_uint_le(links, ft_topology_ports(t));
    ck_assert_uint_le(groups, ft_topology_groups(t));
    victim.flow = &flow;
    for (uint32_t i = 0; i < links; i++)
        loads.link[ft_topology_ports(t) - 1 - i].bytes = 1;
    for (uint32_t i = 0; i < groups; i++)
        loads.unplaced[i] = 1;
    for (uint32_t i = 0; i < elephants; i++)
        ft_loads_keep_elephant(&loads, i % ft_topology_ports(t), &victim);
    memset(&heard, 0, sizeof(heard));
    said = ft_partial_say(&origin, &loads, join, 1000, &span, false, &emitter);
    ck_assert_ptr_nonnull(said);
    for (bool more = true; more;) {
        uint32_t before = heard.records;

        more = ft_partial_say_step(said, &work);
        ck_assert_uint_ge(work, 1);
        ck_assert_uint_le(work, 1400);
        ck_assert_uint_le(heard.records, before + 1);
    }
    ft_partial_said_free(said);
    ft_loads_free(&loads);
    ft_join_free(join);
    ft_topology_free(t);
    ck_assert_uint_eq(heard.records, heard.pieces);
    ck_assert_uint_eq(heard.links, links);
    ck_assert_uint_eq(heard.groups, groups);
    ck_assert_uint_eq(heard.elephants, elephants);
    ck_assert_uint_eq(heard.pieces,
                      links + groups + elephants ? (links + groups + elephants + 999) / 1000 : 1);
}

/* In steps of one record at most, and as many records as each of them says. */
START_TEST(all_is_said_in_as_many_records_as_it_takes)
{
    static const uint32_t counts[][3] = {
        {0, 0, 0},       {1, 0, 0},       {999, 1, 0}, {1000, 0, 1}, {1000, 0, 1000}, {1001, 0, 0},
        {1100, 64, 836}, {1100, 64, 837}, {0, 0, 999}, {0, 0, 1000}, {0, 0, 5001},    {0, 3, 2997}};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        say_some(counts[i][0], counts[i][1], counts[i][2]);
}
END_TEST

FT_UNIT_MAIN("partial sums", all_is_said_in_as_many_records_as_it_takes,
             a_time_to_come_is_not_taken, counts_that_cannot_be_are_not_taken,
             marks_that_cannot_be_are_not_taken, sums_are_those_of_a_look_at_all)
