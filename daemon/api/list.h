// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_LIST_H
#define FT_DAEMON_API_LIST_H
/*
 * A list answer in progress: records that match, a page of them, made in slices while it is sent.
 *
 *   {"fabric":"lab","window_start_ms":1,"window_end_ms":2,"records":[...],"total":64,"next":"0-10"}
 *
 * A list begins as the head of a larger struct, with its step and its free. Each step adds some
 * records, a few milliseconds' work. Thread: the loop's.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "daemon/api/view.h"
#include "daemon/publish/emit.h"
#include "lib/base/writer.h"
#include "proto/fabrictrace.pb-c.h"

struct ft_http_request;

#define FT_LIST_LIMIT_MAX  1000000
#define FT_LIST_NEXT_BYTES 400

/* What a page of a list is: limit and cursor. A cursor is "NUMBER-POSITION": a window or another
 * mark of what is listed, and the first position that no page before has looked at. */
struct ft_page {
    uint64_t limit;
    uint64_t number, position;
    bool has_cursor;
};

struct ft_list {
    const struct ft_view *view;
    struct ft_page page;
    struct ft_span span; /* end_ms 0: none */
    uint64_t number;     /* for the cursor of the next page */
    uint64_t total;      /* that matched so far */
    uint64_t written;    /* in the list in hand */
    /* Of the record in hand: rises along the list, and stays a record's own while it is there, so
     * that what comes and goes between pages moves no other. Without, records count: for lists of
     * what does not change. */
    bool by_position;
    uint64_t position;
    uint64_t shown, behind; /* on this page; behind the last of them */
    bool more;              /* match, on later pages */
    bool begun;
    char next[FT_LIST_NEXT_BYTES];     /* the next page, where it is not by number and position */
    struct ft_writer *w;               /* the part in hand, during a step */
    int (*step)(struct ft_list *list); /* 1: there is more; 0: that was all */
    void (*free)(struct ft_list *list);
};

/* Whether a text passes a filter of a request; NULL, which no parameter set, passes all. */
static inline bool ft_filter_is(const char *filter, const char *text)
{
    return !filter || (text && strcmp(filter, text) == 0);
}

/* What is asked for; NULL: all. The texts are the filter's own. */
struct ft_list_filter {
    char *comm, *op, *state, *host, *job;
    uint32_t rank;
    bool has_rank;
};

/* Reads it from the parameters of these names. Returns 0, or 400 or 503 with a sentence; free it in
 * any case. */
int ft_list_filter_read(struct ft_list_filter *filter, const struct ft_http_request *request,
                        struct ft_writer *body);
void ft_list_filter_free(struct ft_list_filter *filter);

/* Begins a list with the last window's span. */
void ft_list_init(struct ft_list *list, const struct ft_view *view, const struct ft_page *page);

/* Sends it; takes it over in any case. bytes: what it holds. Returns the status for the handler. */
int ft_list_send(struct ft_list *list, const struct ft_http_request *request, size_t bytes,
                 struct ft_writer *body);

/* One more matches: true when it is on this page, and begins its position in the list. */
bool ft_list_next(struct ft_list *list);

/* Counts and writes one. */
void ft_list_record(struct ft_list *list, const Fabrictrace__Record *record);

/* The emitter's function for a list. */
void ft_list_emit(void *list, const Fabrictrace__Record *record);

/* Likewise a message of an answer, by its schema ("fabrictrace.window.v1"). */
void ft_list_message(struct ft_list *list, const char *schema, const ProtobufCMessage *message);

/* Ends the list in hand and begins another one of this name in the same answer. */
void ft_list_begin(struct ft_list *list, const char *name);

/* Writes a sentence into the body, and returns the status. */
int ft_api_refuse(struct ft_writer *body, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads limit and cursor, and refuses parameters beside these names and "limit" and "cursor".
 * Returns 0, or 400 with the sentence in body. */
int ft_page_read(const struct ft_http_request *request, const char *const *names, uint64_t limit,
                 struct ft_page *page, struct ft_writer *body);

/* Likewise without the cursor, which is the caller's. */
int ft_page_read_limit(const struct ft_http_request *request, const char *const *names,
                       uint64_t limit, struct ft_page *page, struct ft_writer *body);

/* A parameter that is a number; absent: *has false. Returns 0 or 400. */
int ft_api_number(const struct ft_http_request *request, const char *name, bool *has,
                  uint64_t *value, struct ft_writer *body);

/* Likewise the parameter rank. */
int ft_api_rank(const struct ft_http_request *request, bool *has, uint32_t *rank,
                struct ft_writer *body);

#endif
