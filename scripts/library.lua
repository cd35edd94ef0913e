--- Prints tarn's Lua library as the C header that engine/script/library.c includes.
-- usage: lua5.4 scripts/library.lua lua/tarn/*.lua > build/NAME/gen/library.h

local BYTES_A_LINE = 24

local function print_bytes(text)
    for at = 1, #text, BYTES_A_LINE do
        local bytes = { text:byte(at, at + BYTES_A_LINE - 1) }
        print("    " .. table.concat(bytes, ",") .. ",")
    end
end

print("/* Made from " .. table.concat(arg, " ") .. ". */")
print("#pragma once\n")
local rows = {}
for index, path in ipairs(arg) do
    local name = assert(path:match("([%w_]+/[%w_]+)%.lua$"), path):gsub("/", ".")
    local file = assert(io.open(path, "rb"))
    local text = file:read("a")
    file:close()
    print(("static const unsigned char library_%d[] = {"):format(index))
    print_bytes(text)
    print("};")
    local row = '    {"%s", "=%s", library_%d, sizeof library_%d},'
    rows[index] = row:format(name, name, index, index)
end
print("static const struct tn_script_library library[] = {")
print(table.concat(rows, "\n"))
print("};")
