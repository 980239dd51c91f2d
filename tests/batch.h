// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_BATCH_H
#define FT_TESTS_BATCH_H
/* A batch from the wire in one go; the programs take it in steps. */
#include <errno.h>

#include "proto/batch.h"

/* Decodes a batch whole, then calls apply for each record, in order; -EBADMSG and no call when the
 * bytes are no batch or stand for far more memory than a batch of theirs should, -ENOMEM. *records
 * is set to the calls made, *unknown to the records skipped for lack of a known kind. The records
 * live until return. */
static inline int ft_batch_unpack(const uint8_t *bytes, size_t len,
                                  void (*apply)(void *arg, const Fabrictrace__Record *record),
                                  void *arg, uint64_t *records, uint64_t *unknown)
{
    const struct ft_batch_sink sink = {.record = apply, .arg = arg};
    struct ft_batch *batch = ft_batch_new(len);
    int rc = -ENOMEM;

    if (!batch)
        return rc;
    while ((rc = ft_batch_step(batch, bytes, SIZE_MAX, &sink)) > 0)
        ;
    if (rc == 0) {
        *records = ft_batch_known(batch);
        *unknown = ft_batch_unknown(batch);
    }
    ft_batch_free(batch);
    return rc;
}

#endif
