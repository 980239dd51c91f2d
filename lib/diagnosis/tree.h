// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DIAGNOSIS_TREE_H
#define FT_DIAGNOSIS_TREE_H
/*
 * Plain data as programs write it, of JSON (RFC 8259) or of Python's pickle: numbers, texts, lists
 * and mappings.
 *
 * Of a pickle the opcodes that build such data are read, of protocols 2 to 5; one that names a
 * class, calls anything or refers outside is refused: nothing is ever executed. Bounded in nodes
 * and depth. Pure. Owner: the caller; texts are borrowed from the bytes, which JSON's reader
 * changes. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ft_task;

#define FT_TREE_NODES_MAX (4U << 20)
#define FT_TREE_NONE      UINT32_MAX

enum ft_tree_kind {
    FT_TREE_NULL,
    FT_TREE_BOOL,
    FT_TREE_INT,
    FT_TREE_REAL,
    FT_TREE_TEXT,
    FT_TREE_LIST,
    FT_TREE_DICT, /* keys and values in turn */
};

struct ft_tree_node {
    union {
        int64_t number;
        double real;
        const char *text; /* not terminated */
        struct {
            uint32_t first, last;
        } children;
    } is;
    uint32_t count; /* bytes of a text, children */
    uint32_t next;  /* after it in its list */
    enum ft_tree_kind kind;
};

/* Set before it is read into: the last two, or all zero. */
struct ft_tree {
    struct ft_tree_node *nodes;
    uint32_t count, root;
    size_t size;
    uint32_t nodes_max;   /* 0: NODES_MAX */
    struct ft_task *task; /* that each node counts as work for; NULL: none */
};

/* -EINVAL: it is no JSON, or a pickle with more than plain data; -E2BIG; -ENOMEM. */
int ft_tree_of_json(struct ft_tree *t, char *text, size_t len);
int ft_tree_of_pickle(struct ft_tree *t, const uint8_t *bytes, size_t len);
void ft_tree_free(struct ft_tree *t);

/* For its readers: a new node, and one more child. NONE and -E2BIG or -ENOMEM. */
int ft_tree_add(struct ft_tree *t, const struct ft_tree_node *node, uint32_t *at);
void ft_tree_append(struct ft_tree *t, uint32_t parent, uint32_t child);

/* The value of a key; NONE: it is not a mapping, or has none. */
uint32_t ft_tree_get(const struct ft_tree *t, uint32_t dict, const char *key);
bool ft_tree_is(const struct ft_tree *t, uint32_t node, enum ft_tree_kind kind);
/* The first child, and the one after; NONE. */
uint32_t ft_tree_first(const struct ft_tree *t, uint32_t node);

/* A copy of a text, cut to fit; "" where it is none. */
void ft_tree_text(const struct ft_tree *t, uint32_t node, char *to, size_t size);
/* Whole numbers; of another kind false. */
bool ft_tree_number(const struct ft_tree *t, uint32_t node, int64_t *number);

#endif
