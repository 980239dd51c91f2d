// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_MAX       100
#define TEXT_MAX_BYTES 1024
#define CUT            "..."

struct ft_diag {
    size_t count;
    size_t kept;
    char *texts[KEPT_MAX];
};

struct ft_diag *ft_diag_new(void)
{
    return calloc(1, sizeof(struct ft_diag));
}

void ft_diag_free(struct ft_diag *diag)
{
    if (!diag)
        return;
    for (size_t i = 0; i < diag->kept; i++)
        free(diag->texts[i]);
    free(diag);
}

/* One that is too long, as of a value that is, is cut: what is wrong with it may be behind that,
 * but where it is stands first. */
void ft_diag_add(struct ft_diag *diag, const char *file, unsigned line, const char *format, ...)
{
    char text[TEXT_MAX_BYTES] = "", *kept;
    va_list args;
    int at = 0;

    diag->count++;
    if (diag->kept == KEPT_MAX)
        return;
    if (file && line)
        at = snprintf(text, sizeof(text), "%s:%u: ", file, line);
    else if (file)
        at = snprintf(text, sizeof(text), "%s: ", file);
    if (at >= 0 && at < TEXT_MAX_BYTES) {
        va_start(args, format);
        at += vsnprintf(text + at, sizeof(text) - (size_t)at, format, args);
        va_end(args);
    }
    if (at >= TEXT_MAX_BYTES)
        memcpy(text + sizeof(text) - sizeof(CUT), CUT, sizeof(CUT));
    kept = strdup(text);
    if (kept)
        diag->texts[diag->kept++] = kept;
}

size_t ft_diag_count(const struct ft_diag *diag)
{
    return diag->count;
}

const char *ft_diag_text(const struct ft_diag *diag, size_t i)
{
    return i < diag->kept ? diag->texts[i] : NULL;
}
