// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/writer.h"

#define KEPT_MAX       100
#define TEXT_MAX_BYTES 1024

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

void ft_diag_add(struct ft_diag *diag, const char *file, unsigned line, const char *format, ...)
{
    struct ft_writer w;
    va_list args;

    diag->count++;
    if (diag->kept == KEPT_MAX)
        return;
    ft_writer_init(&w, TEXT_MAX_BYTES);
    if (file && line)
        ft_write_fmt(&w, "%s:%u: ", file, line);
    else if (file)
        ft_write_fmt(&w, "%s: ", file);
    va_start(args, format);
    ft_write_vfmt(&w, format, args);
    va_end(args);
    ft_write_u8(&w, 0);
    if (ft_writer_ok(&w))
        diag->texts[diag->kept++] = (char *)w.bytes;
    else
        ft_writer_free(&w);
}

size_t ft_diag_count(const struct ft_diag *diag)
{
    return diag->count;
}

const char *ft_diag_text(const struct ft_diag *diag, size_t i)
{
    return i < diag->kept ? diag->texts[i] : NULL;
}
