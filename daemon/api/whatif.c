// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/whatif.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/comparison.h"
#include "daemon/api/list.h"
#include "lib/io/http/http.h"

#define SEEDS 20

struct whatif_list {
    struct ft_list list;
    bool is_over;
};

static void add(void *arg, const char *schema, const ProtobufCMessage *message)
{
    ft_list_message(arg, schema, message);
}

static int step(struct ft_list *list)
{
    struct whatif_list *l = (struct whatif_list *)list;
    int rc = ft_comparison_step(list->view->comparisons);

    l->is_over = rc <= 0;
    return rc;
}

static void free_list(struct ft_list *list)
{
    struct whatif_list *l = (struct whatif_list *)list;

    if (!l->is_over)
        ft_comparison_abandon(list->view->comparisons);
    free(l);
}

/* Bits of the policies that a list names. */
static int read_policies(const char *names, uint32_t *policies, struct ft_writer *body)
{
    for (const char *name = names; name; name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL) {
        size_t len = strcspn(name, ",");
        int i = 0;

        while (i < FT_WHATIF_POLICIES &&
               (strlen(ft_whatif_name((enum ft_whatif_policy)i)) != len ||
                strncmp(ft_whatif_name((enum ft_whatif_policy)i), name, len) != 0))
            i++;
        if (i == FT_WHATIF_POLICIES)
            return ft_api_refuse(body, 400,
                                 "policy must be of observed, ecmp, learnt, crc16, crc32, xor, "
                                 "static, rail, greedy, plan, spray, flowlet, with commas between");
        *policies |= 1u << i;
    }
    return 0;
}

static int read_count(const struct ft_http_request *request, const char *name, uint32_t most,
                      uint32_t *value, struct ft_writer *body)
{
    uint64_t number;
    bool has;
    int rc = ft_api_number(request, name, &has, &number, body);

    if (rc || !has)
        return rc;
    if (number == 0 || number > most)
        return ft_api_refuse(body, 400, "%s must be from 1 to %u", name, most);
    *value = (uint32_t)number;
    return 0;
}

static int read_compared(const struct ft_http_request *request, struct ft_compared *to,
                         struct ft_writer *body)
{
    static const char *const names[] = {"policy", "seeds", "pairs", "spray", NULL};
    const char *stranger = ft_http_unknown_query(request, names);
    int rc;

    *to = (struct ft_compared){.seeds = SEEDS, .pairs = 1, .spray = FT_COMPARISON_SPRAY};
    if (stranger)
        return ft_api_refuse(body, 400, "'%.40s' is not a filter here, or is given twice",
                             stranger);
    rc = read_policies(ft_http_query(request, "policy"), &to->policies, body);
    if (!rc)
        rc = read_count(request, "seeds", FT_COMPARISON_SEEDS, &to->seeds, body);
    if (!rc)
        rc = read_count(request, "pairs", FT_COMPARISON_PAIRS, &to->pairs, body);
    return rc ? rc : read_count(request, "spray", FT_COMPARISON_SPRAY, &to->spray, body);
}

int ft_api_whatif(void *arg, const struct ft_http_request *request, struct ft_writer *body)
{
    const struct ft_page unlimited = {.limit = UINT64_MAX};
    const struct ft_view *view = arg;
    struct ft_compared compared;
    struct whatif_list *l;
    int rc = read_compared(request, &compared, body);

    if (rc)
        return rc;
    l = calloc(1, sizeof(*l));
    if (!l)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&l->list, view, &unlimited);
    l->list.step = step;
    l->list.free = free_list;
    rc = ft_comparison_begin(view->comparisons, view, &compared,
                             &(struct ft_whatif_out){add, &l->list});
    if (rc) {
        free(l);
        return rc == -EBUSY ? ft_api_refuse(body, 503, "another what-if is in progress: try again")
                            : ft_api_refuse(body, 503, "no memory");
    }
    return ft_list_send(&l->list, request,
                        sizeof(*l) + ft_comparison_bytes(view->comparisons, view, &compared), body);
}
