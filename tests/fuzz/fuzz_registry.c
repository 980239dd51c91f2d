// SPDX-License-Identifier: Apache-2.0
/* What a schema registry answers: an id that can be one, or a reason that can be printed. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "lib/io/kafka/registry_answer.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const int statuses[] = {200, 409, 0, -1, 999};
    char error[300];
    uint32_t id = 0;
    int rc;

    if (len == 0)
        return 0;
    rc = ft_registry_answer_read(statuses[bytes[0] % 5], bytes + 1, len - 1, &id, error,
                                 sizeof(error));
    if (rc == 0) {
        ft_fuzz_assert(statuses[bytes[0] % 5] == 200, "only who agrees gives an id");
        ft_fuzz_assert(id > 0 && id <= INT32_MAX, "an id is above 0");
        return 0;
    }
    ft_fuzz_assert(rc == -EBADMSG && id == 0, "without an id there is none");
    for (size_t i = 0; i < strlen(error); i++)
        ft_fuzz_assert(isprint((unsigned char)error[i]), "a reason can be printed");
    return 0;
}
