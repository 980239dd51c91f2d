// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/publish/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"

void ft_findings_free(struct ft_findings *f)
{
    free(f->items);
    *f = (struct ft_findings){.items = NULL};
}

struct ft_finding *ft_findings_add(struct ft_findings *f, enum ft_finding_kind kind,
                                   const char *switch_name, const char *port, const char *advice,
                                   const char *format, ...)
{
    struct ft_finding *to;
    va_list args;

    to = f->count < FT_FINDINGS_MAX ? ft_grow(f->items, f->count, &f->size, sizeof(*to)) : NULL;
    if (!to) {
        f->dropped++;
        return NULL;
    }
    f->items = to;
    to = &f->items[f->count++];
    memset(to, 0, sizeof(*to));
    to->kind = kind;
    to->advice = advice;
    snprintf(to->switch_name, sizeof(to->switch_name), "%s", switch_name ? switch_name : "");
    snprintf(to->port, sizeof(to->port), "%s", port ? port : "");
    va_start(args, format);
    vsnprintf(to->text, sizeof(to->text), format, args);
    va_end(args);
    return to;
}
