--- Runs one case of a script's `m.test`.
--
--     { merge = { nil, { temp = 3 } }, gives = { temp = 3, samples = 1 } }
--     { merge = { { ts = 2 }, { ts = 1 }, { late = true } }, gives = tarn.KEEP, name = "late" }
--     { announce = { { temp = 3 } } }                      gives nothing: no image
--     { map = { { t = 1 }, { topic = { "a" } } }, gives = { { temp = 1 } } }    a list of rows
--     { upload = { { link = { metered = true } } }, gives = { wait = 600 } }
--     { uploaded = { { table = "plant.t", snapshot = 7 } }, gives = "plant.t 7" }
--     { merge = { nil, { temp = "x" } }, raises = "is no number" }
--
-- `gives` names the columns that are looked at; others may be anything. A function in its place
-- gets the result and says whether it is right. Columns that a given row leaves out are NULL. What
-- a given state leaves out is 0, false or nil; the link is up, and the clock is synced. An event
-- has snapshot 1, and is of that one alone, unless it says more.
--
-- @module tarn.case

local HANDLERS = { "map", "merge", "retract", "announce", "upload", "uploaded" }
local MEMBERS = { gives = true, raises = true, name = true }
for _, name in ipairs(HANDLERS) do
    MEMBERS[name] = true
end

local function show(value)
    if type(value) == "string" then
        return ("%q"):format(value)
    end
    if type(value) ~= "table" then
        return tostring(value)
    end
    local parts = {}
    for key, item in pairs(value) do
        parts[#parts + 1] = tostring(key) .. " = " .. show(item)
    end
    table.sort(parts)
    return "{ " .. table.concat(parts, ", ") .. " }"
end

local function same(got, want)
    if got == want then
        return true
    end
    if got ~= got and want ~= want then
        return true -- NaN
    end
    return type(got) == "userdata" and want ~= nil and tostring(got) == tostring(want)
end

local function sorted_names(from)
    local names = {}
    for name in pairs(from) do
        names[#names + 1] = name
    end
    table.sort(names, function(a, b)
        return tostring(a) < tostring(b)
    end)
    return names
end

local function has_members(value)
    local word = value == tarn.KEEP or value == tarn.DELETE
    return type(value) == "table" or (type(value) == "userdata" and not word)
end

--- Looks only at what `want` names. Returns nil, or what differs.
local function difference(got, want)
    if type(want) == "function" then
        return not want(got) and "the case's function says no to " .. show(got) or nil
    end
    if type(want) ~= "table" or not has_members(got) then
        return not same(got, want) and ("got %s, want %s"):format(show(got), show(want)) or nil
    end
    for _, name in ipairs(sorted_names(want)) do
        local why = difference(got[name], want[name])
        if why then
            return tostring(name) .. ": " .. why
        end
    end
    return nil
end

-- ---- where no columns are known: rows are plain tables ----

local ROW = {
    __index = {
        copy = function(row)
            local copy = setmetatable({}, getmetatable(row))
            for name, value in pairs(row) do
                copy[name] = value
            end
            return copy
        end,
    },
}

local function plain_row(row)
    return row and ROW.__index.copy(setmetatable(row, ROW))
end

local function plain_ctx(ctx)
    ctx = ctx or {}
    return {
        kind = ctx.kind or "+I",
        sequence = ctx.sequence or 1,
        late = ctx.late or false,
        table = ctx.table or "test",
    }
end

local function plain_decide(handler, now, row, ctx)
    if type(handler) ~= "table" then
        local result = handler(now, row, ctx)
        if type(result) ~= "table" and result ~= tarn.KEEP and result ~= tarn.DELETE then
            error(("returned %s; want a row, tarn.KEEP or tarn.DELETE"):format(show(result)), 0)
        end
        return result
    end
    local result = row:copy()
    for name, fold in pairs(handler) do
        result[name] = fold(now and now[name], row[name], ctx)
    end
    return result
end

local function is_list(value)
    return type(value) == "table" and (#value > 0 or next(value) == nil)
end

local function as_list(value)
    if value == nil then
        return {}
    end
    return is_list(value) and value or { value }
end

--- What a handler gives for a case's arguments; with `host` as the engine would call it.
local function call(name, handler, given, host)
    if name == "upload" or name == "uploaded" then
        if given[2] ~= nil then
            local what = name == "upload" and "a state" or "an event"
            error(("a case of %s has %s and no ctx"):format(name, what), 0)
        end
        return host[name](given[1])
    end
    if name == "map" then
        local meta = given[2] or { topic = {}, received_ms = 0, clock = "synced", position = 0 }
        if host.map then
            return host.map(given[1], meta)
        end
        return as_list(handler(given[1], meta))
    end
    if name == "announce" then
        if host.announce then
            return host.announce(given[1])
        end
        return handler(plain_row(given[1]))
    end
    if host[name] then
        return host[name](given[1], given[2], given[3])
    end
    return plain_decide(handler, plain_row(given[1]), plain_row(given[2]), plain_ctx(given[3]))
end

--- As the engine has it: a `map` that fails has left nothing in the script's stores.
local function try(name, handler, given, host)
    host.begin()
    local fine, result = pcall(call, name, handler, given, host)
    if not fine and name == "map" then
        host.undo()
    end
    return fine, result
end

local function handler_of(case)
    for key in pairs(case) do
        if not MEMBERS[key] then
            error("a case has no '" .. tostring(key) .. "'", 0)
        end
    end
    for _, name in ipairs(HANDLERS) do
        if case[name] then
            return name
        end
    end
    error("a case names no handler; want one of " .. table.concat(HANDLERS, ", "), 0)
end

local function judge(case, name, fine, result)
    if case.raises then
        if fine then
            return ("got %s, want an error with %q"):format(show(result), case.raises)
        end
        local found = tostring(result):find(case.raises, 1, true)
        return not found and ("the error is %q, want %q"):format(result, case.raises) or nil
    end
    if not fine then
        return tostring(result)
    end
    if name == "map" then
        local want = type(case.gives) == "function" and case.gives or as_list(case.gives)
        if type(want) == "table" and #want ~= #result then
            return ("got %d rows, want %d"):format(#result, #want)
        end
        return difference(result, want)
    end
    return difference(result, case.gives)
end

--- @tparam table handlers the script's, by name
-- @tparam table case
-- @tparam table host the engine's upload and uploaded, begin and undo of what is written into
-- stores; where there are columns, merge, retract, announce, map
-- @treturn string name
-- @treturn boolean whether it passed
-- @treturn ?string why not
return function(handlers, case, host)
    if type(case) ~= "table" then
        return "a case", false, "it is a " .. type(case) .. ", not a table"
    end
    local known, name = pcall(handler_of, case)
    if not known then
        return tostring(case.name or "a case"), false, name
    end
    local title = case.name and name .. ": " .. case.name or name
    if not handlers[name] then
        return title, false, "the script has no " .. name
    end
    local why = judge(case, name, try(name, handlers[name], case[name], host))
    return title, why == nil, why
end
