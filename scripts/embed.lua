--- Prints files as the C header that compiles them in: an array NAME of struct tn_embedded, each
-- with its path below FOLDER as its name, dots for slashes, without the ending.
-- usage: lua5.4 scripts/embed.lua NAME FOLDER FILE... > build/NAME/gen/NAME.h

local BYTES_A_LINE = 24
local array, folder = arg[1], arg[2]

local function print_bytes(text)
    for at = 1, #text, BYTES_A_LINE do
        local bytes = { text:byte(at, at + BYTES_A_LINE - 1) }
        print("    " .. table.concat(bytes, ",") .. ",")
    end
end

print("/* Made from " .. table.concat(arg, " ", 3) .. ". */")
print('#pragma once\n\n#include "base/embed.h"\n')
local rows = {}
for index = 1, #arg - 2 do
    local path = arg[index + 2]
    local inside = path:sub(1, #folder + 1) == folder .. "/" and path:sub(#folder + 2)
    local name = assert(inside and inside:match("^([%w_/]+)%.%w+$"), path):gsub("/", ".")
    local file = assert(io.open(path, "rb"))
    local text = file:read("a")
    file:close()
    print(("static const unsigned char %s_%d[] = {"):format(array, index))
    print_bytes(text)
    print("};")
    rows[index] = ('    {"%s", {%s_%d, sizeof %s_%d}},'):format(name, array, index, array, index)
end
print(("static const struct tn_embedded %s[] = {"):format(array))
print(table.concat(rows, "\n"))
print("};")
