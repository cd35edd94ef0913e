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

case("what was saved is there again, whenever the store is asked for", function()
    for _, early in ipairs({ true, false }) do
        local state = fresh()
        local a = state("a")
        a.text, a.float, a[7], a.flag, a.off = "x\0y", 1.5, math.mininteger, true, false
        state("b").n = 1
        local saved = state.save()
        state = fresh()
        local again = early and state("a")
        state.restore(saved)
        again = again or state("a")
        assert(again.text == "x\0y" and again.float == 1.5 and again[7] == math.mininteger)
        assert(again.flag == true and again.off == false and state("b").n == 1)
        assert(state.save() == saved)
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
end)

case("stores of one name are one store", function()
    local state = fresh()
    state("s").x = 1
    assert(state("s").x == 1 and state("t").x == nil)
    assert(not pcall(state, nil))
end)
