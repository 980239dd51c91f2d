// SPDX-License-Identifier: Apache-2.0
#ifndef FT_PROTO_JSON_FIELD_H
#define FT_PROTO_JSON_FIELD_H
/* What the JSON writer and reader both know of protobuf-c's memory layout. Private to them. */
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

/* Size of one element of a repeated field. */
static inline size_t ft_json_element_bytes(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_DOUBLE:
        return sizeof(double);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return sizeof(uint32_t);
    }
}

#endif
