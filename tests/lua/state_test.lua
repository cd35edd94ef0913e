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
