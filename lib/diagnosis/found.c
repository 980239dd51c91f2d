// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/found.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/grow.h"

struct ft_diagnosis *ft_diagnoses_add(struct ft_diagnoses *found, enum ft_syndrome syndrome)
{
    struct ft_diagnosis *items;

    /* Each further one takes the room of the last. */
    if (found->count == FT_DIAGNOSES_MAX) {
        found->left_out++;
        free(found->items[--found->count].waiting);
    }
    items = ft_grow(found->items, found->count, &found->size, sizeof(*items));

    if (!items)
        return NULL;
    found->items = items;
    items += found->count++;
    *items = (struct ft_diagnosis){.syndrome = syndrome,
                                   .comm = FT_OPERATIONS_NONE,
                                   .function = FT_OPERATIONS_NONE,
                                   .process = FT_OPERATIONS_NONE,
                                   .peer = FT_OPERATIONS_NONE,
                                   .sequence = UINT64_MAX};
    return items;
}

void ft_texts_add(struct ft_texts *texts, const char *format, ...)
{
    va_list args;

    if (texts->count == FT_DIAGNOSIS_TEXTS)
        return;
    va_start(args, format);
    vsnprintf(texts->text[texts->count++], FT_DIAGNOSIS_TEXT_BYTES, format, args);
    va_end(args);
}

void ft_diagnoses_free(struct ft_diagnoses *found)
{
    for (size_t i = 0; i < found->count; i++)
        free(found->items[i].waiting);
    free(found->items);
    *found = (struct ft_diagnoses){0};
}
