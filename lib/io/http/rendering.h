// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_HTTP_RENDERING_H
#define FT_IO_HTTP_RENDERING_H
/*
 * An answer that is made once for all who ask for it (slices.c sends it).
 *
 * Who asks for the same path, query and encoding in the same epoch (the daemon's last window) joins
 * an answer that is being made, from its first part on; one with a tag is kept after its end, since
 * it will not be another before the next epoch. The parts are kept for those who join, up to a
 * sixteenth of the bytes of all answers, a quarter for all of them; from then on nobody joins, and
 * a part goes when all have sent it. Who is far ahead then waits for the others, who take theirs or
 * are cut off. What is kept counts as held by answers. Thread: the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/io/http/http.h"

struct evbuffer;
struct ft_http_part;
struct ft_http_rendering;

/* What is asked for. The texts are the asker's. */
struct ft_http_asked {
    const char *path, *query; /* as it came; NULL: none */
    bool packed;
};

/* Whoever is sent one; slices.c owns it. */
struct ft_http_reader {
    struct ft_http_rendering *rendering;
    const struct ft_http_part *sent; /* the last that went out; NULL: none */
};

/* An answer to make, the slices its own from now on; asked NULL: for one reader alone. NULL without
 * memory: the slices are freed. It lives while it has readers, or is kept. */
struct ft_http_rendering *ft_http_rendering_new(struct ft_http *http,
                                                const struct ft_http_asked *asked, const char *tag,
                                                bool packed, const struct ft_http_slices *slices);

/* One that may be joined; NULL: none. */
struct ft_http_rendering *ft_http_rendering_find(struct ft_http *http,
                                                 const struct ft_http_asked *asked);
const char *ft_http_rendering_tag(const struct ft_http_rendering *rendering);
bool ft_http_rendering_packed(const struct ft_http_rendering *rendering);

void ft_http_rendering_join(struct ft_http_rendering *rendering, struct ft_http_reader *reader);
void ft_http_rendering_leave(struct ft_http_reader *reader);

/* What a reader can do next. */
enum ft_http_next {
    FT_HTTP_NEXT_PART, /* out has it */
    FT_HTTP_NEXT_NONE, /* a step was made, and there is nothing to send yet */
    FT_HTTP_NEXT_ROOM, /* there is no room for a part now */
    FT_HTTP_NEXT_END,
    FT_HTTP_NEXT_FAILED,
};

/* The reader's next part, made where it is the first to need it: a few milliseconds. */
enum ft_http_next ft_http_rendering_next(struct ft_http_reader *reader, struct evbuffer *out);

/* Frees what is kept for nobody in particular. */
void ft_http_renderings_drop(struct ft_http *http);

#endif
