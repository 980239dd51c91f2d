// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/loss.h"
#include "proto/record.h"
#include "tests/unit/balanced.h"
#include "tests/unit/unit.h"

START_TEST(lists_the_drops_that_happened)
{
    struct ft_account account = {0};
    struct ft_account_stage *stage = ft_account_stage(&account, "packets", "packets");
    struct ft_loss_record out;
    struct ft_writer w;

    stage->received = 10;
    stage->processed = 6;
    stage->pending = 1;
    ft_account_drop(stage, "kernel", 0);
    ft_account_drop(stage, "table_full", 3);
    ck_assert(ft_account_balanced(stage));
    stage->received = 11;
    ck_assert(!ft_account_balanced(stage));
    ft_loss_record_fill(&out, &account, "fabrictrace-agent", "gpu01", 5);
    ft_writer_init(&w, 4096);
    ck_assert_int_eq(ft_record_to_json(&out.record, &w), 0);
    ft_write_u8(&w, 0);
    ck_assert_str_eq((const char *)w.bytes,
                     "{\"schema\":\"fabrictrace.loss.v1\",\"time_ms\":5,\"source\":\"gpu01\","
                     "\"program\":\"fabrictrace-agent\",\"stages\":[{\"name\":\"packets\","
                     "\"unit\":\"packets\",\"received\":11,\"processed\":6,\"pending\":1,"
                     "\"drops\":[{\"reason\":\"table_full\",\"count\":3}]}]}");
    ft_writer_free(&w);
}
END_TEST

FT_UNIT_MAIN("loss", lists_the_drops_that_happened)
