local window = require("tarn.window")
local date = require("tarn.date")

case("each moment is in one window, also before 1970", function()
    for _, ts in ipairs({ 0, 1, 59999, 60000, -1, -60000, -60001, 1 << 60, -(1 << 60) }) do
        local start = window.start(ts, 60000)
        assert(start <= ts and ts < start + 60000 and start % 60000 == 0)
        start = window.start(ts, 86400000, 6 * 3600000)
        assert(start <= ts and ts < start + 86400000 and (start - 6 * 3600000) % 86400000 == 0)
    end
end)

case("a row is of the same window, the next or a late one", function()
    local function place(open, ts)
        local word, start = window.place(open, ts, 10)
        assert(start == ts // 10 * 10)
        return word
    end
    assert(place(nil, 5) == "next" and place(0, 9) == "same")
    assert(place(0, 10) == "next" and place(10, 9) == "late")
end)

case("something is due at the first time, and when its time is over", function()
    assert(window.due(nil, 5, 10) and not window.due(5, 14, 10) and window.due(5, 15, 10))
    assert(not window.due(5, 1, 10))
end)

case("dates are those of the system's calendar", function()
    for i = -2000, 2000 do
        local seconds = i * 7654321 + i * i
        local want = os.date("!*t", seconds)
        local got = date(seconds * 1000 + 250)
        assert(got.year == want.year and got.month == want.month and got.day == want.day)
        assert(got.hour == want.hour and got.minute == want.min and got.second == want.sec)
        assert(got.fraction == 250 and got.weekday == (want.wday + 5) % 7 + 1)
    end
    assert(date(1598924503057155568, "ns").fraction == 57155568)
    assert(date(-1, "us").year == 1969 and date(-1, "us").fraction == 999999)
    assert(not pcall(date, 0, "days"))
end)
