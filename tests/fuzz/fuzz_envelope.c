// SPDX-License-Identifier: Apache-2.0
/* Values of messages of the ingest topics: what is read as an envelope can be written again, and
 * its batch is divided or refused; each part is a batch that a daemon reads. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "lib/topics/divide.h"
#include "lib/topics/envelope.h"
#include "proto/batch.h"
#include "tests/fuzz/fuzz.h"

#define PARTITIONS 5

static void take_record(void *arg, const Fabrictrace__Record *record)
{
    (void)record;
    ++*(uint64_t *)arg;
}

static void take_row(void *arg, const struct ft_observed *o)
{
    (void)o;
    ++*(uint64_t *)arg;
}

static void take_part(void *arg, const struct ft_divided *part)
{
    uint64_t records = 0;
    const struct ft_batch_sink sink = {take_record, take_row, &records};
    struct ft_batch *batch = ft_batch_new(part->len);
    int rc = -ENOMEM;

    ft_fuzz_assert(part->topic != FT_INGEST_FLOWS || part->partition < PARTITIONS, "a partition");
    while (batch && (rc = ft_batch_step(batch, part->batch, SIZE_MAX, &sink)) > 0)
        ;
    ft_fuzz_assert(rc == 0 || rc == -ENOMEM || rc == -EBADMSG, "a part is a batch");
    ft_fuzz_assert(rc != 0 || records == part->records, "a part has the records that it says");
    ft_batch_free(batch);
    *(uint64_t *)arg += part->records;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    Fabrictrace__Envelope *e = ft_envelope_read(bytes, len);
    struct ft_divide *divide;
    struct ft_writer w;
    uint64_t records = 0;
    const struct ft_divide_sink sink = {take_part, &records};

    if (!e)
        return 0;
    ft_fuzz_assert(e->source[0] && e->program[0] && e->record_last >= e->records, "what it says");
    ft_writer_init(&w, len + 4096);
    ft_fuzz_assert(ft_envelope_write(&w, e) == 0, "it can be written again");
    ft_writer_free(&w);
    divide = ft_divide_new(PARTITIONS, 4096);
    if (divide && ft_divide_batch(divide, e->batch.data, e->batch.len, &sink) != 0)
        ft_fuzz_assert(records == 0, "of a broken batch nothing is handed over");
    ft_divide_free(divide);
    ft_envelope_free(e);
    return 0;
}
