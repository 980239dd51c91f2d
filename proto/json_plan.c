// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "proto/json_plan.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Plans by descriptor, open addressing: more than twice the messages of fabrictrace.proto. */
#define SLOTS 512

static _Atomic(struct ft_json_plan *) plans[SLOTS];

/* Length of the prefix that all values of an enum carry: "SAMPLING_POINT_" of SamplingPoint. */
static size_t enum_prefix(const ProtobufCEnumDescriptor *type)
{
    size_t n = 1;

    for (const char *p = type->short_name; *p; p++)
        n += isupper((unsigned char)*p) && p > type->short_name ? 2 : 1;
    return n;
}

const char *ft_json_enum_tail(const ProtobufCEnumDescriptor *type, const ProtobufCEnumValue *value)
{
    size_t prefix = enum_prefix(type);

    return strlen(value->name) > prefix ? value->name + prefix : value->name;
}

/* The words of an enum as JSON has them. */
static struct ft_json_words *plan_words(const ProtobufCEnumDescriptor *type)
{
    size_t count = type->n_values;
    struct ft_json_words *words = malloc(sizeof(*words) + count * sizeof(words->words[0]));

    if (!words)
        return NULL;
    words->count = count;
    for (size_t i = 0; i < count; i++) {
        const char *tail = ft_json_enum_tail(type, &type->values[i]);
        struct ft_json_word *word = &words->words[i];
        uint32_t n = 0;

        *word = (struct ft_json_word){.value = type->values[i].value};
        assert(strlen(tail) + 2 <= FT_JSON_WORD_MAX);
        word->text[n++] = '"';
        for (; *tail; tail++)
            word->text[n++] = (char)tolower((unsigned char)*tail);
        word->text[n++] = '"';
        word->len = n;
    }
    return words;
}

static enum ft_json_when when_of(const ProtobufCFieldDescriptor *f)
{
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        return FT_JSON_IF_ANY;
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return FT_JSON_IF_CHOSEN;
    if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE)
        return FT_JSON_IF_POINTER;
    return f->label == PROTOBUF_C_LABEL_OPTIONAL ? FT_JSON_IF_SAID : FT_JSON_ALWAYS;
}

static enum ft_json_how how_of(const struct ft_json_member *m)
{
    if (m->when == FT_JSON_IF_POINTER)
        return m->type == PROTOBUF_C_TYPE_STRING ? FT_JSON_TEXT : FT_JSON_MESSAGE;
    if (m->when != FT_JSON_IF_SAID)
        return FT_JSON_SELDOM;
    switch (m->type) {
    case PROTOBUF_C_TYPE_UINT64:
        return FT_JSON_SAID_U64;
    case PROTOBUF_C_TYPE_UINT32:
        return FT_JSON_SAID_U32;
    case PROTOBUF_C_TYPE_DOUBLE:
        return FT_JSON_SAID_DOUBLE;
    case PROTOBUF_C_TYPE_ENUM:
        return FT_JSON_SAID_WORD;
    default:
        return FT_JSON_SAID_OTHER;
    }
}

static void plan_free(struct ft_json_plan *plan)
{
    for (size_t i = 0; plan && i < plan->count; i++)
        free((void *)(uintptr_t)plan->members[i].words);
    free(plan);
}

static struct ft_json_plan *plan_new(const ProtobufCMessageDescriptor *descriptor)
{
    size_t count = descriptor->n_fields;
    struct ft_json_plan *plan = calloc(1, sizeof(*plan) + count * sizeof(plan->members[0]));

    if (!plan)
        return NULL;
    plan->descriptor = descriptor;
    plan->count = count;
    /* The first member's name is copied completely, whatever its length; and the two braces. */
    plan->room = FT_JSON_NAME_MAX + 2;
    for (size_t i = 0; i < count; i++) {
        const ProtobufCFieldDescriptor *f = &descriptor->fields[i];
        struct ft_json_member *m = &plan->members[i];
        int n = snprintf(m->name, sizeof(m->name), ",\"%s\":", f->name);

        assert(n > 0 && n <= FT_JSON_NAME_MAX);
        m->name_len = (uint8_t)n;
        m->when = (uint8_t)when_of(f);
        m->type = (uint8_t)f->type;
        m->quantifier_offset = f->quantifier_offset;
        m->offset = f->offset;
        m->field = f;
        m->how = (uint8_t)how_of(m);
        plan->room += m->name_len + FT_JSON_VALUE_MAX;
        if (f->type != PROTOBUF_C_TYPE_ENUM)
            continue;
        m->words = plan_words(f->descriptor);
        if (!m->words) {
            plan_free(plan);
            return NULL;
        }
    }
    return plan;
}

struct ft_json_plan *ft_json_plan_of(const ProtobufCMessageDescriptor *descriptor)
{
    size_t at = (uintptr_t)descriptor / sizeof(void *) * 0x9e3779b1u / SLOTS % SLOTS;
    struct ft_json_plan *made = NULL;

    for (size_t tried = 0; tried < SLOTS;) {
        struct ft_json_plan *plan = atomic_load_explicit(&plans[at], memory_order_acquire);

        if (!plan) {
            if (!made)
                made = plan_new(descriptor);
            if (!made || atomic_compare_exchange_strong(&plans[at], &plan, made))
                return made;
            /* Another thread took the slot, maybe for this type. */
        }
        if (plan->descriptor == descriptor) {
            plan_free(made);
            return plan;
        }
        at = (at + 1) % SLOTS;
        tried++;
    }
    plan_free(made);
    return NULL;
}
