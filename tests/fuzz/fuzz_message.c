// SPDX-License-Identifier: Apache-2.0
/* Values of Kafka messages: what protobuf says becomes JSON that reads as a record, or is refused
 * with a reason. The first byte chooses the topic. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "proto/message.h"
#include "proto/record.h"
#include "tests/fuzz/fuzz.h"

/* Of a registry's prefix: a byte, an id, the number of steps and 16 steps as varints. */
#define PREFIX_MAX (1 + 4 + 17 * 10)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char error[FT_MESSAGE_ERROR_BYTES] = "", reason[200];
    size_t kind = len ? bytes[0] % (ft_record_kinds() + 1) : 0;
    const char *schema = kind < ft_record_kinds() ? ft_record_schema(ft_record_kind(kind)) : NULL;
    Fabrictrace__Record *record;
    struct ft_writer json;
    int rc;

    if (len == 0)
        return 0;
    ft_writer_init(&json, 64u << 20);
    rc = ft_message_to_json(schema, bytes + 1, len - 1, &json, error);
    if (rc)
        ft_fuzz_assert(rc == -ENOSPC || (rc == -EBADMSG && error[0]), "an error has a reason");
    else if (memchr(bytes + 1, '{', len - 1 < PREFIX_MAX + 1 ? len - 1 : PREFIX_MAX + 1) == NULL) {
        ft_fuzz_assert(schema != NULL, "protobuf has a schema");
        rc = ft_record_from_json((char *)json.bytes, json.len, &record, reason, sizeof(reason));
        if (rc == 0)
            ft_record_free(record);
    }
    ft_writer_free(&json);
    return 0;
}
