/* pattern: random patterns on random texts, against Lua's own matcher. */
#include "script/pattern.h"

#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>
#include <lua5.4/lualib.h>

#include "given.h"
#include "given_script.h"
#include "random.h"

static uint64_t seed;

/* Short pieces that patterns are made of; most combinations are well formed. */
static const char *const pieces[] = {
    "a",    "b",   ".",     "%a", "%d", "%S", "[ab]", "[^a]", "[a-c%d]", "(",     ")",      "()",
    "*",    "+",   "-",     "?",  "$",  "^",  "%1",   "%2",   "%b()",    "%f[a]", "%f[%W]", "%%",
    "[%]]", "[]]", "[^]a]", "%w", "%",  "[",  "]",    "%f",   "%bx",     " ",     "a-",     "(a*)"};

static void make_pattern(char *text)
{
    text[0] = 0;
    for (uint32_t i = random_below(&seed, 7); i > 0; i--) {
        (void)strcat(text, pieces[random_below(&seed, COUNT(pieces))]);
    }
}

static void make_subject(char *text)
{
    static const char letters[] = "aabbc(()) 12%]";
    uint32_t size = random_below(&seed, 14);
    for (uint32_t i = 0; i < size; i++) {
        text[i] = letters[random_below(&seed, sizeof letters - 1)];
    }
    text[size] = 0;
}

/* Calls one of the functions in a state and makes a text of what comes of it. */
static void run(lua_State *L, bool own, const char *call, const char *subject, const char *pattern,
                char *out, size_t size)
{
    int base = lua_gettop(L);
    if (own) {
        tn_vm_push_chunk(L, tn_bytes_of(call), "=t");
    } else {
        CHECK(luaL_loadstring(L, call) == LUA_OK);
    }
    lua_pushstring(L, subject);
    lua_pushstring(L, pattern);
    int status;
    if (own) {
        struct tn_err err = {0};
        status = tn_vm_call(tn_vm_of(L), 2, 1, &err);
        if (status != LUA_OK) {
            lua_pushliteral(L, "error");
        }
    } else {
        status = lua_pcall(L, 2, 1, 0);
    }
    (void)snprintf(out, size, "%s", status == LUA_OK ? lua_tostring(L, -1) : "error");
    lua_settop(L, base);
}

static const char *const calls[] = {
    "local t = table.pack(string.find(...)) for i = 1, t.n do t[i] = tostring(t[i]) end "
    "return table.concat(t, \"|\")",
    "local t = table.pack(string.match(...)) for i = 1, t.n do t[i] = tostring(t[i]) end "
    "return table.concat(t, \"|\")",
    "local s, p = ... local t = {} for a, b in string.gmatch(s, p) do "
    "t[#t + 1] = tostring(a) .. \",\" .. tostring(b) end return table.concat(t, \"|\")",
    "local s, p = ... local r, n = string.gsub(s, p, \"<%0>\") return r .. n",
    "local s, p = ... local r, n = string.gsub(s, p, \"%1\") return r .. n",
    "local s, p = ... local r, n = string.gsub(s, p, function(a) return \"{\" .. a .. \"}\" end) "
    "return r .. n",
    "local s, p = ... local r, n = string.gsub(s, p, {a = \"X\", b = false}) return r .. n",
    "local s, p = ... return tostring(string.find(s, p, 3)) .. tostring(string.find(s, p, -2))",
    "local s, p = ... return tostring(string.find(s, p, 1, true))",
};

static void patterns_match_as_luas_own_do(void)
{
    static struct given_state s;
    lua_State *theirs = luaL_newstate();
    CHECK(theirs);
    luaL_openlibs(theirs);
    open_state(&s, NULL);
    for (int i = 0; i < 60000; i++) {
        char pattern[64];
        char subject[16];
        char got[512];
        char want[512];
        make_pattern(pattern);
        make_subject(subject);
        const char *call = calls[random_below(&seed, COUNT(calls))];
        run(theirs, false, call, subject, pattern, want, sizeof want);
        run(s.vm.lua, true, call, subject, pattern, got, sizeof got);
        if (strcmp(got, want) != 0) {
            FAIL("%s\n'%s' in '%s': got %s, want %s", call, pattern, subject, got, want);
        }
    }
    lua_close(theirs);
}

/* Steps are counted, whatever the pattern does. */
static void a_match_ends_when_its_steps_are_used_up(void)
{
    static const char *const patterns[] = {".-.-.-.-x", "a*a*a*a*x", "(a-)(a-)(a-)x", "%b(a",
                                           "a?a?a?x"};
    static unsigned char subject[2000];
    memset(subject, 'a', sizeof subject);
    static struct tn_matcher m;
    for (size_t i = 0; i < COUNT(patterns); i++) {
        m.subject = (struct tn_bytes){subject, sizeof subject};
        m.pattern = tn_bytes_of(patterns[i]);
        m.steps_left = 3000;
        enum tn_pattern_result result = tn_pattern_match(&m, subject);
        CHECK(i >= 3 ? result == TN_PATTERN_NO : result == TN_PATTERN_SPENT);
    }
}

static void a_pattern_of_too_many_parts_is_refused(void)
{
    char pattern[1024] = "";
    for (int i = 0; i < 300; i++) {
        (void)strcat(pattern, "a?");
    }
    static unsigned char subject[400];
    memset(subject, 'a', sizeof subject);
    static struct tn_matcher m;
    m.subject = (struct tn_bytes){subject, sizeof subject};
    m.pattern = tn_bytes_of(pattern);
    m.steps_left = 100000;
    enum tn_pattern_result result = tn_pattern_match(&m, subject);
    CHECK(result == TN_PATTERN_WRONG && strcmp(m.reason, "pattern too complex") == 0);
}

static const struct test tests[] = {
    TEST(patterns_match_as_luas_own_do),
    TEST(a_match_ends_when_its_steps_are_used_up),
    TEST(a_pattern_of_too_many_parts_is_refused),
};

int main(int argc, char **argv)
{
    seed = given_number("SEED", 1);
    return run_tests(argc, argv, tests, COUNT(tests));
}
