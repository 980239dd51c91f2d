// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FILES_SLURP_H
#define FT_FILES_SLURP_H
/*
 * A complete file in memory, up to a cap.
 */
#include <stddef.h>

/* "-" is standard input. *bytes has a zero byte behind its end; free() it. -EFBIG above max bytes,
 * -ENOMEM, or -errno of open and read. */
int ft_slurp(const char *file, size_t max, char **bytes, size_t *len);

#endif
