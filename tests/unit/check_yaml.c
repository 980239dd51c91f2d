// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/config/yaml.h"
#include "tests/unit/unit.h"

static struct ft_yaml *parse(const char *text, struct ft_diag *diag)
{
    return ft_yaml_parse(text, strlen(text), "f.yaml", diag);
}

/* The complaints of a text, one a line. */
static void expect(const char *text, const char *complaints)
{
    struct ft_diag *diag = ft_diag_new();
    char all[2048] = "";

    ck_assert_ptr_null(parse(text, diag));
    for (size_t i = 0; i < ft_diag_count(diag); i++)
        sprintf(all + strlen(all), "%s\n", ft_diag_text(diag, i));
    ck_assert_str_eq(all, complaints);
    ft_diag_free(diag);
}

START_TEST(knows_every_line)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_yaml *root = parse("# head\na: 1\nb:\n  - x\n  - {c: \"\", d: [y, z]}\n", diag);
    const struct ft_yaml *list, *map;

    ck_assert_ptr_nonnull(root);
    ck_assert_int_eq(ft_yaml_kind(root), FT_YAML_MAP);
    ck_assert_uint_eq(ft_yaml_count(root), 2);
    ck_assert_str_eq(ft_yaml_key(root, 1), "b");
    ck_assert_uint_eq(ft_yaml_key_line(root, 1), 3);
    ck_assert_str_eq(ft_yaml_text(ft_yaml_get(root, "a")), "1");
    ck_assert_uint_eq(ft_yaml_line(ft_yaml_get(root, "a")), 2);
    ck_assert_ptr_null(ft_yaml_get(root, "c"));
    list = ft_yaml_get(root, "b");
    ck_assert_int_eq(ft_yaml_kind(list), FT_YAML_LIST);
    ck_assert_ptr_null(ft_yaml_text(list));
    map = ft_yaml_item(list, 1);
    ck_assert_uint_eq(ft_yaml_line(map), 5);
    ck_assert_str_eq(ft_yaml_file(map), "f.yaml");
    ck_assert(!ft_yaml_is_null(ft_yaml_get(map, "c")));
    ck_assert_str_eq(ft_yaml_text(ft_yaml_item(ft_yaml_get(map, "d"), 1)), "z");
    ft_yaml_free(root);
    ft_diag_free(diag);
}
END_TEST

START_TEST(takes_an_empty_document_for_an_empty_map)
{
    const char *const texts[] = {"", "# only this\n", "---\n", "~"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct ft_diag *diag = ft_diag_new();
        struct ft_yaml *root = parse(texts[i], diag);

        ck_assert_ptr_nonnull(root);
        ck_assert_int_eq(ft_yaml_kind(root), FT_YAML_MAP);
        ck_assert_uint_eq(ft_yaml_count(root), 0);
        ft_yaml_free(root);
        ft_diag_free(diag);
    }
}
END_TEST

START_TEST(complains_with_file_and_line)
{
    char deep[200];

    expect("a: 1\nb: 2\na: 3\nb: 4\n", "f.yaml:3: key 'a': is given twice (first in line 1)\n"
                                       "f.yaml:4: key 'b': is given twice (first in line 2)\n");
    expect("a: &x 1\nb: *x\n", "f.yaml:1: anchors and aliases are not supported\n");
    expect("b: [1, *x]\n", "f.yaml:1: anchors and aliases are not supported\n");
    expect("a: 1\n---\nb: 1\n", "f.yaml:2: more than one document\n");
    expect("? [x]\n: 1\n", "f.yaml:1: a key is a word, not a list or map\n");
    expect("a: \"x\\0y\"\n", "f.yaml:1: a zero byte in a value\n");
    expect("a: [1\nb: 2\n", "f.yaml:2: not valid YAML: did not find expected ',' or ']' while "
                            "parsing a flow sequence\n");
    /* The line that lacks it, not the next one. */
    expect(
        "a: 1\nb:2\nc: 3\n",
        "f.yaml:2: not valid YAML: could not find expected ':' while scanning a simple key; a key "
        "needs a colon and a blank behind it\n");
    expect("a 1\nb: 2\n", "f.yaml:2: not valid YAML: mapping values are not allowed in this "
                          "context; a key needs a colon and a blank behind it, in the line before, "
                          "too, and a text with ': ' in it needs quotes\n");
    expect("a: 1\n\tb: 2\n",
           "f.yaml:2: not valid YAML: found a tab character that violates indentation while "
           "scanning a plain scalar; the line begins with a tab: YAML is indented by blanks\n");
    expect("a:\n \tb: 2\n",
           "f.yaml:2: not valid YAML: found character that cannot start any token while scanning "
           "for the next token; the line begins with a tab: YAML is indented by blanks\n");
    expect("a: 1\nb: 2\n\nc: \xff\n", "f.yaml:4: not valid YAML: invalid leading UTF-8 octet\n");
    expect("a: 1\r\nb: \x01\n", "f.yaml:2: not valid YAML: control characters are not allowed\n");
    memset(deep, '[', 100);
    memset(deep + 100, ']', 99);
    deep[199] = '\0';
    expect(deep, "f.yaml:1: nested too deeply\n");
}
END_TEST

START_TEST(loads_a_file_and_says_what_it_misses)
{
    struct ft_diag *diag = ft_diag_new();
    char name[] = "/tmp/check_yaml_XXXXXX";
    int fd = mkstemp(name);
    struct ft_yaml *root;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "a: b\n", 5), 5);
    close(fd);
    root = ft_yaml_load(name, diag);
    ck_assert_ptr_nonnull(root);
    ck_assert_str_eq(ft_yaml_file(root), name);
    ft_yaml_free(root);
    unlink(name);
    ck_assert_ptr_null(ft_yaml_load("/nonexistent/x.yaml", diag));
    ck_assert_str_eq(ft_diag_text(diag, 0), "/nonexistent/x.yaml: No such file or directory");
    ck_assert_ptr_null(ft_yaml_load("/", diag));
    ck_assert_str_eq(ft_diag_text(diag, 1), "/: Is a directory");
    ft_diag_free(diag);
}
END_TEST

FT_UNIT_MAIN("yaml", knows_every_line, takes_an_empty_document_for_an_empty_map,
             complains_with_file_and_line, loads_a_file_and_says_what_it_misses)
