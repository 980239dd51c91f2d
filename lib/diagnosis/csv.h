// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_CSV_H
#define FT_DIAGNOSIS_CSV_H
/*
 * Operations from a text of comma-separated values (RFC 4180) with a header line.
 *
 * Columns in any order, their names in any case: rank, host, communicator, function, sequence,
 * bytes, start_ns, end_ns, and peer where there are sends and receives; others are left aside. An
 * operation that never ended has an empty end_ns. An integer may end in ".0", as programs write it
 * whose numbers are real.
 */
#include <stddef.h>

#include "lib/diagnosis/operations.h"

#define FT_CSV_ERROR_BYTES 256

/* Adds every row. -EINVAL with "LINE: COLUMN: what is wrong" in error, -ENOMEM. */
int ft_csv_read(struct ft_operations *ops, const char *text, size_t len,
                char error[FT_CSV_ERROR_BYTES]);

#endif
