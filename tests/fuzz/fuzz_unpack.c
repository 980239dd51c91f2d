// SPDX-License-Identifier: Apache-2.0
/* Files, packed or not: reading ends, and what is no packed file comes out as it is. */
#include "config.h"

#include "lib/io/disk/unpack.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define OUT_MAX (1u << 20) /* a small file may unpack to much */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static uint8_t out[OUT_MAX];
    bool packed = len >= 2 && ((bytes[0] == 0x1f && bytes[1] == 0x8b) ||
                               (len >= 4 && memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0));
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    struct ft_unpack *u;
    FILE *stream;
    size_t n;

    if (fd < 0 || write(fd, bytes, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) != 0)
        return 0;
    u = ft_unpack_new(fd, &stream);
    if (u) {
        n = fread(out, 1, sizeof(out), stream);
        ft_fuzz_assert(packed || len > sizeof(out) || (n == len && memcmp(out, bytes, n) == 0),
                       "what is not packed comes as it is");
        ft_fuzz_assert(!ft_unpack_empty(u) || len == 0, "only an empty file is empty");
        fclose(stream);
        ft_unpack_free(u);
    }
    close(fd);
    return 0;
}
