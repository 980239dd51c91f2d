// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_PAGE_H
#define FT_DAEMON_API_PAGE_H
/*
 * The web page: files that page/build.mjs packs into daemon/api/page_files.c (page/README.md),
 * where the build has it (HAVE_PAGE).
 */
#include "lib/io/http/http.h"

extern const struct ft_http_file ft_page_files[];
extern const size_t ft_page_file_count;

#endif
