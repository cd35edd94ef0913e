local fold = require("tarn.fold")

--- Folds a list of values from nothing; false stands for NULL.
local function run(f, values)
    local now
    for _, value in ipairs(values) do
        now = f(now, value or nil)
    end
    return now
end

case("NULL changes no fold, before and behind values", function()
    for name, want in pairs({ max = 3, min = 1, last = 2, first = 3, sum = 6 }) do
        assert(run(fold[name], { false, 3, false, 1, 2, false }) == want, name)
        assert(run(fold[name], { false, false }) == nil, name)
    end
end)

case("a count counts rows, not values", function()
    assert(run(fold.count, { 1, false, 1 }) == 3)
end)

case("sums of integers are exact or an error", function()
    assert(fold.sum(1 << 62, (1 << 62) - 1) == math.maxinteger)
    assert(not pcall(fold.sum, math.maxinteger, 1))
    assert(not pcall(fold.sum, math.mininteger, -1))
    assert(fold.sum(math.maxinteger, math.mininteger) == -1)
    assert(math.type(fold.sum(1, 0.5)) == "float")
end)

case("a mean is that of all values, whatever their order", function()
    local values = {}
    for i = 1, 1000 do
        values[i] = i * 7919 % 1000 + 0.5
    end
    local mean, count
    for _, value in ipairs(values) do
        mean, count = fold.mean(mean, value, count)
        mean, count = fold.mean(mean, nil, count)
    end
    assert(count == 1000 and math.abs(mean - 500.0) < 1e-9)
    assert(fold.mean(nil, nil, nil) == nil)
    assert(math.type((fold.mean(nil, 3))) == "float")
end)

case("a union has each word once, in order", function()
    assert(fold.union(nil, "b,a") == "a,b")
    assert(fold.union("a,b", "b,c,,") == "a,b,c")
    assert(fold.union("", nil) == "")
    assert(fold.union(nil, nil) == nil)
    assert(fold.union("x; y", "z", "; ") == "x; y; z")
end)

case("unions are the same in every order", function()
    local words = { "heat", "door", "smoke", "door", "heat,smoke", "" }
    for _ = 1, 50 do
        for i = #words, 2, -1 do
            local j = math.random(i)
            words[i], words[j] = words[j], words[i]
        end
        assert(run(fold.union, words) == "door,heat,smoke")
    end
end)
