// SPDX-License-Identifier: Apache-2.0
/* A dump of PyTorch's Flight Recorder, as JSON or pickle: what is taken can be diagnosed. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/diagnosis/diagnosis.h"
#include "lib/diagnosis/flight.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ft_operations *ops = ft_operations_new();
    struct ft_flight *flight = ft_flight_new();
    struct ft_diagnoses found = {0};
    char error[FT_FLIGHT_ERROR_BYTES];
    char *copy = malloc(len ? len : 1);
    uint64_t left_out = 0;
    int rc = 0;

    for (uint32_t rank = 0; ops && flight && copy && rank < 2 && rc == 0; rank++) {
        if (len)
            memcpy(copy, bytes, len);
        rc = ft_flight_add(flight, rank, copy, len, error);
        ft_fuzz_assert(rc != -EINVAL || error[0], "what is refused is said");
    }
    if (ops && flight && rc == 0 && ft_flight_finish(flight, ops, &left_out) == 0) {
        ft_fuzz_assert(ft_operations_finish(ops) == 0, "what is read can be finished");
        ft_fuzz_assert(ft_diagnose(ops, ft_operations_newest_ns(ops), true, &found) == 0,
                       "and diagnosed");
    }
    ft_diagnoses_free(&found);
    ft_flight_free(flight);
    ft_operations_free(ops);
    free(copy);
    return 0;
}
