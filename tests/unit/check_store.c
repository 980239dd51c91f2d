// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/store.h"

#include <string.h>

#include "proto/record.h"
#include "tests/unit/unit.h"

static void put(struct ft_sink *sink, Fabrictrace__Scope scope, const char *name)
{
    Fabrictrace__Record record = FABRICTRACE__RECORD__INIT;
    Fabrictrace__Imbalance i = FABRICTRACE__IMBALANCE__INIT;
    struct ft_published out = {.record = &record, .json = "{}", .json_len = 2};

    i.has_scope = i.has_fim = true;
    i.scope = scope;
    i.name = (char *)(uintptr_t)name;
    i.fim = 50;
    record.kind_case = FABRICTRACE__RECORD__KIND_IMBALANCE;
    record.imbalance = &i;
    sink->write(sink->self, &out);
}

/* Switches are called as their operators like. */
START_TEST(names_of_switches_break_no_page)
{
    struct ft_store *store;
    struct ft_sink *sink = ft_store_new(1 << 20, &store);
    struct ft_writer w;

    ck_assert_ptr_nonnull(sink);
    ft_writer_init(&w, 1 << 20);
    put(sink, FABRICTRACE__SCOPE__SCOPE_GROUP, "le\"af\\1/up");
    put(sink, FABRICTRACE__SCOPE__SCOPE_GROUP, "caf\xe9/up");
    put(sink, FABRICTRACE__SCOPE__SCOPE_GROUP, "a\tb\nc\033/up");
    put(sink, FABRICTRACE__SCOPE__SCOPE_FABRIC, "lab");
    ft_store_write_figures(store, "x_", &w);
    ft_write_u8(&w, 0);
    ck_assert_ptr_nonnull(
        strstr((char *)w.bytes, "x_fim_percent{scope=\"group\",name=\"le\\\"af\\\\1/up\"} 50\n"));
    ck_assert_ptr_nonnull(strstr((char *)w.bytes, "name=\"caf\xef\xbf\xbd/up\"} 50\n"));
    /* A label knows three escapes, and takes any other character as it is. */
    ck_assert_ptr_nonnull(strstr((char *)w.bytes, "name=\"a\tb\\nc\033/up\"} 50\n"));
    ck_assert_ptr_nonnull(strstr((char *)w.bytes, "{scope=\"fabric\",name=\"lab\"} 50\n"));
    ft_writer_free(&w);
    sink->free(sink->self);
    free(sink);
}
END_TEST

FT_UNIT_MAIN("store", names_of_switches_break_no_page)
