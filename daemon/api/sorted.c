// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/sorted.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/io/http/http.h"

#define LOOKS_A_STEP   20000
#define RECORDS_A_STEP 500

void ft_sorted_init(struct ft_sorted *sorted, const struct ft_sorted_kind *kind, const void *filter,
                    size_t limit)
{
    assert(kind->item_bytes <= FT_SORTED_ITEM_BYTES);
    *sorted = (struct ft_sorted){.kind = kind, .filter = filter, .limit = limit, .page = limit};
}

void ft_sorted_keep(struct ft_sorted *sorted, struct ft_orders *orders)
{
    sorted->orders = orders;
    if (orders && sorted->limit < FT_ORDER_ITEMS_MAX)
        sorted->limit = FT_ORDER_ITEMS_MAX;
}

void ft_sorted_free(struct ft_sorted *sorted)
{
    free(sorted->items);
    sorted->items = NULL;
}

static void *item_at(const struct ft_sorted *w, size_t i)
{
    return w->items + i * w->kind->item_bytes;
}

static bool is_behind(const struct ft_sorted *w, size_t a, size_t b)
{
    return w->kind->order(item_at(w, a), item_at(w, b)) > 0;
}

static void swap(struct ft_sorted *w, size_t a, size_t b)
{
    _Alignas(max_align_t) uint8_t item[FT_SORTED_ITEM_BYTES];

    memcpy(item, item_at(w, a), w->kind->item_bytes);
    memcpy(item_at(w, a), item_at(w, b), w->kind->item_bytes);
    memcpy(item_at(w, b), item, w->kind->item_bytes);
}

static void sift_down(struct ft_sorted *w, size_t count, size_t i)
{
    for (;;) {
        size_t last = i, child = 2 * i + 1;

        for (size_t k = child; k < child + 2 && k < count; k++)
            if (is_behind(w, k, last))
                last = k;
        if (last == i)
            return;
        swap(w, i, last);
        i = last;
    }
}

static void sift_up(struct ft_sorted *w, size_t i)
{
    while (i && is_behind(w, i, (i - 1) / 2)) {
        swap(w, i, (i - 1) / 2);
        i = (i - 1) / 2;
    }
}

static int keep(struct ft_sorted *w, const void *item)
{
    if (w->count < w->limit) {
        uint8_t *grown = ft_grow(w->items, w->count, &w->size, w->kind->item_bytes);

        if (!grown)
            return -ENOMEM;
        w->items = grown;
        memcpy(item_at(w, w->count), item, w->kind->item_bytes);
        sift_up(w, w->count++);
    } else if (w->count && w->kind->order(item, w->items) < 0) {
        memcpy(w->items, item, w->kind->item_bytes);
        sift_down(w, w->count, 0);
    }
    return 0;
}

static int look(struct ft_sorted *w, const struct ft_view *view)
{
    _Alignas(max_align_t) uint8_t item[FT_SORTED_ITEM_BYTES];
    enum ft_sorted_found found = FT_SORTED_OTHER;

    for (int i = 0; i < LOOKS_A_STEP && found != FT_SORTED_END; i++) {
        memset(item, 0, sizeof(item));
        found = w->kind->look(view, w->filter, &w->index, item);
        if (found != FT_SORTED_MATCH)
            continue;
        w->total++;
        if (w->has_after && w->kind->order(item, w->after) <= 0)
            continue;
        w->rest++;
        if (keep(w, item))
            return -ENOMEM;
    }
    if (found == FT_SORTED_END) {
        w->phase = FT_SORTED_SORTING;
        w->unsorted = w->count;
    }
    return 1;
}

/* The last goes to the end of what is not sorted yet. */
static void sort(struct ft_sorted *w)
{
    for (int i = 0; i < LOOKS_A_STEP && w->unsorted > 1; i++) {
        swap(w, 0, --w->unsorted);
        sift_down(w, w->unsorted, 0);
    }
    if (w->unsorted <= 1)
        w->phase = FT_SORTED_WRITING;
}

int ft_sorted_gather(struct ft_sorted *w, const struct ft_view *view)
{
    if (w->phase == FT_SORTED_LOOKING)
        return look(w, view);
    if (w->phase == FT_SORTED_SORTING)
        sort(w);
    return w->phase != FT_SORTED_WRITING;
}

/* An entry that was removed and came back was looked at twice. */
static const void *next_item(struct ft_sorted *w)
{
    size_t at = w->written, end = w->count < w->page ? w->count : w->page;

    while (at && at < end && w->kind->order(item_at(w, at - 1), item_at(w, at)) == 0)
        at++;
    w->written = at < end ? at + 1 : end;
    return at < end ? item_at(w, at) : NULL;
}

const void *ft_sorted_item(const struct ft_sorted *w, size_t i)
{
    return item_at(w, i);
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads the key of a cursor; what comes behind it, NULL when it is none. */
static const char *read_key(struct ft_sorted *w, const char *cursor)
{
    size_t len = strlen(w->kind->name);

    if (strncmp(cursor, w->kind->name, len) != 0 || cursor[len] != '-')
        return NULL;
    cursor += len + 1;
    for (size_t i = 0; i < w->kind->item_bytes; i++, cursor += 2) {
        int high = hex(cursor[0]), low = high < 0 ? -1 : hex(cursor[1]);

        if (low < 0)
            return NULL;
        w->after[i] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
    }
    return cursor;
}

/* Takes a page of a kept order: what comes behind the cursor's key there. */
static int take_order(struct ft_sorted *w, const struct ft_order *order)
{
    size_t low = 0, high = order->count, bytes = w->kind->item_bytes;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (w->kind->order(order->items + middle * bytes, w->after) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    w->count = order->count - low < w->page ? order->count - low : w->page;
    w->items = malloc(w->count ? w->count * bytes : 1);
    if (!w->items)
        return -ENOMEM;
    memcpy(w->items, order->items + low * bytes, w->count * bytes);
    w->size = w->count;
    w->order = order->id;
    w->total = order->total;
    w->rest = order->count - low + order->rest;
    w->is_last = low + w->count == order->count;
    w->phase = FT_SORTED_WRITING;
    return 0;
}

int ft_sorted_begin(struct ft_sorted *w, const char *cursor, struct ft_writer *body)
{
    const struct ft_order *order = NULL;
    const char *rest;
    char *end;

    if (!cursor)
        return 0;
    rest = read_key(w, cursor);
    if (rest && *rest == '-' && hex(rest[1]) >= 0) {
        uint64_t id = strtoull(rest + 1, &end, 16);

        order = w->orders ? ft_orders_find(w->orders, id) : NULL;
        rest = end;
    }
    if (!rest || *rest)
        return ft_api_refuse(body, 400,
                             "cursor is not one that an answer in this order returned as next");
    w->has_after = true;
    if (order && order->item_bytes == w->kind->item_bytes && take_order(w, order))
        return ft_api_refuse(body, 503, "no memory");
    return 0;
}

void ft_sorted_end(const struct ft_sorted *w, struct ft_list *list, const void *item)
{
    const uint8_t *bytes = item;
    size_t n;

    list->total = w->total;
    list->page.limit = 0; /* the cursor of the next page is made here */
    if (!item)
        return;
    n = (size_t)snprintf(list->next, sizeof(list->next), "%s-", w->kind->name);
    for (size_t i = 0; i < w->kind->item_bytes; i++)
        n += (size_t)snprintf(list->next + n, sizeof(list->next) - n, "%02x", bytes[i]);
    if (w->order && !w->is_last)
        snprintf(list->next + n, sizeof(list->next) - n, "-%" PRIx64, w->order);
}

/* The page is written; others follow its order where one is kept. */
static void end_page(struct ft_sorted *w, struct ft_list *list)
{
    size_t shown = w->count < w->page ? w->count : w->page;
    _Alignas(max_align_t) uint8_t last[FT_SORTED_ITEM_BYTES];
    struct ft_order order = {.count = w->count,
                             .item_bytes = w->kind->item_bytes,
                             .total = w->total,
                             .rest = w->rest - w->count};

    if (!shown || w->rest <= shown) {
        ft_sorted_end(w, list, NULL);
        return;
    }
    memcpy(last, item_at(w, shown - 1), w->kind->item_bytes);
    if (w->orders && !w->order && w->count > shown) {
        w->order = ft_orders_take(w->orders, &order, w->items);
        if (w->order) {
            w->items = NULL;
            w->count = 0;
        }
    }
    ft_sorted_end(w, list, last);
}

int ft_sorted_step(struct ft_sorted *w, struct ft_list *list)
{
    if (w->phase != FT_SORTED_WRITING) {
        int rc = ft_sorted_gather(w, list->view);

        return rc < 0 ? rc : 1;
    }
    for (int i = 0; i < RECORDS_A_STEP; i++) {
        const void *item = next_item(w);

        if (item) {
            w->kind->write(list, item);
            continue;
        }
        end_page(w, list);
        return 0;
    }
    return 1;
}

struct sorted_list {
    struct ft_list list;
    struct ft_list_filter filter;
    struct ft_sorted sorted;
};

static int step(struct ft_list *list)
{
    return ft_sorted_step(&((struct sorted_list *)list)->sorted, list);
}

static void free_list(struct ft_list *list)
{
    struct sorted_list *l = (struct sorted_list *)list;

    ft_list_filter_free(&l->filter);
    ft_sorted_free(&l->sorted);
    free(l);
}

int ft_sorted_answer(const struct ft_view *view, const struct ft_http_request *request,
                     const struct ft_sorted_kind *kind, const char *const *names, uint64_t limit,
                     struct ft_writer *body)
{
    const struct ft_page unlimited = {.limit = UINT64_MAX}; /* what is kept is the page */
    struct sorted_list *l = calloc(1, sizeof(*l));
    struct ft_page page;
    int rc;

    if (!l)
        return ft_api_refuse(body, 503, "no memory");
    ft_list_init(&l->list, view, &unlimited);
    l->list.step = step;
    l->list.free = free_list;
    rc = ft_page_read_limit(request, names, limit, &page, body);
    if (!rc)
        rc = ft_list_filter_read(&l->filter, request, body);
    if (!rc) {
        ft_sorted_init(&l->sorted, kind, &l->filter, page.limit);
        rc = ft_sorted_begin(&l->sorted, ft_http_query(request, "cursor"), body);
    }
    if (rc) {
        free_list(&l->list);
        return rc;
    }
    return ft_list_send(&l->list, request,
                        sizeof(*l) +
                            (page.limit < kind->most(view) ? page.limit : kind->most(view)) *
                                kind->item_bytes,
                        body);
}
