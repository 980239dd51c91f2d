// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HISTORY_ROW_H
#define FT_DAEMON_HISTORY_ROW_H
/*
 * The compact form of a record of one window: what stays from window to window (names, the flow,
 * its hops) is packed once as protobuf, the "fixed" part; the figures of the window are a row of
 * some bytes: a mask of those that are there, and each as a varint. A figure that is not an integer
 * is kept with the 6 digits that its JSON has, so that a record comes out as it was published.
 *
 * Left out: the window (whoever keeps the row knows it), and of a path the samples and shares of
 * its hops. Pure. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

#include "daemon/publish/emit.h"
#include "lib/base/writer.h"
#include "proto/fabrictrace.pb-c.h"

enum ft_row_kind {
    FT_ROW_LINK,
    FT_ROW_IMBALANCE,
    FT_ROW_PATH,
    FT_ROW_KINDS,
};

/* Reports versions of rows apart: which figures there are, in which order. */
uint32_t ft_row_version(void);

/* The kind of a record, FT_ROW_KINDS when none of these. */
enum ft_row_kind ft_row_kind_of(const Fabrictrace__Record *record);

/* The window that a record speaks of. */
struct ft_span ft_row_span(const Fabrictrace__Record *record);

/* Appends the fixed part, or the row, of a record of these kinds. */
void ft_row_write_fixed(const Fabrictrace__Record *record, struct ft_writer *w);
void ft_row_write(const Fabrictrace__Record *record, struct ft_writer *w);

/* Both parts as a record again, which ft_record_free() frees; NULL when they are none, or without
 * memory. The bytes may be foreign. */
Fabrictrace__Record *ft_row_read(enum ft_row_kind kind, const uint8_t *fixed, size_t fixed_len,
                                 const uint8_t *row, size_t row_len, const struct ft_span *span);

#endif
