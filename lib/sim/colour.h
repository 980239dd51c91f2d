// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SIM_COLOUR_H
#define FT_SIM_COLOUR_H
/*
 * Edge colouring of bipartite multigraphs: flows are edges between the leaf that sends and the leaf
 * that receives, colours are the links that both may take.
 *
 * König (1916): as many colours as the highest degree are enough, found by exchanging two colours
 * along an alternating path. A vertex of higher degree is divided into vertices of at most
 * `colours` edges each, in the order of the edges; so each colour occurs at a vertex of degree d at
 * least floor(d / colours) times and at most ceil(d / colours) times (de Werra 1971). With edges in
 * falling order of weight no colour carries more at a vertex than an even share and the heaviest
 * edge: each part's heaviest edge weighs at most the mean of the part before it. Pure.
 */
#include <stdint.h>

struct ft_edge {
    uint32_t left;
    uint32_t right;
};

/* Vertices are below lefts and rights, colours > 0; colour[count] is filled. -ENOMEM. */
int ft_colour_edges(const struct ft_edge *edges, uint32_t count, uint32_t lefts, uint32_t rights,
                    uint32_t colours, uint32_t *colour);

/* The same where no vertex has more edges than there are colours: no colour twice at a vertex. */
int ft_colour_proper(const struct ft_edge *edges, uint32_t count, uint32_t lefts, uint32_t rights,
                     uint32_t colours, uint32_t *colour);

#endif
