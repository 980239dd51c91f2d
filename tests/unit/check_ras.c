// SPDX-License-Identifier: Apache-2.0
/* What NCCL's RAS answers, in its JSON format. */
#include "config.h"

#include "lib/diagnosis/ras.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/ras_answer.h"
#include "tests/unit/unit.h"

static struct ft_ras ras;
static char error[FT_RAS_ERROR_BYTES];

static int take(const char *text, size_t len, uint32_t nodes_max)
{
    char *copy = malloc(len + 1);
    int rc;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, len);
    copy[len] = '\0';
    rc = ft_ras_read(&ras, copy, len, nodes_max, NULL, error);
    free(copy);
    return rc;
}

static int take_text(const char *text)
{
    return take(text, strlen(text), 0);
}

static uint64_t launched(const struct ft_ras_rank *rank, const char *function)
{
    for (size_t f = 0; f < ras.function_count; f++)
        if (strcmp(ras.functions[f], function) == 0)
            return rank->launched[f];
    ck_abort_msg("no %s", function);
    return 0;
}

START_TEST(an_answer_is_read)
{
    ck_assert_int_eq(take_text(RAS_FOUR), 0);
    ck_assert_str_eq(ras.version, "2.28.9");
    ck_assert_uint_eq(ras.timeouts, 1);
    ck_assert_uint_eq(ras.left_out, 0);
    ck_assert_uint_eq(ras.comm_count, 1);
    ck_assert_uint_eq(ras.comms[0].hash, 0xfab);
    ck_assert_uint_eq(ras.comms[0].ranks, 4);
    ck_assert_uint_eq(ras.comms[0].count, 4);
    ck_assert_uint_eq(ras.function_count, 5);
    ck_assert_uint_eq(launched(&ras.ranks[0], "AllReduce"), 12);
    ck_assert_uint_eq(launched(&ras.ranks[2], "AllReduce"), 11);
    ck_assert_uint_eq(launched(&ras.ranks[2], "Broadcast"), 1);
    ck_assert_str_eq(ras.ranks[1].address, "192.0.2.2");
    ck_assert_uint_eq(ras.ranks[1].pid, 42);
    ck_assert_int_eq(ras.ranks[1].async_error, 6);
    ck_assert(ras.ranks[3].missing && ras.ranks[3].unresponsive && !ras.ranks[3].dead);
    ft_ras_free(&ras);
}
END_TEST

START_TEST(one_that_is_cut_is_none)
{
    for (size_t len = 0; len + 2 < strlen(RAS_FOUR); len++)
        ck_assert_msg(take(RAS_FOUR, len, 0) == -EINVAL, "%zu bytes", len);
    ck_assert_str_eq(error, "it is no JSON");
    ck_assert_int_eq(take_text("{}"), -EINVAL);
    ck_assert_int_eq(take_text("{\"communicators\": {}}"), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error, "communicators"));
    /* Of a job without communicators. */
    ck_assert_int_eq(take_text(RAS_ANSWER("")), 0);
    ck_assert_uint_eq(ras.comm_count, 0);
    ft_ras_free(&ras);
}
END_TEST

START_TEST(more_nodes_than_are_allowed_are_refused)
{
    ck_assert_int_eq(take(RAS_FOUR, strlen(RAS_FOUR), 50), -E2BIG);
    ck_assert_int_eq(take(RAS_FOUR, strlen(RAS_FOUR), 500), 0);
    ft_ras_free(&ras);
}
END_TEST

/* What a process says of itself twice is not believed, nor a rank that the communicator has not. */
START_TEST(what_makes_no_sense_is_left_out_and_counted)
{
    static const char *const comms[] = {
        RAS_COMM("0x1", RAS_THREE, RAS_MISSING("2", "true", "false")),
        RAS_COMM("12", RAS_THREE, ""),
        RAS_COMM("0x", RAS_THREE, ""),
        RAS_COMM("0x12345678901234567", RAS_THREE, ""),
        RAS_COMM("0x1g", RAS_THREE, ""),
    };
    char text[8192];

    for (size_t i = 0; i < sizeof(comms) / sizeof(comms[0]); i++) {
        snprintf(text, sizeof(text), RAS_ANSWER("%s"), comms[i]);
        ck_assert_int_eq(take_text(text), 0);
        ck_assert_msg(ras.comm_count == 0 && ras.rank_count == 0 && ras.left_out == 1, "%zu", i);
        ft_ras_free(&ras);
    }
    snprintf(text, sizeof(text), RAS_ANSWER("%s"),
             RAS_COMM("0x1", RAS_RANK("4", "192.0.2.1", "1", "0", "1"), ""));
    ck_assert_int_eq(take_text(text), 0);
    ck_assert_uint_eq(ras.comm_count, 1);
    ck_assert_uint_eq(ras.rank_count, 0);
    ck_assert_uint_eq(ras.left_out, 1);
    ft_ras_free(&ras);
    snprintf(text, sizeof(text), RAS_ANSWER("%s"),
             RAS_COMM("0x1", RAS_RANK("1", "unknown", "-1", "0", "-5"), ""));
    ck_assert_int_eq(take_text(text), 0);
    ck_assert_uint_eq(ras.left_out, 1);
    ck_assert_uint_eq(ras.ranks[0].pid, 0);
    ck_assert_str_eq(ras.ranks[0].address, "");
    ft_ras_free(&ras);
}
END_TEST

FT_UNIT_MAIN("ras", an_answer_is_read, one_that_is_cut_is_none,
             more_nodes_than_are_allowed_are_refused, what_makes_no_sense_is_left_out_and_counted)
