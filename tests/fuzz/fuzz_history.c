// SPDX-License-Identifier: Apache-2.0
/* The file of the history: what is broken leaves nothing behind, what is not is readable. */
#include "config.h"

#include "daemon/history/snapshot.h"
#include "proto/record.h"
#include "tests/fuzz/fuzz.h"

static void read_all(struct ft_history *history)
{
    struct ft_history_window w = {.number = 0};

    for (uint64_t n = 0; ft_history_window(history, n, &w); n = w.number + 1)
        for (int k = 0; k < FT_ROW_KINDS; k++) {
            struct ft_history_cursor cursor;
            Fabrictrace__Record *record;
            size_t rows = 10000;

            if (ft_history_open(history, w.number, (enum ft_row_kind)k, &cursor))
                continue;
            while ((record = ft_history_read(history, &cursor, NULL, &rows)))
                ft_record_free(record);
            ft_history_close(history, &cursor);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const struct ft_history_config config = {3600000, 1 << 20, 100, 1};
    struct ft_history *history;
    struct ft_sink *sink = ft_history_new(&config, &history);
    struct ft_history_stats stats;

    if (!sink)
        return 0;
    if (ft_snapshot_decode(history, bytes, len) == 0) {
        read_all(history);
    } else {
        ft_history_stats(history, &stats);
        ft_fuzz_assert(stats.windows == 0 && stats.events == 0 && stats.fixed == 0,
                       "a broken file leaves nothing behind");
    }
    sink->free(sink->self);
    free(sink);
    return 0;
}
