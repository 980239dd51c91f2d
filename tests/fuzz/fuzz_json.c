// SPDX-License-Identifier: Apache-2.0
/* Lines of NDJSON: what is read must be written as a text that reads as the same. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "proto/record.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    Fabrictrace__Record *record, *again;
    struct ft_writer first, second;
    char error[200], key[FT_RECORD_KEY_BYTES];
    int rc;

    rc = ft_record_from_json((const char *)bytes, len, &record, error, sizeof(error));
    if (rc) {
        ft_fuzz_assert(rc == -EINVAL && error[0], "an error has a reason");
        return 0;
    }
    ft_writer_init(&first, 16u << 20);
    ft_writer_init(&second, 16u << 20);
    ft_record_key(record, key);
    ft_fuzz_assert(ft_record_to_json(record, &first) == 0, "a record can be written");
    rc = ft_record_from_json((char *)first.bytes, first.len, &again, error, sizeof(error));
    ft_fuzz_assert(rc == 0, "what was written can be read");
    ft_fuzz_assert(ft_record_to_json(again, &second) == 0, "and written again");
    ft_fuzz_assert(first.len == second.len && memcmp(first.bytes, second.bytes, first.len) == 0,
                   "the same");
    ft_record_free(record);
    ft_record_free(again);
    ft_writer_free(&first);
    ft_writer_free(&second);
    return 0;
}
