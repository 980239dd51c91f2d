// SPDX-License-Identifier: Apache-2.0
#ifndef FT_TESTS_PAGES_RIG_H
#define FT_TESTS_PAGES_RIG_H
/* Lists of the HTTP API page after page, with answer_rig.h. */
#include "daemon/api/list.h"
#include "tests/unit/answer_rig.h"

/* What was answered, all pages. */
static struct ft_writer all;

static inline size_t has(const char *what)
{
    return count_of((const char *)all.bytes, all.len, what);
}

/* Reads page after page of the handler's list; change is called between them. Returns their
 * number, and all pages in all. */
static inline unsigned read_pages(int (*handler)(void *arg, const struct ft_http_request *request,
                                                 struct ft_writer *body),
                                  const char *sort, void (*change)(unsigned page))
{
    struct ft_http_request request = {{"limit", "cursor", sort ? "sort" : NULL}, {"7", NULL, sort}};
    char cursor[FT_LIST_NEXT_BYTES];
    unsigned pages = 0;
    size_t from = 0;

    for (;;) {
        const char *next;

        answer(handler, &request, NULL, &all);
        ft_write_u8(&all, '\0');
        next = strstr((const char *)all.bytes + from, "\"next\":\"");
        pages++;
        if (!next)
            return pages;
        snprintf(cursor, sizeof(cursor), "%.*s", (int)strcspn(next + 8, "\""), next + 8);
        request.values[1] = cursor;
        all.bytes[all.len - 1] = '\n';
        from = all.len;
        ck_assert_uint_lt(pages, 10000);
        change(pages);
    }
}

#endif
