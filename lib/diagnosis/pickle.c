// SPDX-License-Identifier: Apache-2.0
/*
 * Plain data of a pickle, by the opcodes of Python's pickletools. A container that is got from the
 * memo is taken as it is at that moment, so that none can contain itself.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/base/reader.h"
#include "lib/diagnosis/tree.h"

#define STACK_MAX (1U << 20)
#define MARKS_MAX 64

enum opcode {
    OP_MARK = '(',
    OP_EMPTY_TUPLE = ')',
    OP_STOP = '.',
    OP_POP = '0',
    OP_BINFLOAT = 'G',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_BINUNICODE = 'X',
    OP_EMPTY_LIST = ']',
    OP_APPEND = 'a',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEM = 's',
    OP_TUPLE = 't',
    OP_SETITEMS = 'u',
    OP_EMPTY_DICT = '}',
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE8 = 0x8d,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95,
};

struct pickle {
    struct ft_tree *t;
    struct ft_reader r;
    uint32_t *stack, depth;
    size_t size;
    uint32_t marks[MARKS_MAX], mark_count;
    uint32_t *memo, memo_size, memo_next;
};

static int push(struct pickle *p, const struct ft_tree_node *node)
{
    uint32_t at, *stack;
    int rc = ft_tree_add(p->t, node, &at);

    if (rc)
        return rc;
    if (p->depth == STACK_MAX)
        return -E2BIG;
    stack = ft_grow(p->stack, p->depth, &p->size, sizeof(*stack));
    if (!stack)
        return -ENOMEM;
    p->stack = stack;
    p->stack[p->depth++] = at;
    return 0;
}

static int push_number(struct pickle *p, int64_t number)
{
    return push(p, &(struct ft_tree_node){.kind = FT_TREE_INT, .is.number = number});
}

static int push_text(struct pickle *p, uint64_t len)
{
    const uint8_t *text;

    if (len > UINT32_MAX / 2)
        return -EINVAL;
    text = ft_read_bytes(&p->r, (size_t)len);
    return push(p, &(struct ft_tree_node){.kind = FT_TREE_TEXT,
                                          .is.text = (const char *)text,
                                          .count = text ? (uint32_t)len : 0});
}

/* Two's complement, the least byte first. */
static uint64_t read_le(struct pickle *p, size_t n)
{
    const uint8_t *bytes = ft_read_bytes(&p->r, n);
    uint64_t number = 0;

    for (size_t i = n; bytes && i-- > 0;)
        number = number << 8 | bytes[i];
    return number;
}

static int push_long(struct pickle *p)
{
    size_t n = (size_t)read_le(p, 1);
    uint64_t number;

    if (n > 9)
        return -EINVAL;
    number = read_le(p, n < 8 ? n : 8);
    if (n == 9)
        read_le(p, 1);
    if (n > 0 && n < 8 && number >> (8 * n - 1))
        number |= ~UINT64_C(0) << (8 * n);
    return push_number(p, (int64_t)number);
}

static int push_real(struct pickle *p)
{
    const uint8_t *bytes = ft_read_bytes(&p->r, 8);
    struct ft_tree_node node = {.kind = FT_TREE_REAL};
    uint64_t number = 0;

    for (size_t i = 0; bytes && i < 8; i++)
        number = number << 8 | bytes[i];
    memcpy(&node.is.real, &number, sizeof(number));
    return push(p, &node);
}

static int put(struct pickle *p, uint32_t at)
{
    uint32_t *memo;

    if (p->depth == 0 || at >= FT_TREE_NODES_MAX)
        return -EINVAL;
    if (at >= p->memo_size) {
        uint32_t size = p->memo_size ? p->memo_size : 256;

        while (size <= at)
            size *= 2;
        memo = realloc(p->memo, (size_t)size * sizeof(*memo));
        if (!memo)
            return -ENOMEM;
        memset(memo + p->memo_size, 0xff, (size_t)(size - p->memo_size) * sizeof(*memo));
        p->memo = memo;
        p->memo_size = size;
    }
    p->memo[at] = p->stack[p->depth - 1];
    return 0;
}

static int get(struct pickle *p, uint32_t at)
{
    struct ft_tree_node node;

    if (at >= p->memo_size || p->memo[at] == FT_TREE_NONE)
        return -EINVAL;
    node = p->t->nodes[p->memo[at]];
    return push(p, &node);
}

/* Where the newest mark is, which is taken. */
static int mark_of(struct pickle *p, uint32_t *at)
{
    if (p->mark_count == 0 || p->marks[p->mark_count - 1] > p->depth)
        return -EINVAL;
    *at = p->marks[--p->mark_count];
    return 0;
}

/* Moves what lies from at on into the container below it. */
static int into(struct pickle *p, uint32_t at, enum ft_tree_kind kind)
{
    uint32_t n = p->depth - at;

    if (at == 0 || at > p->depth || (p->mark_count && p->marks[p->mark_count - 1] >= at) ||
        p->t->nodes[p->stack[at - 1]].kind != kind || (kind == FT_TREE_DICT && n % 2))
        return -EINVAL;
    for (uint32_t i = at; i < p->depth; i++)
        ft_tree_append(p->t, p->stack[at - 1], p->stack[i]);
    p->depth = at;
    return 0;
}

/* A tuple is a list of what lies from at on. */
static int tuple(struct pickle *p, uint32_t at)
{
    uint32_t list;
    int rc;

    if (at > p->depth || (p->mark_count && p->marks[p->mark_count - 1] > at))
        return -EINVAL;
    rc = push(p, &(struct ft_tree_node){.kind = FT_TREE_LIST});
    if (rc)
        return rc;
    list = p->stack[--p->depth];
    for (uint32_t i = at; i < p->depth; i++)
        ft_tree_append(p->t, list, p->stack[i]);
    p->depth = at;
    p->stack[p->depth++] = list;
    return 0;
}

static int step_marked(struct pickle *p, enum opcode op)
{
    uint32_t at;
    int rc = mark_of(p, &at);

    if (rc)
        return rc;
    return op == OP_TUPLE ? tuple(p, at)
                          : into(p, at, op == OP_APPENDS ? FT_TREE_LIST : FT_TREE_DICT);
}

static int step_value(struct pickle *p, enum opcode op)
{
    switch (op) {
    case OP_NONE:
        return push(p, &(struct ft_tree_node){.kind = FT_TREE_NULL});
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        return push(p, &(struct ft_tree_node){.kind = FT_TREE_BOOL, .is.number = op == OP_NEWTRUE});
    case OP_BININT:
        return push_number(p, (int32_t)(uint32_t)read_le(p, 4));
    case OP_BININT1:
        return push_number(p, (int64_t)read_le(p, 1));
    case OP_BININT2:
        return push_number(p, (int64_t)read_le(p, 2));
    case OP_LONG1:
        return push_long(p);
    case OP_BINFLOAT:
        return push_real(p);
    case OP_BINUNICODE:
        return push_text(p, read_le(p, 4));
    case OP_SHORT_BINUNICODE:
        return push_text(p, read_le(p, 1));
    case OP_BINUNICODE8:
        return push_text(p, read_le(p, 8));
    case OP_EMPTY_TUPLE:
    case OP_EMPTY_LIST:
        return push(p, &(struct ft_tree_node){.kind = FT_TREE_LIST});
    case OP_EMPTY_DICT:
        return push(p, &(struct ft_tree_node){.kind = FT_TREE_DICT});
    default:
        return -EINVAL;
    }
}

static int step(struct pickle *p, enum opcode op)
{
    switch (op) {
    case OP_PROTO:
        return read_le(p, 1) <= 5 ? 0 : -EINVAL;
    case OP_FRAME:
        read_le(p, 8);
        return 0;
    case OP_MARK:
        if (p->mark_count == MARKS_MAX)
            return -E2BIG;
        p->marks[p->mark_count++] = p->depth;
        return 0;
    case OP_POP:
        return p->depth-- ? 0 : -EINVAL;
    case OP_APPENDS:
    case OP_SETITEMS:
    case OP_TUPLE:
        return step_marked(p, op);
    case OP_APPEND:
        return p->depth < 2 ? -EINVAL : into(p, p->depth - 1, FT_TREE_LIST);
    case OP_SETITEM:
        return p->depth < 3 ? -EINVAL : into(p, p->depth - 2, FT_TREE_DICT);
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        return p->depth < op - OP_TUPLE1 + 1U ? -EINVAL
                                              : tuple(p, p->depth - (op - OP_TUPLE1 + 1U));
    case OP_BINPUT:
        return put(p, (uint32_t)read_le(p, 1));
    case OP_LONG_BINPUT:
        return put(p, (uint32_t)read_le(p, 4));
    case OP_MEMOIZE:
        return put(p, p->memo_next++);
    case OP_BINGET:
        return get(p, (uint32_t)read_le(p, 1));
    case OP_LONG_BINGET:
        return get(p, (uint32_t)read_le(p, 4));
    default:
        return step_value(p, op);
    }
}

int ft_tree_of_pickle(struct ft_tree *t, const uint8_t *bytes, size_t len)
{
    struct pickle p = {.t = t};
    bool stopped = false;
    int rc = 0;

    *t = (struct ft_tree){.nodes_max = t->nodes_max, .task = t->task};
    ft_reader_init(&p.r, bytes, len);
    while (rc == 0 && !stopped) {
        enum opcode op = (enum opcode)read_le(&p, 1);

        stopped = op == OP_STOP;
        if (!stopped && ft_reader_ok(&p.r))
            rc = step(&p, op);
        if (rc == 0 && (!ft_reader_ok(&p.r) || (stopped && p.depth != 1)))
            rc = -EINVAL;
    }
    t->root = rc == 0 ? p.stack[0] : 0;
    free(p.stack);
    free(p.memo);
    if (rc)
        ft_tree_free(t);
    return rc;
}
