// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/output/safe.h"

#include <stdint.h>
#include <string.h>

static bool turns_or_hides(uint32_t c)
{
    return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069) || (c >= 0xe0000 && c <= 0xe007f);
}

/* The character at s and its bytes; 0 bytes where it is not UTF-8. */
static size_t decode(const char *s, uint32_t *c)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t n = u[0] < 0x80   ? 1
               : u[0] < 0xc2 ? 0
               : u[0] < 0xe0 ? 2
               : u[0] < 0xf0 ? 3
               : u[0] < 0xf5 ? 4
                             : 0;

    *c = n > 1 ? u[0] & (0x7fu >> n) : u[0];
    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | (u[i] & 0x3f);
    }
    return n;
}

size_t ft_safe_character(const char *s, bool *shown)
{
    uint32_t c;
    size_t n = decode(s, &c);

    *shown = n > 0 && c >= 0x20 && !(c >= 0x7f && c < 0xa0) && !turns_or_hides(c);
    return n ? n : 1;
}

void ft_safe_text(char *text)
{
    char *to = text;
    bool shown;

    while (*text) {
        size_t n = ft_safe_character(text, &shown);

        if (shown)
            memmove(to, text, n);
        else
            *to = '?';
        to += shown ? n : 1;
        text += n;
    }
    *to = '\0';
}

void ft_safe_put_json(FILE *out, const char *json)
{
    bool shown;

    while (*json) {
        size_t n = ft_safe_character(json, &shown);
        uint32_t c;

        if (shown)
            fwrite(json, 1, n, out);
        else if (decode(json, &c) == 0)
            fputc('?', out);
        else if (c >= 0x10000)
            fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                    0xdc00 + ((c - 0x10000) & 0x3ff));
        else
            fprintf(out, "\\u%04x", c);
        json += n;
    }
}

void ft_safe_put_yaml(FILE *out, const char *text)
{
    bool shown;

    fputc('"', out);
    while (*text) {
        size_t n = ft_safe_character(text, &shown);
        uint32_t c;

        if (shown && (*text == '"' || *text == '\\'))
            fprintf(out, "\\%c", *text);
        else if (shown)
            fwrite(text, 1, n, out);
        else if (decode(text, &c) == 0)
            fputc('?', out);
        else if (c >= 0x10000)
            fprintf(out, "\\U%08X", c);
        else
            fprintf(out, c < 0x100 ? "\\x%02X" : "\\u%04X", c);
        text += n;
    }
    fputc('"', out);
}
