local function fresh()
    package.loaded["tarn.state"] = nil
    return require("tarn.state")
end

case("a store keeps the newest and stays in its size", function()
    local store = fresh()("seen", { size = 1000 })
    for i = 1, 10000 do
        store["key" .. i] = i
        store.fixed = i
        assert(store["key" .. i] == i and store.fixed == i)
    end
    local count = 0
    for _ in pairs(store) do
        count = count + 1
    end
    assert(count > 10 and count <= 1000 // 40)
    assert(store.key1 == nil)
end)

--- What was saved so far, in another process.
local function again(texts, sizes)
    local state = fresh()
    local stores = {}
    for _, name in ipairs({ "a", "b" }) do
        stores[name] = state(name, { size = sizes[name] })
    end
    for _, text in ipairs(texts) do
        state.apply(text)
    end
    return state, stores
end

case("what was saved is there again", function()
    local state = fresh()
    local a = state("a")
    a.text, a.float, a[7], a.flag, a.off = "x\0y", 1.5, math.mininteger, true, false
    state("b").n = 1
    local saved, all = state.changes(nil, 1000)
    assert(all)
    local other, stores = again({ saved }, { a = 4096, b = 4096 })
    a = stores.a
    assert(a.text == "x\0y" and a.float == 1.5 and a[7] == math.mininteger)
    assert(a.flag == true and a.off == false and stores.b.n == 1)
    assert(not other.changed() and other.changes(nil, 1000) == saved)
end)

local function write_some(stores)
    for _ = 1, math.random(0, 12) do
        local store = stores[math.random(2) == 1 and "a" or "b"]
        local key = math.random(3) == 1 and math.random(9) or "k" .. math.random(30)
        store[key] = math.random(4) > 1 and math.random(99) or nil
    end
end

--- One that is taken back, where nothing else waits to be saved: all of it shows, then.
local function fail_a_call(state, stores)
    local before = not state.changed() and state.changes(nil, 1e5)
    write_some(stores)
    state.undo()
    assert(not before or (not state.changed() and state.changes(nil, 1e5) == before))
end

--- Of `texts`, which are `size` bytes, comes what is saved now.
local function save(state, texts, size, most)
    local text, all = state.changes(size, most)
    texts = all and {} or texts
    texts[#texts + 1] = text
    state.saved()
    return texts, (all and 0 or size) + #(text or "")
end

-- Calls that write, that fail and are taken back, pieces that are saved: what was saved comes to
-- what the stores have, in an order that later evictions could tell from another.
case("changes come to the same as all, whatever failed between", function()
    for _ = 1, 200 do
        local sizes = { a = math.random(60, 600), b = math.random(60, 300) }
        local state, stores = again({}, sizes)
        local _, undo = state.seal()
        local texts, size = {}, nil
        for _ = 1, math.random(200) do
            undo[0] = 0
            if math.random(4) == 1 then
                fail_a_call(state, stores)
            else
                write_some(stores)
            end
            if math.random(3) == 1 then
                texts, size = save(state, texts, size, math.random(200, 5000))
            end
        end
        texts = save(state, texts, size, 1e5)
        assert(again(texts, sizes).changes(nil, 1e5) == state.changes(nil, 1e5))
    end
end)

case("a store takes texts, numbers and booleans", function()
    local store = fresh()("s", { size = 100 })
    assert(not pcall(function()
        store.x = {}
    end))
    assert(not pcall(function()
        store[1.5] = 1
    end))
    assert(not pcall(function()
        store.x = ("x"):rep(101)
    end))
    store.x = 1
    store.x = nil
    assert(store.x == nil)
end)

--- A state whose memory ends when the `last`th value is noted for taking a call back.
local function short_of_memory(last)
    local state = fresh()
    local store = state("s", { size = 170 })
    local _, undo = state.seal()
    store.a, store.b, store.c = 1, 2, 3
    state.saved()
    for at = 0, #undo do
        undo[at] = at == 0 and 0 or nil
    end
    setmetatable(undo, {
        __newindex = function(values, at, value)
            if at > last then
                error("not enough memory", 0)
            end
            rawset(values, at, value)
        end,
    })
    return state, store, undo
end

case("a call that memory ended anywhere leaves a store as it was", function()
    for last = 1, 40 do
        local state, store, undo = short_of_memory(last)
        local before = state.changes(nil, 1000)
        assert(not pcall(function()
            for i = 1, 9 do
                store[i % 2 == 0 and "b" or "k" .. i] = i
            end
        end))
        state.undo()
        assert(not state.changed() and state.changes(nil, 1000) == before, last)
        getmetatable(undo).__newindex = nil
        store.d = 4 -- as much as it has room for
        assert(store.a == 1 and store.b == 2 and store.c == 3 and store.d == 4, last)
    end
end)

case("all stores together have a bound", function()
    local state = fresh()
    state("a", { size = 40000 })
    assert(not pcall(state, "b", { size = 10000 }))
    state("b", { size = 9000 })
    for i = 3, 16 do
        state("s" .. i, { size = 0 })
    end
    assert(not pcall(state, "s17", { size = 0 }))
    assert(not pcall(state, ("n"):rep(65)))
end)

case("stores of one name are one store", function()
    local state = fresh()
    state("s").x = 1
    assert(state("s").x == 1 and state("t").x == nil)
    assert(not pcall(state, nil))
end)
