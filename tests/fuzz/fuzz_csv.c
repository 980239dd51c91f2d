// SPDX-License-Identifier: Apache-2.0
/* A table of operations: what is taken can be diagnosed, and whom a diagnosis names has a row. */
#include "config.h"

#include <string.h>

#include "lib/diagnosis/csv.h"
#include "lib/diagnosis/diagnosis.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct ft_operations *ops, const struct ft_diagnosis *d)
{
    size_t processes;

    ft_operations_processes(ops, &processes);
    ft_fuzz_assert(d->syndrome != FT_SYNDROME_NONE, "it has a syndrome");
    ft_fuzz_assert(d->process == FT_OPERATIONS_NONE || d->process < processes, "its rank is known");
    ft_fuzz_assert(d->peer == FT_OPERATIONS_NONE || d->peer < processes, "its peer is known");
    ft_fuzz_assert(d->comm == FT_OPERATIONS_NONE || d->comm < ft_operations_comms(ops),
                   "its communicator is known");
    ft_fuzz_assert(d->waiting_count <= processes && d->reasons.count > 0, "it has its reasons");
    for (size_t i = 0; i < d->waiting_count; i++)
        ft_fuzz_assert(d->waiting[i] < processes && d->waiting[i] != d->process,
                       "others wait for it");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ft_operations *ops = ft_operations_new();
    struct ft_diagnoses found = {0};
    char error[FT_CSV_ERROR_BYTES] = "";

    if (!ops)
        return 0;
    if (ft_csv_read(ops, (const char *)bytes, len, error) == 0) {
        ft_fuzz_assert(ft_operations_finish(ops) == 0, "what is read can be finished");
        ft_fuzz_assert(ft_diagnose(ops, ft_operations_newest_ns(ops), true, &found) == 0,
                       "and diagnosed");
        for (size_t i = 0; i < found.count; i++)
            check(ops, &found.items[i]);
    } else {
        ft_fuzz_assert(error[0] >= '1' && error[0] <= '9' && strstr(error, ": "),
                       "an error begins with its line");
    }
    ft_diagnoses_free(&found);
    ft_operations_free(ops);
    return 0;
}
