local deadband = require("tarn.deadband")

case("a slow ramp is told in time, and never more than a band away", function()
    local told
    local tellings = 0
    for i = 0, 1000 do
        local value = i * 0.3
        local new = deadband(told, value, 0.5)
        tellings = tellings + (new ~= told and 1 or 0)
        told = new
        assert(math.abs(value - told) < 0.5)
    end
    assert(tellings > 400)
end)

case("noise inside the band is told once", function()
    local told
    for i = 1, 100 do
        told = deadband(told, 20 + (i % 5) / 10, 0.5)
    end
    assert(told == 20.1)
end)

case("what is no number is told at once", function()
    assert(deadband(nil, 3, 1) == 3)
    assert(deadband(3, nil, 1) == nil)
    local nan = deadband(3, 0 / 0, 1)
    assert(nan ~= nan)
    assert(deadband(nan, 3, 1) == 3)
    assert(deadband(1, math.huge, 1) == math.huge)
    assert(deadband(math.huge, 1, 1) == 1)
end)

case("integers of all sizes keep their exact value", function()
    assert(deadband(math.maxinteger - 1, math.maxinteger, 1) == math.maxinteger)
    assert(deadband(5, 6, 2) == 5)
end)

case("a relative band grows with what was told", function()
    assert(deadband.relative(100, 100.9, 0.01) == 100)
    assert(deadband.relative(100, 101, 0.01) == 101)
    assert(deadband.relative(-100, -100.9, 0.01) == -100)
    assert(deadband.relative(nil, 1, 0.01) == 1)
    assert(deadband.relative(0, 0.001, 0.01) == 0.001)
end)

case("a switch with two thresholds does not flutter between them", function()
    local on = false
    local flips = 0
    for i = 1, 1000 do
        local new = deadband.hysteresis(on, 77.5 + 2 * math.sin(i), 75, 80)
        flips = flips + (new ~= on and 1 or 0)
        on = new
    end
    assert(flips == 0)
    assert(deadband.hysteresis(nil, 80, 75, 80) == false)
    assert(deadband.hysteresis(false, 80.1, 75, 80) == true)
    assert(deadband.hysteresis(true, 75, 75, 80) == true)
    assert(deadband.hysteresis(true, 74.9, 75, 80) == false)
    assert(deadband.hysteresis(true, nil, 75, 80) == true)
    assert(deadband.hysteresis(nil, nil, 75, 80) == false)
end)
