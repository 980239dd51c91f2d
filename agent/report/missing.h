// SPDX-License-Identifier: Apache-2.0
#ifndef FT_AGENT_REPORT_MISSING_H
#define FT_AGENT_REPORT_MISSING_H
/*
 * What the agent does not see of its host, and what would let it: from what it may do, what it is
 * configured to do and what it found so far. Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FT_MISSING_MAX        16
#define FT_MISSING_TEXT_BYTES 160

struct ft_missing {
    const char *what;       /* "capture", "destinations", "source_ports", "owners" or "jobs" */
    const char *capability; /* NULL: none would help, or it is held */
    const char *setting;    /* NULL: set already, or none would help */
    char adds[FT_MISSING_TEXT_BYTES];
};

/* A driver of the host's RDMA devices. */
struct ft_missing_driver {
    const char *name; /* NULL: unknown here */
    bool computed;    /* its source ports follow the kernel's formula */
};

struct ft_sight {
    unsigned held;   /* enum ft_privilege */
    bool interfaces; /* some are configured */
    bool captures;   /* and open, or none is */
    bool query;      /* rdma.query */
    bool no_trace;   /* the kernel lets nobody trace (kernel.yama.ptrace_scope is 3) */
    bool no_context; /* a device with raw contexts refused to report one to us, who may ask */
    size_t devices;  /* RDMA devices; with none, nothing is said of them */
    size_t driver_count;
    const struct ft_missing_driver *drivers;      /* of the devices, each once */
    bool has_contexts;                            /* one of them reports raw contexts: mlx5 */
    uint64_t connected, no_destination, no_owner; /* queue pairs */
    size_t owners, denied, hidden;                /* struct ft_owners_stats */
};

/* At most FT_MISSING_MAX, the graver ones first. Returns how many. */
size_t ft_missing_list(const struct ft_sight *sight,
                       struct ft_missing missing_capabilities[FT_MISSING_MAX]);

/* "not seen without CAP_SYS_PTRACE and rdma.query: the destinations of queue pairs". */
void ft_missing_text(const struct ft_missing *missing, char *text, size_t text_bytes);

#endif
