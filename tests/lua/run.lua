--- Runs tests of lua/ in plain Lua. usage: [SEED=N] lua5.4 tests/lua/run.lua tests/lua/*_test.lua
-- A test is case("what it believes", function() assert(...) end).

math.randomseed(tonumber(os.getenv("SEED")) or 1)
package.path = "lua/?.lua;" .. package.path

local passed, failed = 0, 0

function case(name, run)
    local fine, why = xpcall(run, debug.traceback)
    if fine then
        passed = passed + 1
    else
        failed = failed + 1
        print(name .. ": " .. why)
    end
end

for _, path in ipairs(arg) do
    dofile(path)
end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0)
