// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/withdrawal.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

/* As proto/withdrawal.h has the layout: "ftwith" and version, user 1000, a time, "train-7". */
static const uint8_t known[FT_WITHDRAWAL_BYTES] = {
    0x66, 0x74, 0x77, 0x69, 0x74, 0x68, 0,   1,   0,   0,   0x03, 0xe8, 0,   0,
    0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 't', 'r', 'a', 'i', 'n',  '-',  '7',
};

START_TEST(is_written_and_read_by_its_layout)
{
    struct ft_withdrawal w;
    struct ft_writer out;

    ck_assert_int_eq(ft_withdrawal_decode(known, sizeof(known), &w), 0);
    ck_assert_uint_eq(w.uid, 1000);
    ck_assert_uint_eq(w.plan_time_ms, 1700000000000);
    ck_assert_str_eq(w.job, "train-7");
    ft_writer_init(&out, FT_WITHDRAWAL_BYTES);
    ft_withdrawal_write(&out, &w);
    ck_assert(ft_writer_ok(&out));
    ck_assert_mem_eq(out.bytes, known, sizeof(known));
    ft_writer_free(&out);
}
END_TEST

START_TEST(what_is_none_changes_nothing)
{
    uint8_t bytes[FT_WITHDRAWAL_BYTES + 1] = {0};
    struct ft_withdrawal w = {.uid = 7};

    for (size_t len = 0; len < sizeof(known); len++)
        ck_assert_int_eq(ft_withdrawal_decode(known, len, &w), -EBADMSG);
    memcpy(bytes, known, sizeof(known));
    ck_assert_int_eq(ft_withdrawal_decode(bytes, sizeof(bytes), &w), -EBADMSG);
    /* Another version; a name that no file can have; none; one without end; something behind it. */
    for (size_t i = 0; i < 5; i++) {
        memcpy(bytes, known, sizeof(known));
        if (i == 0)
            bytes[7] = 2;
        else if (i == 1)
            bytes[20] = '/';
        else if (i == 2)
            memset(bytes + 20, 0, FT_PLAN_JOB_BYTES);
        else if (i == 3)
            memset(bytes + 20, 'x', FT_PLAN_JOB_BYTES);
        else
            bytes[20 + 10] = 'x';
        ck_assert_int_eq(ft_withdrawal_decode(bytes, sizeof(known), &w), -EBADMSG);
    }
    ck_assert_uint_eq(w.uid, 7);
}
END_TEST

FT_UNIT_MAIN("withdrawal", is_written_and_read_by_its_layout, what_is_none_changes_nothing)
