// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/bounds.h"

#include "proto/fabrictrace.pb-c.h"
#include "tests/unit/unit.h"

START_TEST(texts_and_lists_at_any_depth)
{
    Fabrictrace__Loss loss = FABRICTRACE__LOSS__INIT;
    Fabrictrace__Stage stage = FABRICTRACE__STAGE__INIT, *stages[] = {&stage, &stage};
    Fabrictrace__Drop drop = FABRICTRACE__DROP__INIT, *drops[] = {&drop, &drop, &drop};

    ck_assert(ft_message_within(&loss.base, 0, 0));
    loss.source = "abcd";
    ck_assert(ft_message_within(&loss.base, 4, 0));
    ck_assert(!ft_message_within(&loss.base, 3, 0));
    loss.stages = stages;
    loss.n_stages = 2;
    ck_assert(ft_message_within(&loss.base, 4, 2));
    ck_assert(!ft_message_within(&loss.base, 4, 1));
    stage.drops = drops;
    stage.n_drops = 3;
    ck_assert(!ft_message_within(&loss.base, 4, 2));
    ck_assert(ft_message_within(&loss.base, 4, 3));
    drop.reason = "abcde";
    ck_assert(!ft_message_within(&loss.base, 4, 3));
    ck_assert(ft_message_within(&loss.base, 5, 3));
}
END_TEST

START_TEST(bytes_and_the_one_that_is_set)
{
    Fabrictrace__SwitchReport report = FABRICTRACE__SWITCH_REPORT__INIT;
    uint8_t bytes[16] = {0};
    ProtobufCBinaryData list[] = {{4, bytes}, {16, bytes}};
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;

    report.addresses = list;
    report.n_addresses = 2;
    ck_assert(ft_message_within(&report.base, 16, 2));
    ck_assert(!ft_message_within(&report.base, 15, 2));
    record.kind_case = FABRICTRACE__RECORD__KIND_SWITCH_REPORT;
    record.switch_report = &report;
    ck_assert(ft_message_within(&record.base, 16, 2));
    ck_assert(!ft_message_within(&record.base, 16, 1));
}
END_TEST

START_TEST(fields_of_later_versions)
{
    Fabrictrace__Loss loss = FABRICTRACE__LOSS__INIT;
    uint8_t bytes[8] = {0};
    ProtobufCMessageUnknownField fields[] = {
        {.tag = 99, .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, .len = 8, .data = bytes},
        {.tag = 99, .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, .len = 8, .data = bytes}};

    loss.base.unknown_fields = fields;
    loss.base.n_unknown_fields = 2;
    ck_assert(ft_message_within(&loss.base, 1, 2));
    ck_assert(!ft_message_within(&loss.base, 0, 2));
    ck_assert(!ft_message_within(&loss.base, 1, 1));
}
END_TEST

/* A message that a later version adds is longer than a text, and no reason to refuse the record. */
START_TEST(messages_of_later_versions)
{
    enum { LEN = 255 };
    Fabrictrace__Loss loss = FABRICTRACE__LOSS__INIT;
    uint8_t bytes[16 * LEN + 1] = {0};
    ProtobufCMessageUnknownField field = {.tag = 99,
                                          .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                          .len = 16 * LEN,
                                          .data = bytes};

    loss.base.unknown_fields = &field;
    loss.base.n_unknown_fields = 1;
    ck_assert(ft_message_within(&loss.base, LEN, 1));
    field.len++;
    ck_assert(!ft_message_within(&loss.base, LEN, 1));
}
END_TEST

FT_UNIT_MAIN("bounds", texts_and_lists_at_any_depth, bytes_and_the_one_that_is_set,
             fields_of_later_versions, messages_of_later_versions)
