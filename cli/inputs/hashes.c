// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/inputs/hashes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/fetch/fetch.h"
#include "proto/json.h"

#define ERROR_BYTES  256
#define TARGET_BYTES 640

static const ProtobufCMessageDescriptor *pick_hash(const char *name)
{
    return strcmp(name, "fabrictrace.hash.v1") == 0 ? &fabrictrace__hash__descriptor : NULL;
}

static int add_set(struct ft_hashes_list *list, const char *text, char *error, size_t bytes)
{
    ProtobufCMessage *message;
    int rc = ft_json_read(text, strlen(text), FT_JSON_BY_NEWER, "schema", pick_hash, &message,
                          error, bytes);

    if (rc)
        return rc;
    rc = ft_hashes_add_take(list, (Fabrictrace__Hash *)message);
    if (rc)
        snprintf(error, bytes, "a learnt hash function cannot be read");
    return rc;
}

static int add_sets(struct ft_hashes_list *list, const struct ft_value *records,
                    const char *command)
{
    for (size_t i = 0; i < ft_value_count(records); i++) {
        char *text = ft_value_dump(ft_value_at(records, i)), error[ERROR_BYTES];
        int rc = text ? add_set(list, text, error, sizeof(error)) : -ENOMEM;

        free(text);
        if (rc == -EINVAL)
            fprintf(stderr, "fabrictrace %s: a hash of the daemon: %s\n", command, error);
        if (rc)
            return rc == -EINVAL ? EX_PROTOCOL : EX_OSERR;
    }
    return 0;
}

int ft_hashes_load(const struct ft_args *args, const char *command, struct ft_hashes_list *list)
{
    char target[TARGET_BYTES], next[TARGET_BYTES / 2] = "";
    int rc;

    memset(list, 0, sizeof(*list));
    do {
        struct ft_answer *answer = NULL;
        const char *cursor;

        snprintf(target, sizeof(target), "/api/v1/hashes?function=true&limit=1000%s%s",
                 *next ? "&cursor=" : "", next);
        rc = ft_fetch_target(args, target, &answer, stderr);
        if (rc)
            break;
        cursor = ft_value_str(ft_answer_root(answer), "next");
        snprintf(next, sizeof(next), "%s", cursor ? cursor : "");
        rc = add_sets(list, ft_value_get(ft_answer_root(answer), "records"), command);
        ft_answer_free(answer);
    } while (rc == 0 && *next);
    if (rc)
        ft_hashes_list_free(list);
    return rc;
}
