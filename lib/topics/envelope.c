// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/topics/envelope.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/io/transport/transport.h"

/* No sender gets to so many. */
#define NUMBER_MAX (UINT64_C(1) << 53)

const char *ft_ingest_topic_name(enum ft_ingest_topic topic)
{
    static const char *const names[] = {
        [FT_INGEST_FLOWS] = "fabrictrace.ingest.flows",
        [FT_INGEST_STATE] = "fabrictrace.ingest.state",
        [FT_INGEST_REPORTS] = "fabrictrace.ingest.reports",
    };

    return names[topic];
}

int ft_envelope_write(struct ft_writer *w, const Fabrictrace__Envelope *envelope)
{
    uint8_t *room = ft_write_room(w, fabrictrace__envelope__get_packed_size(envelope));

    if (!room)
        return -ENOSPC;
    fabrictrace__envelope__pack(envelope, room);
    return 0;
}

/* Printable ASCII without blanks. */
static bool is_name(const char *name, size_t max)
{
    size_t len = name ? strlen(name) : 0;

    for (size_t i = 0; i < len; i++)
        if (name[i] < 0x21 || name[i] > 0x7e)
            return false;
    return len > 0 && len <= max;
}

static bool is_sound(const Fabrictrace__Envelope *e)
{
    return is_name(e->program, FT_PROGRAM_BYTES_MAX) &&
           is_name(e->source, FT_SOURCE_ID_BYTES_MAX) && e->has_boot_id && e->has_batch &&
           e->sequence > 0 && e->sequence < NUMBER_MAX && e->records <= FT_ENVELOPE_RECORDS_MAX &&
           e->record_last >= e->records && e->record_last < NUMBER_MAX && e->partitions > 0 &&
           e->partitions <= FT_INGEST_PARTITIONS_MAX;
}

Fabrictrace__Envelope *ft_envelope_read(const uint8_t *bytes, size_t len)
{
    Fabrictrace__Envelope *e = fabrictrace__envelope__unpack(NULL, len, bytes);

    if (e && is_sound(e))
        return e;
    ft_envelope_free(e);
    return NULL;
}

void ft_envelope_free(Fabrictrace__Envelope *envelope)
{
    if (envelope)
        fabrictrace__envelope__free_unpacked(envelope, NULL);
}
