--- Bounded stores, which `map` keeps from one record to the next, and over restarts.
--
--     local seen = tarn.state("seen", { size = 4096 })
--     seen[id] = row.ts
--
-- Keys are texts and integers, values texts, numbers and booleans. When a store is full, what was
-- written longest ago goes. Stores are made while the script loads. `merge` and `announce` have no
-- use for one: what they should know later is a column.
--
-- What a store has is saved with the place up to which records were taken: of a record that is
-- mapped again it knows nothing, and one that failed has left nothing in it.
--
-- @module tarn.state

local DEFAULT_SIZE = 4096
local ENTRY_SIZE = 32 -- bytes that each entry counts besides its text: more than when it is saved
local ALL_SIZE = 48 * 1024 -- of all stores together: they are saved as one text
local STORES_MAX = 16
local SLACK = 1024 -- bytes of changes that are always cheap enough
local NAME_SIZE_MAX = 64
local NOTED_SIZE_MAX = 16 * 1024 -- bytes of changes; when there are more, all of it is saved

local stores = {} -- by name
local names = {} -- in the order in which they were made
local taken = 0 -- bytes, by all of them
local sealed = false -- the script is loaded

-- What changed since it was saved, as texts.
local noted = { count = 0, size = 0, store = nil, whole = false }

-- How to take back what this call did, the newest last: five values each, an operation, a store,
-- and what that needs. [0] is how many; who calls `map` sets it to 0.
local undo = { [0] = 0 }
local mark = {} -- of `noted`, when the call began to change something

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
    if not kind then
        error(("byte %d: no kind of a value"):format(at - 1), 0)
    end
    local value, behind = string.unpack(FORMS[kind], text, at + 1)
    if kind == "boolean" then
        value = value == 1
    end
    return value, behind
end

local function drop_noted(whole)
    for at = noted.count, 1, -1 do
        noted[at] = nil
    end
    noted.count, noted.size, noted.store, noted.whole = 0, 0, nil, whole
end

local function note(store, text)
    if noted.whole then
        return
    end
    if noted.store ~= store then
        text = "S" .. string.pack("<s1", store.name) .. text
        noted.store = store
    end
    if noted.size + #text > NOTED_SIZE_MAX then
        drop_noted(true)
        return
    end
    noted.count = noted.count + 1
    noted[noted.count] = text
    noted.size = noted.size + #text
end

local function can_undo(operation, store, key, value, at)
    local n = undo[0]
    undo[n + 1], undo[n + 2], undo[n + 3], undo[n + 4] = operation, store, key, value
    undo[n + 5] = at
    undo[0] = n + 5
end

local function forget(store, key)
    local value = store.values[key]
    if value ~= nil then
        can_undo("forget", store, key, value, store.written[key])
        store.used = store.used - size_of(key) - size_of(value) - ENTRY_SIZE
        store.values[key], store.written[key] = nil, nil
    end
end

--- The queue has an entry for each write; only a key's newest counts.
local function drop_oldest(store)
    local at = store.first
    local key = store.queue[at]
    if store.written[key] == at then
        forget(store, key)
    end
    can_undo("drop", store, key, nil, at)
    store.queue[at] = nil
    store.first = at + 1
end

--- What takes memory comes behind what needs none: wherever it ends all of this is taken back.
local function add(store, key, value)
    can_undo("add", store, key, value, store.last + 1)
    store.last = store.last + 1
    store.used = store.used + size_of(key) + size_of(value) + ENTRY_SIZE
    store.queue[store.last], store.written[key] = key, store.last
    store.values[key] = value
end

local BACK = {
    forget = function(store, key, value, at)
        store.values[key], store.written[key] = value, at
        store.used = store.used + size_of(key) + size_of(value) + ENTRY_SIZE
    end,
    drop = function(store, key, _, at)
        store.queue[at] = key
        store.first = at
    end,
    add = function(store, key, value, at)
        store.values[key], store.written[key], store.queue[at] = nil, nil, nil
        store.used = store.used - size_of(key) - size_of(value) - ENTRY_SIZE
        store.last = at - 1
    end,
}

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

--- Places in a queue are what `undo` goes by: they change between calls only.
local function begin_change()
    if undo[0] > 0 then
        return
    end
    mark.count, mark.size, mark.store = noted.count, noted.size, noted.store
    for _, name in ipairs(names) do
        local store = stores[name]
        if store.last - store.first > 2 * store.count + 64 then
            compact(store)
        end
    end
end

local function put(store, key, value)
    forget(store, key)
    if value ~= nil then
        local size = size_of(key) + size_of(value) + ENTRY_SIZE
        while store.used + size > store.size do
            drop_oldest(store)
        end
        add(store, key, value)
    end
end

--- What a script writes.
local function write(store, key, value)
    local size = value ~= nil and size_of(key) + size_of(value) + ENTRY_SIZE or 0
    if size > store.size then
        error(("an entry of %d bytes; the store has %d"):format(size, store.size), 3)
    end
    if value == nil and store.values[key] == nil then
        return
    end
    begin_change()
    put(store, key, value)
    note(store, value == nil and "F" .. pack(key) or "P" .. pack(key) .. pack(value))
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
            write(store, key, value)
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
-- @tparam string name at most 64 bytes
-- @tparam[opt] table options `size`: bytes, 4096 by default, 49152 for all stores together
-- @treturn table read and written by key
-- @raise after the script was loaded, where the store is a new one
local function state(_, name, options)
    if type(name) ~= "string" or #name > NAME_SIZE_MAX then
        error(("tarn.state takes a name, of at most %d bytes"):format(NAME_SIZE_MAX), 2)
    end
    if not stores[name] then
        local size = options and options.size or DEFAULT_SIZE
        if sealed then
            error(("tarn.state '%s': stores are made while the script loads"):format(name), 2)
        end
        if math.type(size) ~= "integer" or size < 0 then
            error("a store's size is a number of bytes", 2)
        end
        if taken + size > ALL_SIZE or #names == STORES_MAX then
            error(
                ("%d stores of %d bytes; at most %d of %d in all"):format(
                    #names + 1,
                    taken + size,
                    STORES_MAX,
                    ALL_SIZE
                ),
                2
            )
        end
        taken = taken + size
        stores[name] = make(name, size)
        names[#names + 1] = name
    end
    return stores[name].handle
end

--- The script is loaded; for the engine, as all that follows.
-- @treturn integer bytes that all stores come to at most when they are saved
-- @treturn table its [0] is to be 0 before each call
function m.seal()
    sealed = true
    return taken + #names * (NAME_SIZE_MAX + 2), undo -- 0: there is none
end

--- Takes back what this call did.
function m.undo()
    for at = undo[0] - 4, 1, -5 do
        local operation, store = undo[at], undo[at + 1]
        BACK[operation](store, undo[at + 2], undo[at + 3], undo[at + 4])
    end
    if undo[0] > 0 and not noted.whole then
        for at = noted.count, mark.count + 1, -1 do
            noted[at] = nil
        end
        noted.count, noted.size, noted.store = mark.count, mark.size, mark.store
    end
    undo[0] = 0
end

--- All of it, oldest entries first: nothing is known of what was saved before.
local function image()
    local parts = {}
    for _, name in ipairs(names) do
        local store = stores[name]
        compact(store)
        parts[#parts + 1] = "S" .. string.pack("<s1", name)
        for at = 1, store.count do
            local key = store.queue[at]
            parts[#parts + 1] = "P" .. pack(key) .. pack(store.values[key])
        end
    end
    return table.concat(parts)
end

--- What changed since it was saved last.
-- @tparam integer saved bytes that were saved since all of it was, with it; nil: all is wanted
-- @tparam integer most bytes that may be saved so
-- @treturn ?string nil: nothing changed
-- @treturn boolean it is all of it
function m.changes(saved, most)
    local used = 0
    for _, name in ipairs(names) do
        used = used + stores[name].used
    end
    if saved and not noted.whole then
        if noted.count == 0 then
            return nil, false
        end
        local size = saved + noted.size
        if size <= most and size <= 2 * used + SLACK then
            return table.concat(noted, "", 1, noted.count), false
        end
    end
    undo[0] = 0
    return image(), true
end

--- Something changed since it was saved last.
-- @treturn boolean
function m.changed()
    return noted.whole or noted.count > 0
end

--- What `changes` gave is saved.
function m.saved()
    drop_noted(false)
end

--- Nothing is in any store, and nothing is to be saved.
function m.clear()
    for _, name in ipairs(names) do
        local store = stores[name]
        for key in pairs(store.values) do
            store.values[key] = nil
        end
        store.used, store.written, store.queue = 0, {}, {}
        store.first, store.last, store.count = 1, 0, 0
    end
    undo[0] = 0
    drop_noted(false)
end

local function unpack_name(text, at)
    return string.unpack("<s1", text, at)
end

--- What `changes` gave, back. What a store of today is too small for is left out, and so is a store
-- that the script doesn't have any more.
-- @tparam string text
-- @raise where it is none
function m.apply(text)
    local store
    local at = 1
    while at <= #text do
        local what = text:sub(at, at)
        local key, value
        if what == "S" then
            key, at = unpack_name(text, at + 1)
            store = stores[key]
        elseif what == "P" or what == "F" then
            key, at = unpack(text, at + 1)
            if what == "P" then
                value, at = unpack(text, at)
            end
            local size = value ~= nil and size_of(key) + size_of(value) + ENTRY_SIZE or 0
            if store and size <= store.size then
                put(store, key, value)
            end
        else
            error(("byte %d: no kind of a change"):format(at - 1), 0)
        end
        undo[0] = 0
    end
end

return setmetatable(m, { __call = state })
