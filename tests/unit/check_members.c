// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/plans/members.h"

#include <stdio.h>

#include "lib/base/digest.h"
#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define JOB    7
#define NOW_MS INT64_C(1700000000000)

static struct ft_members *m;

static void begin(void)
{
    m = ft_members_new(1);
    ck_assert_ptr_nonnull(m);
}

static bool has(uint64_t host, int64_t now_ms)
{
    return ft_members_has(m, JOB, host, now_ms);
}

START_TEST(two_that_agree_are_in_the_job)
{
    begin();
    /* Of this job nothing is known, and one host alone does not change that. */
    ck_assert(!has(1, NOW_MS) && !ft_members_known(m, JOB, NOW_MS));
    ft_members_said(m, JOB, 1, 2, NOW_MS);
    ck_assert(!has(1, NOW_MS) && !has(3, NOW_MS) && !ft_members_known(m, JOB, NOW_MS));
    ft_members_said(m, JOB, 2, 1, NOW_MS + 1000);
    ck_assert(has(1, NOW_MS + 1000) && has(2, NOW_MS + 1000));
    ck_assert(!has(3, NOW_MS + 1000) && !has(0, NOW_MS + 1000));
    ck_assert(ft_members_known(m, JOB, NOW_MS + 1000));
    ck_assert(!ft_members_known(m, JOB + 1, NOW_MS + 1000));
    /* What it says of itself, however often, does not help. */
    for (uint64_t i = 0; i < 1000; i++)
        ft_members_said(m, JOB, 3, 1 + i % 2, NOW_MS + 2000);
    ft_members_said(m, JOB, 3, 3, NOW_MS + 2000);
    ck_assert(!has(3, NOW_MS + 2000));
    ft_members_said(m, JOB, 1, 3, NOW_MS + 3000);
    ck_assert(has(3, NOW_MS + 3000));
    ft_members_free(m);
}
END_TEST

START_TEST(what_was_said_lapses)
{
    begin();
    ft_members_said(m, JOB, 1, 2, NOW_MS);
    ft_members_said(m, JOB, 2, 1, NOW_MS + 60001);
    ck_assert(!ft_members_known(m, JOB, NOW_MS + 60001));
    ft_members_said(m, JOB, 1, 2, NOW_MS + 60002);
    ck_assert(has(2, NOW_MS + 60002) && !has(3, NOW_MS + 60002));
    /* One goes on to say so, the other is not heard of again. */
    for (int64_t t = 0; t < 900000; t += 1000)
        ft_members_said(m, JOB, 1, 2, NOW_MS + 61000 + t);
    ck_assert(has(1, NOW_MS + 960000) && !has(2, NOW_MS + 960000) && !has(3, NOW_MS + 960000));
    ck_assert(!has(1, NOW_MS + 1600000) && !ft_members_known(m, JOB, NOW_MS + 1600000));
    ft_members_free(m);
}
END_TEST

/* One that speaks of everybody has a share; those after it are heard, and so is it a minute on. */
START_TEST(nobody_fills_it)
{
    begin();
    for (uint64_t i = 0; i < 100000; i++)
        ft_members_said(m, JOB + i, 1, 1000 + i, NOW_MS);
    for (uint64_t i = 10; i < 1000; i += 2) {
        ft_members_said(m, JOB, i, i + 1, NOW_MS);
        ft_members_said(m, JOB, i + 1, i, NOW_MS);
        ck_assert(has(i, NOW_MS) && has(i + 1, NOW_MS));
    }
    ft_members_said(m, JOB, 10, 1, NOW_MS + 1000);
    ft_members_said(m, JOB, 1, 10, NOW_MS + 1000);
    ck_assert(has(1, NOW_MS + 1000));
    ck_assert(!has(1000, NOW_MS + 1000));
    ft_members_said(m, JOB, 1, 5000, NOW_MS + 61001);
    ft_members_said(m, JOB, 5000, 1, NOW_MS + 61001);
    ck_assert(has(5000, NOW_MS + 61001));
    ft_members_free(m);
}
END_TEST

START_TEST(flows_say_it_by_their_addresses)
{
    struct ft_topology *t = leafspine(2, 2, 2);
    struct ft_tuple there = {.src = leafspine_host_ip(0, 0), .dst = leafspine_host_ip(1, 1)};
    struct ft_tuple back = {.src = there.dst, .dst = there.src};
    uint64_t job = ft_digest_text("train", 0), other;

    begin();
    other = ft_members_host(t, &(struct ft_ip){.b = {1}}, "nobody");
    ck_assert_uint_eq(other, 0);
    other = ft_members_host(t, &there.src, NULL);
    ck_assert_uint_ne(other, 0);
    ck_assert_uint_eq(
        other, ft_members_host(t, NULL, ft_topology_host(t, ft_topology_nic(t, 0)->host_id)->name));
    /* A small job has one flow a host, which is reported once or twice a minute. */
    ft_members_flow(m, t, "train", &there, NOW_MS);
    ck_assert(!ft_members_has(m, job, other, NOW_MS));
    ft_members_flow(m, t, "train", &back, NOW_MS);
    ck_assert(ft_members_has(m, job, other, NOW_MS));
    ck_assert(!ft_members_has(m, job, ft_members_host(t, &(struct ft_ip){.b = {1}}, NULL), NOW_MS));
    ft_members_free(m);
    ft_topology_free(t);
}
END_TEST

FT_UNIT_MAIN("members", two_that_agree_are_in_the_job, what_was_said_lapses, nobody_fills_it,
             flows_say_it_by_their_addresses)
