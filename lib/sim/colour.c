// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/sim/colour.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NO_EDGE UINT32_MAX

/* at[side][vertex * colours + colour]: the edge of that colour. */
struct colouring {
    const struct ft_edge *edges;
    uint32_t colours;
    uint32_t *at[2];
    uint32_t *colour;
    uint32_t *path; /* of exchange(): at most every edge */
};

static uint32_t vertex_of(const struct colouring *c, uint32_t edge, int side)
{
    return side ? c->edges[edge].right : c->edges[edge].left;
}

static uint32_t *cell(const struct colouring *c, int side, uint32_t vertex, uint32_t colour)
{
    return &c->at[side][(size_t)vertex * c->colours + colour];
}

static void paint(struct colouring *c, uint32_t edge, uint32_t colour)
{
    c->colour[edge] = colour;
    *cell(c, 0, c->edges[edge].left, colour) = edge;
    *cell(c, 1, c->edges[edge].right, colour) = edge;
}

/* Exchanges colours a and b on the path that leaves a right vertex by a. It does not come to a left
 * vertex where a is free: such a one could only be entered by a. */
static void exchange(struct colouring *c, uint32_t right, uint32_t a, uint32_t b)
{
    uint32_t vertex = right, colour = a, count = 0, edge;
    int side = 1;

    while ((edge = *cell(c, side, vertex, colour)) != NO_EDGE) {
        c->path[count++] = edge;
        side = !side;
        vertex = vertex_of(c, edge, side);
        colour = colour == a ? b : a;
    }
    for (uint32_t i = 0; i < count; i++) {
        edge = c->path[i];
        *cell(c, 0, c->edges[edge].left, c->colour[edge]) = NO_EDGE;
        *cell(c, 1, c->edges[edge].right, c->colour[edge]) = NO_EDGE;
    }
    for (uint32_t i = 0; i < count; i++)
        paint(c, c->path[i], c->colour[c->path[i]] == a ? b : a);
}

/* Begins at a colour that differs from edge to edge, so that few edges spread over all colours. */
static void add_edge(struct colouring *c, uint32_t edge)
{
    uint32_t left = c->edges[edge].left, right = c->edges[edge].right;
    uint32_t a = NO_EDGE, b = NO_EDGE, at = (left + right) % c->colours;

    for (uint32_t i = 0; i < c->colours; i++, at = at + 1 == c->colours ? 0 : at + 1) {
        bool l = *cell(c, 0, left, at) == NO_EDGE, r = *cell(c, 1, right, at) == NO_EDGE;

        if (l && r) {
            paint(c, edge, at);
            return;
        }
        if (l && a == NO_EDGE)
            a = at;
        if (r && b == NO_EDGE)
            b = at;
    }
    assert(a != NO_EDGE && b != NO_EDGE);
    exchange(c, right, a, b);
    paint(c, edge, a);
}

int ft_colour_proper(const struct ft_edge *edges, uint32_t count, uint32_t lefts, uint32_t rights,
                     uint32_t colours, uint32_t *colour)
{
    struct colouring c = {.edges = edges, .colours = colours, .colour = colour};
    size_t size[2] = {(size_t)lefts * colours, (size_t)rights * colours};
    int rc = 0;

    c.path = malloc(((size_t)count + 1) * sizeof(*c.path));
    if (!c.path)
        rc = -ENOMEM;
    for (int side = 0; side < 2; side++) {
        c.at[side] = malloc((size[side] + 1) * sizeof(*c.at[side]));
        if (!c.at[side])
            rc = -ENOMEM;
        else
            memset(c.at[side], 0xff, size[side] * sizeof(*c.at[side]));
    }
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        add_edge(&c, i);
    free(c.at[0]);
    free(c.at[1]);
    free(c.path);
    return rc;
}

/* Numbers the parts of the vertices of one side: the i-th edge of a vertex belongs to its part
 * i / colours. Returns the number of parts, NO_EDGE without memory. */
static uint32_t divide(const struct ft_edge *edges, uint32_t count, uint32_t vertices, int side,
                       uint32_t colours, struct ft_edge *parts)
{
    uint32_t *degree = calloc((size_t)vertices + 1, sizeof(*degree));
    uint32_t *first = calloc((size_t)vertices + 1, sizeof(*first));
    uint32_t next = 0;

    for (uint32_t i = 0; degree && i < count; i++)
        degree[side ? edges[i].right : edges[i].left]++;
    for (uint32_t v = 0; degree && first && v < vertices; v++) {
        first[v] = next;
        next += degree[v] / colours + (degree[v] % colours != 0);
        degree[v] = 0;
    }
    for (uint32_t i = 0; degree && first && i < count; i++) {
        uint32_t v = side ? edges[i].right : edges[i].left;

        *(side ? &parts[i].right : &parts[i].left) = first[v] + degree[v]++ / colours;
    }
    if (!degree || !first)
        next = NO_EDGE;
    free(degree);
    free(first);
    return next;
}

int ft_colour_edges(const struct ft_edge *edges, uint32_t count, uint32_t lefts, uint32_t rights,
                    uint32_t colours, uint32_t *colour)
{
    struct ft_edge *parts = calloc((size_t)count + 1, sizeof(*parts));
    uint32_t left_parts = NO_EDGE, right_parts = NO_EDGE;
    int rc = -ENOMEM;

    if (parts) {
        left_parts = divide(edges, count, lefts, 0, colours, parts);
        right_parts = divide(edges, count, rights, 1, colours, parts);
    }
    if (left_parts != NO_EDGE && right_parts != NO_EDGE)
        rc = ft_colour_proper(parts, count, left_parts, right_parts, colours, colour);
    free(parts);
    return rc;
}
