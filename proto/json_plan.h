// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_JSON_PLAN_H
#define FT_PROTO_JSON_PLAN_H
/*
 * How messages of a type are written as JSON, prepared from its descriptor: texts, lengths and
 * kinds of values, so that a record is a walk over a short array. A plan is made when a type is
 * first written and never freed; only those of the messages in it are looked up later. Private to
 * the writer.
 *
 * Thread: any; a plan that two threads make at once is kept once.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

/* When a field is there. */
enum ft_json_when {
    FT_JSON_IF_SAID,    /* its has_ member says so */
    FT_JSON_IF_POINTER, /* it is not NULL */
    FT_JSON_IF_ANY,     /* its count is not 0 */
    FT_JSON_IF_CHOSEN,  /* the case of its oneof has its number */
    FT_JSON_ALWAYS,
};

/* How a field is written: those that nearly all are, and the rest. */
enum ft_json_how {
    FT_JSON_SAID_U64, /* a number, of which its has_ member says that it is there */
    FT_JSON_SAID_U32,
    FT_JSON_SAID_DOUBLE,
    FT_JSON_SAID_WORD,
    FT_JSON_SAID_OTHER,
    FT_JSON_TEXT,    /* there where it is not NULL */
    FT_JSON_MESSAGE, /* likewise */
    FT_JSON_SELDOM,
};

/* Texts are copied completely, which is cheaper than by their lengths: they may be no longer. */
#define FT_JSON_NAME_MAX 48
#define FT_JSON_WORD_MAX 48

/* A member's value of fixed length: 20 digits and a sign, a double, an address of IPv4 in quotes.
 */
#define FT_JSON_VALUE_MAX 48
/* A text up to this length is written in one go. */
#define FT_JSON_SHORT_BYTES 46

/* A value of an enum: `"data"` for ROLE_DATA. */
struct ft_json_word {
    int32_t value;
    uint32_t len;
    char text[FT_JSON_WORD_MAX];
};

struct ft_json_words {
    size_t count;
    struct ft_json_word words[];
};

struct ft_json_plan;

struct ft_json_member {
    char name[FT_JSON_NAME_MAX + 1]; /* `,"name":` */
    uint8_t name_len;
    uint8_t when; /* enum ft_json_when */
    uint8_t type; /* ProtobufCType */
    uint8_t how;  /* enum ft_json_how */
    uint32_t quantifier_offset, offset;
    const ProtobufCFieldDescriptor *field;
    const struct ft_json_words *words;      /* of an enum */
    _Atomic(struct ft_json_plan *) message; /* of a message; NULL: not looked for yet */
};

struct ft_json_plan {
    const ProtobufCMessageDescriptor *descriptor;
    size_t room; /* for all members, of which texts are short and messages take nothing */
    size_t count;
    struct ft_json_member members[];
};

/* NULL without memory. */
struct ft_json_plan *ft_json_plan_of(const ProtobufCMessageDescriptor *descriptor);

/* The part of an enum value's name that JSON shows, in capitals. */
const char *ft_json_enum_tail(const ProtobufCEnumDescriptor *type, const ProtobufCEnumValue *value);

#endif
