/* config: every mistake is told once, with its place, what was found and what would do; what is
 * right arrives in the structs; nobody's secret is told. */
#include "app/config.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "format/json.h"
#include "given.h"
#include "random.h"
#include "temp.h"

enum { TEXT_SIZE = 32 * 1024, TOLD_SIZE = 64 * 1024, KEPT_SIZE = 256 * 1024 };

static struct tn_config config;
static struct tn_err err;
static char root[TEMP_SIZE];
static char told[TOLD_SIZE]; /* a line a mistake */
static size_t told_size;

static void note(void *user, const char *text)
{
    CHECK(user == told);
    size_t size = strlen(text);
    CHECK(told_size + size + 2 < sizeof told);
    memcpy(told + told_size, text, size);
    told_size += size;
    told[told_size++] = '\n';
    told[told_size] = 0;
}

static uint32_t told_lines(void)
{
    uint32_t lines = 0;
    for (const char *at = told; *at; at++) {
        lines += *at == '\n';
    }
    return lines;
}

static void write_file(const char *name, const char *text, size_t size)
{
    char path[TEMP_SIZE + 64];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    CHECK(fwrite(text, 1, size, file) == size);
    CHECK(fclose(file) == 0);
}

static tn_rc read_with(size_t vm_size, size_t kept_size)
{
    static _Alignas(16) unsigned char vm[TN_CONFIG_MEMORY];
    static _Alignas(16) unsigned char kept_memory[KEPT_SIZE];
    static _Alignas(16) unsigned char json_memory[192 * 1024];
    static struct tn_heap json;
    static struct tn_arena kept;
    char path[TEMP_SIZE + 64];
    tn_heap_init(&json, json_memory, sizeof json_memory, false);
    tn_json_use_heap(&json);
    tn_arena_init(&kept, kept_memory, kept_size);
    told_size = 0;
    told[0] = 0;
    err.text[0] = 0;
    (void)snprintf(path, sizeof path, "%s/c.lua", root);
    return tn_config_read(path, vm, vm_size, &kept, note, told, &config, &err);
}

static tn_rc read_text(const char *text)
{
    write_file("c.lua", text, strlen(text));
    return read_with(TN_CONFIG_MEMORY, KEPT_SIZE);
}

/* The places that a case's members are put into, at the '@'. */
static const char on_top[] =
    "return { warehouse = 'w', tables = { ['d.t'] = { fields = { 'k INT' }, "
    "options = { bucket = -1 } } },\n@ }";
static const char in_table[] = "return { warehouse = 'w', tables = { ['d.t'] = {\n@ } } }";
static const char in_sources[] =
    "return { warehouse = 'w', tables = { ['d.t'] = { fields = { 'k INT' }, "
    "options = { bucket = -1 } } }, sources = {\n@ } }";
static const char as_is[] = "@";

static tn_rc read_in(const char *frame, const char *members)
{
    static char text[TEXT_SIZE];
    const char *at = strchr(frame, '@');
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - frame), frame, members, at + 1);
    return read_text(text);
}

struct mistake {
    const char *frame;
    const char *members;
    const char *lines; /* all that is told, each with its line end; NULL: nothing is wrong */
};

static void check_one(const struct mistake *m)
{
    tn_rc rc = read_in(m->frame, m->members);
    const char *lines = m->lines ? m->lines : "";
    if (rc != (m->lines ? TN_INVALID : TN_OK) || strcmp(told, lines) != 0) {
        FAIL("gave %d: %s, of %s\n%s\nwant:\n%s", rc, err.text, m->members, told, lines);
    }
}

static void check_all(const struct mistake *mistakes, size_t count)
{
    temp_make(root);
    for (size_t i = 0; i < count; i++) {
        check_one(&mistakes[i]);
    }
    temp_remove(root);
}

/* ---- mistakes ---- */

static void members_on_top_are_told_with_what_would_do(void)
{
    static const struct mistake mistakes[] = {
        {on_top, "", NULL},
        {on_top, "memory = '5'", "memory: got '5', want a size like '32M', from 1M to 1024G\n"},
        {on_top, "memory = '32 parsecs'",
         "memory: got '32 parsecs', want a size like '32M', from 1M to 1024G\n"},
        {on_top, "memory = -1", "memory: got -1, want a size like '32M', from 1M to 1024G\n"},
        {on_top, "memory = 1.5", "memory: got 1.5, want a size like '32M', from 1M to 1024G\n"},
        {on_top, "memory = 33554432", NULL},
        {on_top, "disk_reserve = '1M'",
         "disk_reserve: got '1M', want a size like '32M', from 4M to 1048576G\n"},
        {on_top, "wear_budget = 0", NULL},
        {on_top, "wear_budget = '500M'", NULL},
        {on_top, "wear_budget = '500M a day'",
         "wear_budget: got '500M a day', want a size like '32M', from 0 to 1048576G\n"},
        {on_top, "compaction = { unit_size_max = '64M' }", NULL},
        {on_top, "compaction = { unit_size_max = 0 }",
         "compaction.unit_size_max: got 0, want a size like '32M', from 1 to 1048576G\n"},
        {on_top, "compaction = { unit_size = '64M' }",
         "compaction.unit_size: is unknown; known here: unit_size_max\n"},
        {on_top, "compaction = '64M'", "compaction: got '64M', want a table of members\n"},
        {on_top, "memroy = '32M'", "memroy: is unknown; did you mean 'memory'?\n"},
        {on_top, "zebra = 1",
         "zebra: is unknown; known here: warehouse, memory, disk_reserve, wear_budget, "
         "compaction, listen, token, tls, limits, journal, pace, tables, sources, lakes or "
         "metered\n"},
        {on_top, "['\\27[2J'] = 1",
         "['?[2J']: is unknown; known here: warehouse, memory, disk_reserve, wear_budget, "
         "compaction, listen, token, tls, limits, journal, pace, tables, sources, lakes or "
         "metered\n"},
        {on_top, "'a'", "[1]: a list's item where members have names\n"},
        {on_top, "[true] = 1", "has a member whose name is no text\n"},
        {on_top, "listen = '127.0.0.1'",
         "listen: got '127.0.0.1', want an address with a port: 127.0.0.1:7080, [::1]:7080, "
         "0.0.0.0:7080\n"},
        {on_top, "listen = 'example.com:80'",
         "listen: got 'example.com:80', want an address with a port: 127.0.0.1:7080, [::1]:7080, "
         "0.0.0.0:7080\n"},
        {on_top, "listen = '127.0.0.1:70800'",
         "listen: got '127.0.0.1:70800', want an address with a port: 127.0.0.1:7080, "
         "[::1]:7080, 0.0.0.0:7080\n"},
        {on_top, "listen = '127.9.9.9:1'", NULL},
        {on_top, "listen = '[::1]:1'", NULL},
        {on_top, "listen = 'localhost:0'", NULL},
        {on_top, "listen = '[::]:1'",
         "listen: others than this machine can reach it, so a 'token' is needed: token = "
         "file(\"...\"); or listen on 127.0.0.1\n"},
        {on_top, "listen = '0.0.0.0:1', token = '12345678'", NULL},
        {on_top, "listen = '0.0.0.0:1', token = ''",
         "token: has 0 bytes; shorter than 8 is guessed\n"},
        {on_top, "token = '12345678'", "token: is of HTTP, and 'listen' is missing\n"},
        {on_top, "listen = '[::1]:1', token = '1234567\\n8'",
         "token: has blanks or other bytes that no header of HTTP can hold\n"},
        {on_top, "listen = '[::1]:1', tls = {}",
         "tls: 'certificate' and 'key' are missing: this side shows them\n"},
        {on_top,
         "listen = '[::1]:1', limits = { connections = 0, body_size = 1, timeout = 5, "
         "idle = '2h' }",
         "limits.connections: got 0, want a whole number from 1 to 1024\n"
         "limits.body_size: got 1, want a size like '32M', from 1K to 64M\n"
         "limits.timeout: got 5, want a time with its unit, like '30s', from 100ms to 10min\n"
         "limits.idle: got '2h', want a time with its unit, like '30s', from 100ms to 1h\n"},
        {on_top, "journal = { sync = '1M' }",
         "journal.sync: got '1M', want a time in it: a quiet sender would wait for ever\n"},
        {on_top, "journal = { sync = '5 rows', size = '1K' }",
         "journal.sync: got '5 rows', want a rule like '100ms or 256K', of at most 60s and 4M; "
         "'5 rows' is no time (30s) or size (1M)\n"
         "journal.size: got '1K', want a size like '32M', from 4M to 1024G\n"},
        {on_top, "journal = { sync = '1s or 1M', size = '7M' }",
         "journal: the size is less than 8 times what is synced at once\n"},
        {on_top, "journal = { sync = '2min' }",
         "journal.sync: got '2min', want a rule like '100ms or 256K', of at most 60s and 4M\n"},
        {on_top, "sources = {{}}", "sources[1]: 'kind' is missing: mqtt, socket, file or stdin\n"},
        {as_is, "return 7", "got 7, want a table that the file returns: return { ... }\n"},
        {as_is, "return {}", "'warehouse' is missing\n'tables' is missing\n"},
        {as_is, "return { warehouse = 'w', tables = {} }",
         "tables: got a table, want tables: { ['plant.readings'] = {...} }\n"},
        {as_is, "return { warehouse = '', tables = {} }",
         "warehouse: got '', want a path\n"
         "tables: got a table, want tables: { ['plant.readings'] = {...} }\n"},
    };
    check_all(mistakes, COUNT(mistakes));
}

#define GOOD  "fields = { 'k INT', 'ts TIMESTAMP(3)' }, options = { bucket = -1 }, "
#define KEYED "fields = { 'k INT', 'n INT' }, primary_key = 'k', "

static void tables_are_checked_as_create_does(void)
{
    static const struct mistake mistakes[] = {
        {in_table, GOOD, NULL},
        {in_table, "fields = { 'k DUOBLE', 'x', 7 }, options = { bucket = -1 }",
         "tables['d.t'].fields[3]: got 7, want a text\n"
         "tables['d.t'].fields[1]: field 'k': type 'DUOBLE' is unknown; did you mean 'DOUBLE'?\n"
         "tables['d.t'].fields[2]: field 'x': the type is missing\n"},
        {in_table, "fields = { 'k INT', nil, 'n INT' }, options = { bucket = -1 }",
         "tables['d.t'].fields: item [2] is missing: it is nil\n"},
        {in_table, "fields = {}", "tables['d.t'].fields: is empty\n"},
        {in_table, "fields = 'k INT'",
         "tables['d.t'].fields: got 'k INT', want a list, like "
         "{...}\n"},
        {in_table, "fields = { k = 'INT' }",
         "tables['d.t'].fields.k: a member with a name in a list: are braces missing around it?\n"},
        {in_table, GOOD "primary_key = 'kk'",
         "tables['d.t'].primary_key: primary key: no column 'kk'\n"},
        {in_table, GOOD "primary_key = 'k,,'",
         "tables['d.t'].primary_key: got 'k,,', want names between commas\n"},
        {in_table,
         KEYED "options = { bucket = 'x', ['merge-engine'] = 'sum', ['num-levels'] = {} }",
         "tables['d.t'].options['num-levels']: got a table, want a text, a number, true or false\n"
         "tables['d.t'].options: option 'bucket': 'x' is neither a number of buckets nor -1\n"
         "tables['d.t'].options: option 'merge-engine': 'sum' is none of "
         "deduplicate|partial-update|aggregation|first-row\n"},
        {in_table,
         KEYED "options = { bucket = 1, ['merge-engine'] = 'sum', "
               "['fields.n.aggregate-function'] = 'sum' }",
         "tables['d.t'].options: option 'merge-engine': 'sum' is none of "
         "deduplicate|partial-update|aggregation|first-row\n"},
        {in_table,
         KEYED "options = { bucket = 1, ['merge-engine'] = 'aggregation' }, "
               "script = 's.lua'",
         "tables['d.t'].options: option 'merge-engine': 'aggregation' does not go with "
         "'tarn.script', which merges rows before they are written: readers are to deduplicate\n"},
        {in_table, KEYED "options = { bucket = 1 }, script = 'none.lua'",
         "tables['d.t'].script: none.lua: open none.lua: No such file or directory\n"},
        {in_table, GOOD "times = { ts = 'minutes', k = 's', tz = 'ms', 's' }",
         "tables['d.t'].times[1]: a list's item where names are wanted: name = value\n"
         "tables['d.t'].times.k: the column is INT; a TIMESTAMP has a unit\n"
         "tables['d.t'].times.ts: got 'minutes', want s, ms, us or ns\n"
         "tables['d.t'].times.tz: there is no such column\n"},
        {in_table, GOOD "unknown = 'dropp'",
         "tables['d.t'].unknown: got 'dropp', want fail or drop; did you mean 'drop'?\n"},
        {in_table, GOOD "dead_letters = 'd.t'",
         "tables['d.t'].dead_letters: a table can't hold its own dead letters\n"},
        {in_table, GOOD "dead_letters = 'letters'",
         "tables['d.t'].dead_letters: table 'letters': a table is named DATABASE.TABLE\n"},
        {in_table, GOOD "comit = '1s'",
         "tables['d.t'].comit: is unknown; did you mean 'commit'?\n"},
        {in_table, GOOD "schema = 's.json'",
         "tables['d.t'].fields: is in the schema file, too; one of the two\n"},
        {in_table, "schema = 's.json', primary_key = 'k'",
         "tables['d.t'].primary_key: is in the schema file\n"},
        {as_is, "return { warehouse = 'w', tables = { bad = {}, { }, ['a.b'] = 7 } }",
         "tables[1]: a list's item; a table has a name: ['plant.readings'] = {...}\n"
         "tables['a.b']: got 7, want a table of members\n"
         "tables.bad: table 'bad': a table is named DATABASE.TABLE\n"},
        {as_is,
         "local t = { fields = { 'k INT' }, options = { bucket = -1 }, dead_letters = 'a.b' }\n"
         "return { warehouse = 'w', tables = { ['a.b'] = t, ['a.c'] = t } }",
         "tables['a.b'].dead_letters: a table can't hold its own dead letters\n"
         "tables['a.c'].dead_letters: a table of 'tables' has rows of its own; letters need "
         "another one, which is made when the first comes\n"},
        {as_is,
         "local t = { fields = { 'k INT' }, options = { bucket = -1 }, dead_letters = 'a.l' }\n"
         "return { warehouse = 'w', tables = { ['a.b'] = t, ['a.c'] = t } }",
         "tables['a.c'].dead_letters: it has those of a.b; each table's letters need one of their "
         "own\n"},
    };
    check_all(mistakes, COUNT(mistakes));
}

static void commit_rules_are_time_rows_and_size(void)
{
#define WANT "want a rule like '30s or 5000 rows or 1M'; "
    static const struct mistake mistakes[] = {
        {in_table, GOOD "commit = '30s or 5000 rows or 1M'", NULL},
        {in_table, GOOD "commit = '1 row'", NULL},
        {in_table, GOOD "commit = '1m'",
         "tables['d.t'].commit: got '1m', " WANT "'1m' is a time or a size? write 1min or 1M\n"},
        {in_table, GOOD "commit = '30'",
         "tables['d.t'].commit: got '30', " WANT
         "'30' is no time (30s), number of rows (5000 rows) or size (1M)\n"},
        {in_table, GOOD "commit = '1s or 2s'",
         "tables['d.t'].commit: got '1s or 2s', " WANT "'2s' is a second time\n"},
        {in_table, GOOD "commit = '1s and 5 rows'",
         "tables['d.t'].commit: got '1s and 5 rows', " WANT
         "'1s and 5 rows' is no time (30s), number of rows (5000 rows) or size (1M)\n"},
        {in_table, GOOD "commit = '0 rows'",
         "tables['d.t'].commit: got '0 rows', " WANT "'0 rows' is no rule: 1 or more\n"},
        {in_table, GOOD "commit = '8d'",
         "tables['d.t'].commit: got '8d', " WANT "'8d' is not between 1ms and 7d\n"},
        {in_table, GOOD "commit = '-1s'",
         "tables['d.t'].commit: got '-1s', " WANT
         "'-1s' is no time (30s), number of rows (5000 rows) or size (1M)\n"},
        {in_table, GOOD "commit = '1s or '",
         "tables['d.t'].commit: got '1s or ', " WANT
         "'' is no time (30s), number of rows (5000 rows) or size (1M)\n"},
        {in_table, GOOD "commit = 30",
         "tables['d.t'].commit: got 30, want a rule like '30s or 5000 rows or 1M'\n"},
    };
#undef WANT
    check_all(mistakes, COUNT(mistakes));
}

#define SOCKET(NAME) "{ kind = 'socket', listen = 'unix:" NAME "', table = 'd.t' },"
#define SOCKETS_7 \
    SOCKET("a") SOCKET("b") SOCKET("c") SOCKET("d") SOCKET("e") SOCKET("f") SOCKET("g")
#define MQTT "kind = 'mqtt', url = 'mqtt://h', subscribe = {{ filter = 'a', table = 'd.t' }}, "

static void lakes_have_a_target_and_tables_that_are_there(void)
{
    static const struct mistake mistakes[] = {
        {on_top, "lakes = {}", NULL},
        {on_top, "lakes = { a = { target = 'a' }, b = { target = '/b', every = '5min' } }", NULL},
        {on_top, "lakes = { a = { target = 'a', tables = { 'd.t' }, on_full = 'gap' } }", NULL},
        {on_top, "lakes = 'a'",
         "lakes: got 'a', want lakes: { cloud = { target = '/mnt/lake' } }\n"},
        {on_top, "lakes = { { target = 'a' } }",
         "lakes[1]: a lake has a name, of at most 24 letters, digits, - and _: cloud = {...}\n"},
        {on_top, "lakes = { ['a/b'] = { target = 'a' } }",
         "lakes['a/b']: a lake has a name, of at most 24 letters, digits, - and _: cloud = "
         "{...}\n"},
        {on_top, "lakes = { a = {} }", "lakes.a: 'target' is missing\n"},
        {on_top,
         "lakes = { a = { target = 's3://b/c', rate = '1M', options = { ['s3.endpoint'] = "
         "'http://127.0.0.1:1', ['s3.secret-key'] = 'x' } } }",
         NULL},
        {on_top, "lakes = { a = { target = 's4://b' } }",
         "lakes.a.target: got 's4://b', want s3://bucket/prefix, or a folder, like '/mnt/lake'\n"},
        {on_top,
         "lakes = { a = { target = 's3://b', options = { ['s3.endpiont'] = 'x', ['s3.region'] = 1, "
         "'y' } } }",
         "lakes.a.options[1]: a list's item where names are wanted: ['s3.region'] = 'x'\n"
         "lakes.a.options['s3.endpiont']: there is no such option of a lake; see `tarn help "
         "upload`\n"
         "lakes.a.options['s3.region']: got a number, want a text\n"},
        {on_top, "lakes = { a = { target = 'l', rate = '1M' } }",
         "lakes.a.rate: is of s3://..., and the target is a folder\n"},
        {on_top, "lakes = { a = { target = 'w' } }",
         "lakes.a.target: that is the warehouse itself\n"},
        {on_top, "lakes = { a = { target = 'l' }, b = { target = 'l' } }",
         "lakes.b.target: is that of lake 'a', too\n"},
        {on_top, "lakes = { a = { target = 'l', tables = { 'd.s', 'd.t', 'd.t' } } }",
         "lakes.a.tables[1]: got 'd.s', want a table of 'tables'; did you mean 'd.t'?\n"
         "lakes.a.tables[3]: is there already\n"},
        {on_top, "lakes = { a = { target = 'l', tables = {} } }",
         "lakes.a.tables: is empty: leave it out for all tables\n"},
        {on_top, "lakes = { a = { target = 'l', policy = 'nope.lua', every = '5s' } }, metered = 7",
         "lakes.a.every: says 'policy', too\n"
         "metered: got 7, want a list, like {...}\n"
         "lakes.a.policy: nope.lua: open nope.lua: No such file or directory\n"},
        {on_top, "lakes = { a = { target = 'l', every = '5', on_full = 'gpa', tabels = 1 } }",
         "lakes.a.every: got '5', want a time with its unit, like '30s', from 1s to 7d\n"
         "lakes.a.on_full: got 'gpa', want stop or gap; did you mean 'gap'?\n"
         "lakes.a.tabels: is unknown; did you mean 'tables'?\n"},
    };
    check_all(mistakes, COUNT(mistakes));
}

#define NOTIFY(MEMBERS) "lakes = { a = { target = 'l', notify = { " MEMBERS " } } }"

static void who_is_told_of_a_lake_has_one_url(void)
{
    static const char url[] = "a URL like mqtt://host:1883, mqtts://host or https://host/path; "
                              "user, password and token are members\n";
    static const char *const wrong_urls[] = {
        "'amqp://h'",         "'mqtt://h/path'", "'mqtt://h:0'",
        "'mqtt://'",          "'https://'",      "'mqtt://h#x'",
        "'http://h/a b'",     "'http://h/a#b'",  "'https://u@h/'",
        "'https://h:99999/'", "'http://h\\n/'",  "('https://h/' .. ('x'):rep(1100))"};
    static const struct mistake mistakes[] = {
        {on_top, NOTIFY("url = 'mqtt://h'"), NULL},
        {on_top, NOTIFY("url = 'mqtt://[::1]:7', topic = 'a/b', user = 'u', password = ''"), NULL},
        {on_top, NOTIFY("url = 'http://h:80/x?y=z'"), NULL},
        {on_top, NOTIFY("url = 'http://127.0.0.1', token = 'longenough'"), NULL},
        {on_top, "lakes = { a = { target = 'l', notify = 'mqtt://h' } }",
         "lakes.a.notify: got 'mqtt://h', want a table of members\n"},
        {on_top, NOTIFY(""), "lakes.a.notify: 'url' is missing\n"},
        {on_top, NOTIFY("url = 'mqtt://h', topik = 'x'"),
         "lakes.a.notify.topik: is unknown; did you mean 'topic'?\n"},
        {on_top, NOTIFY("url = 'mqtt://h', topic = 'a/#'"),
         "lakes.a.notify.topic: got 'a/#', want a topic without + and #, of at most 512 bytes\n"},
        {on_top, NOTIFY("url = 'mqtt://h', token = 'longenough', password = 'x'"),
         "lakes.a.notify.token: is of http:// and https://; MQTT has user and password\n"
         "lakes.a.notify.password: a password without a 'user'\n"},
        {on_top, NOTIFY("url = 'http://h', topic = 'x', client_id = 'y', user = 'z'"),
         "lakes.a.notify.topic: is of mqtt:// and mqtts://; a POST has a token\n"
         "lakes.a.notify.client_id: is of mqtt:// and mqtts://; a POST has a token\n"
         "lakes.a.notify.user: is of mqtt:// and mqtts://; a POST has a token\n"},
        {on_top, NOTIFY("url = 'http://h', token = 'longenough'"),
         "lakes.a.notify.token: everybody on the way could read it: https://\n"},
        {on_top, NOTIFY("url = 'https://h'"),
         "lakes.a.notify: TLS needs tls.ca or tls.pinned, to know the other side by: tls = { ca = "
         "file(\"ca.pem\") }\n"},
        {on_top, NOTIFY("url = 'mqtt://h', tls = {}"),
         "lakes.a.notify.tls: is for an url with mqtts:// or https://\n"},
        {on_top,
         "sources = { { kind = 'mqtt', url = 'mqtt://h', client_id = 'me', subscribe = {{ filter = "
         "'a', table = 'd.t' }} } }, " NOTIFY("url = 'mqtt://h', client_id = 'me'"),
         "lakes.a.notify.client_id: is that of source 'mqtt', too: a broker would shut one of them "
         "out\n"},
    };
    check_all(mistakes, COUNT(mistakes));
    temp_make(root);
    for (size_t i = 0; i < COUNT(wrong_urls); i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "return { warehouse = 'w', " NOTIFY("url = %s") " }",
                       wrong_urls[i]);
        CHECK(read_text(text) == TN_INVALID);
        if (!strstr(told, url)) {
            FAIL("%s: %s", wrong_urls[i], told);
        }
    }
    temp_remove(root);
}

static void sources_are_checked_by_their_kind(void)
{
    static const struct mistake mistakes[] = {
        {in_sources, "{ " MQTT "}", NULL},
        {in_sources, "{ kind = 'mqt' }, 7",
         "sources[1].kind: got 'mqt', want mqtt, socket, file or stdin; did you mean 'mqtt'?\n"
         "sources[2]: got 7, want a source: { kind = ... }\n"},
        {in_sources, "kind = 'stdin'",
         "sources.kind: a member with a name in a list: are braces missing around it?\n"},
        {in_sources, "{ kind = 'mqtt' }",
         "sources[1]: 'url' is missing\nsources[1]: 'subscribe' is missing\n"},
        {in_sources, "{ kind = 'mqtt', url = 'http://h', subscribe = {} }",
         "sources[1].url: got 'http://h', want a URL like mqtt://host:1883 or mqtts://host:8883\n"
         "sources[1].subscribe: is empty: it says what comes from the broker\n"},
        {in_sources, "{ " MQTT "keep_alive = 60, in_flight = 0, session_expiry = '1500ms' }",
         "sources[1].keep_alive: got 60, want a time with its unit, like '30s', from 1s to "
         "65535s\n"
         "sources[1].in_flight: got 0, want a whole number from 1 to 512\n"
         "sources[1].session_expiry: got '1500ms', want whole seconds\n"},
        {in_sources, "{ " MQTT "url = 'mqtt://h:0' }",
         "sources[1].url: got 'mqtt://h:0', want a host behind the slashes, and a port from 1 to "
         "65535 or none\n"},
        {in_sources, "{ " MQTT "url = 'mqtt://h:1883/' }",
         "sources[1].url: got 'mqtt://h:1883/', want a URL that ends behind host and port\n"},
        {in_sources, "{ " MQTT "url = 'mqtt://[::1]:1883' }", NULL},
        {in_sources, "{ " MQTT "url = 'mqtt://[h]:1883' }",
         "sources[1].url: got 'mqtt://[h]:1883', want a host behind the slashes, and a port from 1 "
         "to 65535 or none\n"},
        {in_sources, "{ " MQTT "tls = {} }", "sources[1].tls: is for an url with mqtts://\n"},
        {in_sources, "{ " MQTT "password = 'p' }",
         "sources[1].password: a password without a "
         "'user'\n"},
        /* united-manufacturing-hub/benthos-umh#345: no decoder that would need births */
        {in_sources,
         "{ kind = 'mqtt', url = 'mqtt://h', subscribe = {{ filter = 'spBv1.0/#', table = 'd.t', "
         "input = 'sparkplug' }} }",
         "sources[1].subscribe[1].input: got 'sparkplug', want json, changes, debezium-json, csv, "
         "canal-json, maxwell-json or line-protocol\n"},
        {in_sources,
         "{ kind = 'mqtt', url = 'mqtts://h', subscribe = {{ filter = 'a/#/b', table = 'd.tt', "
         "qos = 3, input = 'jsn' }, { filter = '$share/g/a', table = 'd.t' }, { filter = "
         "'$share/g/a', table = 'd.t' }} }",
         "sources[1].subscribe[1].filter: got 'a/#/b', want a topic filter; filter: # at byte 2 "
         "is no part of its own at the end\n"
         "sources[1].subscribe[1].table: got 'd.tt', want a table of 'tables'; did you mean "
         "'d.t'?\n"
         "sources[1].subscribe[1].input: got 'jsn', want json, changes, debezium-json, csv, "
         "canal-json, maxwell-json or line-protocol; did you mean 'json'?\n"
         "sources[1].subscribe[1].qos: got 3, want 0, 1 or 2\n"
         "sources[1].subscribe[3].filter: a second subscription to the same filter\n"
         "sources[1]: an url with mqtts:// needs tls.ca or tls.pinned, to know the broker by: "
         "tls = { ca = file(\"ca.pem\") }\n"},
        {in_sources,
         "{ kind = 'mqtt', url = 'mqtt://b', subscribe = { { filter = 'a/+', table = 'd.t' }, "
         "{ filter = 'b/+', table = 'd.t' }, { filter = '+/x', table = 'd.t' } } }",
         "sources[1].subscribe[3].filter: a topic may be of another filter, too, and its messages "
         "come twice: give one of them a source of its own\n"},
        {in_sources, "{ kind = 'socket', listen = 'unix:s', table = 'd.t', input = 'csv' }",
         "sources[1].input: csv names its columns in the first line alone; a socket takes other "
         "inputs\n"},
        {in_sources, "{ kind = 'socket', listen = '0.0.0.0:1', table = 'd.t' }",
         "sources[1].listen: others than this machine can reach it, so a 'token' is needed: "
         "token = file(\"...\"); or listen on 127.0.0.1\n"},
        {in_sources, "{ kind = 'socket', listen = 'unix:s', table = 'd.t' }", NULL},
        {in_sources, SOCKETS_7, NULL},
        {in_sources, SOCKETS_7 SOCKET("h"),
         "sources: with HTTP and the daemon's own socket 9 listen; at most 8 can\n"},
        {in_sources, "{ kind = 'socket', listen = 'unix:', table = 'd.t' }",
         "sources[1].listen: got 'unix:', want a path of less than 108 bytes\n"},
        {in_sources, "{ kind = 'file', path = 'a', table = 'elsewhere', subscribe = {} }",
         "sources[1].table: got 'elsewhere', want a table that is in 'tables'\n"
         "sources[1].subscribe: is unknown; known here: kind, name, path, table or input\n"},
        {in_sources, "{ kind = 'stdin', table = 'd.t' }, { kind = 'stdin', table = 'd.t' }",
         "sources[2]: a second source on standard input\n"},
        {in_sources,
         "{ kind = 'file', path = 'a', table = 'd.t' }, { kind = 'file', path = 'a', name = "
         "'file-1', table = 'd.t' }",
         "sources[2]: a second source named 'file-1'; give it a 'name'\n"
         "sources[2]: a second source of the same 'path'\n"},
        {in_sources, "{ " MQTT "client_id = 'x' }, { " MQTT "client_id = 'x' }",
         "sources[2]: a second source with this 'client_id' at this broker, which would throw "
         "out the first\n"},
        {in_sources, "{ kind = 'file', path = 'a', name = 'a b', table = 'd.t' }",
         "sources[1].name: got 'a b', want letters, digits, - and _, at most 64\n"},
    };
    check_all(mistakes, COUNT(mistakes));
}

/* Each is wrong in itself; all are told, and the end says how many. */
static void all_mistakes_are_told_at_once(void)
{
    temp_make(root);
    tn_rc rc = read_text("return { warehouse = 5, memory = 'x', tables = { ['a.b'] = { fields = { "
                         "'k INTT' } }, ['a.c'] = { comit = 1 } },\n"
                         "sources = { { kind = 'x' }, { kind = 'y' } }, nothing = {} }");
    CHECK(rc == TN_INVALID);
    CHECK(told_lines() == 7);
    CHECK(strstr(err.text, "c.lua: 7 things are wrong"));
    temp_remove(root);
}

/* ---- env, file, and what is secret ---- */

static void env_and_file_give_texts(void)
{
    temp_make(root);
    write_file("secret", "s3cr3t-token\r\n", 14);
    CHECK(setenv("TARN_TEST_HOST", "10.0.0.7", 1) == 0);
    tn_rc rc = read_in(on_top, "listen = env('TARN_TEST_HOST') .. ':80', token = file('secret'), "
                               "memory = env('TARN_TEST_NOT_SET', '32M')");
    CHECK_OK(rc, err);
    CHECK(strcmp(config.http.listen, "10.0.0.7:80") == 0);
    CHECK(strcmp(config.http.token, "s3cr3t-token") == 0);
    CHECK(config.memory == 32U << 20);
    temp_remove(root);
}

static void what_env_and_file_lack_is_told_with_its_line(void)
{
    static const struct mistake mistakes[] = {
        {on_top, "listen = env('TARN_TEST_NOT_SET')",
         "c.lua:2: env('TARN_TEST_NOT_SET'): it isn't set, and has no default\n"},
        {on_top, "listen = '[::1]:1',\ntoken = file('none')",
         "c.lua:3: file('none'): open none: No such file or directory\n"},
        {on_top, "token = file('.')",
         "c.lua:2: file('.'): open .: not a file\n"
         "token: is of HTTP, and 'listen' is missing\n"},
        {on_top, "token = file({})",
         "c.lua:2: bad argument #1 to 'file' (string expected, got table)\n"},
        {on_top, "env.x = 1", "c.lua:2: '}' expected (to close '{' at line 1) near '='\n"},
        {as_is, "env = nil", "c.lua:1: global 'env' can't be set; is a 'local' missing?\n"},
        {as_is, "return io.open('/etc/passwd')", "c.lua:1: there is no global 'io'\n"},
        {as_is, "\n\nreturn {", "c.lua:3: unexpected symbol near <eof>\n"},
        {as_is, "\nerror('the person\\'s own\\nreason')", "c.lua:2: the person's own?reason\n"},
    };
    check_all(mistakes, COUNT(mistakes));
}

static void a_file_of_file_is_bounded(void)
{
    static char large[TN_CONFIG_FILE_SIZE_MAX + 1];
    temp_make(root);
    memset(large, 'x', sizeof large);
    write_file("large", large, sizeof large);
    CHECK(read_in(on_top, "listen = '[::1]:1', token = file('large')") == TN_INVALID);
    CHECK(strcmp(told, "c.lua:2: file('large'): read large: 65537 bytes, at most 65536\n") == 0);
    temp_remove(root);
}

/* Wherever a secret was put by mistake. */
static void secrets_are_never_told(void)
{
    static const char *const members[] = {
        "memory = SECRET",
        "listen = SECRET",
        "disk_reserve = SECRET",
        "token = { SECRET }",
        "listen = '0.0.0.0:1', token = 'hunter2'",
        "tls = SECRET",
        "tls = { key = SECRET, ca = SECRET, certificate = SECRET, pinned = SECRET }",
        "limits = { timeout = SECRET, connections = SECRET }",
        "journal = { sync = SECRET }",
        "sources = SECRET",
        "sources = { { kind = SECRET } }",
        "sources = { { kind = 'mqtt', url = SECRET, client_id = { SECRET }, user = { SECRET }, "
        "password = { SECRET }, subscribe = { { filter = '#/' .. SECRET, table = SECRET, input = "
        "SECRET, qos = SECRET }, { filter = SECRET, table = SECRET } } } }",
        "sources = { { kind = 'mqtt', url = 'mqtt://me:hunter2-hunter2@host', subscribe = {} } }",
        "sources = { { kind = 'mqtt', url = 'mqtt://host', password = 77777777, subscribe = {} } }",
        "sources = { { kind = 'socket', name = SECRET, listen = SECRET, table = SECRET } }",
        "lakes = { a = { target = SECRET, every = SECRET, options = { ['s3.secret-key'] = 1, "
        "['s3.secret'] = SECRET } } }",
        "lakes = { a = { target = 'l', notify = { url = SECRET, topic = SECRET, user = SECRET, "
        "password = { SECRET }, token = SECRET } } }",
        "lakes = { a = { target = 'l', notify = { url = 'https://h/hunter2 x' } } }",
        "lakes = { a = { target = 'l', notify = { url = 'mqtt://hunter2@h' } } }",
    };
    temp_make(root);
    write_file("secret", "hunter2-hunter2/#/\n", 19);
    for (size_t i = 0; i < COUNT(members); i++) {
        static char text[TEXT_SIZE];
        bool plain = strstr(members[i], "'#/'");
        (void)snprintf(text, sizeof text,
                       "local SECRET = file('secret')\nreturn { warehouse = 'w', tables = { "
                       "['d.t'] = { fields = { 'k INT' }, options = { bucket = -1 } } },\n%s }",
                       members[i]);
        CHECK(read_text(text) == TN_INVALID);
        if (!plain && (strstr(told, "hunter2") || strstr(told, "77777777"))) {
            FAIL("a secret is told of %s\n%s", members[i], told);
        }
    }
    CHECK(read_in(in_table, "fields = { file('secret') }, commit = file('secret'), dead_letters = "
                            "file('secret'), unknown = file('secret'), script = 's', primary_key "
                            "= 'k', options = { bucket = file('secret') }") == TN_INVALID);
    CHECK(!strstr(told, "hunter2"));
    CHECK(read_in(in_table, KEYED "options = { bucket = file('secret') }") == TN_INVALID);
    CHECK(!strstr(told, "hunter2"));
    temp_remove(root);
}

/* ---- hostile files ---- */

static void hostile_files_end_and_are_told(void)
{
    static const struct mistake mistakes[] = {
        {as_is, "while true do end", "c.lua:1: its budget of instructions is used up\n"},
        {as_is, "while true do pcall(env, 'HOME') end",
         "c.lua:1: its budget of instructions is used up\n"},
        {as_is, "while true do pcall(file, 'c.lua') end",
         "c.lua:1: its budget of instructions is used up\n"},
        {as_is, "local t = {} for i = 1, 1e9 do t[i] = i end",
         "c.lua:1: not enough memory: a state has 1048576 bytes, a block at most 262144\n"},
        {as_is,
         "local t = {} t.tables = t t.sources = { t } return setmetatable(t, { __index = "
         "function() while true do end end, __pairs = error, __len = error })",
         NULL},
    };
    temp_make(root);
    for (size_t i = 0; i + 1 < COUNT(mistakes); i++) {
        check_one(&mistakes[i]);
    }
    CHECK(read_text(mistakes[COUNT(mistakes) - 1].members) == TN_INVALID);
    CHECK(strstr(told, "tables are nested too deep"));
    CHECK(read_text("local t = {} for i = 1, 100 do t[i] = t end return t") == TN_INVALID);
    CHECK(strstr(told, "the configuration needs more memory than there is for it"));
    CHECK(read_text("local t = {} for i = 1, 1000 do t['k' .. i] = i end return t") == TN_INVALID);
    CHECK(told_lines() == TN_CONFIG_WRONG_MAX && strstr(err.text, "1002 things are wrong"));
    temp_remove(root);
}

/* Whatever it holds, it is told or taken, and another comes to the same. */
static void any_value_anywhere_is_told_or_taken(void)
{
    static const char *const keys[] = {
        "warehouse", "memory", "listen", "token",  "tls",   "limits",  "journal", "tables",
        "sources",   "sync",   "size",   "kind",   "url",   "name",    "fields",  "options",
        "subscribe", "filter", "table",  "commit", "times", "['a.b']", "[1]",     "[2]"};
    static const char *const values[] = {"{}",        "nil",           "true",       "0",
                                         "-1",        "1e300",         "0/0",        "'a.b'",
                                         "'mqtt'",    "'file'",        "''",         "'1M'",
                                         "'30s'",     "'k INT'",       "print",      "'\\0'",
                                         "'\\255'",   "'a,b'",         "1 << 62",    "'mqtt://h'",
                                         "'[::1]:1'", "file('c.lua')", "env('HOME')"};
    uint64_t random = given_number("SEED", 1);
    static char text[TEXT_SIZE];
    static char before[TOLD_SIZE];
    temp_make(root);
    for (int round = 0; round < 3000; round++) {
        size_t size = (size_t)snprintf(text, sizeof text, "return {");
        int depth = 1;
        for (int i = 0; i < 40; i++) {
            const char *key = keys[random_below(&random, COUNT(keys))];
            bool open = depth < 6 && random_below(&random, 3) == 0;
            const char *value = values[random_below(&random, COUNT(values))];
            size += (size_t)snprintf(text + size, sizeof text - size, "%s = %s%s", key,
                                     open ? "{" : value, open ? "" : ",");
            depth += open;
            if (depth > 1 && random_below(&random, 4) == 0) {
                size += (size_t)snprintf(text + size, sizeof text - size, "},");
                depth--;
            }
        }
        for (; depth > 0; depth--) {
            size += (size_t)snprintf(text + size, sizeof text - size, depth > 1 ? "}," : "}");
        }
        tn_rc rc = read_text(text);
        CHECK(rc == TN_OK || rc == TN_INVALID);
        CHECK((told_size > 0) == (rc == TN_INVALID));
        memcpy(before, told, told_size + 1);
        tn_rc again = read_with(TN_CONFIG_MEMORY, KEPT_SIZE);
        if (again != rc || strcmp(before, told) != 0) {
            FAIL("other lines the second time, of %s\n%s\nand then\n%s", text, before, told);
        }
    }
    temp_remove(root);
}

static void memory_that_is_short_is_said(void)
{
    temp_make(root);
    CHECK(read_in(on_top, "") == TN_OK);
    tn_rc rc = TN_OK;
    bool some = false;
    for (size_t kept = 0; kept < 16 * 1024; kept += 16) {
        rc = read_with(TN_CONFIG_MEMORY, kept);
        CHECK(rc == TN_OK || rc == TN_AGAIN);
        some |= rc == TN_AGAIN;
    }
    CHECK(rc == TN_OK && some);
    rc = read_with(64 * 1024, KEPT_SIZE);
    CHECK(rc == TN_INVALID || rc == TN_AGAIN);
    temp_remove(root);
}

/* ---- what is right ---- */

static void a_whole_configuration_arrives(void)
{
    temp_make(root);
    write_file("s.lua", "return {}", 9);
    tn_rc rc = read_text(
        "return { warehouse = 'data', memory = '24M', disk_reserve = '8M', listen = '[::1]:7080',\n"
        "limits = { connections = 3, body_size = '64K', timeout = '1500ms', idle = '5s' },\n"
        "journal = { sync = '50ms or 128K', size = '8M' }, pace = '5s',\n"
        "compaction = { unit_size_max = '2M' }, tables = {\n"
        "['d.b'] = { fields = { 'k INT', 'p STRING', 'ts TIMESTAMP(3)' }, primary_key = { 'p', 'k' "
        "},\n  partition_by = 'p', options = { bucket = 2, ['write-only'] = false }, script = "
        "'s.lua',\n  commit = '5000 rows', dead_letters = 'd.letters', unknown = 'drop', times = { "
        "ts = 'ms' } },\n"
        "['d.a'] = { fields = { 'k INT' }, options = { bucket = -1 } } },\n"
        "sources = { { kind = 'mqtt', url = 'mqtt://h:1', user = 'u', password = '', keep_alive = "
        "'2min',\n subscribe = { { filter = '+/x', table = 'd.a', input = 'csv', qos = 2 }, { "
        "filter = 'y', table = 'd.b' } } },\n"
        "{ kind = 'socket', listen = 'unix:in', table = 'd.a', line_size = '4K' },\n"
        "{ kind = 'file', path = '/x', table = 'd.b' }, { kind = 'file', path = 'y', table = 'd.b' "
        "} },\nlakes = { b = { target = '/lake', every = '5s' },\n"
        "a = { target = 'lake', tables = { 'd.b' }, on_full = 'gap' } } }");
    CHECK_OK(rc, err);
    CHECK(config.table_count == 2 && config.source_count == 4 && config.memory == 24U << 20);
    CHECK(config.warehouse[0] == '/' && strstr(config.warehouse, "/data"));
    CHECK(config.http.connections == 3 && config.http.body_size_max == 64 * 1024);
    CHECK(config.http.timeout_ms == 1500 && config.http.idle_ms == 5000 && !config.http.token);
    CHECK(config.unit_size_max == 2 << 20);
    CHECK(config.pace_ms == 5000 && config.plain_count == 1 && config.tables->plain);
    CHECK(config.journal.sync_ms == 50 && config.journal.sync_bytes == 128 * 1024);
    const struct tn_config_table *a = config.tables;
    const struct tn_config_table *b = a->next;
    CHECK(strcmp(a->name, "d.a") == 0 && a->commit.ms == 30000 && a->commit.rows == 100000);
    CHECK(!a->script && a->unknown == TN_UNKNOWN_FAIL);
    CHECK(b->commit.ms == 0 && b->commit.rows == 5000 && b->commit.bytes == 0);
    CHECK(strcmp(b->primary_key->next->text, "k") == 0 && strstr(b->script, "/s.lua"));
    CHECK(strcmp(b->options->key, "bucket") == 0 && strcmp(b->options->value, "2") == 0);
    CHECK(strcmp(b->options->next->value, "false") == 0 && b->unknown == TN_UNKNOWN_DROP);
    CHECK(strcmp(b->times->key, "ts") == 0 && strcmp(b->times->value, "ms") == 0);
    const struct tn_config_source *s = config.sources;
    CHECK(s->kind == TN_SOURCE_MQTT && strcmp(s->name, "mqtt") == 0 && s->keep_alive_s == 120);
    CHECK(s->password[0] == 0 && s->subscribe->qos == 2 && s->subscribe->input == TN_INPUT_CSV);
    CHECK(s->subscribe->next->qos == 1 && s->subscribe->next->table == b->name);
    CHECK(s->next->line_size_max == 4096 && strncmp(s->next->url, "unix:/", 6) == 0);
    CHECK(strcmp(s->next->next->name, "file-1") == 0);
    CHECK(strcmp(s->next->next->next->name, "file-2") == 0);
    const struct tn_config_lake *l = config.lakes;
    CHECK(config.lake_count == 2 && config.upload_count == 3 && strcmp(l->name, "a") == 0);
    CHECK(l->gap && l->every_ms == 0 && l->target[0] == '/' && strstr(l->target, "/lake"));
    CHECK(strcmp(l->tables->text, "d.b") == 0 && !l->tables->next);
    CHECK(!l->next->gap && l->next->every_ms == 5000 && strcmp(l->next->target, "/lake") == 0);
    CHECK(strcmp(l->next->tables->next->text, "d.b") == 0);
    temp_remove(root);
}

static void a_schema_is_made_of_fields_or_a_file(void)
{
    static _Alignas(16) unsigned char memory[256 * 1024];
    static const char json[] = "{\"fields\": [{\"name\": \"k\", \"type\": \"INT\"}], "
                               "\"primaryKeys\": [\"k\"], \"options\": {\"bucket\": \"1\"}}";
    struct tn_arena arena;
    struct tn_schema schema;
    temp_make(root);
    write_file("s.json", json, sizeof json - 1);
    tn_rc rc = read_in(in_table, "schema = 's.json', options = { bucket = 4 }");
    CHECK_OK(rc, err);
    tn_arena_init(&arena, memory, sizeof memory);
    rc = tn_config_table_schema(config.tables, &arena, &schema, &err);
    CHECK_OK(rc, err);
    CHECK(schema.primary_keys.count == 1 && schema.option_count == 1);
    CHECK(strcmp(tn_schema_option(&schema, "bucket"), "4") == 0);
    rc = read_in(in_table, KEYED "options = { bucket = 3 }");
    CHECK_OK(rc, err);
    rc = tn_config_table_schema(config.tables, &arena, &schema, &err);
    CHECK_OK(rc, err);
    CHECK(schema.field_count == 2 && strcmp(tn_schema_option(&schema, "bucket"), "3") == 0);
    write_file("s.json", "{\n\"fields\": 1}", 14);
    CHECK(read_in(in_table, "schema = 's.json'") == TN_INVALID);
    CHECK(strstr(told, "tables['d.t'].schema: ") && strstr(told, "/s.json:2: "));
    temp_remove(root);
}

/* Its cases run, with the columns of the table. */
static void a_table_s_script_is_loaded(void)
{
    static const char text[] = "return { merge = function(now, row) row.nn = 1 return row end,\n"
                               "test = { { merge = { nil, { n = 1 } }, gives = { n = 1 } } } }";
    temp_make(root);
    write_file("s.lua", text, sizeof text - 1);
    CHECK(read_in(in_table, KEYED "options = { bucket = 1 }, script = 's.lua'") == TN_INVALID);
    CHECK(strncmp(told, "tables['d.t'].script: s.lua: its case 1 fails", 43) == 0);
    CHECK(strstr(told, "'nn'"));
    temp_remove(root);
}

/* One that is only named has its script by the option that it was made with, beside the warehouse.
 */
static void the_script_of_a_table_that_is_there_is_loaded(void)
{
    static const char bad[] = "return { merge = function(now, row) row.nn = 1 return row end,\n"
                              "test = { { merge = { nil, { n = 1 } }, gives = { n = 1 } } } }";
    static const char good[] = "return { merge = function(now, row) return row end }";
    static const char *const folders[] = {"w", "w/d.db", "w/d.db/t", "w/d.db/t/schema"};
    static const char schema[] =
        "{\"version\": 3, \"id\": 0, \"fields\": [{\"id\": 0, \"name\": \"k\", \"type\": \"INT "
        "NOT NULL\"}, {\"id\": 1, \"name\": \"n\", \"type\": \"INT\"}], \"highestFieldId\": 1, "
        "\"partitionKeys\": [], \"primaryKeys\": [\"k\"], \"options\": {\"bucket\": \"1\", "
        "\"tarn.script\": \"s.lua\"}, \"timeMillis\": 1}";
    char path[TEMP_SIZE + 64];
    temp_make(root);
    for (size_t i = 0; i < COUNT(folders); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        CHECK(mkdir(path, 0777) == 0);
    }
    write_file("w/d.db/t/schema/schema-0", schema, sizeof schema - 1);
    CHECK(read_in(in_table, "") == TN_INVALID);
    CHECK(strncmp(told, "tables['d.t']: its script s.lua: ", 33) == 0);
    write_file("s.lua", bad, sizeof bad - 1);
    CHECK(read_in(in_table, "") == TN_INVALID);
    CHECK(strncmp(told, "tables['d.t']: its script s.lua: s.lua: its case 1 fails", 55) == 0);
    write_file("s.lua", good, sizeof good - 1);
    tn_rc rc = read_in(in_table, "");
    CHECK_OK(rc, err);
    CHECK(!config.tables->script);
    temp_remove(root);
}

static void rules_are_read_as_they_are_printed(void)
{
    static const char *const rules[] = {"30s or 5000 rows or 1M", "1ms",    "7d",
                                        "1500ms or 3K",           "1 rows", "90min or 1025"};
    for (size_t i = 0; i < COUNT(rules); i++) {
        char text[128];
        struct tn_commit_rule rule = {0};
        struct tn_commit_rule again = {0};
        struct tn_buf buf;
        tn_rc rc = tn_commit_rule_parse(rules[i], &rule, &err);
        bool bare = i == COUNT(rules) - 1; /* a number alone is no size */
        CHECK(rc == (bare ? TN_INVALID : TN_OK));
        tn_buf_init(&buf, text, sizeof text - 1);
        tn_commit_rule_format(&rule, &buf);
        text[buf.size] = 0;
        CHECK(bare || strcmp(text, rules[i]) == 0);
        CHECK(bare || tn_commit_rule_parse(text, &again, &err) == TN_OK);
        CHECK(again.ms == rule.ms && again.rows == rule.rows && again.bytes == rule.bytes);
    }
}

static const struct test tests[] = {
    TEST(members_on_top_are_told_with_what_would_do),
    TEST(tables_are_checked_as_create_does),
    TEST(commit_rules_are_time_rows_and_size),
    TEST(lakes_have_a_target_and_tables_that_are_there),
    TEST(who_is_told_of_a_lake_has_one_url),
    TEST(sources_are_checked_by_their_kind),
    TEST(all_mistakes_are_told_at_once),
    TEST(env_and_file_give_texts),
    TEST(what_env_and_file_lack_is_told_with_its_line),
    TEST(a_file_of_file_is_bounded),
    TEST(secrets_are_never_told),
    TEST(hostile_files_end_and_are_told),
    TEST(any_value_anywhere_is_told_or_taken),
    TEST(memory_that_is_short_is_said),
    TEST(a_whole_configuration_arrives),
    TEST(a_schema_is_made_of_fields_or_a_file),
    TEST(a_table_s_script_is_loaded),
    TEST(the_script_of_a_table_that_is_there_is_loaded),
    TEST(rules_are_read_as_they_are_printed),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
