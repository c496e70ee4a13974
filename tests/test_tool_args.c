/* SPDX-License-Identifier: Apache-2.0
 *
 * Options and their values: what is read, and the sentence for what is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tool/args.h"
#include "tool/commands.h"
#include <stdlib.h>
#include <string.h>

/* ---- Values ---- */

static void test_uint_takes_digits_within_limits(void **state)
{
    static const char *const bad[] = {"",   " 1", "1 ", "+1",  "-1",
                                      "1x", "0",  "11", "0x5", "99999999999999999999"};
    struct pdx_error why;
    uint64_t v = 77;

    (void)state;
    assert_int_equal(tool_args_uint("10", 1, 10, &v, NULL), 0);
    assert_int_equal(v, 10);
    assert_int_equal(tool_args_uint("18446744073709551615", 0, UINT64_MAX, &v, NULL), 0);
    assert_true(v == UINT64_MAX);
    v = 77;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tool_args_uint(bad[i], 1, 10, &v, &why), PDX_EINVAL);
        assert_string_equal(why.text, "a whole number from 1 to 10");
        assert_int_equal(v, 77);
    }
}

static void test_real_takes_plain_numbers(void **state)
{
    static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "nan", "inf", "0x1p4", "1e999"};
    double v = 7;

    (void)state;
    assert_int_equal(tool_args_real("0.5", &v, NULL), 0);
    assert_true(v == 0.5);
    assert_int_equal(tool_args_real("2e3", &v, NULL), 0);
    assert_true(v == 2000);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tool_args_real(bad[i], &v, NULL), PDX_EINVAL);
    assert_true(v == 2000);
}

static void test_size_knows_binary_and_decimal_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"4096", 4096},
        {"64B", 64},
        {"64KiB", 65536},
        {"64K", 65536},
        {"64kB", 64000},
        {"1.5GB", 1500000000},
        {"2GiB", UINT64_C(2147483648)},
        {"0.5KiB", 512},
        {"1.0000001KiB", 1024},
        {"3TiB", UINT64_C(3298534883328)},
        {"8388607TiB", UINT64_C(9223370937343148032)},
    };
    static const char *const bad[] = {"",
                                      "K",
                                      "-1",
                                      "1.",
                                      ".5K",
                                      "1 K",
                                      "1kb",
                                      "1KIB",
                                      "1KiBx",
                                      "1e3",
                                      "1..5K",
                                      "8388608TiB",
                                      "9223372036854775808"};
    uint64_t v = 7;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(tool_args_size(good[i].text, &v, NULL), 0);
        assert_int_equal(v, good[i].bytes);
    }
    v = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (tool_args_size(bad[i], &v, NULL) != PDX_EINVAL)
            fail_msg("%s was read as %llu", bad[i], (unsigned long long)v);
    }
    assert_int_equal(v, 7);
}

static void test_duration_needs_a_unit(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {
        {"0", 0},
        {"7ns", 7},
        {"10us", 10000},
        {"500ms", 500000000},
        {"1.5s", 1500000000},
        {"10m", UINT64_C(600000000000)},
        {"2min", UINT64_C(120000000000)},
        {"1h", UINT64_C(3600000000000)},
    };
    static const char *const bad[] = {"5", "", "s", "-1s", "1 s", "1S", "1.s", "9999999999999h"};
    uint64_t v = 7;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(tool_args_duration(good[i].text, &v, NULL), 0);
        assert_int_equal(v, good[i].ns);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tool_args_duration(bad[i], &v, NULL), PDX_EINVAL);
}

static void test_address_needs_host_and_port(void **state)
{
    static const char *const good[] = {"10.0.0.2:7000", "name:0", "[fd00::2]:65535", "[::]:0"};
    static const char *const bad[] = {"",        "10.0.0.2", ":7000",     "name:",    "name:65536",
                                      "name:-1", "fd00::2",  "fd00::2:1", "[fd00::2", "[]:1",
                                      "[::1]",   "name:70x", "[::1]x:1"};
    char longest[300];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(tool_args_address(good[i], NULL), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (tool_args_address(bad[i], NULL) != PDX_EINVAL)
            fail_msg("%s was accepted", bad[i]);
    }
    memset(longest, 'n', sizeof longest);
    memcpy(longest + 256, ":1", 3);
    assert_int_equal(tool_args_address(longest, NULL), PDX_EINVAL);
    assert_int_equal(tool_args_address(longest + 1, NULL), 0);
}

static void test_pair_is_two_numbers_or_one_for_both(void **state)
{
    static const char *const bad[] = {"", ":", "4:", ":2", "4:2:1", "0:1", "1:0", "4/2", "9:1"};
    uint32_t v[2] = {7, 7};

    (void)state;
    assert_int_equal(tool_args_pair("4:2", 1, 8, v, NULL), 0);
    assert_int_equal(v[0], 4);
    assert_int_equal(v[1], 2);
    assert_int_equal(tool_args_pair("8", 1, 8, v, NULL), 0);
    assert_int_equal(v[0], 8);
    assert_int_equal(v[1], 8);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tool_args_pair(bad[i], 1, 8, v, NULL), PDX_EINVAL);
    assert_int_equal(v[0], 8);
}

/* ---- The command line ---- */

static struct {
    bool json;
    const char *file;
    uint64_t n;
    double rate;
    uint64_t memory;
    uint64_t wait_ns;
    const char *at;
    uint32_t tp[2];
} got;

static const struct tool_arg args[] = {
    {.name = "json", .letter = 'j', .kind = TOOL_ARG_FLAG, .value = &got.json, .help = "as JSON"},
    {.name = "file",
     .letter = 'f',
     .kind = TOOL_ARG_STRING,
     .value = &got.file,
     .label = "FILE",
     .help = "what to read\n(a second line)"},
    {.name = "number", .kind = TOOL_ARG_UINT, .value = &got.n, .min = 1, .help = "how many"},
    {.name = "rate", .kind = TOOL_ARG_REAL, .value = &got.rate, .help = "how often"},
    {.name = "memory",
     .kind = TOOL_ARG_SIZE,
     .value = &got.memory,
     .min = 4096,
     .max = 1 << 20,
     .help = "how much"},
    {.name = "wait", .kind = TOOL_ARG_DURATION, .value = &got.wait_ns, .help = "how long"},
    {.name = "at", .kind = TOOL_ARG_ADDRESS, .value = &got.at, .help = "where"},
    {.name = "tp", .kind = TOOL_ARG_PAIR, .value = got.tp, .min = 1, .help = "which sizes"},
};

static const struct tool_command cmd = {
    .name = "try",
    .synopsis = "[options] [WORD]",
    .purpose = "Tries options.",
    .args = args,
    .nargs = sizeof args / sizeof args[0],
    .operand = "WORD",
    .max_operands = 1,
};

/* Parses a command line of at most 15 words, separated by blanks. */
static int parse(const char *line, int *ret_first, struct pdx_error *why)
{
    static char words[256];
    static char *argv[17];
    int argc = 0;

    memset(&got, 0, sizeof got);
    memset(argv, 0, sizeof argv);
    (void)snprintf(words, sizeof words, "try %s", line);
    for (char *word = strtok(words, " "); word && argc < 16; word = strtok(NULL, " "))
        argv[argc++] = word;
    return tool_args_parse(&cmd, argc, argv, ret_first, why);
}

static void test_args_sets_every_kind(void **state)
{
    int first;

    (void)state;
    assert_int_equal(parse("-j --file=a.txt --number 3 word --rate 1.5 --memory 8KiB --wait 2s "
                           "--at h:1 --tp 4:2",
                           &first, NULL),
                     0);
    assert_true(got.json);
    assert_string_equal(got.file, "a.txt");
    assert_int_equal(got.n, 3);
    assert_true(got.rate == 1.5);
    assert_int_equal(got.memory, 8192);
    assert_int_equal(got.wait_ns, 2 * PDX_SEC);
    assert_string_equal(got.at, "h:1");
    assert_int_equal(got.tp[0], 4);
    assert_int_equal(got.tp[1], 2);
    /* 17 words with "try"; the operand is the last */
    assert_int_equal(first, 15);
}

static void test_args_knows_letters_and_prefixes(void **state)
{
    (void)state;
    assert_int_equal(parse("-jf a.txt", NULL, NULL), 0);
    assert_true(got.json);
    assert_string_equal(got.file, "a.txt");
    assert_int_equal(parse("--num 4", NULL, NULL), 0);
    assert_int_equal(got.n, 4);
    assert_int_equal(parse("-h", NULL, NULL), TOOL_ARGS_HELP);
    assert_int_equal(parse("--number 4 --help", NULL, NULL), TOOL_ARGS_HELP);
    assert_int_equal(parse("-- --number", NULL, NULL), 0);
}

static void check_wrong(const char *line, const char *text)
{
    struct pdx_error why = {0};

    assert_int_equal(parse(line, NULL, &why), PDX_EINVAL);
    assert_string_equal(why.text, text);
    assert_int_equal(parse(line, NULL, NULL), PDX_EINVAL);
}

static void test_args_says_what_is_wrong(void **state)
{
    (void)state;
    check_wrong("--foo", "there is no option --foo; see pdx try --help");
    check_wrong("--foo=1", "there is no option --foo=1; see pdx try --help");
    check_wrong("-z", "there is no option -z; see pdx try --help");
    check_wrong("-jz", "there is no option -z; see pdx try --help");
    check_wrong("--file", "option --file needs a value; see pdx try --help");
    check_wrong("-f", "option --file needs a value; see pdx try --help");
    check_wrong("--json=yes", "option --json takes no value; see pdx try --help");
    check_wrong("--help=yes", "option --help takes no value; see pdx try --help");
    check_wrong("one two", "argument \"two\" is one too many; see pdx try --help");
    check_wrong("--number 0",
                "option --number must be a whole number from 1 to 9223372036854775807; it is "
                "\"0\"");
    check_wrong("--rate fast",
                "option --rate must be a number that is not negative, as 12 or 0.5; it is "
                "\"fast\"");
    check_wrong("--memory lots",
                "option --memory must be a size, as 4096, 64KiB, 512M, 2GiB (K, M, G, T are "
                "binary; kB, MB, GB, TB decimal); it is \"lots\"");
    check_wrong("--memory 2MiB",
                "option --memory must be from 4096 to 1048576 bytes; it is \"2MiB\"");
    check_wrong("--wait 5", "option --wait must be a duration with its unit, as 500ms, 1.5s or 10m "
                            "(ns, us, ms, s, m, h); it is \"5\"");
    check_wrong("--at home",
                "option --at must be an address, as 10.0.0.2:7000, name:7000 or [fd00::2]:7000 "
                "(port 0 to 65535); it is \"home\"");
    check_wrong("--tp 4:0", "option --tp must be two whole numbers from 1 to 65536, as 4:2 "
                            "(prefill:decode), or one for both; it is \"4:0\"");
}

static void test_args_without_operands_takes_none(void **state)
{
    static const struct tool_command none = {.name = "none", .purpose = ""};
    char name[] = "none", word[] = "word";
    char *argv[] = {name, word, NULL};
    struct pdx_error why;

    (void)state;
    assert_int_equal(tool_args_parse(&none, 1, argv, NULL, NULL), 0);
    assert_int_equal(tool_args_parse(&none, 2, argv, NULL, &why), PDX_EINVAL);
    assert_string_equal(why.text, "argument \"word\" is one too many; see pdx none --help");
}

static void test_begin_gives_the_exit_status(void **state)
{
    char name[] = "try", json[] = "--json", bad[] = "--bad", help[] = "--help";
    char *runs[] = {name, json, NULL}, *fails[] = {name, bad, NULL}, *helps[] = {name, help, NULL};
    int status = 77;

    (void)state;
    assert_true(tool_args_begin(&cmd, 2, runs, NULL, &status));
    assert_int_equal(status, 77);
    assert_false(tool_args_begin(&cmd, 2, fails, NULL, &status));
    assert_int_equal(status, TOOL_EXIT_USAGE);
    assert_false(tool_args_begin(&cmd, 2, helps, NULL, &status));
    assert_int_equal(status, TOOL_EXIT_OK);
}

static void test_help_lists_every_option(void **state)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    (void)state;
    assert_non_null(f);
    tool_args_help(&cmd, f);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, "usage: pdx try [options] [WORD]\n"
                              "\n"
                              "Tries options.\n"
                              "\n"
                              "options:\n"
                              "  -j, --json          as JSON\n"
                              "  -f, --file FILE     what to read\n"
                              "                      (a second line)\n"
                              "      --number N      how many\n"
                              "      --rate N        how often\n"
                              "      --memory SIZE   how much\n"
                              "      --wait TIME     how long\n"
                              "      --at HOST:PORT  where\n"
                              "      --tp P:D        which sizes\n"
                              "  -h, --help          show this text\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uint_takes_digits_within_limits),
        cmocka_unit_test(test_real_takes_plain_numbers),
        cmocka_unit_test(test_size_knows_binary_and_decimal_units),
        cmocka_unit_test(test_duration_needs_a_unit),
        cmocka_unit_test(test_address_needs_host_and_port),
        cmocka_unit_test(test_pair_is_two_numbers_or_one_for_both),
        cmocka_unit_test(test_args_sets_every_kind),
        cmocka_unit_test(test_args_knows_letters_and_prefixes),
        cmocka_unit_test(test_args_says_what_is_wrong),
        cmocka_unit_test(test_args_without_operands_takes_none),
        cmocka_unit_test(test_begin_gives_the_exit_status),
        cmocka_unit_test(test_help_lists_every_option),
    };

    return cmocka_run_group_tests_name("tool_args", tests, NULL, NULL);
}
