// SPDX-License-Identifier: Apache-2.0
/* The list of the last probes. */
#include "config.h"

#include "daemon/probe/probe_list.h"

#include <errno.h>
#include <string.h>

#include "proto/record.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

static struct ft_probe_list *list;
static unsigned count;
static uint16_t least;
static Fabrictrace__ProbeOutcome outcome;

static int put(uint16_t sport, uint64_t time_ms, Fabrictrace__ProbeOutcome what)
{
    const struct ft_tuple tuple = {.src = leafspine_host_ip(0, 0),
                                   .dst = leafspine_host_ip(1, 0),
                                   .sport = sport,
                                   .dport = FT_ROCE_PORT,
                                   .proto = FT_PROTO_UDP};
    Fabrictrace__Probe probe = FABRICTRACE__PROBE__INIT;
    Fabrictrace__Flow flow = FABRICTRACE__FLOW__INIT;

    ft_flow_from_tuple(&flow, &tuple);
    probe.flow = &flow;
    probe.has_time_ms = probe.has_outcome = true;
    probe.time_ms = time_ms;
    probe.outcome = what;
    return ft_probe_list_put(list, &probe);
}

static void each(void *arg, const Fabrictrace__Record *record)
{
    struct ft_tuple tuple;

    (void)arg;
    ck_assert_int_eq(record->kind_case, FABRICTRACE__RECORD__KIND_PROBE);
    ck_assert_int_eq(ft_flow_to_tuple(record->probe->flow, &tuple), 0);
    if (count++ == 0 || tuple.sport < least)
        least = tuple.sport;
    outcome = record->probe->outcome;
}

static void look(int64_t now_ms)
{
    uint32_t index = 0;

    count = 0;
    while (ft_probe_list_next(list, now_ms, &index, each, NULL))
        ;
}

START_TEST(a_flow_has_one_which_may_be_lost)
{
    list = ft_probe_list_new(1);
    ck_assert_ptr_nonnull(list);
    look(0);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(put(5, 1000, FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_ASKED), 0);
    look(1000 + FT_PROBE_LIST_LOST_MS);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(outcome, FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_ASKED);
    look(1001 + FT_PROBE_LIST_LOST_MS);
    ck_assert_int_eq(outcome, FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_LOST);
    ck_assert_int_eq(put(5, 2000, FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_GAPS), 0);
    look(100000);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(outcome, FABRICTRACE__PROBE_OUTCOME__PROBE_OUTCOME_GAPS);
    ft_probe_list_free(list);
}
END_TEST

START_TEST(of_too_many_the_oldest_goes)
{
    list = ft_probe_list_new(1);
    ck_assert_ptr_nonnull(list);
    for (uint16_t i = 0; i < FT_PROBE_LIST_MAX + 10; i++)
        ck_assert_int_eq(put((uint16_t)(1000 + i), 1, 0), 0);
    look(1);
    ck_assert_uint_eq(count, FT_PROBE_LIST_MAX);
    ck_assert_uint_eq(least, 1010);
    /* One that comes again is not the oldest any more. */
    ck_assert_int_eq(put(1010, 2, 0), 0);
    ck_assert_int_eq(put(1, 2, 0), 0);
    look(2);
    ck_assert_uint_eq(count, FT_PROBE_LIST_MAX);
    ck_assert_uint_eq(least, 1);
    ft_probe_list_free(list);
}
END_TEST

START_TEST(without_a_flow_it_is_refused)
{
    const Fabrictrace__Probe probe = FABRICTRACE__PROBE__INIT;

    list = ft_probe_list_new(1);
    ck_assert_ptr_nonnull(list);
    ck_assert_int_eq(ft_probe_list_put(list, &probe), -EINVAL);
    look(0);
    ck_assert_uint_eq(count, 0);
    ft_probe_list_free(list);
}
END_TEST

FT_UNIT_MAIN("probe_list", a_flow_has_one_which_may_be_lost, of_too_many_the_oldest_goes,
             without_a_flow_it_is_refused)
