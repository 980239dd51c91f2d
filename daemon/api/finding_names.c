// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/finding_names.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/digest.h"

/* Words of these characters alone are numbers: "12", "0.8", "10:41:20", "5%,". */
#define OF_NUMBERS "0123456789.,:;%()+-"

struct named {
    uint64_t name;
    size_t at;
};

static uint64_t name_of(const struct ft_finding *f)
{
    const char *const texts[] = {f->switch_name, f->port, f->peer, f->peer_port, f->advice};
    uint64_t name = (uint64_t)f->kind * 2 + f->of_host;
    const char *word = f->text;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        name = ft_digest_text(texts[i] ? texts[i] : "", name);
    for (; *word; word += strspn(word, " ")) {
        size_t len = strcspn(word, " ");

        if (strspn(word, OF_NUMBERS) < len)
            name = ft_digest_bytes(word, len, name);
        word += len;
    }
    return name;
}

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;

    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

uint64_t *ft_finding_names(const struct ft_findings *findings)
{
    size_t n = findings->count;
    struct named *all = malloc((n + 1) * sizeof(*all));
    uint64_t *names = malloc((n + 1) * sizeof(*names));
    uint64_t alike = 0;

    if (!all || !names) {
        free(all);
        free(names);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        all[i] = (struct named){name_of(&findings->items[i]), i};
    qsort(all, n, sizeof(*all), by_name);
    for (size_t i = 0; i < n; i++) {
        alike = i && all[i].name == all[i - 1].name ? alike + 1 : 0;
        names[all[i].at] = ft_digest_bytes(&alike, sizeof(alike), all[i].name);
    }
    free(all);
    return names;
}
