// SPDX-License-Identifier: Apache-2.0
#ifndef FT_FABRIC_TOMOGRAPHY_H
#define FT_FABRIC_TOMOGRAPHY_H
/*
 * Counter tomography: on which of some parallel links flows are, from what the links counted and
 * what the flows sent over many windows.
 *
 * What a link counts is the sum of what its flows sent. Each flow's part of each link is found by
 * least squares over the older three quarters of the windows; one that is about 1 on one link and
 * about 0 on all others is that link. This is inference, with conditions: flows whose rates vary
 * alike, or not at all, cannot be distinguished and get no answer; nor do those whose parts are not
 * known well enough; and the newest quarter of the windows must be so well explained by the answers
 * that a flow on another link than its own would show, and no worse than the older ones, but for
 * chance: two flows that exchange their links leave little over. That holds for flows that stay on
 * one link: one that is sprayed, or moved within the windows, has no part near 1. Whether an answer
 * is still true is for ft_tomography_verify() to say.
 *
 * Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fewer windows with traffic say nothing. */
#define FT_TOMOGRAPHY_WINDOWS_LEAST 20

/* A row a window, the oldest first; what a window has of both is in the same unit. */
struct ft_tomography_windows {
    size_t count;
    size_t flows, links;
    const double *sent;    /* count x flows: by each flow, by its host's figures */
    const double *counted; /* count x links: by each link, without what is known of other flows */
};

enum ft_tomography_state {
    FT_TOMOGRAPHY_ANSWERED,
    FT_TOMOGRAPHY_FEW,         /* windows, for so many flows, or the flow sent in too few of them */
    FT_TOMOGRAPHY_ALIKE,       /* not to be distinguished from others: their rates vary alike */
    FT_TOMOGRAPHY_VAGUE,       /* its parts are not near 1 and 0, or not known well enough */
    FT_TOMOGRAPHY_UNEXPLAINED, /* the newest windows are not explained well enough for its rate */
    FT_TOMOGRAPHY_UNVERIFIED,  /* of ft_tomography_verify() */
    FT_TOMOGRAPHY_STATES,
};

struct ft_tomography_flow {
    enum ft_tomography_state state;
    uint32_t link; /* where it is answered: from 0 */
};

struct ft_tomography {
    size_t windows;    /* with traffic */
    double condition;  /* largest singular value by the smallest; infinity: it is 0 */
    double unfitted;   /* root mean square of what the answers leave over in the newest windows, of
                          the link where that is most, as a part of what all flows sent */
    uint32_t answered; /* flows */
};

/* One entry of flows[] for each flow. parts: flows x links, what of a flow is on which link, as the
 * answers say it and else as it was fitted; of a flow that sent nothing 0. noise: by link, root
 * mean square of what the answers leave over in the windows that they were learnt from, as a part
 * of what all flows sent; 0 where nothing was solved. -ENOMEM, -EDOM: the decomposition did not
 * converge; then nothing is written. About windows x flows^2 operations. */
int ft_tomography_infer(const struct ft_tomography_windows *windows,
                        struct ft_tomography_flow *flows, double *parts, double *noise,
                        struct ft_tomography *out);

/* Whether the answers hold in later windows: what they leave over of each link is too little for
 * the smallest flow that is answered to be elsewhere, and in all of them no more than noise, that
 * of ft_tomography_infer(), explains. Flows in state FEW may be anywhere. */
bool ft_tomography_holds(const struct ft_tomography_windows *window,
                         const struct ft_tomography_flow *flows, const double *parts,
                         const double *noise);

/* An answer becomes UNVERIFIED, and keeps its link, unless the newest windows rule out that its
 * flow has left the link since, alone or in exchange for another: flows that send nearly alike and
 * exchange their links leave little over. How much less likely the figures would be after such a
 * change, from each of these windows on, is weighed against how often routes change. A change in
 * the newest window alone is not looked for. noise: of ft_tomography_infer(). Without memory,
 * or with one window, all are unverified. About windows x flows^2 operations. */
void ft_tomography_verify(const struct ft_tomography_windows *newest, const double *parts,
                          const double *noise, struct ft_tomography_flow *flows);

const char *ft_tomography_state_name(enum ft_tomography_state state);

#endif
