// SPDX-License-Identifier: Apache-2.0
/* Marks and queues of an egress port: two windows are counted at a time, whatever comes late. */
#include "config.h"

#include "daemon/join/port_marks.h"

#include "tests/unit/join_rig.h"
#include "tests/unit/unit.h"

static void mark(struct ft_port_marks *m, uint32_t window, uint64_t samples, uint64_t ce,
                 int64_t ms)
{
    ft_port_marks_add(m, window, samples, ce, ms);
}

static void check_marks(const struct ft_port_marks *m, uint32_t window, uint64_t samples,
                        uint64_t ce)
{
    ck_assert_uint_eq(m->samples[window & 1], samples);
    ck_assert_uint_eq(m->ce_samples[window & 1], ce);
}

START_TEST(marks_of_two_windows)
{
    struct ft_port_marks m = {.window = 0};

    mark(&m, 7, 10, 1, 1000);
    mark(&m, 7, 5, 2, 900); /* an older one is none the later */
    check_marks(&m, 7, 15, 3);
    ck_assert_int_eq(m.last_ms, 1000);
    /* The window after it begins at nothing, and the one before goes on. */
    mark(&m, 8, 1, 0, 2000);
    mark(&m, 7, 2, 2, 1900);
    check_marks(&m, 8, 1, 0);
    check_marks(&m, 7, 17, 5);
    ck_assert_uint_eq(m.window, 8);
    ck_assert_int_eq(m.last_ms, 2000);
    /* The one after that takes the place of the first. */
    mark(&m, 9, 4, 4, 3000);
    check_marks(&m, 9, 4, 4);
    check_marks(&m, 8, 1, 0);
    /* Nothing came for a while: neither is of a window before. */
    mark(&m, 11, 3, 1, 5000);
    check_marks(&m, 11, 3, 1);
    check_marks(&m, 10, 0, 0);
}
END_TEST

static void measure(struct ft_port_depths *d, uint32_t window, bool has_queue, uint64_t queue,
                    bool has_transit, uint64_t transit)
{
    const struct ft_observed_rest rest = {.has_queue = has_queue,
                                          .queue_max_bytes = queue,
                                          .has_transit = has_transit,
                                          .transit_max_ns = transit};

    ft_port_depths_add(d, window, &rest);
}

/* What members of a group say together is more than one of them takes. */
START_TEST(what_others_say_is_not_cut)
{
    const uint64_t many = (UINT64_C(1) << 33) + 7;
    const struct ft_port_said said = {.samples = many, .ce_samples = many - 1, .last_ms = 5};
    struct join_rig rig;

    join_rig_open(&rig);
    ft_join_said(rig.join, 0, 2, &said);
    check_marks(ft_join_marks(rig.join, 0), 2, many, many - 1);
    join_rig_close(&rig);
}
END_TEST

START_TEST(depths_of_two_windows)
{
    struct ft_port_depths d = {.window = 0};

    measure(&d, 6, true, 5000, false, 99); /* what is not said counts for nothing */
    measure(&d, 6, true, 4000, false, 0);
    ck_assert(d.has_queue[0] && !d.has_transit[0]);
    ck_assert_uint_eq(d.queue_max_bytes[0], 5000);
    ck_assert_uint_eq(d.transit_max_ns[0], 0);
    measure(&d, 7, false, 0, true, 300);
    measure(&d, 6, true, 9000, true, 100);
    ck_assert(!d.has_queue[1] && d.has_transit[1] && d.has_queue[0] && d.has_transit[0]);
    ck_assert_uint_eq(d.transit_max_ns[1], 300);
    ck_assert_uint_eq(d.queue_max_bytes[0], 9000);
    ck_assert_uint_eq(d.transit_max_ns[0], 100);
    measure(&d, 8, true, 0, false, 0); /* an empty queue is one */
    ck_assert(d.has_queue[0] && !d.has_transit[0] && d.has_transit[1]);
    ck_assert_uint_eq(d.queue_max_bytes[0], 0);
    measure(&d, 20, false, 0, false, 0);
    ck_assert(!d.has_queue[0] && !d.has_queue[1] && !d.has_transit[0] && !d.has_transit[1]);
    ck_assert_uint_eq(d.transit_max_ns[1], 0);
}
END_TEST

FT_UNIT_MAIN("port_marks", marks_of_two_windows, what_others_say_is_not_cut, depths_of_two_windows)
