--- Prints a board's table as the C header that engine/base/budget.c includes.
-- usage: lua5.4 scripts/board.lua boards/NAME/board.lua > build/NAME/gen/board.h

local path = assert(arg[1], "usage: board.lua boards/NAME/board.lua")
local board = dofile(path)
local kinds = { pool = "TN_PART_POOL", arena = "TN_PART_ARENA", heap = "TN_PART_HEAP" }
local names = {}

--- Stops the build with the part's number when something in it can't be.
local function check(part, number)
    local function need(condition, what)
        if not condition then
            error(("%s: part %d: %s"):format(path, number, what), 0)
        end
    end
    need(type(part.name) == "string" and part.name:match("^%l[%l%d_]*$"), "name: lower-case word")
    need(not names[part.name], "a second " .. part.name)
    need(kinds[part.kind], "kind: pool, arena or heap")
    for _, key in ipairs({ "kib", "min" }) do
        local value = part[key]
        local pages = math.type(value) == "integer" and value > 0 and value % 4 == 0
        need(pages, key .. ": whole pages of 4 KiB")
    end
    need(part.min <= part.kib, "min is above kib")
    local parent = part.of and names[part.of]
    need(not part.of or parent and not parent.of, "of: a part above it, which is of none")
    if parent then
        parent.rest, parent.rest_min = parent.rest - part.kib, parent.rest_min - part.min
        need(parent.rest > 0 and parent.rest_min > 0, "nothing is left of " .. part.of)
    end
    names[part.name] = { of = part.of, rest = part.kib, rest_min = part.min }
end

local lines = {}
for number, part in ipairs(board.parts) do
    check(part, number)
    local kind = kinds[part.kind]
    local of = part.of and ('"%s"'):format(part.of) or "NULL"
    lines[number] = ('    X("%s", %s, %d, %d, %s)'):format(part.name, kind, part.kib, part.min, of)
end

print("/* Made from " .. path .. ". */")
print("#pragma once\n")
print(('#define TN_BOARD_NAME "%s"'):format(board.name))
print(("#define TN_BOARD_OTHER_KIB %d"):format(board.other_kib))
print(("#define TN_BOARD_UNIT_KIB %d"):format(board.unit_kib))
print("#define TN_BOARD_PARTS(X) \\")
print(table.concat(lines, " \\\n"))
