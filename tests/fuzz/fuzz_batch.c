// SPDX-License-Identifier: Apache-2.0
/* Batches of records as a peer sends them: each must come out as a line that can be read. */
#include "config.h"

#include "proto/batch.h"
#include "proto/record.h"
#include "tests/batch.h"
#include "tests/fuzz/fuzz.h"

static void apply(void *arg, const Fabrictrace__Record *record)
{
    Fabrictrace__Record *again;
    struct ft_writer w;
    char error[200], key[FT_RECORD_KEY_BYTES];

    ++*(uint64_t *)arg;
    ft_writer_init(&w, 64u << 20);
    ft_record_key(record, key);
    ft_fuzz_assert(ft_record_to_json(record, &w) == 0, "a record can be written");
    ft_fuzz_assert(ft_record_from_json((char *)w.bytes, w.len, &again, error, sizeof(error)) == 0,
                   "what was written can be read");
    ft_record_free(again);
    ft_writer_free(&w);
}

static void count(void *arg, const Fabrictrace__Record *record)
{
    (void)record;
    ++*(uint64_t *)arg;
}

/* One record at a time is the same. */
static void step_by_step(const uint8_t *bytes, size_t len, int expected, uint64_t records)
{
    uint64_t calls = 0;
    const struct ft_batch_sink sink = {.record = count, .arg = &calls};
    struct ft_batch *batch = ft_batch_new(len);
    int rc;

    while ((rc = ft_batch_step(batch, bytes, 1, &sink)) > 0)
        ;
    ft_fuzz_assert(rc == expected && calls == records, "steps are the same as one go");
    ft_batch_free(batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    uint64_t calls = 0, records = 0, unknown = 0;
    int rc = ft_batch_unpack(bytes, len, apply, &calls, &records, &unknown);

    ft_fuzz_assert(calls == records, "all or nothing");
    ft_fuzz_assert(rc == 0 || calls == 0, "no call for a bad batch");
    step_by_step(bytes, len, rc, calls);
    return 0;
}
