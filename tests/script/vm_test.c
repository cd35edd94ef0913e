/* vm: what a script can't do, and that the state is as good as before when it has tried. */
#include "given_script.h"

#include <ucontext.h>

#include "base/hash.h"

static struct given_state s;

/* Runs the text; it must fail with `want` in the error, and the state must work afterwards. */
static void check_stopped(const char *text, const char *want)
{
    tn_rc rc = run_text(&s, text, 0);
    if (rc != TN_INVALID || !strstr(s.err.text, want)) {
        FAIL("%s\ngave %d: %s\nwant: %s", text, rc, s.err.text, want);
    }
    CHECK(strncmp(s.err.text, "t.lua:", 6) == 0);
    CHECK(lua_gettop(s.vm.lua) == 1);
    tn_heap_check(&s.vm.heap);
    rc = run_text(&s, "return 1 + 1", 1);
    CHECK_OK(rc, s.err);
    CHECK(lua_tointeger(s.vm.lua, -1) == 2);
    lua_pop(s.vm.lua, 1);
}

struct attempt {
    const char *text;
    const char *want;
};

static void check_all(const struct attempt *attempts, size_t count)
{
    open_state(&s, NULL);
    for (size_t i = 0; i < count; i++) {
        check_stopped(attempts[i].text, attempts[i].want);
    }
    tn_vm_close(&s.vm);
}

static const char spent[] = "budget of instructions is used up";

/* An endless loop, in each place where a script's code can run. */
static void endless_loops_are_stopped_wherever_they_are(void)
{
    static const struct attempt attempts[] = {
        {"while true do end", "t.lua:1: its budget"},
        {"\n\nwhile true do end", "t.lua:3: its budget"},
        {"pcall(function() while true do end end)", spent},
        {"while true do pcall(function() while true do end end) end", spent},
        {"local f; f = function() pcall(f) while true do end end f()", spent},
        {"xpcall(error, function() while true do end end)", spent},
        {"xpcall(function() while true do end end, function() while true do end end)", spent},
        {"local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
         spent},
        {"local t = setmetatable({}, {__add = function() while true do end end}) return t + 1",
         spent},
        {"local t = setmetatable({}, {__eq = function() while true do end end}) "
         "return t == setmetatable({}, getmetatable(t))",
         spent},
        {"local t = setmetatable({}, {__tostring = function() while true do end end}) return "
         "tostring(t)",
         spent},
        {"local t = setmetatable({}, {__len = function() while true do end end}) table.insert(t, "
         "1)",
         spent},
        {"table.sort({3, 2, 1}, function() while true do end end)", spent},
        {"(\"aaa\"):gsub(\"a\", function() while true do end end)", spent},
        {"for _ in function() while true do end end do end", spent},
        {"local x <close> = setmetatable({}, {__close = function() while true do end end}) "
         "error(\"x\")",
         spent},
        {"local x <close> = setmetatable({}, {__close = function() while true do end end}) "
         "while true do end",
         spent},
        {"while true do pcall(string.rep) end", spent},
    };
    check_all(attempts, COUNT(attempts));
}

/* Whatever catches errors: the script gets no chance to go on, not even to say a word. */
static void nothing_runs_behind_what_stopped_a_call(void)
{
    static const char *const texts[] = {
        "pcall(function() while true do end end) tarn.log(\"warn\", \"it goes on\")",
        "xpcall(function() while true do end end, function() end) "
        "tarn.log(\"warn\", \"it goes on\")",
        "xpcall(function() while true do end end, function() tarn.log(\"warn\", \"it says\") end)",
        "pcall(pcall, function() while true do end end) tarn.log(\"warn\", \"it goes on\")",
        "pcall(table.sort, {3, 2, 1}, function() while true do end end) "
        "tarn.log(\"warn\", \"it goes on\")",
        "pcall(string.find, (\"x\"):rep(5000), (\".-\"):rep(8) .. \"y\") "
        "tarn.log(\"warn\", \"it goes on\")",
    };
    open_state(&s, NULL);
    for (size_t i = 0; i < COUNT(texts); i++) {
        s.logged[0] = 0;
        tn_rc rc = run_text(&s, texts[i], 0);
        CHECK(rc == TN_INVALID);
        if (s.logged[0]) {
            FAIL("%s\nsaid: %s", texts[i], s.logged);
        }
    }
}

/* C functions that no instruction count sees. */
static void library_functions_pay_for_their_work(void)
{
    static const struct attempt attempts[] = {
        {"return (\"x\"):rep(1 << 30)", "string.rep would make 1073741824"},
        {"return (\"x\"):rep(1 << 62, \"yy\")", "string.rep would make"},
        {"return (\"x\"):rep(5000):find((\".-\"):rep(8) .. \"y\")", "the pattern takes more steps"},
        {"return pcall(string.find, (\"x\"):rep(5000), (\".-\"):rep(8) .. \"y\")",
         "the pattern takes more steps"},
        {"return (\"a\"):rep(30000):match(\"^(a*)*$\")", ""},
        {"local t = (\"x\"):rep(400) for i = 1, 400 do t:find(\"x-y\") end",
         "the pattern takes more steps"},
        {"local t = (\"x\"):rep(400) for i = 1, 400 do t:gsub(\"x-y\", \"\") end",
         "the pattern takes more steps"},
        {"return (\"x\"):rep(5000):gsub((\"x*\"):rep(8) .. \"y\", \"\")",
         "the pattern takes more steps"},
        {"for _ in (\"x\"):rep(5000):gmatch((\"x-\"):rep(8) .. \"y\") do end",
         "the pattern takes more steps"},
        {"table.move({}, 1, 1 << 40, 2)", spent},
        {"table.insert(setmetatable({}, {__len = function() return 1 << 40 end}), 1, 0)", spent},
        {"table.concat(setmetatable({}, {__index = table.concat}), \"\", 1, 1 << 40)", spent},
        {"table.sort(setmetatable({}, {__len = function() return 1 << 30 end}))", spent},
        {"return table.unpack({}, 1, 1 << 30)", spent},
        {"local s = \"x\" for i = 1, 64 do s = s .. s end", "not enough memory"},
        {"local s = (\"x\"):rep(60000) for i = 1, 1e9 do local t = s .. i end",
         "budget of allocated bytes"},
        {"pcall(function() local s = (\"x\"):rep(60000) for i = 1, 1e9 do local t = s .. i end "
         "end)",
         "budget of allocated bytes"},
        {"return (\"%s%s\"):format((\"x\"):rep(60000), (\"y\"):rep(60000))",
         "a text of 120000 bytes"},
        {"local s = (\"x\"):rep(60000) return (s .. s):find(\"y\")", "a text of 120000 bytes"},
        {"return (\"x\"):rep(60000):gsub(\"x\", \"yy\")", "the result has more than"},
        {"local s = (\"x\"):rep(60000) return #(s .. s .. s .. s)", "a block at most 163840"},
        {"local t = {} for i = 1, 1e9 do t[i] = i end", "not enough memory"},
        {"local t = {} for i = 1, 1e9 do t = {t} end", "not enough memory"},
        {"return string.pack(\"c100000000\", \"\")", "not enough memory"},
    };
    open_state(&s, NULL);
    for (size_t i = 0; i < COUNT(attempts); i++) {
        if (attempts[i].want[0]) {
            check_stopped(attempts[i].text, attempts[i].want);
        } else {
            tn_rc rc = run_text(&s, attempts[i].text, 0);
            CHECK(rc == TN_OK || rc == TN_INVALID);
        }
    }
}

static void deep_recursion_is_an_error_that_names_its_line(void)
{
    static const struct attempt attempts[] = {
        {"local function f() return 1 + f() end\nreturn f()",
         "t.lua:1: calls are nested more than"},
        {"local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) return t[k] end "
         "return t.x",
         "C stack overflow"},
        {"local function f() pcall(f) error(\"x\") end f()", "x"},
        {"local function f() (\"x\"):gsub(\"x\", f) end f()", "t.lua:1: "},
        {"local function f(a, b) table.sort({1, 2, 3}, f) return false end f()", "t.lua:1: "},
    };
    check_all(attempts, COUNT(attempts));
}

/* ---- the C stack ---- */

static const char *const deepest[] = {
    "local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) return t[k] end "
    "return t.x",
    "local function f() pcall(f) error(\"x\") end f()",
    "local function f() xpcall(f, f) end f()",
    "local function f() (\"x\"):gsub(\"x\", f) end f()",
    "local function f() table.sort({1, 2, 3, 4, 5, 6, 7}, f) return false end f()",
    "local m = {} local t = setmetatable({}, m) m.__tostring = function() return tostring(t) end "
    "return tostring(t)",
    "local m = {} local t = setmetatable({}, m) "
    "m.__tostring = function() return (\"%s\"):format(t) end return tostring(t)",
    "local m = {} local t = setmetatable({}, m) "
    "m.__index = function() return table.concat(t, \",\", 1, 3) end return t[1]",
    "local m = {} local t = setmetatable({}, m) m.__concat = function() return t .. t end "
    "return t .. t",
    "local m = {} local t = setmetatable({}, m) m.__close = function() local x <close> = t end "
    "local x <close> = t",
    "return ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
    "return function() return function() return function() return function() return {{{{{{{{{{{{",
};

static const char *deepest_text;

static void run_deepest(void)
{
    tn_rc rc = run_text(&s, deepest_text, 0);
    CHECK(rc == TN_INVALID);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
enum { STACK_MEASURED = 0 }; /* frames are larger, and sanitizers want to know of stacks */
#else
enum { STACK_MEASURED = 1 };
#endif

/* Runs it on a stack of its own; returns how many bytes of that are no longer as they were. */
static size_t stack_of_deepest(void)
{
    static _Alignas(4096) unsigned char stack[1 << 20];
    static ucontext_t here;
    static ucontext_t there;
    memset(stack, 0xA5, sizeof stack);
    CHECK(getcontext(&there) == 0);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    there.uc_link = &here;
    makecontext(&there, run_deepest, 0);
    CHECK(swapcontext(&here, &there) == 0);
    size_t untouched = 0;
    while (stack[untouched] == 0xA5) {
        untouched++;
    }
    return sizeof stack - untouched;
}

static void the_c_stack_that_a_script_takes_is_bounded(void)
{
    for (size_t i = 0; i < COUNT(deepest); i++) {
        open_state(&s, NULL);
        deepest_text = deepest[i];
        if (STACK_MEASURED) {
            CHECK(stack_of_deepest() <= TN_VM_STACK_SIZE);
        } else {
            run_deepest();
        }
    }
}

static void nothing_leads_out_of_the_sandbox(void)
{
    static const struct attempt attempts[] = {
        {"io.open(\"/etc/passwd\")", "there is no global 'io'"},
        {"os.exit(1)", "there is no global 'os'"},
        {"debug.sethook()", "there is no global 'debug'"},
        {"return package.loaded", "there is no global 'package'"},
        {"coroutine.wrap(print)()", "there is no global 'coroutine'"},
        {"load(\"return 1\")()", "there is no global 'load'"},
        {"dofile(\"t.lua\")", "there is no global 'dofile'"},
        {"loadfile(\"t.lua\")()", "there is no global 'loadfile'"},
        {"loadstring(\"x\")", "there is no global 'loadstring'"},
        {"collectgarbage()", "there is no global 'collectgarbage'"},
        {"return _G", "there is no global '_G'"},
        {"return string.dump(print)", "there is no string.'dump'"},
        {"math.randomseed(1)", "there is no math.'randomseed'"},
        {"count = 1", "global 'count' can't be set; is a 'local' missing?"},
        {"function helper() end", "global 'helper' can't be set"},
        {"_ENV.x = 1", "global 'x' can't be set"},
        {"rawset(_ENV, \"x\", 1)", "table expected"},
        {"string.rep = nil", "string.'rep' can't be set"},
        {"tarn.KEEP = 1", "tarn.'KEEP' can't be set"},
        {"getmetatable(\"\").__index = nil", "attempt to index a boolean"},
        {"setmetatable(_ENV, {})", "table expected"},
        {"setmetatable({}, {__gc = function() end})", "there are no finalizers"},
        {"return prnt", "did you mean 'print'?"},
        {"return tarn.fld", "there is no tarn.'fld'"},
        {"return require(\"../t\")", "no name of a module"},
        {"return require(\"secret\")", "files are read only while the script loads"},
        {"error({})", "the error is a table"},
        {"error()", "the error is a nil"},
        {"tarn.log(\"loud\", \"x\")", "invalid option 'loud'"},
        {"return (\"x\"):find(\"[\")", "malformed pattern"},
        {"return (\"x\"):rep({})", "bad argument #1 to 'rep'"},
        {"return (\"x\"):sub({})", "bad argument #1 to 'sub'"},
    };
    check_all(attempts, COUNT(attempts));
}

static void bytecode_is_refused(void)
{
    open_state(&s, NULL);
    static const char code[] = "\x1bLua\x54\x00\x19\x93\r\n\x1a\n\x04\x08\x08";
    set_file(0, "t.lua", code, sizeof code);
    tn_rc rc = tn_vm_load(&s.vm, "t.lua", NULL, &s.err);
    CHECK(rc == TN_INVALID);
    CHECK(strstr(s.err.text, "attempt to load a binary chunk"));
}

static void files_that_cannot_be_loaded_are_errors_by_name(void)
{
    open_state(&s, NULL);
    tn_rc rc = tn_vm_load(&s.vm, "absent.lua", NULL, &s.err);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "absent.lua: there is no such file"));
    static char large[256 * 1024];
    memset(large, ' ', sizeof large);
    set_file(0, "t.lua", large, sizeof large);
    rc = tn_vm_load(&s.vm, "t.lua", NULL, &s.err);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "at most"));
    static char nested[2000];
    memset(nested, '(', sizeof nested);
    set_file(0, "t.lua", nested, sizeof nested);
    rc = tn_vm_load(&s.vm, "t.lua", NULL, &s.err);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "t.lua: C stack overflow"));
    rc = run_text(&s, "return return", 0);
    CHECK(rc == TN_INVALID && strstr(s.err.text, "t.lua:1:"));
}

/* Files beside the script are read while it loads, once each. */
static void require_takes_files_and_the_library(void)
{
    open_state(&s, NULL);
    static const char units[] = "local m = {} m.loaded = 1 return m";
    static const char cycle[] = "return require(\"cycle\")";
    static const char fails[] = "\nerror(\"no\")";
    set_file(1, "lib/units.lua", units, sizeof units - 1);
    set_file(2, "cycle.lua", cycle, sizeof cycle - 1);
    set_file(3, "fails.lua", fails, sizeof fails - 1);
    static const struct attempt attempts[] = {
        {"return require(\"lib.units\") == require(\"lib.units\") and "
         "require(\"lib.units\").loaded == 1",
         NULL},
        {"return require(\"tarn.fold\") == tarn.fold and tarn.fold.max(1, 2) == 2", NULL},
        {"return require(\"cycle\")", "it requires itself"},
        {"return require(\"fails\")", "fails.lua:2: no"},
    };
    for (size_t i = 0; i < COUNT(attempts); i++) {
        set_file(0, "t.lua", attempts[i].text, strlen(attempts[i].text));
        tn_rc rc = tn_vm_load(&s.vm, "t.lua", NULL, &s.err);
        CHECK_OK(rc, s.err);
        rc = tn_vm_call_loading(&s.vm, 0, 1, &s.err);
        if (attempts[i].want) {
            CHECK(rc == TN_INVALID && strstr(s.err.text, attempts[i].want));
            continue;
        }
        CHECK_OK(rc, s.err);
        CHECK(lua_toboolean(s.vm.lua, -1));
        lua_pop(s.vm.lua, 1);
    }
}

/* The same program is stopped after the same number of its steps, in every state. */
static void budgets_stop_a_call_at_the_same_place(void)
{
    static const char text[] =
        "local n = 0\n"
        "local function step() n = n + 1 end\n"
        "local ok = pcall(function() while true do step() tarn.log(\"info\", n) end end)\n";
    char first[256] = "";
    for (int i = 0; i < 3; i++) {
        open_state(&s, NULL);
        tn_rc rc = run_text(&s, text, 0);
        CHECK(rc == TN_INVALID);
        CHECK(strlen(s.logged) > strlen("info "));
        CHECK(i == 0 || strcmp(first, s.logged) == 0);
        (void)snprintf(first, sizeof first, "%s", s.logged);
    }
}

static void random_numbers_come_from_the_seed(void)
{
    double seen[2];
    for (int i = 0; i < 2; i++) {
        open_state(&s, NULL);
        tn_rc rc = run_text(&s, "return math.random()", 1);
        CHECK_OK(rc, s.err);
        seen[i] = lua_tonumber(s.vm.lua, -1);
    }
    CHECK(seen[0] == seen[1]);
}

/* The errors that a script catches are its own affair; the state's memory is whole. */
static void a_full_memory_can_be_caught_and_is_free_again(void)
{
    open_state(&s, NULL);
    size_t before = tn_vm_used(&s.vm, true);
    tn_rc rc =
        run_text(&s,
                 "local ok = pcall(function() local t = {} for i = 1, 1e9 do t[i] = i end end)\n"
                 "return ok",
                 1);
    CHECK_OK(rc, s.err);
    CHECK(!lua_toboolean(s.vm.lua, -1));
    lua_pop(s.vm.lua, 1);
    CHECK(tn_vm_used(&s.vm, true) <= before + 1024);
}

static void print_and_log_go_to_the_engine(void)
{
    open_state(&s, NULL);
    tn_rc rc = run_text(&s, "print(1, \"a\", nil)", 0);
    CHECK_OK(rc, s.err);
    CHECK(strcmp(s.logged, "info 1\ta\tnil") == 0);
    rc = run_text(&s, "tarn.log(\"warn\", \"hot\")", 0);
    CHECK_OK(rc, s.err);
    CHECK(strcmp(s.logged, "warn hot") == 0);
}

static void the_digest_is_that_of_the_text(void)
{
    open_state(&s, NULL);
    unsigned char digest[32];
    unsigned char want[32];
    set_file(0, "t.lua", "return {}", 9);
    tn_rc rc = tn_vm_load(&s.vm, "t.lua", digest, &s.err);
    CHECK_OK(rc, s.err);
    tn_hash_sha256(tn_bytes_of("return {}"), want);
    CHECK(memcmp(digest, want, 32) == 0);
}

static void a_state_needs_its_memory(void)
{
    static _Alignas(16) unsigned char small[TN_VM_SIZE_MIN];
    static struct tn_vm vm;
    struct tn_err err = {0};
    struct tn_vm_spec spec = {.memory = small, .size = sizeof small};
    tn_rc rc = tn_vm_open(&vm, &spec, &err);
    CHECK_OK(rc, err);
    tn_vm_close(&vm);
    spec.size--;
    rc = tn_vm_open(&vm, &spec, &err);
    CHECK(rc == TN_INVALID);
}

static const struct test tests[] = {
    TEST(endless_loops_are_stopped_wherever_they_are),
    TEST(nothing_runs_behind_what_stopped_a_call),
    TEST(library_functions_pay_for_their_work),
    TEST(deep_recursion_is_an_error_that_names_its_line),
    TEST(the_c_stack_that_a_script_takes_is_bounded),
    TEST(nothing_leads_out_of_the_sandbox),
    TEST(bytecode_is_refused),
    TEST(files_that_cannot_be_loaded_are_errors_by_name),
    TEST(require_takes_files_and_the_library),
    TEST(budgets_stop_a_call_at_the_same_place),
    TEST(random_numbers_come_from_the_seed),
    TEST(a_full_memory_can_be_caught_and_is_free_again),
    TEST(print_and_log_go_to_the_engine),
    TEST(the_digest_is_that_of_the_text),
    TEST(a_state_needs_its_memory),
};

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, COUNT(tests));
}
