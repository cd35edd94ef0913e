--- Finds texts cited that a reader of the repo does not have: "format spec, 6", "design §4".
-- What helps instead: the class or option of Paimon, a public specification by name, or the reason.
-- usage: lua5.4 scripts/lint/citations.lua FILE...
-- Prints one line a finding, "file:line: what", and exits 1 when there was one.

-- Lua patterns, lower case; a comment's line breaks are one space.
local ABSENT_TEXTS = {
    "format spec%f[^%w_]",
    "behaviou?r spec%f[^%w_]",
    "spec of the format",
    "%f[%w_]spec §",
    "%f[%w_]design,? §",
    "%f[%w_]design, %d",
    "%f[%w_]design%.md",
}

local found = 0

for _, path in ipairs(arg) do
    local file = assert(io.open(path))
    local text = file:read("a"):lower()
    file:close()
    -- What is folded keeps its length, so that a place in it is a place in the file.
    local folded = text:gsub("\n[%s*/-]*", function(gap)
        return (" "):rep(#gap)
    end)
    for _, pattern in ipairs(ABSENT_TEXTS) do
        local spaced = pattern:gsub(" ", " +")
        for at, cited in folded:gmatch("()(" .. spaced .. ")") do
            local _, line = text:sub(1, at):gsub("\n", "\n")
            found = found + 1
            cited = cited:gsub(" +", " ")
            print(("%s:%d: '%s' is in no file of the repo"):format(path, line + 1, cited))
        end
    end
end
os.exit(found == 0 and 0 or 1)
