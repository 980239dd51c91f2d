// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_KAFKA_REGISTRY_ANSWER_H
#define FT_IO_KAFKA_REGISTRY_ANSWER_H
/*
 * What a schema registry answers to a schema (Confluent's API: {"id":7}, or {"error_code":409,
 * "message":"..."}). The bytes are untrusted. Pure.
 */
#include <stddef.h>
#include <stdint.h>

/* 0 with an id above 0; -EBADMSG with a reason in error, printable, which says the status and what
 * the registry says of it. */
int ft_registry_answer_read(int status, const void *body, size_t len, uint32_t *id, char *error,
                            size_t error_bytes);

#endif
