// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PUBLISH_FINDINGS_H
#define FT_DAEMON_PUBLISH_FINDINGS_H
/*
 * What is wrong or missing at a switch or port, each with what to do: for `fabrictrace doctor` and
 * for active events. Capped; what is over the cap is counted. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ft_finding_kind {
    FT_FINDING_NOTE,          /* for the doctor only */
    FT_FINDING_CONTRADICTION, /* two sources disagree: a topology_change active event */
    FT_FINDING_LINK_DOWN,     /* a link_down active event */
    FT_FINDING_LINK_SHUT,     /* a link_shut active event */
    FT_FINDING_MISCABLING,    /* a miscabling active event */
};

struct ft_finding {
    enum ft_finding_kind kind;
    char switch_name[128]; /* "": of the fabric */
    char port[128];        /* "": of the switch */
    char peer[128];        /* "" likewise */
    char peer_port[128];
    bool shut, peer_shut; /* by its administrator: the port, or that of the peer */
    char found[128];      /* where samples say that it leads instead; "" likewise */
    char found_port[128];
    uint64_t samples;
    uint32_t flows;
    char text[320];
    bool blind;   /* the switch itself says nothing: whatever else is missing follows from it */
    bool of_host; /* switch_name is a host's, port a device's */
    const char *advice; /* a literal: what to do; NULL: nothing to say */
    int64_t since_ms;   /* 0: not known */
};

struct ft_findings {
    struct ft_finding *items;
    size_t count, size;
    uint64_t dropped;
};

#define FT_FINDINGS_MAX       2000
#define FT_FINDINGS_BYTES_MAX (FT_FINDINGS_MAX * sizeof(struct ft_finding))

/* Starts empty when all zero. */
void ft_findings_free(struct ft_findings *f);

/* Adds one, printed like printf. switch_name and port may be NULL; advice must live on. The result
 * may be completed by the caller; NULL when there is no room. */
struct ft_finding *ft_findings_add(struct ft_findings *f, enum ft_finding_kind kind,
                                   const char *switch_name, const char *port, const char *advice,
                                   const char *format, ...) __attribute__((format(printf, 6, 7)));

#endif
