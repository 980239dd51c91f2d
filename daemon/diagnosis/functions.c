// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/functions.h"

#include <stdio.h>
#include <string.h>

static const char *const nccl[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce",
                                   "AlltoAll",  "Gather",    "Scatter",       "Send",      "Recv"};

void ft_functions_init(struct ft_functions *f)
{
    *f = (struct ft_functions){.own = sizeof(nccl) / sizeof(nccl[0])};
    for (size_t i = 0; i < f->own; i++)
        snprintf(f->names[i], sizeof(f->names[i]), "%s", nccl[i]);
}

size_t ft_functions_number(struct ft_functions *f, const char *name)
{
    size_t room = FT_FUNCTIONS_MAX;

    for (size_t i = 0; i < FT_FUNCTIONS_MAX; i++) {
        if (strncmp(f->names[i], name, FT_FUNCTIONS_BYTES - 1) == 0)
            return i;
        if (room == FT_FUNCTIONS_MAX && !f->names[i][0])
            room = i;
    }
    if (room == FT_FUNCTIONS_MAX)
        f->refused++;
    else
        snprintf(f->names[room], sizeof(f->names[room]), "%s", name);
    return room;
}

void ft_functions_age(struct ft_functions *f, const bool kept[FT_FUNCTIONS_MAX])
{
    for (size_t i = f->own; i < FT_FUNCTIONS_MAX; i++)
        if (f->uses[i] == 0 && !kept[i])
            f->names[i][0] = '\0';
}
