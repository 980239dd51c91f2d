// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_SORTED_H
#define FT_DAEMON_API_SORTED_H
/*
 * A page of a table in the order of its keys, in slices: every entry is looked at, those that match
 * and come first are kept by their keys, sorted and then written. Entries come and go between
 * slices: what is gone is left out, and nothing is written twice.
 *
 * A page ends with a cursor of its last key, so that the next begins behind it, whatever came or
 * went meanwhile; where keys change it also names the order of the first page. Thread: the loop's.
 */
#include "daemon/api/list.h"
#include "daemon/api/orders.h"

#define FT_SORTED_ITEM_BYTES 160

enum ft_sorted_found {
    FT_SORTED_END,
    FT_SORTED_OTHER, /* than what is asked for */
    FT_SORTED_MATCH,
};

/* What is sorted. An item is a key and what finds its entry again; its unused bytes are zero. */
struct ft_sorted_kind {
    const char *name; /* of the order: its cursors begin so */
    size_t item_bytes;
    int (*order)(const void *a, const void *b); /* 0: the same entry */
    /* Looks at the next entry, by an index that begins at 0, and makes its item. */
    enum ft_sorted_found (*look)(const struct ft_view *view, const void *filter, uint32_t *index,
                                 void *item);
    void (*write)(struct ft_list *list, const void *item);
    size_t (*most)(const struct ft_view *view); /* entries, about; they count as memory */
};

enum ft_sorted_phase {
    FT_SORTED_LOOKING,
    FT_SORTED_SORTING,
    FT_SORTED_WRITING,
};

struct ft_sorted {
    const struct ft_sorted_kind *kind;
    const void *filter;       /* borrowed for each step */
    size_t limit;             /* that are kept */
    size_t page;              /* that are written; no more than limit */
    struct ft_orders *orders; /* that later pages follow; NULL: they follow the key alone */
    uint64_t order;           /* that this page is of; 0: it is the first */
    enum ft_sorted_phase phase;
    uint32_t index;
    uint8_t *items; /* a heap, whose root is the last of those that are kept; then in order */
    size_t count, size, unsorted, written;
    uint64_t total; /* that match, on any page */
    uint64_t rest;  /* that come on this page or later ones */
    bool is_last;   /* of its order: the next page follows the key */
    bool has_after;
    _Alignas(max_align_t) uint8_t after[FT_SORTED_ITEM_BYTES]; /* the last of the page before */
};

void ft_sorted_init(struct ft_sorted *sorted, const struct ft_sorted_kind *kind, const void *filter,
                    size_t limit);

/* Lets later pages follow the order of the first, where an entry's key changes in time: keeps more
 * than the page for it. */
void ft_sorted_keep(struct ft_sorted *sorted, struct ft_orders *orders);
void ft_sorted_free(struct ft_sorted *sorted);

/* Takes a cursor (NULL: none). Returns 0, or 400 with a sentence. */
int ft_sorted_begin(struct ft_sorted *sorted, const char *cursor, struct ft_writer *body);

/* A step of the list: 1, there is more; 0, all is written; -ENOMEM. */
int ft_sorted_step(struct ft_sorted *sorted, struct ft_list *list);

/* Sorts without writing, for lists whose records are made of several entries: 1, there is more to
 * do; 0 when all are sorted; -ENOMEM. */
int ft_sorted_gather(struct ft_sorted *sorted, const struct ft_view *view);

/* Then an entry by its index, below sorted->count. */
const void *ft_sorted_item(const struct ft_sorted *sorted, size_t i);

/* Ends a page: sets the total of the list, and its cursor behind item (NULL: no other page). */
void ft_sorted_end(const struct ft_sorted *sorted, struct ft_list *list, const void *item);

/* Answers with a list of one order alone. arg is the view; names: of its filters. */
int ft_sorted_answer(const struct ft_view *view, const struct ft_http_request *request,
                     const struct ft_sorted_kind *kind, const char *const *names, uint64_t limit,
                     struct ft_writer *body);

#endif
