// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_NUMBERS_H
#define FT_FABRIC_NUMBERS_H
/*
 * How much a queue pair sent, by the numbers of its sampled packets.
 *
 * The data packets of a connected queue pair are numbered one by one (PSN, 24 bits). Of c packets
 * drawn at random, the lowest and the highest lie so far apart that span (c + 1) / (c - 1) is how
 * many were sent, and span over that number has the distribution Beta(c - 1, 2): an error of about
 * sqrt(2) / c, where counting samples has 1 / sqrt(c). Packets that were sent again have their
 * number already: they are not counted.
 *
 * A READ takes the numbers of its responses, which the peer sends: the numbers of a flow of
 * requests are its own packets unless it READs, and those of a flow of responses unless the peer
 * sends requests beside its READs. Either shows in the flow's samples or in those of its reverse,
 * as often as the numbers that it takes.
 *
 * Samples come later than the packets that they are of, so that those of a window are of somewhat
 * more or less than that. By how much is common to all of one source, and learnt of it (holds.h):
 * each has its row, and its interval is wider by what the flow sends in that time at both ends. Of
 * two sources that saw the flow the one counts that says it more exactly. A row of a part of the
 * window does not count: its source was away for the rest, or packets took another path there. That
 * shows where samples of others are clearly before it or after it. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "lib/fabric/holds.h"

/* Samples of a flow at one port pair, folded over a second or so. */
struct ft_numbered {
    uint32_t qp;         /* destination */
    uint32_t samples;    /* of numbered packets; 0: none of this */
    uint32_t low;        /* their lowest number, 24 bits */
    uint32_t span;       /* from it to the highest, unwrapped */
    uint32_t back;       /* samples with a lower number than one before */
    uint32_t starts;     /* first packets of messages */
    uint32_t acks;       /* samples of the flow that are not numbered */
    uint32_t naks, rnrs; /* of them */
    uint32_t no_credits; /* of them: positive, but no receive is posted */
    uint32_t frame_min, frame_max;
    uint64_t packets; /* that they all stand for, numbered or not */
    uint64_t bytes;
    int64_t first_ms, last_ms;
    int64_t start_ms;     /* of the interval that they were folded over */
    uint32_t interval_ms; /* its length; 0: not known */
    uint32_t source;      /* who took the samples */
    bool odd;             /* there were packets of data that are not numbered in one row */
    bool requests;        /* there were some with numbers of the sender, or may have been */
    bool responses;       /* likewise, of the peer: answers to READs */
    bool reads;           /* there were READs */
};

/* Of one source. Positions are after low; moments the low 32 bits of their ms. */
struct ft_numbers_row {
    uint32_t source, samples;
    uint32_t low, span;
    uint32_t at; /* the first number of the newest second */
    uint32_t first_ms, last_ms;
    uint32_t start_ms;    /* of the newest interval */
    uint32_t from, to;    /* its lowest and highest number */
    uint32_t before_to;   /* the highest of the interval before */
    uint32_t middle;      /* between that one and the one before it; 0: not known */
    uint32_t sent;        /* from the middle before to that one; 0: not known */
    uint16_t interval_ms; /* 0: too long to learn of lags */
    uint16_t in[3];       /* samples of the newest interval, and of those before; 0: none */
    uint16_t first_in;    /* of the first interval */
    uint16_t broken : 1;  /* they cannot be put in one row */
    uint16_t back : 15;   /* samples with a lower number than one before; so many or more */
    uint32_t first_start_ms;
};

#define FT_NUMBERS_ROWS 2

/* Those of one flow in one window. All zero: none yet. */
struct ft_numbers {
    struct ft_numbers_row rows[FT_NUMBERS_ROWS];
    uint32_t samples, back, starts, acks;
    uint32_t first_ms, last_ms; /* of all sources, those without a row too */
    uint32_t qp : 24;
    bool broken : 1;                             /* they are not of one numbering */
    bool requests : 1, responses : 1, reads : 1; /* as in struct ft_numbered */
    uint16_t frame_min, frame_max;
    uint16_t naks, rnrs, no_credits;
    uint64_t packets; /* of the numbered ones */
    uint64_t bytes;   /* of all */
};

/* What it says of its source's lags is noted; holds may be NULL. */
void ft_numbers_add(struct ft_numbers *n, const struct ft_numbered *more, struct ft_holds *holds);

/* What was sent, with 95 % intervals. */
struct ft_numbers_sent {
    double packets, packets_lo, packets_hi; /* numbered, each once */
    double bytes, bytes_lo, bytes_hi;       /* of them, and of acknowledgements between them */
    double error;                           /* standard error of the bytes, as a part of them */
};

/* Fewer samples say too little. */
#define FT_NUMBERS_MIN 5

/* Whether the flow sent right before a window, and right after it; and the rows of sources that are
 * known to have been away for a part of it, a bit each. */
struct ft_numbers_beside {
    bool before, after;
    uint8_t away;
};

/* Whether a flow's numbers are those of its packets alone, as far as its samples and those of its
 * reverse show; reverse may be NULL. */
bool ft_numbers_are_own(const struct ft_numbers *n, const struct ft_numbers *reverse);

/* Whether samples of `later` follow on those of `n`, a window before. */
bool ft_numbers_go_on(const struct ft_numbers *n, const struct ft_numbers *later);

/* What was sent in a window. counted_bytes is what counting `counted`
 * samples says of the same time. False: the numbers say nothing, or what counting contradicts. *out
 * is written only where they do. */
bool ft_numbers_sent(const struct ft_numbers *n, struct ft_holds *holds,
                     struct ft_numbers_beside beside, double counted_bytes, uint64_t counted,
                     struct ft_numbers_sent *out);

/* The part of all packets that the span of c samples exceeds with probability 1 - p: the quantile
 * of Beta(c - 1, 2). */
double ft_span_quantile(uint64_t c, double p);

#endif
