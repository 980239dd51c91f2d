// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/record.h"
#include "tests/unit/unit.h"

#define PATH "fabrictrace.path.v1"

static const char expected[] =
    "{\"schema\":\"fabrictrace.path.v1\",\"fabric\":\"lab\",\"hops\":[{\"switch\":\"leaf1\"}]}";
static struct ft_writer json;
static uint8_t packed[200];
static size_t packed_len;

static void begin(void)
{
    Fabrictrace__Path path = FABRICTRACE__PATH__INIT;
    Fabrictrace__Hop hop = FABRICTRACE__HOP__INIT, *hops[] = {&hop};

    ft_writer_init(&json, 10000);
    path.fabric = "lab";
    hop.switch_ = "leaf1";
    path.hops = hops;
    path.n_hops = 1;
    ck_assert_uint_lt(fabrictrace__path__get_packed_size(&path), sizeof(packed));
    packed_len = fabrictrace__path__pack(&path, packed);
}

static void end(void)
{
    ft_writer_free(&json);
}

static int convert(const char *schema, const void *bytes, size_t len)
{
    char error[FT_MESSAGE_ERROR_BYTES] = "";
    uint8_t *copy = malloc(len ? len : 1); /* of its very size, for tools that look at bounds */
    int rc;

    memcpy(copy, bytes, len);
    ft_writer_reset(&json);
    rc = ft_message_to_json(schema, copy, len, &json, error);
    if (rc == -EBADMSG)
        ck_assert_str_ne(error, "");
    free(copy);
    return rc;
}

static void gives(const char *schema, const void *bytes, size_t len)
{
    ck_assert_int_eq(convert(schema, bytes, len), 0);
    ck_assert_uint_eq(json.len, strlen(expected));
    ck_assert_mem_eq(json.bytes, expected, json.len);
}

START_TEST(topics_by_their_end)
{
    ck_assert_str_eq(ft_message_schema(PATH), PATH);
    ck_assert_str_eq(ft_message_schema("dc1." PATH), PATH);
    ck_assert_ptr_null(ft_message_schema("fabrictrace.path.v2"));
    ck_assert_ptr_null(ft_message_schema(PATH "x"));
    ck_assert_ptr_null(ft_message_schema(""));
}
END_TEST

START_TEST(four_forms_of_one_record)
{
    uint8_t bytes[300] = {0, 0, 0, 0, 7};

    begin();
    gives(PATH, packed, packed_len);
    gives(PATH, expected, strlen(expected));
    gives(NULL, expected, strlen(expected));
    memcpy(bytes + 5, expected, strlen(expected));
    gives(NULL, bytes, 5 + strlen(expected));
    bytes[5] = 0; /* the first message of the file */
    memcpy(bytes + 6, packed, packed_len);
    gives(PATH, bytes, 6 + packed_len);
    bytes[5] = 4; /* two steps: message 70, and message 1 in that */
    bytes[6] = 0x8c;
    bytes[7] = 0x01;
    bytes[8] = 2;
    memcpy(bytes + 9, packed, packed_len);
    gives(PATH, bytes, 9 + packed_len);
    end();
}
END_TEST

START_TEST(no_records)
{
    static const uint8_t wrong[] = {0x1a, 0xff, 0xff, 0xff};
    uint8_t deep[40] = {0, 0, 0, 0, 7, 0x7e};

    begin();
    ck_assert_int_eq(convert(PATH, "", 0), -EBADMSG);
    ck_assert_int_eq(convert(PATH, wrong, sizeof(wrong)), -EBADMSG);
    ck_assert_int_eq(convert(NULL, packed, packed_len), -EBADMSG);
    ck_assert_int_eq(convert("fabrictrace.none.v1", packed, packed_len), -EBADMSG);
    ck_assert_int_eq(convert(PATH, deep, sizeof(deep)), -EBADMSG);
    end();
}
END_TEST

START_TEST(cut_at_every_byte)
{
    uint8_t bytes[300] = {0, 0, 0, 0, 7, 2, 0x46};

    begin();
    memcpy(bytes + 7, packed, packed_len);
    for (size_t len = 0; len < packed_len; len++)
        if (convert(PATH, packed, len) == 0)
            ck_assert_uint_lt(json.len, strlen(expected));
    for (size_t len = 0; len <= 7; len++)
        ck_assert_int_eq(convert(PATH, bytes, len), -EBADMSG);
    gives(PATH, bytes, 7 + packed_len);
    end();
}
END_TEST

START_TEST(too_much)
{
    /* 12,000 hops of no byte each stand for more memory than 24,000 bytes should. */
    size_t len = 24000;
    uint8_t *bytes = malloc(len);

    begin();
    for (size_t i = 0; i < len; i += 2) {
        bytes[i] = 8 << 3 | 2;
        bytes[i + 1] = 0;
    }
    ck_assert_int_ne(convert(PATH, bytes, len), 0);
    free(bytes);
    ft_writer_free(&json);
    ft_writer_init(&json, 10);
    ck_assert_int_eq(convert(NULL, expected, strlen(expected)), -ENOSPC);
    end();
}
END_TEST

FT_UNIT_MAIN("message", topics_by_their_end, four_forms_of_one_record, no_records,
             cut_at_every_byte, too_much)
