// SPDX-License-Identifier: Apache-2.0
#ifndef FT_BASE_UTF8_H
#define FT_BASE_UTF8_H
/*
 * Where a character of UTF-8 ends: texts from the network may hold any bytes. Pure.
 */
#include <stddef.h>

/* Length of the UTF-8 character at s (RFC 3629), 0 when there is none. s ends with a NUL. */
static inline size_t ft_utf8_bytes(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        return (s[1] & 0xc0) == 0x80 ? 2 : 0;
    if (s[0] >= 0xe0 && s[0] <= 0xef) {
        if ((s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80 || (s[0] == 0xe0 && s[1] < 0xa0) ||
            (s[0] == 0xed && s[1] > 0x9f))
            return 0;
        return 3;
    }
    if (s[0] >= 0xf0 && s[0] <= 0xf4) {
        if ((s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80 || (s[3] & 0xc0) != 0x80 ||
            (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
            return 0;
        return 4;
    }
    return 0;
}

#endif
