// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_FUZZ_H
#define FT_TESTS_FUZZ_H
/* What every libFuzzer target needs: its entry point, and claims that hold for any input. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* The fuzzer takes an abort for a crash and keeps the input. */
static inline void ft_fuzz_assert(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}

#endif
