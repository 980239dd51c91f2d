// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pipeline/intake.h"
#include "proto/record.h"
#include "tests/unit/unit.h"

/* What a peer may claim, by the contract itself: each number of each kind of record. */
#define NOW_MS INT64_C(1700000000000)

/* A message of a kind, with one of each message that it may have. */
static ProtobufCMessage *filled(const ProtobufCMessageDescriptor *d)
{
    ProtobufCMessage *m = calloc(1, d->sizeof_message);

    ck_assert_ptr_nonnull(m);
    protobuf_c_message_init(d, m);
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        ProtobufCMessage *inner, **list;
        size_t one = 1;

        if (f->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        inner = filled(f->descriptor);
        if (f->label != PROTOBUF_C_LABEL_REPEATED) {
            memcpy((uint8_t *)m + f->offset, &inner, sizeof(inner));
            continue;
        }
        list = malloc(sizeof(inner));
        ck_assert_ptr_nonnull(list);
        *list = inner;
        memcpy((uint8_t *)m + f->offset, &list, sizeof(list));
        memcpy((uint8_t *)m + f->quantifier_offset, &one, sizeof(one));
    }
    return m;
}

static void set_to(void *at, const void *value, size_t size, const Fabrictrace__Record *record,
                   const char *name)
{
    uint8_t before[sizeof(uint64_t)];

    memcpy(before, at, size);
    memcpy(at, value, size);
    ck_assert_msg(ft_intake_numbers(record, NOW_MS) == FT_INTAKE_WRONG, "%s of %s", name,
                  ft_record_schema(record->kind_case));
    memcpy(at, before, size);
}

/* Sets each number of a message to what it cannot be, one after the other; how many there were. */
static size_t with_each_number(const Fabrictrace__Record *record, ProtobufCMessage *m)
{
    const uint64_t most = UINT64_MAX, too_late = UINT64_C(1) << 42;
    const uint32_t too_long = UINT32_MAX;
    const double none = NAN;
    size_t count = 0;

    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        uint8_t *at = (uint8_t *)m + f->offset;
        bool list = f->label == PROTOBUF_C_LABEL_REPEATED;
        size_t length = strlen(f->name);
        bool time = length > 3 && strcmp(f->name + length - 3, "_ms") == 0;

        if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
            ProtobufCMessage *inner;

            memcpy(&inner, at, sizeof(inner));
            if (list)
                memcpy(&inner, inner, sizeof(inner));
            count += with_each_number(record, inner);
            continue;
        }
        ck_assert_msg(!list || (f->type != PROTOBUF_C_TYPE_UINT64 &&
                                f->type != PROTOBUF_C_TYPE_DOUBLE && !time),
                      "%s of %s is a list that nothing looks at", f->name, m->descriptor->name);
        count += f->type == PROTOBUF_C_TYPE_UINT64 || f->type == PROTOBUF_C_TYPE_DOUBLE || time;
        if (f->type == PROTOBUF_C_TYPE_UINT64)
            set_to(at, &most, sizeof(most), record, f->name);
        if (f->type == PROTOBUF_C_TYPE_UINT64 && time)
            set_to(at, &too_late, sizeof(too_late), record, f->name);
        if (f->type == PROTOBUF_C_TYPE_UINT32 && time)
            set_to(at, &too_long, sizeof(too_long), record, f->name);
        if (f->type == PROTOBUF_C_TYPE_DOUBLE)
            set_to(at, &none, sizeof(none), record, f->name);
    }
    return count;
}

static void free_filled(ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        ProtobufCMessage *inner;
        void *list;

        if (f->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        memcpy(&list, (uint8_t *)m + f->offset, sizeof(list));
        if (f->label == PROTOBUF_C_LABEL_REPEATED)
            memcpy(&inner, list, sizeof(inner));
        else
            inner = list;
        free_filled(inner);
        if (f->label == PROTOBUF_C_LABEL_REPEATED)
            free(list);
    }
    free(m);
}

/* Whatever kind there will be: observations and flows alone have a way of their own, as above. */
START_TEST(no_number_of_any_kind_is_left_out)
{
    const ProtobufCMessageDescriptor *d = &fabrictrace__record__descriptor;
    size_t kinds = 0, numbers = 0;

    for (unsigned i = 0; i < d->n_fields; i++) {
        Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
        const ProtobufCFieldDescriptor *f = &d->fields[i], *time;
        const ProtobufCMessageDescriptor *kind = f->descriptor;
        const uint64_t now_ms = NOW_MS;
        ProtobufCMessage *m;

        if (f->type != PROTOBUF_C_TYPE_MESSAGE || kind == &fabrictrace__observation__descriptor ||
            kind == &fabrictrace__observations__descriptor ||
            kind == &fabrictrace__flow_report__descriptor)
            continue;
        m = filled(kind);
        time = protobuf_c_message_descriptor_get_field_by_name(kind, "time_ms");
        if (time)
            memcpy((uint8_t *)m + time->offset, &now_ms, sizeof(now_ms));
        record.kind_case = (Fabrictrace__Record__KindCase)f->id;
        memcpy((uint8_t *)&record + f->offset, &m, sizeof(m));
        ck_assert_msg(ft_intake_numbers(&record, NOW_MS) == FT_INTAKE_FITS, "%s", f->name);
        numbers += with_each_number(&record, m);
        free_filled(m);
        kinds++;
    }
    ck_assert_uint_gt(kinds, 15);
    ck_assert_uint_gt(numbers, 100);
}
END_TEST

FT_UNIT_MAIN("numbers of the intake", no_number_of_any_kind_is_left_out)
