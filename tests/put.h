// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_PUT_H
#define FT_TESTS_PUT_H
/*
 * What packets that tests and benches put together need, and the programs do not.
 */
#include "lib/base/writer.h"

static inline void put_be16(struct ft_writer *w, uint16_t v)
{
    ft_write_u8(w, (uint8_t)(v >> 8));
    ft_write_u8(w, (uint8_t)v);
}

#endif
