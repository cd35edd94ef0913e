--- Bounded stores, which `map` keeps from one record to the next, while its table is open.
--
--     local seen = tarn.state("seen", { size = 4096 })
--     seen[id] = row.ts
--
-- Keys are texts and integers, values texts, numbers and booleans. When a store is full, what was
-- written longest ago goes. `merge` and `announce` have no use for one: what they should know later
-- is a column.
--
-- @module tarn.state

local DEFAULT_SIZE = 4096
local ENTRY_SIZE = 32 -- bytes that each entry counts besides its text
local ALL_SIZE = 48 * 1024 -- of all stores together: they are saved as one text

local stores = {} -- by name
local taken = 0 -- bytes, by all of them
local saved = {} -- what was restored for a store that isn't there yet

local function size_of(value)
    return type(value) == "string" and #value or 8
end

local function check(what, value, types)
    if not types[math.type(value) or type(value)] then
        error(("a store's %s can't be a %s"):format(what, math.type(value) or type(value)), 3)
    end
end

local KEYS = { string = true, integer = true }
local VALUES = { string = true, integer = true, float = true, boolean = true }

local function forget(store, key)
    local value = store.values[key]
    if value ~= nil then
        store.used = store.used - size_of(key) - size_of(value) - ENTRY_SIZE
        store.values[key], store.written[key] = nil, nil
    end
end

--- The queue has an entry for each write; only a key's newest counts.
local function drop_oldest(store)
    local at = store.first
    local key = store.queue[at]
    store.queue[at] = nil
    store.first = at + 1
    if store.written[key] == at then
        forget(store, key)
    end
end

local function compact(store)
    local queue, written, count = {}, {}, 0
    for at = store.first, store.last do
        local key = store.queue[at]
        if store.written[key] == at then
            count = count + 1
            queue[count], written[key] = key, count
        end
    end
    store.queue, store.written, store.first, store.last = queue, written, 1, count
    store.count = count
end

local function put(store, key, value)
    forget(store, key)
    if value == nil then
        return
    end
    local size = size_of(key) + size_of(value) + ENTRY_SIZE
    if size > store.size then
        error(("an entry of %d bytes; the store has %d"):format(size, store.size), 3)
    end
    while store.used + size > store.size do
        drop_oldest(store)
    end
    store.last = store.last + 1
    store.queue[store.last], store.written[key] = key, store.last
    store.values[key] = value
    store.used = store.used + size
    if store.last - store.first > 2 * store.count + 64 then
        compact(store)
    end
end

local function make(name, size)
    local store = { name = name, size = size, used = 0, values = {}, written = {}, queue = {} }
    store.first, store.last, store.count = 1, 0, 0
    store.handle = setmetatable({}, {
        __index = store.values,
        __newindex = function(_, key, value)
            check("key", key, KEYS)
            if value ~= nil then
                check("value", value, VALUES)
            end
            put(store, key, value)
        end,
        __pairs = function()
            return function(_, key)
                return next(store.values, key)
            end
        end,
        __metatable = false,
    })
    return store
end

local m = {}

--- The store of a name; the same one each time.
-- @tparam string name
-- @tparam[opt] table options `size`: bytes, 4096 by default, 49152 for all stores together
-- @treturn table read and written by key
local function state(_, name, options)
    if type(name) ~= "string" then
        error("tarn.state takes a name", 2)
    end
    if not stores[name] then
        local size = options and options.size or DEFAULT_SIZE
        if taken + size > ALL_SIZE then
            error(("stores of %d bytes; at most %d in all"):format(taken + size, ALL_SIZE), 2)
        end
        taken = taken + size
        stores[name] = make(name, size)
        for _, entry in ipairs(saved[name] or {}) do
            put(stores[name], entry[1], entry[2])
        end
        saved[name] = nil
    end
    return stores[name].handle
end

local FORMS = { string = "<s4", integer = "<i8", float = "<n", boolean = "<B" }

local function pack(value)
    local kind = math.type(value) or type(value)
    if kind == "boolean" then
        value = value and 1 or 0
    end
    return kind:sub(1, 1) .. string.pack(FORMS[kind], value)
end

local KINDS = { s = "string", i = "integer", f = "float", b = "boolean" }

local function unpack(text, at)
    local kind = KINDS[text:sub(at, at)]
    local value, behind = string.unpack(FORMS[kind], text, at + 1)
    if kind == "boolean" then
        value = value == 1
    end
    return value, behind
end

--- All stores as one text, oldest entries first; for the engine.
-- @treturn string
function m.save()
    local names, parts = {}, {}
    for name in pairs(stores) do
        names[#names + 1] = name
    end
    table.sort(names)
    for _, name in ipairs(names) do
        local store = stores[name]
        compact(store)
        parts[#parts + 1] = string.pack("<s4I4", name, store.count)
        for at = 1, store.count do
            local key = store.queue[at]
            parts[#parts + 1] = pack(key)
            parts[#parts + 1] = pack(store.values[key])
        end
    end
    return table.concat(parts)
end

--- What `save` gave, back; for the engine, before or after the stores are asked for.
-- @tparam string text
function m.restore(text)
    local at = 1
    while at <= #text do
        local name, count
        name, count, at = string.unpack("<s4I4", text, at)
        local entries = {}
        for i = 1, count do
            local key, value
            key, at = unpack(text, at)
            value, at = unpack(text, at)
            entries[i] = { key, value }
        end
        if stores[name] then
            for _, entry in ipairs(entries) do
                put(stores[name], entry[1], entry[2])
            end
        else
            saved[name] = entries
        end
    end
end

return setmetatable(m, { __call = state })
