// SPDX-License-Identifier: Apache-2.0
/*
 * JSON and pickles as trees: what Python writes is read as it was, and nothing else is. The pickles
 * are those of Python 3.11's pickle.dumps().
 */
#include "config.h"

#include "lib/diagnosis/tree.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct ft_tree t;

static int json(const char *text)
{
    static char copy[4096];

    snprintf(copy, sizeof(copy), "%s", text);
    return ft_tree_of_json(&t, copy, strlen(copy));
}

static void append(char *to, size_t size, const char *text)
{
    size_t len = strlen(to);

    snprintf(to + len, size - len, "%s", text);
}

/* A tree as text: what it is, not how it was written. */
static void print(uint32_t node, char *to, size_t size)
{
    const struct ft_tree_node *n = &t.nodes[node];
    const char *close = n->kind == FT_TREE_LIST ? "]" : "}";
    char text[256];

    switch (n->kind) {
    case FT_TREE_NULL:
        append(to, size, "null");
        return;
    case FT_TREE_BOOL:
        append(to, size, n->is.number ? "true" : "false");
        return;
    case FT_TREE_INT:
        snprintf(text, sizeof(text), "%lld", (long long)n->is.number);
        append(to, size, text);
        return;
    case FT_TREE_REAL:
        snprintf(text, sizeof(text), "r%.17g", n->is.real);
        append(to, size, text);
        return;
    case FT_TREE_TEXT:
        ft_tree_text(&t, node, text, sizeof(text));
        append(to, size, "'");
        append(to, size, text);
        append(to, size, "'");
        return;
    case FT_TREE_LIST:
    case FT_TREE_DICT:
        append(to, size, n->kind == FT_TREE_LIST ? "[" : "{");
        for (uint32_t at = ft_tree_first(&t, node); at != FT_TREE_NONE; at = t.nodes[at].next) {
            print(at, to, size);
            append(to, size, ",");
        }
        append(to, size, close);
        return;
    }
}

static void check_tree(const char *want)
{
    char text[4096] = "";

    print(t.root, text, sizeof(text));
    ck_assert_str_eq(text, want);
    ft_tree_free(&t);
    ck_assert_uint_eq(t.count, 0);
}

START_TEST(json_is_read_as_it_was)
{
    static const char *const texts[][2] = {
        {"0", "0"},
        {" [ ] ", "[]"},
        {"{}", "{}"},
        {"[1,-2,[3,{\"a\":null}],true,false]", "[1,-2,[3,{'a',null,},],true,false,]"},
        {"{\"k\" : \"v\",\n\t\"k2\":1.5}", "{'k','v','k2',r1.5,}"},
        {"\" ~a\\\"b\\\\c\\/d\\n\\u00e9x\"", "' ~a\"b\\c/d??x'"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"9223372036854775808", "r9.2233720368547758e+18"},
        {"1e3", "r1000"},
        {"\"\"", "''"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        ck_assert_msg(json(texts[i][0]) == 0, "%s", texts[i][0]);
        check_tree(texts[i][1]);
    }
}
END_TEST

START_TEST(what_is_no_json_is_refused)
{
    static const char *const texts[] = {
        "",          " ",      "[",       "]",         "{",         "[1",     "[1,",
        "[1,]",      "[,1]",   "[1 2]",   "{\"a\"}",   "{\"a\":}",  "{1:2}",  "{\"a\":1,}",
        "{\"a\" 1}", "\"a",    "\"a\\\"", "\"\\x41\"", "\"\\u00\"", "\"\n\"", "tru",
        "nul",       "{\"a\"", "\"\\",    "\"\\u00e9", "truefalse", "1 2",    "1.2.3",
        "-",         "e",      "0x10",    "nan",       "Infinity",  "'a'",    "[1]]",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        ck_assert_msg(json(texts[i]) == -EINVAL, "%s", texts[i]);
        ck_assert_ptr_null(t.nodes);
    }
}
END_TEST

/* Whoever writes "[[[[..." cannot use up the stack. */
START_TEST(nesting_has_an_end)
{
    static char text[2001];
    int last = 0;

    for (size_t depth = 1; depth <= 1000; depth += depth < 60 ? 1 : 47) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        last = ft_tree_of_json(&t, text, 2 * depth);
        ck_assert_int_eq(last, depth <= 49 ? 0 : -E2BIG);
        ft_tree_free(&t);
    }
    ck_assert_int_eq(last, -E2BIG);
}
END_TEST

START_TEST(numbers_and_texts)
{
    uint32_t node;
    int64_t number = 7;
    char text[5];

    ck_assert_int_eq(json("[12.9,-3,1e300,\"abcdefgh\",\"a\tb\",true]"), -EINVAL); /* a bare tab */
    ck_assert_int_eq(json("[12.9,-3,1e300,\"abcdefgh\",\"a\\tb\",true]"), 0);
    node = ft_tree_first(&t, t.root);
    ck_assert(ft_tree_number(&t, node, &number));
    ck_assert_int_eq(number, 12);
    node = t.nodes[node].next;
    ck_assert(ft_tree_number(&t, node, &number));
    ck_assert_int_eq(number, -3);
    node = t.nodes[node].next;
    ck_assert(!ft_tree_number(&t, node, &number)); /* no whole number has room for it */
    ck_assert_int_eq(number, -3);
    node = t.nodes[node].next;
    ck_assert(!ft_tree_number(&t, node, &number));
    ft_tree_text(&t, node, text, sizeof(text));
    ck_assert_str_eq(text, "abcd");
    node = t.nodes[node].next;
    ft_tree_text(&t, node, text, sizeof(text));
    ck_assert_str_eq(text, "a?b");
    node = t.nodes[node].next;
    ck_assert(!ft_tree_number(&t, node, &number));
    ft_tree_text(&t, node, text, sizeof(text));
    ck_assert_str_eq(text, "");
    ck_assert_uint_eq(t.nodes[node].next, FT_TREE_NONE);
    ft_tree_text(&t, FT_TREE_NONE, text, sizeof(text));
    ck_assert_str_eq(text, "");
    ck_assert(!ft_tree_number(&t, FT_TREE_NONE, &number));
    ck_assert_uint_eq(ft_tree_first(&t, node), FT_TREE_NONE);
    ft_tree_free(&t);
}
END_TEST

START_TEST(keys_are_found)
{
    int64_t number = 0;
    uint32_t inner;

    ck_assert_int_eq(json("{\"a\":1,\"ab\":{\"a\":2},\"b\":\"a\",\"a\":3}"), 0);
    ck_assert(ft_tree_number(&t, ft_tree_get(&t, t.root, "a"), &number));
    ck_assert_int_eq(number, 1); /* the first of two */
    inner = ft_tree_get(&t, t.root, "ab");
    ck_assert(ft_tree_is(&t, inner, FT_TREE_DICT));
    ck_assert(ft_tree_number(&t, ft_tree_get(&t, inner, "a"), &number));
    ck_assert_int_eq(number, 2);
    ck_assert_uint_eq(ft_tree_get(&t, t.root, ""), FT_TREE_NONE);
    ck_assert_uint_eq(ft_tree_get(&t, t.root, "abc"), FT_TREE_NONE);
    /* A value is no key, and other kinds have none. */
    ck_assert_uint_eq(ft_tree_get(&t, ft_tree_get(&t, t.root, "b"), "a"), FT_TREE_NONE);
    ck_assert_uint_eq(ft_tree_get(&t, FT_TREE_NONE, "a"), FT_TREE_NONE);
    ft_tree_free(&t);
}
END_TEST

struct bytes {
    const char *bytes;
    size_t len;
    const char *want;
};

#define BYTES(text) text, sizeof(text) - 1

/* {"a": [1, -1, 255, 65535, 70000, -2**40, 2**62, 1.5, None, True, (1,), (1, 2), (), "é."]} of
 * protocols 2 and 4. */
#define LIST                                                                                       \
    "[1,-1,255,65535,70000,-1099511627776,4611686018427387904,r1.5,null,true,[1,],[1,2,],[],'??.'" \
    ","                                                                                            \
    "]"

static const struct bytes dumps[] = {
    {BYTES("\x80\x02}q\x00X\x01\x00\x00\x00"
           "aq\x01]q\x02(K\x01J\xff\xff\xff\xffK\xffM\xff\xffJp\x11\x01\x00\x8a\x06\x00\x00\x00\x00"
           "\x00\xff\x8a\x08\x00\x00\x00\x00\x00\x00\x00@G?\xf8\x00\x00\x00\x00\x00\x00N\x88K\x01"
           "\x85q\x03K\x01K\x02\x86q\x04)X\x03\x00\x00\x00\xc3\xa9.q\x05"
           "es."),
     "{'a'," LIST ",}"},
    {BYTES("\x80\x04\x95\x4b\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01"
           "a\x94]\x94(K\x01J\xff\xff\xff\xffK\xffM\xff\xffJp\x11\x01\x00\x8a\x06\x00\x00\x00\x00"
           "\x00\xff\x8a\x08\x00\x00\x00\x00\x00\x00\x00@G?\xf8\x00\x00\x00\x00\x00\x00N\x88K\x01"
           "\x85\x94K\x01K\x02\x86\x94)\x8c\x03\xc3\xa9.\x94"
           "es."),
     "{'a'," LIST ",}"},
    /* {"x": 1, "y": [2, [3]]}, then the same text twice by the memo: ["ab", "ab"] */
    {BYTES("\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01x\x94K\x01\x8c\x01y\x94]\x94("
           "K\x02]\x94K\x03"
           "a"
           "eu."),
     "{'x',1,'y',[2,[3,],],}"},
    {BYTES("\x8a\x01\x80."), "-128"},
    {BYTES("\x8a\x01\x7f."), "127"},
    {BYTES("\x8a\x02\xff\x00."), "255"},
    {BYTES("\x8a\x00."), "0"},
    {BYTES("\x80\x05K\x01\x85."), "[1,]"},
    {BYTES("\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00]\x94(\x8c\x02"
           "ab\x94h\x01"
           "e."),
     "['ab','ab',]"},
};

START_TEST(pickles_are_read_as_they_were)
{
    for (size_t i = 0; i < sizeof(dumps) / sizeof(dumps[0]); i++) {
        ck_assert_msg(ft_tree_of_pickle(&t, (const uint8_t *)dumps[i].bytes, dumps[i].len) == 0,
                      "dump %zu", i);
        check_tree(dumps[i].want);
    }
}
END_TEST

START_TEST(a_pickle_that_is_cut_is_refused)
{
    for (size_t i = 0; i < sizeof(dumps) / sizeof(dumps[0]); i++)
        for (size_t len = 0; len < dumps[i].len; len++)
            ck_assert_msg(ft_tree_of_pickle(&t, (const uint8_t *)dumps[i].bytes, len) == -EINVAL,
                          "dump %zu, %zu bytes", i, len);
}
END_TEST

/* What runs code, or leaves the stack, the marks or the memo. */
START_TEST(a_hostile_pickle_is_refused)
{
    static const struct bytes all[] = {
        {BYTES("cos\nsystem\n(S'id'\ntR."), NULL},              /* GLOBAL, REDUCE */
        {BYTES("\x80\x04\x8c\x02os\x8c\x06system\x93."), NULL}, /* STACK_GLOBAL */
        {BYTES("\x80\x06N."), NULL},                            /* a protocol that is none */
        {BYTES("."), NULL},                                     /* nothing */
        {BYTES("NN."), NULL},                                   /* two things */
        {BYTES("0."), NULL},                                    /* POP of nothing */
        {BYTES("K\x01"
               "e."),
         NULL},               /* APPENDS without a mark */
        {BYTES("(e."), NULL}, /* APPENDS to nothing */
        {BYTES("K\x01(K\x02"
               "e."),
         NULL},                     /* to a number */
        {BYTES("](K\x01u."), NULL}, /* SETITEMS to a list */
        {BYTES("}(K\x01u."), NULL}, /* a key without a value */
        {BYTES("K\x01"
               "a."),
         NULL},                       /* APPEND to nothing */
        {BYTES("\x85."), NULL},       /* a tuple of nothing */
        {BYTES("(K\x01\x86."), NULL}, /* over a mark */
        {BYTES("]K\x01(0\x85"
               "a."),
         NULL},                               /* a mark above the stack */
        {BYTES("h\x00."), NULL},              /* a memo that was not put */
        {BYTES("q\x00N."), NULL},             /* nothing to put */
        {BYTES("Nr\xff\xff\xff\xff."), NULL}, /* far away in the memo */
        {BYTES("X\xff\xff\xff\x7f"
               "a."),
         NULL}, /* more text than there is */
        {BYTES("\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), NULL},
        {BYTES("\x8a\xff."), NULL},             /* a number of 255 bytes */
        {BYTES("\x8b\x00\x00\x00\x00."), NULL}, /* LONG4 */
        /* Refused at once: what comes behind would be in order. */
        {BYTES("Nc."), NULL},
        {BYTES("Nh\x00."), NULL},
        {BYTES("K\x01K\x02"
               "a0."),
         NULL},
        {BYTES("K\x01(K\x02\x86"
               "0."),
         NULL},
        {BYTES("]K\x01(K\x02"
               "a00."),
         NULL},
        {BYTES("\x8a\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00."), NULL},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        int rc = ft_tree_of_pickle(&t, (const uint8_t *)all[i].bytes, all[i].len);

        ck_assert_msg(rc == -EINVAL, "pickle %zu: %d", i, rc);
        ck_assert_ptr_null(t.nodes);
    }
}
END_TEST

/* A list that is put into itself is a copy of what it was: readers come to an end. */
START_TEST(nothing_contains_itself)
{
    static const char self[] = "]q\x00K\x01"
                               "ah\x00"
                               "a.";

    ck_assert_int_eq(ft_tree_of_pickle(&t, (const uint8_t *)self, sizeof(self) - 1), 0);
    ck_assert_uint_eq(t.nodes[t.root].count, 2);
    ck_assert_uint_eq(t.nodes[ft_tree_first(&t, t.root)].kind, FT_TREE_INT);
    ft_tree_free(&t);
}
END_TEST

/* Marks without end, and things without end. */
START_TEST(depth_has_an_end)
{
    static uint8_t bytes[2 << 20];

    memset(bytes, '(', sizeof(bytes));
    ck_assert_int_eq(ft_tree_of_pickle(&t, bytes, sizeof(bytes)), -E2BIG);
    memset(bytes, 'N', sizeof(bytes));
    ck_assert_int_eq(ft_tree_of_pickle(&t, bytes, sizeof(bytes)), -E2BIG);
}
END_TEST

FT_UNIT_MAIN("tree", json_is_read_as_it_was, what_is_no_json_is_refused, nesting_has_an_end,
             numbers_and_texts, keys_are_found, pickles_are_read_as_they_were,
             a_pickle_that_is_cut_is_refused, a_hostile_pickle_is_refused, nothing_contains_itself,
             depth_has_an_end)
