// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <string.h>

#include "lib/diagnosis/csv.h"
#include "tests/unit/unit.h"

#define HEADER "rank,host,communicator,function,sequence,bytes,start_ns,end_ns\n"

static char error[FT_CSV_ERROR_BYTES];

static struct ft_operations *read_text(const char *text, int expected)
{
    struct ft_operations *ops = ft_operations_new();

    error[0] = '\0';
    ck_assert_msg(ft_csv_read(ops, text, strlen(text), error) == expected, "%s: %s", text, error);
    return ops;
}

static void refused(const char *text, const char *why)
{
    ft_operations_free(read_text(text, -EINVAL));
    ck_assert_str_eq(error, why);
}

START_TEST(columns_in_any_order)
{
    struct ft_operations *ops = read_text("\xef\xbb\xbf"
                                          "peer,End_ns,more,start_ns, bytes ,sequence,function,"
                                          "Communicator,host,RANK\r\n"
                                          "1,,x,100,64,7,Send,\"a,\"\"b\",h0,0\r\n\r\n"
                                          ",250.0,x,200.0,64,0,Barrier,c,h1,1",
                                          0);
    const struct ft_operation *op;
    const struct ft_actor *process;
    size_t count, processes;

    ck_assert_int_eq(ft_operations_finish(ops), 0);
    op = ft_operations_at(ops, &count);
    process = ft_operations_processes(ops, &processes);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(processes, 2);
    ck_assert_uint_eq(op[0].end_ns, FT_OPERATIONS_NEVER);
    ck_assert_uint_eq(op[0].peer, 1);
    ck_assert_uint_eq(op[0].sequence, 7);
    ck_assert_str_eq(ft_operations_comm(ops, op[0].comm), "a,\"b");
    ck_assert_int_eq(ft_operations_kind(ops, op[0].function), FT_OPERATION_SEND);
    ck_assert_uint_eq(op[1].start_ns, 200);
    ck_assert_uint_eq(op[1].end_ns, 250);
    ck_assert_uint_eq(process[1].rank, 1);
    ck_assert_str_eq(ft_operations_host(ops, process[1].host), "h1");
    ck_assert_uint_eq(ft_operations_newest_ns(ops), 250);
    ft_operations_free(ops);
}
END_TEST

START_TEST(an_error_names_line_and_column)
{
    refused("", "1: no header line");
    refused("rank,host\n", "1: communicator: the header has no such column");
    refused("rank,rank\n", "1: rank: the header has this column twice");
    refused(HEADER "0,h,c,f,0,8,5,9\n0,h,c,f,x,8,5,9\n",
            "3: sequence: 'x' is not an unsigned integer");
    refused(HEADER "-1,h,c,f,0,8,5,9\n", "2: rank: '-1' is not an unsigned integer");
    refused(HEADER "0,h,c,f,0,,5,9\n", "2: bytes: is empty");
    refused(HEADER "0,h,,f,0,8,5,9\n", "2: communicator: is empty");
    refused(HEADER "0,h,c,f,0,8,5,4\n", "2: end_ns: 4 is before the start, 5");
    refused(HEADER "0,h,c,f,0,8,5\n", "2: 7 columns, the header has 8");
    refused(HEADER "0,h,c,f,0,8,5.5,9\n", "2: start_ns: '5.5' is not an unsigned integer");
    refused(HEADER "0,h,c,f,0,8,99999999999999999999,\n",
            "2: start_ns: '99999999999999999999' is more than 4611686018427387904");
    refused(HEADER "0,h,c,f,0,18446744073709551616.0,5,9\n",
            "2: bytes: '18446744073709551616.0' is more than 18446744073709551615");
    refused(HEADER "0,h,c,f,1.8446744073709552e19,8,5,9\n",
            "2: sequence: '1.8446744073709552e19' is more than 18446744073709551614");
    refused(HEADER "0,\"h,c,f,0,8,5,9\n", "2: host: the quotes are not closed");
    refused(HEADER "0,h,c,f,0,8,5,9\n0,i,c,f,1,8,5,9\n",
            "3: host: rank 0 was on another host before");
}
END_TEST

/* Ranks that are numbered in each communicator anew are other processes. */
START_TEST(ranks_of_a_job_or_of_a_communicator)
{
    struct ft_operations *ops = read_text(HEADER "0,h0,a,f,0,8,5,9\n0,h0,b,f,0,8,10,11\n", 0);
    size_t processes;

    ck_assert_int_eq(ft_operations_finish(ops), 0);
    ft_operations_processes(ops, &processes);
    ck_assert_uint_eq(processes, 1);
    ft_operations_free(ops);
    ops = read_text(HEADER "0,h0,a,f,0,8,5,9\n0,h1,b,f,0,8,10,11\n", 0);
    ck_assert_int_eq(ft_operations_finish(ops), 0);
    ft_operations_processes(ops, &processes);
    ck_assert_uint_eq(processes, 2);
    ft_operations_free(ops);
}
END_TEST

START_TEST(spaces_behind_quotes_are_no_part_of_a_name)
{
    struct ft_operations *ops = read_text(HEADER "0,h,\"a\" ,f,0,8,5,9\n1,h,a,f,0,8,5,9\n"
                                                 "2,h,\" a \"  ,f,0,8,5,9\n",
                                          0);

    ck_assert_uint_eq(ft_operations_comms(ops), 2);
    ck_assert_str_eq(ft_operations_comm(ops, 0), "a");
    ck_assert_str_eq(ft_operations_comm(ops, 1), " a ");
    ft_operations_free(ops);
}
END_TEST

START_TEST(cut_at_every_byte)
{
    static const char text[] = HEADER "0,h,\"c\",Send,0,8,5,9\n1,h,c,Recv,1,8,5,\n";

    for (size_t len = 0; len < sizeof(text); len++) {
        struct ft_operations *ops = ft_operations_new();
        int rc = ft_csv_read(ops, text, len, error);

        ck_assert(rc == 0 || rc == -EINVAL);
        ck_assert(rc != 0 || ft_operations_finish(ops) == 0);
        ft_operations_free(ops);
    }
}
END_TEST

FT_UNIT_MAIN("csv", columns_in_any_order, an_error_names_line_and_column,
             ranks_of_a_job_or_of_a_communicator, spaces_behind_quotes_are_no_part_of_a_name,
             cut_at_every_byte)
