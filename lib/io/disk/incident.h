// SPDX-License-Identifier: Apache-2.0
#ifndef FT_IO_DISK_INCIDENT_H
#define FT_IO_DISK_INCIDENT_H
/*
 * The file of an incident, as fabrictrace-incident(5) describes it: a mark with the version of the
 * format, then sections, each packed and with a checksum, the last of which says that the file is
 * complete. What is in a section is its user's. Files are foreign: whatever is in them, a reader
 * gives the sections that are complete, and says at which byte it went wrong. Thread: one.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/writer.h"

#define FT_INCIDENT_CONTENT_TYPE      "application/vnd.fabrictrace.incident"
#define FT_INCIDENT_SECTION_BYTES_MAX ((size_t)8 << 20)

enum ft_incident_kind {
    FT_INCIDENT_HEAD = 1, /* settings and times, as YAML */
    FT_INCIDENT_TOPOLOGY, /* the topology file at the beginning; several: one behind the other */
    FT_INCIDENT_RECORDS,  /* what came in, and when (daemon/incident/entry.h) */
    FT_INCIDENT_HISTORY,  /* windows and events as they were published; several, as above */
    FT_INCIDENT_EVENTS,   /* those that stood at the end */
    FT_INCIDENT_END,
};

/* Appends the mark. */
void ft_incident_begin(struct ft_writer *w);

/* Appends a section of at most FT_INCIDENT_SECTION_BYTES_MAX; more is -EMSGSIZE. -ENOMEM. */
int ft_incident_section(struct ft_writer *w, enum ft_incident_kind kind, const void *bytes,
                        size_t len);

/* Appends as many sections of a kind as it takes. */
int ft_incident_sections(struct ft_writer *w, enum ft_incident_kind kind, const void *bytes,
                         size_t len);

struct ft_incident_read {
    uint8_t kind; /* also one that this version does not know */
    const uint8_t *bytes;
    size_t len;
    uint64_t offset; /* of the section in the file */
};

struct ft_incident;

/* Reads a stream, which stays the caller's, once and forward. NULL without memory. */
struct ft_incident *ft_incident_open(FILE *in);
void ft_incident_close(struct ft_incident *incident);

/* The next section; its bytes are good until the next call. 1; 0 behind the end; -EBADMSG: the file
 * is none, is damaged or cut short; -ENOTSUP: its version or packing is not known here; -ENOMEM; or
 * what reading said. */
int ft_incident_next(struct ft_incident *incident, struct ft_incident_read *out);

/* What was wrong, for a person: "at byte 123: ...". */
const char *ft_incident_problem(const struct ft_incident *incident);

#endif
