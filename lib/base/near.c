// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/near.h"

#include <string.h>

#define NAME_BYTES 64

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters to change, add, drop, or swap with the next one (optimal string alignment). */
static size_t edits(const char *a, const char *b, size_t width)
{
    size_t rows[3][NAME_BYTES + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];

    for (size_t k = 0; k <= width; k++)
        last[k] = before[k] = k;
    for (size_t i = 0; a[i]; i++) {
        size_t *oldest = before;

        now[0] = i + 1;
        for (size_t k = 0; k < width; k++) {
            now[k + 1] = least(last[k] + (a[i] != b[k]), least(last[k + 1], now[k]) + 1);
            if (i && k && a[i] == b[k - 1] && a[i - 1] == b[k])
                now[k + 1] = least(now[k + 1], before[k - 1] + 1);
        }
        before = last;
        last = now;
        now = oldest;
    }
    return last[width];
}

void ft_near_begin(struct ft_near *near, const char *text)
{
    *near = (struct ft_near){.text = text, .best = strlen(text) / 3 + 1};
}

void ft_near_try(struct ft_near *near, const char *name, size_t len)
{
    size_t distance;

    if (len > NAME_BYTES || strnlen(near->text, NAME_BYTES + 1) > NAME_BYTES)
        return;
    distance = edits(near->text, name, len);
    if (distance < near->best) {
        near->best = distance;
        near->name = name;
        near->len = len;
    }
}
