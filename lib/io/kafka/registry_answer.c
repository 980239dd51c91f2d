// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka/registry_answer.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define SAID_BYTES 200

/* What others wrote goes into logs: without control characters, and cut. */
static void copy_printable(char said[SAID_BYTES], const char *text)
{
    size_t i = 0;

    for (; text && text[i] && i < SAID_BYTES - 1; i++)
        said[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
    said[i] = '\0';
}

int ft_registry_answer_read(int status, const void *body, size_t len, uint32_t *id, char *error,
                            size_t error_bytes)
{
    json_t *root = json_loadb(body ? body : "", body ? len : 0, JSON_REJECT_DUPLICATES, NULL);
    const json_t *number = json_object_get(root, "id");
    json_int_t value = json_is_integer(number) ? json_integer_value(number) : 0;
    char said[SAID_BYTES];
    int rc = 0;

    if (status / 100 != 2) {
        copy_printable(said, json_string_value(json_object_get(root, "message")));
        snprintf(error, error_bytes, "status %d%s%s", status, *said ? ": " : "", said);
        rc = -EBADMSG;
    } else if (value < 1 || value > INT32_MAX) {
        snprintf(error, error_bytes, "status %d, but no id of a schema: is it a schema registry?",
                 status);
        rc = -EBADMSG;
    }
    json_decref(root);
    if (rc == 0)
        *id = (uint32_t)value;
    return rc;
}
